// The HyperNode controller's decisions: what the sources have found becomes HyperNodes, and all
// HyperNodes get a status. Pure but for log and metrics: events and answers in, writes out. The
// writes of a source are one batch; until it has ended the source is not planned again, and what
// the server answered counts as seen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "control/controller_config.h"
#include "control/discovery.h"
#include "daemon/carrier.h"
#include "daemon/effects.h"
#include "daemon/ufm_poller.h"
#include "kube/reflector.h"
#include "kube/resources.h"
#include "server/metrics.h"

namespace hopwise::daemon {

// Nodes come and change one after the other, and a domain is not written anew for each: nothing is
// planned before it was quiet for kPlanQuiet, or kMostPlanQuiet after the first change. Our own
// choice; a relabelled node must be told within 100 ms.
inline constexpr Duration kPlanQuiet = Millis(15);
inline constexpr Duration kMostPlanQuiet = Millis(45);
// Until a batch that failed is planned anew: after a conflict, of which the watch tells at once,
// and after anything else. Twice as long after each batch that wants the same as the one before,
// also one that went well: the server does not keep what is written.
inline constexpr Duration kConflictPause = Millis(200);
inline constexpr Duration kBatchPause = Seconds(5);
inline constexpr Duration kMostBatchPause = Seconds(60);
// Warnings of one discovery that are told one by one.
inline constexpr size_t kMostWarnings = 10;

struct ControllerEffects {
  std::vector<Batch> batches;
  std::vector<Tell> events;    // without a name: about the controller itself
  bool ports_refused = false;  // UFM's last answer is of no use

  [[nodiscard]] bool empty() const { return batches.empty() && events.empty() && !ports_refused; }
};

class TopologyController {
 public:
  explicit TopologyController(server::Metrics& metrics);
  ~TopologyController();
  TopologyController(const TopologyController&) = delete;
  TopologyController& operator=(const TopologyController&) = delete;

  // --- what happens
  // Nodes and HyperNodes; others are passed over.
  void Observe(const kube::Resource& resource, kube::WatchEvent&& event, Time now);
  // HyperNodes of a source that is not configured any more stay as they are.
  void SetConfig(const control::ControllerConfig& config, Time now);
  // What UFM has answered, or why it has not.
  void FoundPorts(Result<api::UfmPorts>&& ports, const UfmFailure& failure, Time now);
  void SetSynced(bool synced, Time now);
  void SetLeading(bool leading, Time now);
  void Wrote(WriteResult&& result, Time now);
  void Ended(uint64_t batch, bool ok, Time now);

  // --- what follows
  ControllerEffects Step(Time now);
  // When Step is next of use should nothing happen before; not set: never.
  [[nodiscard]] Time next_wake() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopwise::daemon
