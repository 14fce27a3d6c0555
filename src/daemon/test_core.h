// The cluster of the core's tests, without an API server: events in, effects out, the time moved by
// hand. Eight GPUs a node:
//
//   spine (tier 2)
//   ├── leaf-a (tier 1): a0 a1
//   └── leaf-b (tier 1): b0 b1
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/json.h"
#include "daemon/core.h"
#include "daemon/scheduler_metrics.h"

namespace hopwise::daemon {

inline constexpr Time kCoreStart{1'800'000'000LL * 1'000'000'000LL};

inline api::Node MakeNode(const std::string& name) {
  api::Node node;
  node.meta.name = name;
  node.allocatable = {{"gpu", 8}, {"pods", 110}};
  return node;
}

inline api::HyperNode MakeHyperNode(const std::string& name, int32_t tier, api::MemberType type,
                                    const std::vector<std::string>& members) {
  api::HyperNode hyper_node;
  hyper_node.meta.name = name;
  hyper_node.tier = tier;
  for (const std::string& member : members) {
    api::HyperNodeMember& entry = hyper_node.members.emplace_back();
    entry.type = type;
    entry.exact = member;
  }
  return hyper_node;
}

inline api::PodGroup MakeGroup(const std::string& name, int32_t min_member) {
  api::PodGroup group;
  group.meta.ns = "ml";
  group.meta.name = name;
  group.meta.uid = "group-" + name;
  group.meta.resource_version = "1";
  group.meta.creation = kCoreStart;
  group.min_member = min_member;
  group.topology = api::NetworkTopology{api::TopologyMode::kHard, 2, ""};
  return group;
}

inline api::Pod MakePod(const std::string& name, const std::string& group, int64_t gpus = 8) {
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.creation = kCoreStart;
  pod.scheduler_name = "volcano";
  pod.request = {{"gpu", gpus}};
  if (!group.empty()) {
    pod.meta.annotations = {{"scheduling.k8s.io/group-name", group}};
  }
  return pod;
}

inline api::Pod Owned(api::Pod pod) {
  pod.meta.owners.push_back({"apps/v1", "ReplicaSet", "rs", "uid-rs", true});
  return pod;
}

class CoreTest : public ::testing::Test {
 protected:
  explicit CoreTest(CoreOptions options = {})
      : core_((DeclareSchedulerMetrics(metrics_), options), sched::DefaultConfig(), metrics_) {
    for (const char* name : {"a0", "a1", "b0", "b1"}) {
      Apply(kube::kNodes, MakeNode(name));
    }
    const auto node = api::MemberType::kNode;
    Apply(kube::kHyperNodes, MakeHyperNode("leaf-a", 1, node, {"a0", "a1"}));
    Apply(kube::kHyperNodes, MakeHyperNode("leaf-b", 1, node, {"b0", "b1"}));
    Apply(kube::kHyperNodes,
          MakeHyperNode("spine", 2, api::MemberType::kHyperNode, {"leaf-a", "leaf-b"}));
    for (const char* name : {"root", "default"}) {
      api::Queue queue;
      queue.meta.name = name;
      queue.meta.uid = std::string("queue-") + name;
      queue.state = "Open";
      Apply(kube::kQueues, queue);
    }
    core_.SetSynced(true);
  }

  void Lead() { core_.SetLeading(true, now_); }

  template <class T>
  void Apply(const kube::Resource& resource, const T& object) {
    kube::WatchEvent event;
    event.decoded.object = object;
    core_.Observe(resource, std::move(event), now_);
  }
  template <class T>
  void Delete(const kube::Resource& resource, const T& object) {
    kube::WatchEvent event;
    event.type = kube::WatchEvent::Type::kDeleted;
    event.decoded.object = object;
    core_.Observe(resource, std::move(event), now_);
  }
  Effects Step(Duration later = {}) {
    now_ = now_ + later;
    return core_.Step(now_);
  }
  // The server did what was asked, and the watch shows it.
  void Confirm(const BindPod& bind, api::Pod pod) {
    core_.BindEnded({bind.pod, bind.node, bind.decision, {}, true, Millis(3)}, now_);
    pod.node_name = bind.node;
    pod.conditions.push_back({"PodScheduled", "True", "", "", "", now_});
    Apply(kube::kPods, pod);
  }
  void LookUp(const BindPod& bind, const api::Pod& pod) {
    kube::WatchEvent event;
    event.decoded.object = pod;
    core_.LookedUp(bind.pod, std::move(event), now_);
  }
  void Fail(const BindPod& bind, kube::Failure failure) {
    kube::ApiError error;
    error.failure = failure;
    error.message = "it would not";
    core_.BindEnded({bind.pod, bind.node, bind.decision, error, true, Millis(3)}, now_);
  }
  // As the watch shows it after a write.
  void ShowGroup(const std::string& name, int32_t minimum, const std::string& phase,
                 const std::string& version) {
    api::PodGroup group = MakeGroup(name, minimum);
    group.phase = phase;
    group.meta.resource_version = version;
    Apply(kube::kPodGroups, group);
  }
  void MakeGang(const std::string& name, int count, int32_t minimum) {
    Apply(kube::kPodGroups, MakeGroup(name, minimum));
    for (int i = 0; i < count; ++i) {
      Apply(kube::kPods, MakePod(name + "-" + std::to_string(i), name));
    }
    now_ = now_ + kFirstQuiet;  // they are taken for all
  }
  static std::set<std::string> NodesOf(const Effects& effects) {
    std::set<std::string> nodes;
    for (const BindPod& bind : effects.binds) {
      nodes.insert(bind.node);
    }
    return nodes;
  }
  // The body of the last patch of the object, null when there is none.
  static json::Json PatchOf(const Effects& effects, const std::string& name) {
    json::Json body;
    for (const Patch& patch : effects.patches) {
      if (patch.object.name == name) {
        body = json::ParseJson(patch.body).value();
      }
    }
    return body;
  }
  static int CountEvents(const Effects& effects, const std::string& reason) {
    return static_cast<int>(std::ranges::count_if(
        effects.events, [&](const Tell& event) { return event.text.reason == reason; }));
  }

  Time now_ = kCoreStart;
  server::Metrics metrics_;
  Core core_;
};

}  // namespace hopwise::daemon
