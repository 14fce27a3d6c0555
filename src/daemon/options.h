// What the daemons are told on their command lines (the webhook: webhook_options.h). Flags that
// Volcano's have too keep their names; docs/reference/scheduler.md and controller.md have the
// tables.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "control/job_controller.h"
#include "kube/lease.h"
#include "rt/log_sink.h"

namespace hopwise::daemon {

// What every daemon is told.
struct CommonOptions {
  std::string kubeconfig, context, master;
  bool streaming_lists = false;
  double qps = 2000;
  int burst = 2000;
  Duration startup_timeout = Seconds(60);

  bool leader_elect = true;
  Duration lease_duration = kube::kLeaseDuration;
  Duration renew_deadline = kube::kRenewDeadline;
  Duration retry_period = kube::kRetryPeriod;
  std::string lock_namespace = "hopwise-system";
  std::string lock_name;

  std::string listen_address;
  std::string healthz_address;  // "": on the listen address alone
  std::string tls_cert_file, tls_key_file, client_ca_file;

  std::vector<std::string> ignored_flags;  // given, and without a meaning here
  LogLevel log_level = LogLevel::kInfo;
  rt::LogFormat log_format = rt::LogFormat::kText;
};

struct SchedulerOptions : CommonOptions {
  SchedulerOptions() {
    lock_name = "hopwise-scheduler";
    listen_address = "127.0.0.1:8080";
  }

  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  std::string scheduler_conf;  // "": the built-in default
  std::string default_queue = "default";
  bool takeover = false;      // although another scheduler's Lease is being renewed
  std::string debug_address;  // "": the listen address if only this machine reaches it
  Duration gang_deadline = Seconds(60);
  Duration group_wait = Seconds(1);
  bool dry_run = false;
};

struct ControllerOptions : CommonOptions {
  ControllerOptions() {
    lock_name = "hopwise-controller";
    listen_address = "127.0.0.1:8081";
  }

  // A volcano-controller.conf: a file, or namespace/name of a ConfigMap with that key. Neither: no
  // source is configured.
  std::string conf_file, conf_map_ns, conf_map_name;

  // Controllers that are switched on.
  bool hypernodes = true, jobs = true, pod_groups = true, queues = true;
  // Pods of these get PodGroups.
  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  std::string default_queue = "default";
  bool inherit_owner_annotations = true;
  int most_failures = control::kMostFailures;  // 0: no job is given up
};

// Both run until SIGTERM or SIGINT. Exit codes: 0 ended by a signal; 1 credentials, permissions, an
// API server that could not be reached in time, an address that cannot be listened on, another
// scheduler at work; 2 a configuration or an option that cannot be used. What went wrong stands on
// standard error.
int RunScheduler(const SchedulerOptions& options);
int RunController(const ControllerOptions& options);

}  // namespace hopwise::daemon
