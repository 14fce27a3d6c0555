// Objects for the tests of this module, in few words, and the state as a text without ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/state.h"

namespace hopwise::cluster::testing {

inline void Put(api::StringMap& map, const std::string& key, const std::string& value) {
  const auto at = std::lower_bound(map.begin(), map.end(), key,
                                   [](const auto& item, const auto& k) { return item.first < k; });
  if (at != map.end() && at->first == key) {
    at->second = value;
  } else {
    map.insert(at, {key, value});
  }
}

// A node of 16 GPUs' worth of CPU and 8 GPUs, unless said otherwise.
struct NodeSpec : api::Node {
  explicit NodeSpec(const std::string& name) {
    meta.name = name;
    allocatable = {{"cpu", 64'000}, {"memory", 1'000'000}, {"nvidia.com/gpu", 8}, {"pods", 110}};
  }
  NodeSpec& Label(const std::string& key, const std::string& value) {
    Put(meta.labels, key, value);
    return *this;
  }
  NodeSpec& Allocatable(const std::string& resource, int64_t amount) {
    api::SetAmount(allocatable, resource, amount);
    return *this;
  }
  NodeSpec& Taint(const std::string& key, const std::string& effect) {
    taints.push_back({key, "", effect});
    return *this;
  }
};

// A pod of one CPU and one GPU in namespace "ml" for scheduler "volcano".
struct PodSpec : api::Pod {
  explicit PodSpec(const std::string& name) {
    meta.ns = "ml";
    meta.name = name;
    meta.uid = "uid-" + name;
    meta.creation = {1'000};
    scheduler_name = "volcano";
    request = {{"cpu", 1'000}, {"nvidia.com/gpu", 1}};
  }
  PodSpec& Group(const std::string& group) {
    return Annotation("scheduling.k8s.io/group-name", group);
  }
  PodSpec& Label(const std::string& key, const std::string& value) {
    Put(meta.labels, key, value);
    return *this;
  }
  PodSpec& Annotation(const std::string& key, const std::string& value) {
    Put(meta.annotations, key, value);
    return *this;
  }
  PodSpec& LabelGroup(const std::string& group, const std::string& minimum) {
    Label("pod-group.scheduling.sigs.k8s.io/name", group);
    return Label("pod-group.scheduling.sigs.k8s.io/min-available", minimum);
  }
  PodSpec& On(const std::string& node) {
    node_name = node;
    phase = api::PodPhase::kRunning;
    return *this;
  }
  PodSpec& Phase(api::PodPhase next) {
    phase = next;
    return *this;
  }
  PodSpec& Uid(const std::string& uid) {
    meta.uid = uid;
    return *this;
  }
  PodSpec& Created(int64_t ns) {
    meta.creation = {ns};
    return *this;
  }
  PodSpec& Deleted() {
    meta.deletion = {2'000};
    return *this;
  }
  PodSpec& Scheduler(const std::string& name) {
    scheduler_name = name;
    return *this;
  }
  PodSpec& Request(const std::string& resource, int64_t amount) {
    api::SetAmount(request, resource, amount);
    return *this;
  }
  PodSpec& Role(const std::string& role) { return Annotation("volcano.sh/task-spec", role); }
  PodSpec& HostPort(int32_t port) {
    host_ports.push_back({"", "TCP", port});
    return *this;
  }
};

struct GroupSpec : api::PodGroup {
  GroupSpec(const std::string& name, int32_t minimum) {
    meta.ns = "ml";
    meta.name = name;
    meta.uid = "uid-" + name;
    meta.creation = {500};
    min_member = minimum;
  }
  GroupSpec& In(const std::string& name) {
    queue = name;
    return *this;
  }
  GroupSpec& Plugins() {
    scheduler_plugins = true;
    return *this;
  }
  GroupSpec& Hard(int32_t tier) {
    topology = api::NetworkTopology{api::TopologyMode::kHard, tier, ""};
    return *this;
  }
  GroupSpec& Soft() {
    topology = api::NetworkTopology{api::TopologyMode::kSoft, std::nullopt, ""};
    return *this;
  }
  GroupSpec& Policy(const std::string& name, const std::vector<std::string>& keys, int32_t size,
                    int32_t min_groups) {
    api::SubGroupPolicy policy;
    policy.name = name;
    policy.match_label_keys = keys;
    policy.sub_group_size = size;
    policy.min_sub_groups = min_groups;
    sub_groups.push_back(std::move(policy));
    return *this;
  }
};

struct QueueSpec : api::Queue {
  explicit QueueSpec(const std::string& name, const std::string& parent_queue = "") {
    meta.name = name;
    parent = parent_queue;
  }
  QueueSpec& Capability(const std::string& resource, int64_t amount) {
    api::SetAmount(capability, resource, amount);
    return *this;
  }
  QueueSpec& State(const std::string& text) {
    state = text;
    return *this;
  }
};

inline api::PriorityClass PriorityClassSpec(const std::string& name, int32_t value,
                                            bool global_default = false) {
  api::PriorityClass priority;
  priority.meta.name = name;
  priority.value = value;
  priority.global_default = global_default;
  return priority;
}

// All that the state says, sorted by name, so that two states of the same objects give the same
// text whatever the order of events. Gang::ran is left out: it remembers what once was.
std::string Dump(State& state);

// Shorter forms of what the tests ask most.
inline const PodRecord& PodOf(const State& state, const std::string& name) {
  return state.pod(state.FindPod("ml", name));
}
inline const Gang& GangOf(const State& state, const std::string& name) {
  return state.gang(state.FindGang("ml", name));
}
inline const Queue& QueueOf(const State& state, const std::string& name) {
  return state.queue(state.FindQueue(name));
}
inline int64_t Used(const State& state, const std::string& node, const std::string& resource) {
  return state.columns().used(state.columns().FindResource(resource))[state.FindNode(node).index()];
}
inline int64_t Allocated(const State& state, const std::string& queue,
                         const std::string& resource) {
  return QueueOf(state, queue).AllocatedOf(state.columns().FindResource(resource));
}
std::vector<std::string> Names(const State& state, const std::vector<PodId>& pods);

}  // namespace hopwise::cluster::testing
