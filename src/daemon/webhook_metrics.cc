#include "daemon/webhook_metrics.h"

#include "daemon/metric_declaration.h"

namespace hopwise::daemon {

using enum MetricDeclaration::Type;

void DeclareWebhookMetrics(server::Metrics& metrics) {
  std::vector<MetricDeclaration> all = {
      {kAdmissionReviews, kCounter,
       "Requests of the API server, by path, operation and what came of them."},
      {kAdmissionDuration,
       kHistogram,
       "Milliseconds from a whole request to its answer, by resource and verdict.",
       {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000, 10'000}},
      {kCertificateExpiry, kGauge, "When the certificate in use expires, as a Unix time."},
      {kCertificateChanges, kCounter, "Times that another certificate was taken into use."},
      {kCaBundlePatches, kCounter, "Times that a caBundle was written, by what came of it."},
  };
  const std::vector<MetricDeclaration> program = ProgramMetricDeclarations();
  all.insert(all.end(), program.begin(), program.end());
  Declare(all, metrics);
}

}  // namespace hopwise::daemon
