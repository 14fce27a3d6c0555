// What the scheduler's HTTP server answers: /metrics, /healthz, /readyz, /debug/state.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "daemon/watches.h"
#include "server/http_server.h"
#include "server/metrics.h"

namespace hopwise::daemon {

// The latest readiness, for threads that ask.
class ReadinessBox {
 public:
  void Set(const Readiness& readiness);
  [[nodiscard]] Readiness Get() const;

 private:
  mutable std::mutex mutex_;
  Readiness readiness_;
};

struct Endpoints {
  const ReadinessBox& readiness;
  const server::Metrics& metrics;
  std::function<bool()> alive;                // the core's thread answers
  std::function<Result<std::string>()> dump;  // DumpState
};

std::vector<std::pair<std::string, server::Handler>> HealthRoutes(const Endpoints& endpoints);
// The former and /metrics.
std::vector<std::pair<std::string, server::Handler>> MetricsRoutes(const Endpoints& endpoints);
// What is not for everybody: names of all pods and what they ask for.
std::vector<std::pair<std::string, server::Handler>> DebugRoutes(const Endpoints& endpoints);

}  // namespace hopwise::daemon
