#include "daemon/controller_metrics.h"

namespace hopwise::daemon {

using enum MetricDeclaration::Type;

std::vector<MetricDeclaration> ControllerMetricDeclarations() {
  std::vector<MetricDeclaration> all = {
      {"hopwise_discovered_domains", kGauge, "Domains that the source found last."},
      {"hopwise_discovery_warnings", kGauge,
       "What the source found last and could not take as it was."},
      {"hopwise_discovery_requests_total", kCounter,
       "Times that the source was asked, by what came of it."},
      {"hopwise_discovery_failing", kGauge,
       "1 while the source's last answer could not be used, else 0."},
      {"hopwise_discovery_held", kGauge,
       "1 while what the source found is held because it would delete too much, else 0."},
      {"hopwise_hypernodes_broken", kGauge,
       "Faults that take a HyperNode out of its tree, such as a cycle."},
      {"hopwise_controller_write_failures_total", kCounter,
       "Writes that the API server refused for good, by resource."},
      {"volcano_job_completed_phase_count", kCounter, "vcjobs that completed, by job and queue."},
      {"volcano_job_failed_phase_count", kCounter, "vcjobs that failed, by job and queue."},
  };
  const std::vector<MetricDeclaration> program = ProgramMetricDeclarations();
  all.insert(all.end(), program.begin(), program.end());
  return all;
}

void DeclareControllerMetrics(server::Metrics& metrics) {
  Declare(ControllerMetricDeclarations(), metrics);
}

}  // namespace hopwise::daemon
