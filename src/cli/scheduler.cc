#include "cli/scheduler.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "daemon/options.h"

namespace hopwise::cli {
namespace {

constexpr const char* kSchedulerHelp = R"(
Schedules the pods of its scheduler names on the cluster of the kubeconfig (or, in a pod, on its
own), gang by gang, until it gets SIGTERM.

Examples:
  hopwise scheduler --kubeconfig ~/.kube/config --dry-run
  hopwise scheduler --scheduler-conf volcano-scheduler.conf --listen-address :8080

Exit status: 0 ended by a signal; 1 wrong credentials, missing permissions, no API server within
--startup-timeout, or another scheduler at work; 2 wrong use, or a configuration that cannot be
used.)";

// What the flags are parsed into before they become options.
struct Words {
  daemon::SchedulerOptions options;
  std::string lease_duration = "15s", renew_deadline = "10s", retry_period = "2s";
  std::string startup_timeout = "1m0s", gang_deadline = "1m0s";
  std::string log_level = "info", log_format = "text";
  std::vector<std::string> names, refused;
};

void AddServerFlags(CLI::App* command, daemon::SchedulerOptions& options) {
  command->add_option("--kubeconfig", options.kubeconfig,
                      "Default: $KUBECONFIG, in a pod its service account, else ~/.kube/config");
  command->add_option("--context", options.context, "A context of the kubeconfig");
  command->add_option("--master", options.master, "The API server, in place of the kubeconfig's");
  command->add_option("--kube-api-qps", options.qps, "Requests per second")
      ->check(CLI::PositiveNumber);
  command->add_option("--kube-api-burst", options.burst, "Requests at once after a pause")
      ->check(CLI::PositiveNumber);
  command->add_flag("--streaming-lists", options.streaming_lists,
                    "Ask for first lists as streams, not in pages");
  command->add_option("--listen-address", options.listen_address,
                      "Where /metrics, /healthz and /readyz are served");
  command->add_option("--healthz-address", options.healthz_address,
                      "Where /healthz and /readyz are served besides");
  command->add_option("--debug-address", options.debug_address,
                      "Where /debug/state is served; default the listen address if only this "
                      "machine reaches it, else 127.0.0.1:11252");
  command->add_option("--tls-cert-file", options.tls_cert_file,
                      "Serve HTTPS with this certificate");
  command->add_option("--tls-private-key-file", options.tls_key_file, "and this key");
  command->add_option("--client-ca-file", options.client_ca_file,
                      "and only to clients with a certificate of this CA");
}

void AddLeaseFlags(CLI::App* command, Words& words) {
  daemon::SchedulerOptions& options = words.options;
  command->add_flag("--leader-elect,!--no-leader-elect", options.leader_elect,
                    "Schedule only while holding the Lease (default)");
  command->add_option("--leader-elect-lease-duration", words.lease_duration, "Default 15s");
  command->add_option("--leader-elect-renew-deadline", words.renew_deadline, "Default 10s");
  command->add_option("--leader-elect-retry-period", words.retry_period, "Default 2s");
  command->add_option("--leader-elect-resource-name", options.lock_name,
                      "Name of the Lease; default hopwise-scheduler");
  command->add_option("--lock-object-namespace,--leader-elect-resource-namespace",
                      options.lock_namespace, "Namespace of the Lease; default hopwise-system");
  command->add_flag("--takeover", options.takeover,
                    "Start although another scheduler's Lease for a name is being renewed");
}

void AddSchedulingFlags(CLI::App* command, Words& words) {
  daemon::SchedulerOptions& options = words.options;
  command
      ->add_option(
          "--scheduler-name", words.names,
          "schedulerName of pods to place, instead of volcano and hopwise; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--scheduler-conf", options.scheduler_conf,
                      "A volcano-scheduler.conf; read again when its content changes");
  command->add_option("--default-queue", options.default_queue, "Queue of gangs that name none");
  command->add_option("--gang-deadline", words.gang_deadline,
                      "A gang that never was complete gives its room back after this");
  command->add_option("--startup-timeout", words.startup_timeout,
                      "How long an API server that does not answer is waited for at start");
  command->add_flag("--dry-run", options.dry_run, "Decide and log, write nothing");
  command->add_option("--log-level", words.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  command->add_option("--log-format", words.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
}

// Of Volcano's scheduler, about what works otherwise here or not at all: taken, so that its command
// line can be kept, and warned of. What would change which nodes or jobs are its own
// (--node-selector, --scheduler-sharding-mode) is refused. Source: volcano
// cmd/scheduler/app/options.
constexpr const char* kIgnoredFlags[] = {"--schedule-period",
                                         "--resync-period",
                                         "--priority-class",
                                         "--minimum-feasible-nodes",
                                         "--enable-healthz",
                                         "--minimum-percentage-nodes-to-find",
                                         "--enable-metrics",
                                         "--percentage-nodes-to-find",
                                         "--enable-pprof",
                                         "--plugins-dir",
                                         "--csi-storage",
                                         "--cache-dumper",
                                         "--cache-dump-dir",
                                         "--node-worker-threads",
                                         "--gate-removal-worker-num",
                                         "--ignored-provisioners",
                                         "--resource-sync-timeout",
                                         "--ca-cert-file",
                                         "--disable-default-scheduler-config",
                                         "--leader-elect-resource-lock",
                                         "-v,--v",
                                         "--logtostderr",
                                         "--alsologtostderr",
                                         "--vmodule",
                                         "--stderrthreshold",
                                         "--log-file",
                                         "--log_file"};

constexpr const char* kRefusedFlags[] = {"--node-selector", "--scheduler-sharding-mode",
                                         "--scheduler-sharding-name"};

// Flags that --help does not list and whose values nobody reads: those that are given go to
// `given`.
void AddForeignFlags(CLI::App* command, std::span<const char* const> flags,
                     std::vector<std::string>& given) {
  for (const char* flag : flags) {
    command
        ->add_option_function<std::vector<std::string>>(
            flag, [&given, flag](const std::vector<std::string>&) { given.emplace_back(flag); })
        ->expected(0, 1)
        ->group("");
  }
}

// "" or what is wrong.
std::string ReadDurations(Words& words) {
  daemon::SchedulerOptions& options = words.options;
  const std::tuple<const char*, const std::string*, Duration*> fields[] = {
      {"--leader-elect-lease-duration", &words.lease_duration, &options.lease_duration},
      {"--leader-elect-renew-deadline", &words.renew_deadline, &options.renew_deadline},
      {"--leader-elect-retry-period", &words.retry_period, &options.retry_period},
      {"--startup-timeout", &words.startup_timeout, &options.startup_timeout},
      {"--gang-deadline", &words.gang_deadline, &options.gang_deadline}};
  for (const auto& [flag, text, target] : fields) {
    const Result<Duration> duration = ParseGoDuration(*text);
    if (!duration || duration->ns <= 0) {
      return fmt::format("{}: {} is no duration above zero, such as 15s or 1m30s", flag, *text);
    }
    *target = *duration;
  }
  if (options.renew_deadline >= options.lease_duration ||
      options.retry_period >= options.renew_deadline) {
    return "--leader-elect-retry-period must be less than --leader-elect-renew-deadline, and that "
           "less than --leader-elect-lease-duration";
  }
  if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
    return "--tls-cert-file and --tls-private-key-file go together";
  }
  return "";
}

int RunWith(Words& words, Io& io) {
  if (const std::string problem = ReadDurations(words); !problem.empty()) {
    Complain(io, problem);
    return kUnusable;
  }
  daemon::SchedulerOptions& options = words.options;
  if (!words.names.empty()) {
    options.scheduler_names = words.names;
  }
  if (std::ranges::find(options.scheduler_names, "") != options.scheduler_names.end()) {
    Complain(io, "--scheduler-name: an empty name; pods without a schedulerName are not ours");
    return kUnusable;
  }
  if (!words.refused.empty()) {
    Complain(io, words.refused.front() +
                     " would let this scheduler see a part of the cluster only, and Hopwise places "
                     "on all of it: leave the flag out, and keep pods away from nodes by taints");
    return kUnusable;
  }
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (LogLevelName(level) == words.log_level) {
      options.log_level = level;
    }
  }
  options.log_format = words.log_format == "json" ? rt::LogFormat::kJson : rt::LogFormat::kText;
  return daemon::RunScheduler(options);
}

}  // namespace

std::function<int(Io&)> AddScheduler(CLI::App& app) {
  CLI::App* command = app.add_subcommand("scheduler", "Schedule a real cluster");
  command->footer(kSchedulerHelp);
  const auto words = std::make_shared<Words>();
  AddServerFlags(command, words->options);
  AddLeaseFlags(command, *words);
  AddSchedulingFlags(command, *words);
  AddForeignFlags(command, kIgnoredFlags, words->options.ignored_flags);
  AddForeignFlags(command, kRefusedFlags, words->refused);
  return [words](Io& io) { return RunWith(*words, io); };
}

}  // namespace hopwise::cli
