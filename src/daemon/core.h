// The scheduler's side of the daemon: what the API server says in, effects out. One thread, no I/O,
// told the time: so the tests drive it by hand.
//
// Observe keeps the state current, leading or not. Step decides when it may (synced, leading, not
// stopping) and something changed, and says what is to be written. Whatever it assumes, a later
// Observe or BindEnded confirms or takes back; nothing here could not be rebuilt from the API
// server.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/state.h"
#include "daemon/effects.h"
#include "daemon/fabric_faults.h"
#include "daemon/gatherer.h"
#include "daemon/group_awaiter.h"
#include "daemon/half_bound.h"
#include "daemon/pod_groups.h"
#include "daemon/queue_statuses.h"
#include "daemon/waiters.h"
#include "kube/errors.h"
#include "kube/reflector.h"
#include "sched/config.h"
#include "sched/scheduler.h"
#include "server/metrics.h"

namespace hopwise::daemon {

struct CoreOptions {
  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  std::string default_queue = "default";
  // A gang that never reached its minimum gives back what it holds after this.
  Duration gang_deadline = Seconds(60);
  // So long a workload's pod that names no gang waits for its PodGroup; see group_awaiter.h.
  Duration group_wait = Seconds(1);
  bool dry_run = false;  // decide and record, write nothing
};

// A pod that failed to be bound waits before it is decided again: twice as long after each failure.
inline constexpr Duration kFirstBindPause = Seconds(1);
inline constexpr Duration kMostBindPause = Seconds(60);
// A node whose kubelet refused a pod of a class is avoided for that class so long.
inline constexpr Duration kAvoidNode = Seconds(300);
// A bind that happened less than this ago may lack its Event, should who made it have died since.
inline constexpr Duration kEventGap = Seconds(300);
// One sleeper is judged afresh this often; see Scheduler::JudgeAfresh.
inline constexpr Duration kRecheck = Seconds(10);

struct BindResult {
  ObjectName pod;
  std::string node;
  uint64_t decision = 0;  // of the BindPod
  kube::ApiError error;   // ok: bound
  bool sent = true;       // false: it was given up before it was sent
  Duration took;
};

class Core {
 public:
  Core(CoreOptions options, sched::Config config, server::Metrics& metrics);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // --- what happens
  void Observe(const kube::Resource& resource, kube::WatchEvent&& event, Time now);
  void BindEnded(const BindResult& result, Time now);
  void EvictionEnded(const EvictionResult& result, Time now);
  // The answer to a look-up of the pod: what it is, or that it is gone. Passed over when the watch
  // has told something newer meanwhile.
  void LookedUp(const ObjectName& pod, kube::WatchEvent&& event, Time now);
  void PatchEnded(const Patch& patch, const kube::ApiError& error, Time now);
  void QueueCreationEnded(const std::string& name, const kube::ApiError& error, Time now);
  // Every watched resource was listed once, or does not exist.
  void SetSynced(bool synced);
  // While leading, decisions are made and written.
  void SetLeading(bool leading, Time now);
  void SetConfig(sched::Config config);
  // No more decisions; binds under way are still heard of.
  void StopDeciding() { stopping_ = true; }

  // --- what follows
  Effects Step(Time now);
  // When Step is next of use should nothing happen before; not set: never.
  [[nodiscard]] Time next_wake() const;

  [[nodiscard]] bool deciding() const { return synced_ && leading_ && !stopping_; }
  [[nodiscard]] size_t binds_under_way() const { return binding_.size(); }
  [[nodiscard]] const cluster::State& state() const { return *state_; }
  // The scheduler's own view, for /debug/state: waiting gangs with their reasons, binds under way.
  [[nodiscard]] std::string DumpText();

 private:
  struct Binding {
    ObjectName pod;
    std::string node;
    uint64_t decision = 0;
    int failures = 0;
    Time retry;               // set: the last try failed; the room is given back then
    bool unsure = false;      // it may be bound all the same: nobody has looked yet
    std::string version;      // resourceVersion of the pod as last seen
    bool given_back = false;  // not to be tried again
  };

  void ObservePod(kube::WatchEvent&& event, Time now);
  void ObservePodGroup(kube::WatchEvent&& event, bool scheduler_plugins);
  void ObserveNode(const api::Object& object, bool deleted);
  void SeeBound(PodId id, const api::Pod& pod, bool was_bound, Time now);
  void OweEvent(const ObjectName& pod, const std::string& node, Time now);
  void SeeRefused(const api::Pod& pod, Time now);
  void LetGo(GangId gang, const cluster::Gang& before);
  void Touch(GangId gang);
  void TouchAll();
  void Decide(Time now, Effects& effects);
  void CarryOut(const sched::GangReport& report, Time now, Effects& effects);
  void CarryOut(const std::vector<sched::Eviction>& evictions, Time now, Effects& effects);
  void Warn(const cluster::Gang& gang, const std::string& reason, const std::string& message,
            Effects& effects);
  void GiveBack(GangId id, Effects& effects);
  [[nodiscard]] bool IsBeingBound(GangId id) const;
  // And not on its way out.
  [[nodiscard]] bool IsBound(PodId id) const;
  [[nodiscard]] bool WasLeftHalfBound(const cluster::Gang& gang) const;
  void Gather(GangId gang, Time now);
  [[nodiscard]] bool IsOurs(const api::Pod& pod) const;
  void EndAwaiting(Time now);
  void EndGathering(Time now);
  void RetryFailed(Time now);
  void Forget(const std::string& ns, const std::string& name, const std::string& uid);
  void EndAvoidance(Time now);
  void Recheck(Time now, Effects& effects);
  void MeasureWaiting(Time now);
  [[nodiscard]] kube::ObjectReference ReferenceTo(const cluster::Gang& gang) const;

  CoreOptions options_;
  server::Metrics& metrics_;
  std::unique_ptr<cluster::State> state_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  Waiters waiters_;
  PodGroups groups_;
  QueueStatuses queues_;
  HalfBound half_bound_;
  GroupAwaiter awaiter_;
  Gatherer gatherer_;
  FabricFaults faults_;

  bool synced_ = false, leading_ = false, stopping_ = false;
  bool once_synced_ = false;
  bool dirty_ = true;  // something changed since the last decision
  uint64_t runs_ = 0, decisions_ = 0;
  std::map<std::string, Binding> binding_;  // by uid: assumed, not seen bound
  std::set<GangId> touched_;
  std::set<std::pair<Time, std::string>> retries_;  // (Binding::retry, uid)
  std::map<std::string, int> failures_;  // by uid: binds that failed, of pods that wait again
  std::map<std::string, std::set<std::string>> warned_;  // by uid: words told already
  std::vector<std::pair<Time, std::pair<NodeId, ClassId>>> avoided_;
  // Of binds that are not ours to wait for: whoever made them may have died before it said so. Told
  // once we decide; an Event that exists already is not made twice.
  std::deque<std::pair<Time, Tell>> missing_events_;
  std::map<PodId, Time> bound_at_;  // until the first sync: when each was bound
  Effects pending_;                 // made by what was observed, handed out by the next Step
  Time last_measure_, next_recheck_;
};

}  // namespace hopwise::daemon
