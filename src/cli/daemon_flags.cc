#include "cli/daemon_flags.h"

#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace hopwise::cli {
namespace {

void AddServerFlags(CLI::App* command, daemon::CommonOptions& options) {
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
  command->add_option(
      "--listen-address", options.listen_address,
      "Where /metrics, /healthz and /readyz are served; default " + options.listen_address);
  command->add_option("--healthz-address", options.healthz_address,
                      "Where /healthz and /readyz are served besides");
  command->add_option("--tls-cert-file", options.tls_cert_file,
                      "Serve HTTPS with this certificate");
  command->add_option("--tls-private-key-file", options.tls_key_file, "and this key");
  command->add_option("--client-ca-file", options.client_ca_file,
                      "and only to clients with a certificate of this CA");
}

void AddLeaseFlags(CLI::App* command, DaemonWords& words) {
  daemon::CommonOptions& options = words.options;
  command->add_flag("--leader-elect,!--no-leader-elect", options.leader_elect,
                    "Write only while holding the Lease (default)");
  command->add_option("--leader-elect-lease-duration", words.lease_duration, "Default 15s");
  command->add_option("--leader-elect-renew-deadline", words.renew_deadline, "Default 10s");
  command->add_option("--leader-elect-retry-period", words.retry_period, "Default 2s");
  command->add_option("--leader-elect-resource-name", options.lock_name,
                      "Name of the Lease; default " + options.lock_name);
  command->add_option("--lock-object-namespace,--leader-elect-resource-namespace",
                      options.lock_namespace, "Namespace of the Lease; default hopwise-system");
}

// Of Volcano's daemons and of klog, about what works otherwise here or not at all: taken, so that a
// command line can be kept, and warned of. Source: volcano cmd/*/app/options.
constexpr const char* kIgnoredFlags[] = {"--enable-healthz",
                                         "--enable-metrics",
                                         "--enable-pprof",
                                         "--leader-elect-resource-lock",
                                         "-v,--v",
                                         "--logtostderr",
                                         "--alsologtostderr",
                                         "--vmodule",
                                         "--stderrthreshold",
                                         "--log-file",
                                         "--log_file"};

// The same of a daemon without a Lease, and what only such a one has a use for.
constexpr const char* kLeaseFlags[] = {"--leader-elect",
                                       "--leader-elect-lease-duration",
                                       "--leader-elect-renew-deadline",
                                       "--leader-elect-retry-period",
                                       "--leader-elect-resource-name",
                                       "--leader-elect-resource-namespace",
                                       "--lock-object-namespace"};
constexpr const char* kUnleasedFlags[] = {"--ca-cert-file"};

}  // namespace

void AddDaemonFlags(CLI::App* command, DaemonWords& words) {
  AddServerFlags(command, words.options);
  if (words.has_lease) {
    AddLeaseFlags(command, words);
    AddForeignFlags(command, kUnleasedFlags, words.options.ignored_flags);
  } else {
    AddForeignFlags(command, kLeaseFlags, words.options.ignored_flags);
  }
  command->add_option("--startup-timeout", words.startup_timeout,
                      "How long an API server that does not answer is waited for at start");
  command->add_option("--log-level", words.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  command->add_option("--log-format", words.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  AddForeignFlags(command, kIgnoredFlags, words.options.ignored_flags);
}

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

std::string ReadDuration(const char* flag, const std::string& text, Duration& into) {
  const Result<Duration> duration = ParseGoDuration(text);
  if (!duration || duration->ns <= 0) {
    return fmt::format("{}: {} is no duration above zero, such as 15s or 1m30s", flag, text);
  }
  into = *duration;
  return "";
}

std::string ReadDaemonWords(DaemonWords& words) {
  daemon::CommonOptions& options = words.options;
  const std::tuple<const char*, const std::string*, Duration*> fields[] = {
      {"--leader-elect-lease-duration", &words.lease_duration, &options.lease_duration},
      {"--leader-elect-renew-deadline", &words.renew_deadline, &options.renew_deadline},
      {"--leader-elect-retry-period", &words.retry_period, &options.retry_period},
      {"--startup-timeout", &words.startup_timeout, &options.startup_timeout}};
  for (const auto& [flag, text, target] : fields) {
    if (std::string problem = ReadDuration(flag, *text, *target); !problem.empty()) {
      return problem;
    }
  }
  if (options.renew_deadline >= options.lease_duration ||
      options.retry_period >= options.renew_deadline) {
    return "--leader-elect-retry-period must be less than --leader-elect-renew-deadline, and that "
           "less than --leader-elect-lease-duration";
  }
  if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
    return "--tls-cert-file and --tls-private-key-file go together";
  }
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (LogLevelName(level) == words.log_level) {
      options.log_level = level;
    }
  }
  options.log_format = words.log_format == "json" ? rt::LogFormat::kJson : rt::LogFormat::kText;
  return "";
}

}  // namespace hopwise::cli
