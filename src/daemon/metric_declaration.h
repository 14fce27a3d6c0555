// How a daemon names its metrics.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kube/events.h"
#include "server/metrics.h"

namespace hopwise::daemon {

struct MetricDeclaration {
  enum class Type : uint8_t { kCounter, kGauge, kHistogram };
  std::string_view name;
  Type type = Type::kGauge;
  std::string_view help;
  std::vector<double> buckets = {};  // of a histogram
};

// Makes them all known, each once.
void Declare(const std::vector<MetricDeclaration>& declarations, server::Metrics& metrics);
// What every daemon counts of itself.
std::vector<MetricDeclaration> ProgramMetricDeclarations();
// Of these: the Events. `dropped`: as last counted.
void MeasureEvents(server::Metrics& metrics, const kube::EventRecorder& events, uint64_t& dropped);

}  // namespace hopwise::daemon
