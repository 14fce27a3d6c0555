// The records of the state: nodes, pods, gangs, queues. Plain data; cluster::State keeps them and
// their invariants.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/batch.h"
#include "base/ids.h"
#include "base/time.h"

namespace hopwise::cluster {

// Label pairs with interned keys and values, sorted by key id.
using PackedLabels = std::vector<std::pair<StringId, StringId>>;

// A slot with a name and not alive is a node that pods are bound to but that has no Node object
// (not yet, or no longer): it lists its pods and ports, has no room, and its used amounts are 0.
struct NodeRecord {
  std::string name;  // "" for a free slot
  PackedLabels labels;
  std::vector<api::Taint> taints;  // NoSchedule and NoExecute only
  bool alive = false;              // a Node object exists
  bool unschedulable = false;
  bool ready = true;
  uint32_t pods = 0;                                   // pods that count here (not finished)
  std::vector<std::pair<PodId, api::HostPort>> ports;  // host ports taken
};

enum class PodState : uint8_t {
  kPending,   // has no node, waits for us
  kGated,     // has scheduling gates
  kAssumed,   // we decided, the bind is not confirmed
  kBound,     // spec.nodeName is set, not finished
  kFinished,  // Succeeded or Failed: holds nothing
  kForeign,   // unbound and not ours to place: another scheduler's, or already being deleted
};

struct PodRecord {
  std::string ns, name, uid;
  PodState state = PodState::kForeign;
  bool alive = false;
  bool best_effort = false;
  bool ours = false;          // schedulerName is one of ours
  bool terminating = false;   // has a deletionTimestamp
  bool owned = false;         // has a controller, which would make it anew
  bool succeeded = false;     // finished with Succeeded
  bool running = false;       // phase Running
  bool has_priority = false;  // spec.priority is set: no PriorityClass changes it
  bool has_ports = false;     // asks for host ports, see PredicateSet::ports
  bool evictable = false;     // nothing about the pod itself forbids to evict it, see MayBeEvicted
  bool yields = false;        // preemptionPolicy Never: it evicts nobody
  bool charged = false;       // its request is in the allocated amounts of its gang's queue
  int32_t priority = 0;
  int32_t index = -1;  // rank wish: volcano.sh/task-index, …worker-index of a LeaderWorkerSet,
                       // apps.kubernetes.io/pod-index, …job-completion-index, else trailing number
                       // of the name unless that was generated, else -1
  NodeId node;         // when assumed or bound; none while no Node object of that name exists
  NodeId host;         // the same, but also valid for a node without a Node object
  GangId gang;         // none: foreign, or being deleted before it had a node
  ClassId resource_class;
  PredicateId predicates;  // none for pods that are not ours and take no host ports
  ShapeId shape;           // none until first asked for
  StringId role;           // volcano.sh/task-spec, none when absent
  StringId priority_class;
  uint32_t sub_group = kNoSubGroup;  // index into Gang::sub_groups
  uint32_t declaration = 0;          // what its annotations ask of its gang; internal to gangs.cc
  uint32_t terms = 0;                // what it requires of other pods: an id of Terms, 0 = nothing
  uint64_t terms_epoch = 0;          // Terms::epoch when predicates was read
  Time creation;
  Time start;             // when it began to run, else its creation
  uint64_t sequence = 0;  // order of first appearance
  PackedLabels labels;
  std::string blocker;  // of pods that are not placed yet: first constraint that is not evaluated
                        // yet, or a malformed annotation; "" = none

  static constexpr uint32_t kNoSubGroup = 0xffffffffU;
};

// Whether the pod holds room on its node: assumed or bound.
constexpr bool HoldsRoom(PodState state) {
  return state == PodState::kAssumed || state == PodState::kBound;
}
// Whether a member counts towards the minimum of its gang: it exists, is not on its way out and has
// not failed.
inline bool IsValidMember(const PodRecord& pod) {
  return !pod.terminating && pod.state != PodState::kForeign &&
         (pod.state != PodState::kFinished || pod.succeeded);
}

// What a gang or a sub-group asks of the fabric.
struct TopologyRule {
  enum class Mode : uint8_t { kNone, kSoft, kHard };
  Mode mode = Mode::kNone;
  std::optional<int32_t> highest_tier;
  std::string highest_tier_name;
  std::string fabric;  // hopwise.dev/fabric; "" = any
  // ACK-style: one domain of these node labels instead of HyperNodes.
  std::vector<std::string> label_keys;

  friend bool operator==(const TopologyRule&, const TopologyRule&) = default;
};

struct SubGroup {
  uint32_t policy = 0;      // index into Gang::policies
  std::string name;         // "<policy>-<v1>-<v2>"
  int64_t match_index = 0;  // first value as a number, else 0
  int32_t valid = 0;        // members for which IsValidMember holds
  std::vector<PodId> pods;  // in the order of Gang::pods
};

struct SubGroupPolicy {
  std::string name;
  TopologyRule rule;
  int32_t size = 1;  // minimum of each sub-group
  int32_t min_groups = 0;
};

enum class GangSource : uint8_t { kPodGroup, kLabels, kLonePod };

struct Gang {
  std::string ns, name, uid;  // of the PodGroup; of the pod for a lone pod
  GangSource source = GangSource::kLonePod;
  bool alive = false;
  bool scheduler_plugins = false;  // kPodGroup: scheduling.x-k8s.io instead of Volcano's
  bool has_object = false;         // its PodGroup exists
  bool roles_enforced = false;     // min_per_role counts: min_member covers the sum of it
  bool ran = false;                // was Running once, or was found with its minimum bound
  int32_t min_member = 1;
  int32_t priority = 0;
  std::vector<std::pair<StringId, int32_t>> min_per_role;
  std::vector<SubGroupPolicy> policies;
  std::vector<SubGroup> sub_groups;  // sorted by policy, match_index, name
  TopologyRule rule;
  std::string queue_name;
  QueueId queue;  // none when no such queue
  Time creation;
  uint64_t sequence = 0;    // order of first appearance
  std::string phase;        // PodGroup status.phase as last known
  std::vector<PodId> pods;  // members that exist, finished and terminating ones included, in the
                            // order of (creation, index, name)
  // Why it cannot be scheduled as it is written ("" = fine): "PodGroup default/x not found", …
  std::string invalid;
  std::string invalid_reason;         // the same as one word: NotEnoughTasks, PodGroupNotFound, …
  std::vector<std::string> warnings;  // to be said once on the PodGroup; sorted
};

struct Queue {
  std::string name;
  bool alive = false;
  bool open = true;
  int32_t weight = 1;
  int32_t priority = 0;
  std::string parent_name;
  QueueId parent;                   // none for root alone
  std::vector<int64_t> capability;  // by resource id, -1 = no limit
  std::vector<int64_t> allocated;   // by resource id: assumed and bound pods of the queue's gangs
                                    // and of all queues below it
  std::vector<int64_t> guarantee;   // by resource id, 0 = none
  std::vector<int64_t> deserved;    // by resource id, -1 = not set
  std::optional<bool> reclaimable;  // as the object says
  std::vector<std::string> warnings;

  // The vectors cover the resources known when the queue last changed; these cover all.
  [[nodiscard]] int64_t CapabilityOf(ResourceId r) const {
    return r.index() < capability.size() ? capability[r.index()] : -1;
  }
  [[nodiscard]] int64_t AllocatedOf(ResourceId r) const {
    return r.index() < allocated.size() ? allocated[r.index()] : 0;
  }
};

}  // namespace hopwise::cluster
