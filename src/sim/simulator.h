// A cluster in virtual time: manifests in, controllers and the scheduler at work until nothing is
// left to do, then the picture.
//
// One step: the objects are applied; controllers make what they own; the scheduler decides; its
// binds are carried out and the pods run at once. When nothing changes any more and a pod waits
// that a completion could help, time jumps to the next end of a run time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cluster/state.h"
#include "sched/config.h"
#include "sched/scheduler.h"
#include "sim/controllers.h"
#include "sim/manifest.h"
#include "sim/world.h"

namespace hopwise::sim {

struct SimulatorOptions {
  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  bool place_foreign = false;  // pods of every scheduler are placed
  sched::Config config = sched::DefaultConfig();
};

class Simulator {
 public:
  explicit Simulator(SimulatorOptions options = {});

  // Applies one step and runs until the cluster is quiet. An error means that it did not become so
  // within the bounds below.
  Status ApplyStep(const Manifest& manifest);
  // Lets all run times end, whoever waits.
  Status Drain();
  // Evicts a pod for the reason given and runs until quiet; pods with an owner or marked `recreate`
  // come back.
  Status EvictPod(const std::string& ns, const std::string& name, std::string_view why);

  // All objects as a v1 List, sorted by kind, namespace and name.
  [[nodiscard]] std::string Snapshot() const;
  // Complaints since the last call.
  std::vector<std::string> TakeWarnings() { return world_.TakeWarnings(); }

  [[nodiscard]] Time now() const { return world_.now; }
  [[nodiscard]] int steps() const { return steps_; }
  [[nodiscard]] const World& world() const { return world_; }
  cluster::State& state() { return *state_; }
  sched::Scheduler& scheduler() { return *scheduler_; }

  // Decisions one step may take, and decisions in a row that neither bind a pod nor end one.
  static constexpr int64_t kMaxDecisions = 2'000'000;
  static constexpr int64_t kMaxIdleDecisions = 1000;

 private:
  void ApplyObjects(const Manifest& manifest);
  void ResolveOwners(const Manifest& manifest);
  void FollowGivenTimes(const Manifest& manifest);
  Status RunUntilQuiet(bool drain);
  // Controllers and scheduler until nothing changes at this instant.
  Status Settle();
  bool Feed();
  bool IsToldOnly(const Key& key);
  void FeedObject(const Change& change);
  // The number of pods bound or evicted.
  int64_t CarryOut(const sched::Plan& plan);
  void Evict(const sched::Eviction& eviction);
  void TellEvicted(const json::Json& pod, std::string_view why);
  void Bind(const sched::Bind& bind, const std::string& scheduler);
  void Report(const sched::GangReport& report);
  void UpdateWaiting(const Key& key, const cluster::Gang& gang, const sched::GangReport& report);
  void ForgetSettled();
  void TellPods(const cluster::Gang& gang, const sched::GangReport& report, bool again);
  Status TellWaiting();
  [[nodiscard]] bool SomebodyMayBeHelped();
  bool JumpToNextEnd();
  void WarnOfMissingClasses(const Manifest& manifest);
  void WarnOfQueues();
  void WriteTopologyStatus();
  void WriteQueueStatus();

  World world_;
  Controllers controllers_;
  std::unique_ptr<cluster::State> state_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::string step_started_;
  std::string default_scheduler_;
  uint64_t topology_version_ = 0;
  bool topology_seen_ = false;
  std::vector<topology::Fault> told_faults_;
  std::set<std::string> told_queues_;
  int64_t decisions_ = 0;
  int steps_ = 0;
  std::set<GangId> untold_;  // wait for a reason that their pods may not show yet
  // Versions of pods that differ from what the state knows in their conditions only.
  std::map<Key, std::string> told_;
  std::set<GangId> hopeful_;  // wait for something that may come with time
};

// Puts an object into the scheduler's state, with ages that keep the order of creation within one
// second. False when it cannot be decoded.
bool ApplyToState(cluster::State& state, const Key& key, const Entry& entry,
                  const std::string& scheduler_name);

// The PodGroup a gang of the state comes from; nullptr for gangs without one.
const Key* PodGroupOf(const Store& store, const cluster::Gang& gang, Key& scratch);

}  // namespace hopwise::sim
