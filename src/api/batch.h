// Typed views of the group, queue, topology and workload kinds: PodGroup (Volcano's and
// scheduling.x-k8s.io's), Queue, HyperNode, vcjob, Deployment, ReplicaSet, StatefulSet, DaemonSet,
// batch/v1 Job, LeaderWorkerSet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/core.h"

namespace hopwise::api {

enum class TopologyMode : uint8_t { kHard, kSoft };
struct NetworkTopology {
  TopologyMode mode = TopologyMode::kHard;
  std::optional<int32_t> highest_tier;  // highestTierAllowed
  std::string highest_tier_name;  // highestTierName; "" when absent. Both set makes no sense: a
                                  // warning, the number counts
};

struct SubGroupPolicy {
  std::string name;
  std::optional<NetworkTopology> topology;
  int32_t sub_group_size = 1;
  int32_t min_sub_groups = 0;
  std::optional<LabelSelector> selector;  // absent: every pod
  std::vector<std::string> match_label_keys;
};

struct PodGroup {
  ObjectMeta meta;
  bool scheduler_plugins = false;  // scheduling.x-k8s.io instead of scheduling.volcano.sh
  int32_t min_member = 0;
  std::vector<std::pair<std::string, int32_t>> min_task_member;  // by task name, sorted
  std::string queue = "default", priority_class;
  std::optional<ResourceList> min_resources;
  std::optional<NetworkTopology> topology;
  std::vector<SubGroupPolicy> sub_groups;
  // Of the status:
  std::string phase;  // "" when the object has none
  std::vector<Condition> conditions;
  int32_t running = 0, succeeded = 0, failed = 0;
};

struct Queue {
  ObjectMeta meta;
  int32_t weight = 1;
  int32_t priority = 0;
  std::optional<bool> reclaimable;
  ResourceList capability, guarantee, deserved;
  std::string parent;
  // Of the status:
  std::string state;  // "" counts as Open
  int32_t pending = 0, running = 0, inqueue = 0, unknown = 0, completed = 0;
  ResourceList allocated;
};

enum class MemberType : uint8_t { kNode, kHyperNode };
// Exactly one of the three should be set; what is set is kept as it is and judged by topology.
struct HyperNodeMember {
  MemberType type = MemberType::kNode;
  std::optional<std::string> exact;     // exactMatch.name
  std::optional<std::string> pattern;   // regexMatch.pattern
  std::optional<LabelSelector> labels;  // labelMatch
};
struct HyperNode {
  ObjectMeta meta;
  int32_t tier = 0;
  std::string tier_name;
  std::vector<HyperNodeMember> members;
  // Of the status:
  int64_t node_count = -1;  // -1: never written
  std::vector<Condition> conditions;
};

// A pod template is kept as the JSON text of {"metadata":…,"spec":…}: the simulator and the
// controllers make pods of it.
struct PodTemplate {
  std::string json;
};

struct PartitionPolicy {
  int32_t total_partitions = 1, partition_size = 1, min_partitions = 0;
  std::optional<NetworkTopology> topology;
};
struct VcTask {
  std::string name;
  int32_t replicas = 1;
  std::optional<int32_t> min_available;
  PodTemplate pod_template;
  std::string priority_class;  // of the template
  std::optional<PartitionPolicy> partition;
  std::vector<std::string> depends_on;
  bool depends_on_any = false;  // iteration: any (else all)
};
struct VcJob {
  ObjectMeta meta;
  std::string scheduler_name, queue = "default", priority_class;
  std::optional<int32_t> min_available;
  std::optional<NetworkTopology> topology;
  std::vector<VcTask> tasks;
  std::vector<std::pair<std::string, std::vector<std::string>>> plugins;
  std::string phase;    // status.state.phase
  int32_t version = 0;  // status.version
};

enum class WorkloadKind : uint8_t { kDeployment, kReplicaSet, kStatefulSet, kDaemonSet, kJob };
// Deployment, ReplicaSet, StatefulSet, DaemonSet and batch/v1 Job, as far as they make pods.
struct Workload {
  WorkloadKind kind = WorkloadKind::kDeployment;
  ObjectMeta meta;
  int32_t replicas = 1;       // Job: parallelism
  int32_t completions = 1;    // Job only; -1 when absent
  bool indexed = false;       // Job only: completionMode Indexed
  int32_t ordinal_start = 0;  // StatefulSet: ordinals.start
  std::optional<LabelSelector> selector;
  PodTemplate pod_template;
};

struct LeaderWorkerSet {
  ObjectMeta meta;
  int32_t replicas = 1, size = 1;
  PodTemplate leader_template;  // json "" when absent: the worker's template serves for both
  PodTemplate worker_template;
  std::string subdomain_policy, startup_policy;
  std::optional<int32_t> sub_group_size;
};

}  // namespace hopwise::api
