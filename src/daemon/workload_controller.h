// The workload controllers' decisions on a real cluster: vcjobs, PodGroups of pods that have none,
// and queue states. What each object needs is said by control/ (job_controller.h,
// pod_group_controller.h, queue_controller.h); here it is kept track of which object must be looked
// at, when, and what became of the writes. Pure but for log and metrics: events and answers in,
// writes out. An object whose writes are under way is not looked at before they have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "control/job_plugins.h"
#include "daemon/carrier.h"
#include "daemon/effects.h"
#include "daemon/options.h"
#include "kube/reflector.h"
#include "kube/resources.h"
#include "server/metrics.h"

namespace hopwise::daemon {

// News of one object come close together: it is looked at this long after the first.
inline constexpr Duration kWorkQuiet = Millis(5);
// The same where only pods changed: those of a gang are bound, start and end one after the other,
// and each look writes the counts of the job's status anew.
inline constexpr Duration kPodsQuiet = Millis(100);
// Until an object whose writes failed is looked at again: after a conflict, of which the watch
// tells at once; after an API server that cannot be reached; and after a refusal, twice as long
// each time.
inline constexpr Duration kConflictWait = Millis(200);
inline constexpr int kMostQuickConflicts = 5;
inline constexpr Duration kUnreachableWait = Seconds(1);
inline constexpr Duration kRefusalWait = Seconds(2);
inline constexpr Duration kMostRefusalWait = Seconds(120);

struct WorkEffects {
  std::vector<Batch> batches;
  std::vector<Tell> events;

  [[nodiscard]] bool empty() const { return batches.empty() && events.empty(); }
};

class WorkloadController {
 public:
  // `keys`: a new pair, nothing while it is being made.
  WorkloadController(const ControllerOptions& options, server::Metrics& metrics,
                     std::function<std::optional<control::SshKeys>()> keys);
  ~WorkloadController();
  WorkloadController(const WorkloadController&) = delete;
  WorkloadController& operator=(const WorkloadController&) = delete;

  // --- what happens
  // Of the kinds in WatchedWorkloads; others are passed over.
  void Observe(const kube::Resource& resource, kube::WatchEvent&& event, Time now);
  void SetSynced(bool synced, Time now);
  void SetLeading(bool leading, Time now);
  void Wrote(uint64_t batch, const WriteResult& result, Time now);
  void Ended(uint64_t batch, bool ok, Time now);

  // --- what follows
  WorkEffects Step(Time now);
  // When Step is next of use should nothing happen before; not set: never.
  [[nodiscard]] Time next_wake() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct WatchedKind {
  kube::Resource resource;
  bool optional = false;  // a CRD, which may be missing
};
// What the controllers that are switched on must see.
std::vector<WatchedKind> WatchedWorkloads(const ControllerOptions& options);

}  // namespace hopwise::daemon
