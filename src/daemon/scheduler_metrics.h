// The metrics that `hopwise scheduler` has: Volcano's, by its names, and our own about the quality
// of places. What each means to an operator: docs/reference/metrics.md, which names exactly these.
#pragma once

#include <vector>

#include "daemon/metric_declaration.h"
#include "server/metrics.h"

namespace hopwise::daemon {

std::vector<MetricDeclaration> SchedulerMetricDeclarations();

// Makes them all known, each once.
void DeclareSchedulerMetrics(server::Metrics& metrics);

}  // namespace hopwise::daemon
