// The metrics that `hopwise controller` has. What each means to an operator:
// docs/reference/controller.md, which names exactly these.
#pragma once

#include <vector>

#include "daemon/metric_declaration.h"
#include "server/metrics.h"

namespace hopwise::daemon {

std::vector<MetricDeclaration> ControllerMetricDeclarations();

// Makes them all known, each once.
void DeclareControllerMetrics(server::Metrics& metrics);

}  // namespace hopwise::daemon
