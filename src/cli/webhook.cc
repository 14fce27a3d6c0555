#include "cli/webhook.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/daemon_flags.h"
#include "control/admission.h"
#include "daemon/webhook_options.h"

namespace hopwise::cli {
namespace {

constexpr const char* kWebhookHelp = R"(
Answers the API server's questions about Jobs, PodGroups, Queues, HyperNodes and pods that are
applied: fills in what they leave out, and says what cannot be used. Runs until it gets SIGTERM.
deploy/webhook has the manifests that make the API server ask.

Examples:
  hopwise webhook
  hopwise webhook --tls-cert-file tls.crt --tls-private-key-file tls.key --ca-cert-file ca.crt
  hopwise webhook --enabled-admission /jobs/mutate,/jobs/validate --hypernode-faults refuse

Exit status: 0 ended by a signal; 1 wrong credentials, missing permissions, or no API server within
--startup-timeout; 2 wrong use, or a configuration that cannot be used.)";

constexpr const char* kGateFeature = "SchedulingGatesQueueAdmission";
constexpr int kLargestPort = 65535;
// A certificate must outlive a few looks at its Secret.
constexpr Duration kLeastValidity = Seconds(10);

struct Words {
  daemon::WebhookOptions options;
  DaemonWords common{options, false};
  std::vector<std::string> names, features;
  std::string validity = "2160h", graceful = "5s", faults = "warn";
};

void AddRuleFlags(CLI::App* command, Words& words) {
  daemon::WebhookOptions& options = words.options;
  command
      ->add_option("--enabled-admission", options.enabled_admission,
                   "Paths to serve, by commas; default all")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--admission-conf", options.admission_conf,
                      "Resource groups for pods; read again when its content changes");
  command
      ->add_option("--scheduler-name", words.names,
                   "Whose pods are judged, instead of volcano and hopwise; the first is that of "
                   "Jobs without one; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--default-queue", options.default_queue, "Queue of what names none");
  command->add_option("--max-queue-depth", options.max_queue_depth, "Levels of queues below root")
      ->check(CLI::PositiveNumber);
  command->add_flag("--enable-queue-allocated-pods-check", options.check_allocated_pods,
                    "A queue with running pods gets no first child; default false");
  command->add_flag("--enable-root-queue-protection", options.protect_root,
                    "The amounts of the queue root stay as they are; default true");
  command
      ->add_option("--hypernode-faults", words.faults,
                   "warn (default) or refuse: cycles, second parents, overlaps and tiers out of "
                   "order")
      ->check(CLI::IsMember({"warn", "refuse"}));
  command
      ->add_option("--feature-gates", words.features,
                   "SchedulingGatesQueueAdmission=true: inject the queue-allocation gate")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void AddAddressFlags(CLI::App* command, Words& words) {
  daemon::WebhookOptions& options = words.options;
  command->add_option("--port", options.port, "Where AdmissionReviews are answered; default 8443")
      ->check(CLI::Range(0, kLargestPort));
  command->add_option("--bind-address", options.bind_address,
                      "The address of that port; default all");
  command->add_option("--graceful-shutdown-time", words.graceful,
                      "How long requests are answered after SIGTERM; default 5s");
  command->add_option("--webhook-namespace", options.webhook_namespace,
                      "Namespace of the Service and the Secret; default hopwise-system");
  command->add_option("--webhook-service-name", options.webhook_service,
                      "The Service that the API server calls; default hopwise-webhook");
  command->add_option("--ca-cert-file", options.ca_cert_file,
                      "With a certificate of yours: the CA to write into caBundle");
  command->add_option("--certificate-secret", options.certificate_secret,
                      "Where issued certificates are kept; default hopwise-webhook-tls");
  command
      ->add_option("--certificate-names", options.certificate_names,
                   "Further names and addresses for them, by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--certificate-validity", words.validity,
                      "How long they are good; renewed when a third is left; default 2160h");
  command
      ->add_option("--webhook-configurations", options.webhook_configurations,
                   "Names of WebhookConfigurations whose caBundle is kept, by commas, or none; "
                   "default hopwise-webhook,hopwise-webhook-pods")
      ->delimiter(',')
      ->allow_extra_args(false);
}

// Of Volcano's webhook manager. Source: volcano cmd/webhook-manager/app/options.
constexpr const char* kIgnoredFlags[] = {"--webhook-url"};

std::string ReadFeatures(const std::vector<std::string>& features,
                         daemon::WebhookOptions& options) {
  for (const std::string& feature : features) {
    const size_t equals = std::min(feature.find('='), feature.size());
    const std::string value = feature.substr(std::min(equals + 1, feature.size()));
    if (value != "true" && value != "false") {
      return fmt::format("--feature-gates: {} is not <name>=true or <name>=false", feature);
    }
    if (feature.substr(0, equals) == kGateFeature) {
      options.gate_pods = value == "true";
    } else {
      options.ignored_flags.push_back("--feature-gates " + feature);
    }
  }
  return "";
}

std::string ReadWords(Words& words) {
  daemon::WebhookOptions& options = words.options;
  std::string problem = ReadDaemonWords(words.common);
  const std::pair<const char*, std::pair<const std::string*, Duration*>> durations[] = {
      {"--certificate-validity", {&words.validity, &options.certificate_validity}},
      {"--graceful-shutdown-time", {&words.graceful, &options.graceful_shutdown}}};
  for (const auto& [flag, target] : durations) {
    if (!problem.empty()) return problem;
    // None is no time to leave in.
    const bool none = *target.first == "0" || *target.first == "0s";
    if (none && target.second == &options.graceful_shutdown) {
      options.graceful_shutdown = {};
    } else {
      problem = ReadDuration(flag, *target.first, *target.second);
    }
  }
  if (!problem.empty()) return problem;
  if (options.certificate_validity < kLeastValidity) {
    return "--certificate-validity: must be at least " + FormatGoDuration(kLeastValidity);
  }
  for (const std::string& path : options.enabled_admission) {
    if (control::FindAdmissionService(path) != nullptr) continue;
    std::string known;
    for (const control::AdmissionService& service : control::AdmissionServices()) {
      known += (known.empty() ? "" : ", ") + std::string(service.path);
    }
    return fmt::format("--enabled-admission: {} is none of {}", path, known);
  }
  if (!options.ca_cert_file.empty() && options.issues_certificates()) {
    return "--ca-cert-file goes with --tls-cert-file; certificates that are issued here have a CA "
           "of their own";
  }
  std::erase(options.webhook_configurations, "none");
  if (!words.names.empty()) options.scheduler_names = words.names;
  options.refuse_hyper_node_faults = words.faults == "refuse";
  return ReadFeatures(words.features, options);
}

}  // namespace

std::function<int(Io&)> AddWebhook(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("webhook", "Judge what is applied to a real cluster, and fill it in");
  command->footer(kWebhookHelp);
  const auto words = std::make_shared<Words>();
  AddDaemonFlags(command, words->common);
  AddAddressFlags(command, *words);
  AddRuleFlags(command, *words);
  AddForeignFlags(command, kIgnoredFlags, words->options.ignored_flags);
  return [words](Io& io) {
    if (const std::string problem = ReadWords(*words); !problem.empty()) {
      Complain(io, problem);
      return kUnusable;
    }
    return daemon::RunWebhook(words->options);
  };
}

}  // namespace hopwise::cli
