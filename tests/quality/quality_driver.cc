// Runs the scheduler on the cases of tests/quality/run.py: a JSON case a line on stdin, a JSON
// answer a line on stdout. The case's format is described in tests/quality/cases.py.
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "api/decode.h"
#include "cluster/state.h"
#include "sched/scheduler.h"

namespace hopwise {
namespace {

using Json = nlohmann::json;

api::ResourceList Amounts(const Json& json) {
  api::ResourceList list;
  for (const auto& [name, amount] : json.items()) {
    api::SetAmount(list, name, amount.get<int64_t>());
  }
  return list;
}

std::optional<api::NetworkTopology> Rule(const Json& json) {
  const std::string mode = json.value("mode", "none");
  if (mode == "none") {
    return std::nullopt;
  }
  api::NetworkTopology rule;
  rule.mode = mode == "hard" ? api::TopologyMode::kHard : api::TopologyMode::kSoft;
  if (json.contains("tier") && !json["tier"].is_null()) {
    rule.highest_tier = json["tier"].get<int32_t>();
  }
  return rule;
}

void ApplyCluster(cluster::State& state, const Json& json) {
  for (const Json& item : json["nodes"]) {
    api::Node node;
    node.meta.name = item["name"];
    node.allocatable = Amounts(item["has"]);
    state.Apply(node);
  }
  for (const Json& item : json["hypernodes"]) {
    api::HyperNode hypernode;
    hypernode.meta.name = item["name"];
    hypernode.tier = item["tier"];
    for (const Json& member : item["members"]) {
      const auto name = member.get<std::string>();
      api::HyperNodeMember& added = hypernode.members.emplace_back();
      added.type = name[0] == '/' ? api::MemberType::kHyperNode : api::MemberType::kNode;
      added.exact = name[0] == '/' ? name.substr(1) : name;
    }
    state.Apply(hypernode);
  }
}

api::PodGroup Group(const Json& json) {
  api::PodGroup group;
  group.meta.ns = "ml";
  group.meta.name = "gang";
  group.min_member = json["min"];
  group.topology = Rule(json);
  for (const Json& item : json["policies"]) {
    api::SubGroupPolicy& policy = group.sub_groups.emplace_back();
    policy.name = item["name"];
    policy.topology = Rule(item);
    policy.sub_group_size = item["size"];
    policy.min_sub_groups = item["groups"];
    policy.selector.emplace();
    policy.selector->requirements.push_back({"role", api::Operator::kIn, {policy.name}});
    policy.match_label_keys = {"part"};
  }
  return group;
}

// A running pod holds its room on its node; "gang" says whose it is.
void ApplyPods(cluster::State& state, const Json& pods, bool members) {
  for (const Json& item : pods) {
    api::Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = item["name"];
    pod.meta.uid = pod.meta.name;
    pod.meta.creation = {1'000};
    pod.scheduler_name = members ? "volcano" : "default-scheduler";
    pod.request = Amounts(item["asks"]);
    pod.node_name = item.value("node", "");
    pod.phase = pod.node_name.empty() ? api::PodPhase::kPending : api::PodPhase::kRunning;
    if (members) {
      pod.meta.annotations = {{"scheduling.k8s.io/group-name", "gang"}};
    }
    if (item.contains("role")) {
      pod.meta.labels = {{"part", item["part"]}, {"role", item["role"]}};
    }
    state.Apply(pod);
  }
}

Json Answer(const Json& json) {
  cluster::State state;
  ApplyCluster(state, json);
  ApplyPods(state, json["fillers"], false);
  state.Apply(Group(json["gang"]));
  ApplyPods(state, json["pods"], true);
  sched::Scheduler scheduler(state, sched::DefaultConfig());
  const sched::Plan plan = scheduler.Run(Time{2'000});
  Json answer = {
      {"id", json["id"]}, {"binds", Json::object()}, {"verdict", "none"}, {"message", ""}};
  for (const sched::GangReport& report : plan.gangs) {
    if (state.gang(report.gang).name != "gang") {
      continue;
    }
    constexpr const char* kNames[] = {"nothing",   "placed",  "never",      "not now",
                                      "undecided", "invalid", "queue limit"};
    answer["verdict"] = kNames[static_cast<size_t>(report.verdict)];
    answer["message"] = report.message;
    for (const sched::Bind& bind : report.binds) {
      answer["binds"][state.pod(bind.pod).name] = state.node(bind.node).name;
    }
  }
  answer["audit"] = state.Audit();
  return answer;
}

}  // namespace
}  // namespace hopwise

int main() {
  try {
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << hopwise::Answer(nlohmann::json::parse(line)).dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << "quality_driver: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
