// Small clusters for tests: the fabric as a picture (see test_room.h), the number of a node being
// its GPUs; gangs, pods and what becomes of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/state.h"
#include "sched/scheduler.h"
#include "sched/test_room.h"

namespace hopwise::sched::testing {

inline api::NetworkTopology HardTier(int32_t tier) { return {api::TopologyMode::kHard, tier, ""}; }
inline api::NetworkTopology SoftRule() { return {api::TopologyMode::kSoft, std::nullopt, ""}; }

struct Group : api::PodGroup {
  Group(const std::string& name, int32_t minimum) {
    meta.ns = "ml";
    meta.name = name;
    meta.creation = {500};
    min_member = minimum;
  }
  Group& Hard(int32_t tier) { return Rule(HardTier(tier)); }
  Group& Soft() { return Rule(SoftRule()); }
  Group& Rule(const api::NetworkTopology& rule) {
    topology = rule;
    return *this;
  }
  Group& In(const std::string& name) {
    queue = name;
    return *this;
  }
  Group& Created(int64_t at) {
    meta.creation = {at};
    return *this;
  }
  // Pods with this role, `size` for each part.
  Group& Parts(const std::string& role, int32_t size, int32_t groups,
               std::optional<api::NetworkTopology> rule) {
    api::SubGroupPolicy& policy = sub_groups.emplace_back();
    policy.name = role;
    policy.topology = std::move(rule);
    policy.sub_group_size = size;
    policy.min_sub_groups = groups;
    policy.selector.emplace();
    policy.selector->requirements.push_back({"role", api::Operator::kIn, {role}});
    policy.match_label_keys = {"part"};
    return *this;
  }
};

// What a pod asks for, and where it belongs.
struct Ask {
  int64_t gpu = 1, cpu = 1;
  std::string role = {}, part = {};
  std::string node = {};  // not "": it runs there
  std::string zone = {};  // not "": selector on label "zone"
  int32_t priority = 0;
};

class TestCluster {
 public:
  explicit TestCluster(std::string_view picture) {
    for (const Piece& piece : ReadPicture(picture)) {
      Apply(piece);
    }
  }

  TestCluster& Add(const Group& group) {
    state.Apply(group);
    return *this;
  }
  // Pods of the gang, named <gang>-<number> in one count.
  TestCluster& Pods(const std::string& gang, int count, const Ask& ask = {}) {
    for (int i = 0; i < count; ++i) {
      Pod(gang + "-" + std::to_string(next_[gang]++), gang, ask);
    }
    return *this;
  }
  TestCluster& Pod(const std::string& name, const std::string& gang, const Ask& ask) {
    api::Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = name;
    pod.meta.uid = name;
    pod.meta.creation = {1'000};
    pod.scheduler_name = gang.empty() ? "default-scheduler" : "volcano";
    pod.request = {{"cpu", ask.cpu * 1000}, {"gpu", ask.gpu}};
    std::erase_if(pod.request, [](const auto& pair) { return pair.second == 0; });
    pod.node_name = ask.node;
    pod.phase = ask.node.empty() ? api::PodPhase::kPending : api::PodPhase::kRunning;
    pod.priority = ask.priority;
    if (!gang.empty()) {
      pod.meta.annotations = {{"scheduling.k8s.io/group-name", gang}};
    }
    if (!ask.role.empty()) {
      pod.meta.labels = {{"part", ask.part}, {"role", ask.role}};
    }
    if (!ask.zone.empty()) {
      pod.node_selector = {{"zone", ask.zone}};
    }
    state.Apply(pod);
    return *this;
  }
  // Somebody else's pod of so many GPUs.
  TestCluster& Fill(const std::string& node, int64_t gpus) {
    return Pod("fill-" + std::to_string(next_["fill"]++), "", {gpus, 1, "", "", node, "", 0});
  }
  void Remove(const std::string& pod) { state.RemovePod("ml", pod); }

  Plan Run() {
    if (!scheduler) {
      scheduler = std::make_unique<Scheduler>(state, DefaultConfig());
    }
    return scheduler->Run(Time{2'000});
  }

  [[nodiscard]] NodeId Node(const std::string& name) const { return state.FindNode(name); }
  [[nodiscard]] GangId Gang(const std::string& name) const { return state.FindGang("ml", name); }
  [[nodiscard]] PodId PodOf(const std::string& name) const { return state.FindPod("ml", name); }
  [[nodiscard]] int Placed(const std::string& gang) const {
    return static_cast<int>(std::ranges::count_if(
        state.gang(Gang(gang)).pods, [&](PodId id) { return state.pod(id).node.valid(); }));
  }
  // "a:2 b:1", by node name; with a role only its pods, with a part only that.
  [[nodiscard]] std::string Where(const std::string& gang, const std::string& label = "") const {
    std::map<std::string, int> counts;
    for (const PodId id : state.gang(Gang(gang)).pods) {
      const bool counted =
          label.empty() || std::ranges::any_of(state.pod(id).labels, [&](const auto& pair) {
            return state.Text(pair.second) == label;
          });
      if (counted && state.pod(id).node.valid()) {
        ++counts[state.node(state.pod(id).node).name];
      }
    }
    std::string text;
    for (const auto& [node, count] : counts) {
      text += (text.empty() ? "" : " ") + node + ":" + std::to_string(count);
    }
    return text;
  }
  [[nodiscard]] std::string Why(const std::string& gang) const {
    const GangReport* report = scheduler->LastReport(Gang(gang));
    return report == nullptr ? "" : report->message;
  }

  cluster::State state;
  std::unique_ptr<Scheduler> scheduler;

 private:
  void Apply(const Piece& piece) {
    if (piece.tier == 0) {
      api::Node node;
      node.meta.name = piece.name;
      node.allocatable = {{"cpu", 100'000}, {"gpu", piece.amount}, {"pods", 110}};
      state.Apply(node);
      return;
    }
    api::HyperNode hypernode;
    hypernode.meta.name = piece.name;
    hypernode.tier = piece.tier;
    for (const Piece& part : piece.parts) {
      api::HyperNodeMember& member = hypernode.members.emplace_back();
      member.type = part.tier == 0 ? api::MemberType::kNode : api::MemberType::kHyperNode;
      member.exact = part.name;
      Apply(part);
    }
    state.Apply(hypernode);
  }

  std::map<std::string, int> next_;
};

}  // namespace hopwise::sched::testing
