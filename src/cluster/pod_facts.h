// What a pod says about its gang in labels and annotations: pure reading, nothing looked up.
//
// The group: annotation scheduling.k8s.io/group-name (Volcano's PodGroup), else label or annotation
// pod-group.scheduling.sigs.k8s.io/name (a group without an object), else label
// scheduling.x-k8s.io/pod-group (a PodGroup of scheduling.x-k8s.io), else the pod is alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/core.h"
#include "cluster/model.h"

namespace hopwise::cluster {

enum class GangKind : uint8_t { kVolcano, kSchedulerPlugins, kLabels, kLone };

// What one pod asks of its gang. Few differ, so the state keeps each once.
struct Declaration {
  int32_t min_member = 1;  // of label groups
  // From volcano.sh/network-topology-*. Of Volcano's PodGroups only those read it that the
  // controller of LeaderWorkerSets makes: they have no rule of their own.
  TopologyRule rule;
  TopologyRule nodes;     // from alibabacloud.com/topology-aware-constraint
  std::string queue;      // scheduling.volcano.sh/queue-name, "" when absent
  std::string waits_for;  // a lone pod: the annotation by which it wants a PodGroup, "" when none
  std::vector<std::string> warnings;

  friend bool operator==(const Declaration&, const Declaration&) = default;
};

struct PodFacts {
  GangKind kind = GangKind::kLone;
  std::string group;
  Declaration declaration;
  std::string blocker;  // see PodRecord::blocker
  // Selectors the node must match, each, besides the pod's own.
  std::vector<std::vector<api::Requirement>> extra;
};

PodFacts ReadPodFacts(const api::Pod& pod);

inline constexpr std::string_view kPreemptable = "volcano.sh/preemptable";
// False for what no scheduler may evict: pods of DaemonSets, of a kubelet's own manifests, of the
// system-critical classes and of kube-system, and those that say volcano.sh/preemptable: "false".
bool MayBeEvicted(const api::Pod& pod);
// The last of these, of a PodGroup, too.
bool SaysNotPreemptable(const api::ObjectMeta& meta);

// PodRecord::index.
int32_t ReadIndex(const api::ObjectMeta& meta);
// The pod's role, or nullptr: annotation, else label volcano.sh/task-spec.
const std::string* ReadRole(const api::ObjectMeta& meta);

// Value of alibabacloud.com/topology-aware-constraint.
struct NodeConstraint {
  TopologyRule rule;
  std::vector<std::vector<api::Requirement>> selectors;
  std::vector<std::string> warnings;
};
Result<NodeConstraint> ParseNodeConstraint(std::string_view json);

}  // namespace hopwise::cluster
