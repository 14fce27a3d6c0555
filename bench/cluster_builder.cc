#include "cluster_builder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/prng.h"

namespace hopwise::bench {
namespace {

constexpr std::string_view kNodePrefix = "node-";

api::HyperNode MakeHyperNode(const std::string& name, int32_t tier) {
  api::HyperNode domain;
  domain.meta.name = name;
  domain.meta.uid = "uid-" + name;
  domain.tier = tier;
  return domain;
}

api::HyperNodeMember Exactly(api::MemberType type, std::string name) {
  api::HyperNodeMember member;
  member.type = type;
  member.exact = std::move(name);
  return member;
}

std::vector<api::HyperNode> Leaves(const ClusterSpec& spec) {
  std::vector<api::HyperNode> leaves;
  for (size_t i = 0; i < spec.nodes; ++i) {
    if (i % spec.leaf == 0) {
      leaves.push_back(MakeHyperNode("leaf-" + std::to_string(i / spec.leaf), 1));
    }
    leaves.back().members.push_back(Exactly(api::MemberType::kNode, NodeName(i)));
  }
  return leaves;
}

}  // namespace

ClusterSpec ClusterA() { return {.name = "a", .nodes = 1'000, .spine = 128}; }
ClusterSpec ClusterB() {
  return {.name = "b", .nodes = 10'000, .spine = 512, .half_full = true, .seed = 2};
}
ClusterSpec ClusterC() {
  return {.name = "c", .nodes = 100'000, .spine = 512, .half_full = true, .seed = 3};
}

std::string NodeName(size_t index) { return std::string(kNodePrefix) + std::to_string(index); }

size_t NodeIndex(const std::string& name) {
  size_t index = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kNodePrefix.size(), end, index);
  HOPWISE_CHECK(read.ptr == end);
  return index;
}

api::Node MakeNode(size_t index) {
  api::Node node;
  node.meta.name = NodeName(index);
  node.meta.uid = "uid-" + node.meta.name;
  node.meta.labels = {{"kubernetes.io/arch", "amd64"}, {"kubernetes.io/hostname", node.meta.name}};
  node.allocatable = {{"cpu", 128'000},
                      {"memory", int64_t{2} << 40},
                      {"nvidia.com/gpu", kGpusPerNode},
                      {"pods", 110}};
  node.capacity = node.allocatable;
  return node;
}

std::vector<api::HyperNode> MakeFabric(const ClusterSpec& spec) {
  HOPWISE_CHECK(spec.spine % spec.leaf == 0);
  std::vector<api::HyperNode> fabric = Leaves(spec);
  std::vector<api::HyperNode> spines;
  const size_t leaves_per_spine = spec.spine / spec.leaf;
  for (size_t i = 0; i < fabric.size(); ++i) {
    if (i % leaves_per_spine == 0) {
      spines.push_back(MakeHyperNode("spine-" + std::to_string(i / leaves_per_spine), 2));
    }
    spines.back().members.push_back(Exactly(api::MemberType::kHyperNode, fabric[i].meta.name));
  }
  api::HyperNode core = MakeHyperNode("core", 3);
  for (const api::HyperNode& spine : spines) {
    core.members.push_back(Exactly(api::MemberType::kHyperNode, spine.meta.name));
  }
  fabric.insert(fabric.end(), spines.begin(), spines.end());
  fabric.push_back(std::move(core));
  return fabric;
}

api::Pod MakeBoundPod(const std::string& name, size_t node, int64_t gpus) {
  api::Pod pod;
  pod.meta.ns = kNamespace;
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.creation = {1'000'000'000};
  pod.scheduler_name = "volcano";
  pod.request = {{"cpu", 1000}};
  if (gpus > 0) {
    pod.request.emplace_back("nvidia.com/gpu", gpus);
  }
  pod.node_name = NodeName(node);
  pod.phase = api::PodPhase::kRunning;
  return pod;
}

api::PodGroup MakePodGroup(const GangSpec& gang) {
  api::PodGroup group;
  group.meta.ns = kNamespace;
  group.meta.name = gang.name;
  group.meta.uid = "uid-" + gang.name;
  group.meta.creation = {2'000'000'000};
  group.min_member = gang.pods;
  if (gang.rule == Rule::kHard) {
    group.topology = api::NetworkTopology{api::TopologyMode::kHard, gang.tier, ""};
  } else if (gang.rule == Rule::kSoft) {
    group.topology = api::NetworkTopology{api::TopologyMode::kSoft, std::nullopt, ""};
  }
  if (gang.sub_group_size > 0) {
    api::SubGroupPolicy policy;
    policy.name = "part";
    policy.topology = api::NetworkTopology{api::TopologyMode::kHard, 1, ""};
    policy.sub_group_size = gang.sub_group_size;
    policy.min_sub_groups = gang.pods / gang.sub_group_size;
    policy.match_label_keys = {kSubGroupLabel};
    group.sub_groups.push_back(std::move(policy));
  }
  return group;
}

std::string MemberName(const GangSpec& gang, int32_t index) {
  return gang.name + "-" + std::to_string(index);
}

api::Pod MakeMember(const GangSpec& gang, int32_t index) {
  api::Pod pod;
  pod.meta.ns = kNamespace;
  pod.meta.name = MemberName(gang, index);
  pod.meta.uid = "uid-" + pod.meta.name;
  pod.meta.creation = {3'000'000'000};
  pod.meta.annotations = {{"scheduling.k8s.io/group-name", gang.name}};
  if (gang.sub_group_size > 0) {
    pod.meta.labels = {{kSubGroupLabel, std::to_string(index / gang.sub_group_size)}};
  }
  pod.scheduler_name = "volcano";
  pod.request = {{"cpu", gang.cpu_milli}, {"nvidia.com/gpu", gang.gpus}};
  return pod;
}

void BuildCluster(const ClusterSpec& spec, cluster::State& state) {
  for (const api::HyperNode& domain : MakeFabric(spec)) {
    state.Apply(domain);
  }
  for (size_t i = 0; i < spec.nodes; ++i) {
    state.Apply(MakeNode(i));
  }
  size_t full = 0;
  if (spec.half_full) {
    std::vector<size_t> order(spec.nodes);
    std::iota(order.begin(), order.end(), size_t{0});
    Prng prng(spec.seed);
    for (size_t i = spec.nodes; i > 1; --i) {
      std::swap(order[i - 1], order[prng.Below(i)]);
    }
    full = spec.nodes / 2;
    for (size_t i = 0; i < full; ++i) {
      state.Apply(MakeBoundPod("running-" + std::to_string(order[i]), order[i], kGpusPerNode));
    }
  }
  std::fprintf(stderr, "cluster %s: %zu nodes, %zu full, leaf %zu, spine %zu, seed=%llu\n",
               spec.name.c_str(), spec.nodes, full, spec.leaf, spec.spine,
               static_cast<unsigned long long>(spec.seed));
}

void AddGang(const GangSpec& gang, cluster::State& state) {
  state.Apply(MakePodGroup(gang));
  for (int32_t i = 0; i < gang.pods; ++i) {
    state.Apply(MakeMember(gang, i));
  }
}

void RemoveGang(const GangSpec& gang, cluster::State& state) {
  for (int32_t i = 0; i < gang.pods; ++i) {
    state.RemovePod(kNamespace, MemberName(gang, i));
  }
  state.RemovePodGroup(kNamespace, gang.name, false);
}

}  // namespace hopwise::bench
