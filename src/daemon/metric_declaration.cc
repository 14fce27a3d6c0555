#include "daemon/metric_declaration.h"

#include <string>
#include <utility>

namespace hopwise::daemon {

using enum MetricDeclaration::Type;

std::vector<MetricDeclaration> ProgramMetricDeclarations() {
  return {
      {"hopwise_events_waiting", kGauge, "Events that wait to be written to the API server."},
      {"hopwise_events_dropped_total", kCounter,
       "Events that were given up because too many waited."},
      {"hopwise_config_reloads_total", kCounter,
       "Times that the configuration was read again, by what came of it."},
      {"hopwise_config_warnings", kGauge, "Warnings about the configuration in use."},
      {"hopwise_leader", kGauge, "1 while this process leads, else 0."},
      {"hopwise_reflector_lists_total", kCounter, "Complete lists taken from the API server."},
      {"hopwise_cache_synced", kGauge, "1 once the resource was listed in full."},
  };
}

void Declare(const std::vector<MetricDeclaration>& declarations, server::Metrics& metrics) {
  for (const MetricDeclaration& m : declarations) {
    const std::string name(m.name);
    const std::string help(m.help);
    switch (m.type) {
      case kCounter:
        metrics.DeclareCounter(name, help);
        break;
      case kGauge:
        metrics.DeclareGauge(name, help);
        break;
      case kHistogram:
        metrics.DeclareHistogram(name, help, m.buckets);
        break;
    }
  }
}

void MeasureEvents(server::Metrics& metrics, const kube::EventRecorder& events, uint64_t& dropped) {
  const kube::EventRecorder::Counts counts = events.counts();
  metrics.Set("hopwise_events_waiting", static_cast<double>(counts.waiting));
  if (counts.dropped > dropped) {
    metrics.Count("hopwise_events_dropped_total",
                  static_cast<double>(counts.dropped - std::exchange(dropped, counts.dropped)));
  }
}

}  // namespace hopwise::daemon
