// The metrics that `hopwise scheduler` has: Volcano's, by its names, and our own about the quality
// of places. What each means to an operator: docs/reference/metrics.md, which names exactly these.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/metrics.h"

namespace hopwise::daemon {

struct MetricDeclaration {
  enum class Type : uint8_t { kCounter, kGauge, kHistogram };
  std::string_view name;
  Type type = Type::kGauge;
  std::string_view help;
  std::vector<double> buckets = {};  // of a histogram
};
std::vector<MetricDeclaration> SchedulerMetricDeclarations();

// Makes them all known, each once.
void DeclareSchedulerMetrics(server::Metrics& metrics);

}  // namespace hopwise::daemon
