// What `hopwise webhook` is told on its command line. Flags that Volcano's webhook manager has too
// keep their names; docs/reference/webhook.md has the table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "daemon/options.h"

namespace hopwise::daemon {

struct WebhookOptions : CommonOptions {
  WebhookOptions() {
    leader_elect = false;  // all replicas answer
    listen_address = "127.0.0.1:8082";
  }

  std::string bind_address;  // host of the admission port; "": all interfaces
  int port = 8443;
  std::vector<std::string> enabled_admission;  // paths; empty: all
  std::string admission_conf;                  // "": no resource groups

  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  std::string default_queue = "default";
  int max_queue_depth = 5;
  bool check_allocated_pods = false;
  bool protect_root = true;
  bool refuse_hyper_node_faults = false;
  bool gate_pods = false;

  // The Service that the API server calls, for the names in the certificate.
  std::string webhook_namespace = "hopwise-system", webhook_service = "hopwise-webhook";
  std::string certificate_secret = "hopwise-webhook-tls";
  std::vector<std::string> certificate_names;  // further ones
  Duration certificate_validity = Seconds(int64_t{90} * 86'400);
  // Of mutating and validating WebhookConfigurations, whose caBundle is kept.
  std::vector<std::string> webhook_configurations = {"hopwise-webhook", "hopwise-webhook-pods"};
  std::string ca_cert_file;  // with given certificates: what goes into caBundle
  Duration graceful_shutdown = Seconds(5);

  [[nodiscard]] bool issues_certificates() const { return tls_cert_file.empty(); }
  [[nodiscard]] bool publishes_ca() const {
    return !webhook_configurations.empty() && (issues_certificates() || !ca_cert_file.empty());
  }
  // Whether the service at this path is served.
  [[nodiscard]] bool serves(std::string_view path) const;
};

// What of the cluster the services look up.
struct WebhookNeeds {
  bool queues = false, fabric = false, namespaces = false;
};
WebhookNeeds NeedsOf(const WebhookOptions& options);

// Runs until SIGTERM or SIGINT. Exit codes as those of RunScheduler.
int RunWebhook(const WebhookOptions& options);

}  // namespace hopwise::daemon
