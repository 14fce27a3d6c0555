// The controllers of one process, on one thread.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "daemon/topology_controller.h"
#include "daemon/workload_controller.h"

namespace hopwise::daemon {

struct ControllerCore {
  TopologyController topology;
  WorkloadController work;

  ControllerCore(const ControllerOptions& options, server::Metrics& metrics,
                 std::function<std::optional<control::SshKeys>()> keys)
      : topology(metrics), work(options, metrics, std::move(keys)) {}

  [[nodiscard]] Time next_wake() const {
    const Time a = topology.next_wake();
    const Time b = work.next_wake();
    return !a.set() ? b : !b.set() ? a : std::min(a, b);
  }
};

}  // namespace hopwise::daemon
