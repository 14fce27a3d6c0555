// What the core tells its metrics. Names and meanings: docs/reference/metrics.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "cluster/state.h"
#include "sched/plan.h"
#include "server/metrics.h"

namespace hopwise::daemon {

void ObserveMs(server::Metrics& metrics, const std::string& name, Duration took,
               const server::Labels& labels = {});

// One run of the scheduler: how long it took and what came of it.
void MeasureRun(server::Metrics& metrics, cluster::State& state, const sched::Plan& plan,
                Duration took, Time now);

// Queues, and who waits and why. `waiting`: by gang "ml/a", how many pods of it wait.
void MeasureState(server::Metrics& metrics, const cluster::State& state,
                  const std::map<std::string, int64_t>& waiting_by_reason,
                  const std::map<std::string, int64_t>& waiting);

// A pod reached a stage of Volcano's: Watched, Assumed, PreBound, Bound.
void MeasureStage(server::Metrics& metrics, const cluster::PodRecord& pod, const char* stage,
                  Time now);

// The gang is gone: what was kept of it by name goes.
void DropGang(server::Metrics& metrics, const cluster::Gang& gang);

}  // namespace hopwise::daemon
