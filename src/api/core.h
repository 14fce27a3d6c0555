// Typed views of the core kinds we read: Node, Pod, Namespace, PriorityClass, ResourceQuota,
// PodDisruptionBudget, PV, PVC. Only what the scheduler, the controllers and the simulator use is
// kept; decoding tolerates everything else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.h"
#include "api/pod_terms.h"
#include "api/resources.h"

namespace hopwise::api {

struct Taint {
  std::string key, value, effect;  // NoSchedule, PreferNoSchedule, NoExecute
};
struct Toleration {
  std::string key, value, effect;  // empty effect: every effect; empty key with Exists: every taint
  bool exists = false;             // operator Exists (default Equal)
};
bool Tolerates(const Toleration& toleration, const Taint& taint);

struct Node {
  ObjectMeta meta;
  ResourceList allocatable, capacity;
  std::vector<Taint> taints;
  bool unschedulable = false;
  std::vector<Condition> conditions;
};
// False only when a Ready condition says False or Unknown.
bool IsReady(const Node& node);

// nodeSelectorTerms are ORed, the requirements of one term ANDed; a term with neither matches
// nothing.
struct NodeSelectorTerm {
  std::vector<Requirement> expressions;  // on labels
  std::vector<Requirement> fields;       // metadata.name only
};

struct HostPort {
  std::string ip;        // "" and "0.0.0.0" mean every address
  std::string protocol;  // TCP, UDP, SCTP
  int32_t port = 0;
};

// Why a pod cannot be judged by the predicates of this version; the scheduler leaves it Pending and
// says so.
struct UnevaluatedConstraint {
  std::string field;  // "spec.affinity.podAntiAffinity", "spec.topologySpreadConstraints",
                      // "spec.volumes[data] (PersistentVolumeClaim)", …
};

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

struct Pod {
  ObjectMeta meta;
  std::string scheduler_name;  // "default-scheduler" when absent
  std::string node_name, nominated_node, priority_class, preemption_policy;
  std::optional<int32_t> priority;
  ResourceList request;      // effective: max(init, sum of containers + sidecars) + overhead, or
                             // pod-level; without "pods"
  bool best_effort = false;  // no container asks for or is limited in anything
  StringMap node_selector;
  std::optional<std::vector<NodeSelectorTerm>> required_node_affinity;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  PodTerms terms;
  std::vector<std::string> scheduling_gates;
  std::vector<UnevaluatedConstraint> unevaluated;
  PodPhase phase = PodPhase::kPending;
  Time start;          // status.startTime: when the kubelet took it; not set before
  std::string reason;  // status.reason: OutOfcpu, Evicted, … of a failed pod
  std::vector<Condition> conditions;
  std::string restart_policy;
};

struct PriorityClass {
  ObjectMeta meta;
  int32_t value = 0;
  bool global_default = false;
  std::string preemption_policy;
};
struct Namespace {
  ObjectMeta meta;
};
struct ResourceQuota {
  ObjectMeta meta;
  ResourceList hard, used;
};
struct PodDisruptionBudget {
  ObjectMeta meta;
  std::optional<LabelSelector> selector;
  std::string min_available, max_unavailable;  // IntOrString as text, "" when absent
  int32_t disruptions_allowed = 0;
};
struct PersistentVolume {
  ObjectMeta meta;
  ResourceList capacity;
  std::string storage_class, claim_namespace, claim_name, phase;
};
struct PersistentVolumeClaim {
  ObjectMeta meta;
  ResourceList requests;
  std::string storage_class, volume_name, phase;
};

}  // namespace hopwise::api
