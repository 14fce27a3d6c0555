// What `hopwise scheduler` is told on its command line. Flags that Volcano's scheduler has too keep
// its names; docs/reference/scheduler.md has the table.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "kube/lease.h"
#include "rt/log_sink.h"

namespace hopwise::daemon {

struct SchedulerOptions {
  std::string kubeconfig, context, master;
  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  std::string scheduler_conf;  // "": the built-in default
  std::string default_queue = "default";

  bool leader_elect = true;
  Duration lease_duration = kube::kLeaseDuration;
  Duration renew_deadline = kube::kRenewDeadline;
  Duration retry_period = kube::kRetryPeriod;
  std::string lock_namespace = "hopwise-system";
  std::string lock_name = "hopwise-scheduler";
  bool takeover = false;  // although another scheduler's Lease is being renewed

  bool streaming_lists = false;
  double qps = 2000;
  int burst = 2000;
  std::string listen_address = "127.0.0.1:8080";
  std::string healthz_address;  // "": on the listen address alone
  std::string debug_address;    // "": the listen address if only this machine reaches it
  std::string tls_cert_file, tls_key_file, client_ca_file;

  Duration startup_timeout = Seconds(60);
  Duration gang_deadline = Seconds(60);
  bool dry_run = false;
  std::vector<std::string> ignored_flags;  // given, and without a meaning here
  LogLevel log_level = LogLevel::kInfo;
  rt::LogFormat log_format = rt::LogFormat::kText;
};

// Runs until SIGTERM or SIGINT. Exit codes: 0 ended by a signal; 1
// credentials, permissions, an API server that could not be reached in time, an address that cannot
// be listened on, another scheduler at work; 2 a configuration or an option that
// cannot be used. What went wrong stands on standard error.
int RunScheduler(const SchedulerOptions& options);

}  // namespace hopwise::daemon
