// Clusters and gangs of the benchmarks, made of typed API objects and brought into a state by
// Apply.
//
// Node i lies under leaf i / leaf, spine i / spine and the one core: tiers 1, 2, 3, exact members.
// Every node has 128 cores, 2 TiB of memory, 110 pod slots and 8 GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "api/batch.h"
#include "api/core.h"
#include "cluster/state.h"

namespace hopwise::bench {

inline constexpr int64_t kGpusPerNode = 8;
inline constexpr const char* kNamespace = "bench";
inline constexpr const char* kSubGroupLabel = "bench.hopwise.dev/part";

struct ClusterSpec {
  std::string name;
  size_t nodes = 0;
  size_t leaf = 16;
  size_t spine = 128;
  bool half_full = false;  // a seeded half of the nodes runs a pod that takes all GPUs
  uint64_t seed = 1;
};

// The three of the issue: 1,000 idle nodes; 10,000 and 100,000 nodes, half of them full.
ClusterSpec ClusterA();
ClusterSpec ClusterB();
ClusterSpec ClusterC();

enum class Rule : uint8_t { kNone, kHard, kSoft };

struct GangSpec {
  std::string name;
  int32_t pods = 0;
  int64_t gpus = kGpusPerNode;
  int64_t cpu_milli = 1000;  // another amount makes another class
  Rule rule = Rule::kHard;
  int32_t tier = 0;
  int32_t sub_group_size = 0;  // sub-groups of so many pods, each hard within tier 1; 0: none
};

std::string NodeName(size_t index);
size_t NodeIndex(const std::string& name);

api::Node MakeNode(size_t index);
std::vector<api::HyperNode> MakeFabric(const ClusterSpec& spec);
// A pod that is bound to the node already, of no gang.
api::Pod MakeBoundPod(const std::string& name, size_t node, int64_t gpus);
api::PodGroup MakePodGroup(const GangSpec& gang);
api::Pod MakeMember(const GangSpec& gang, int32_t index);
std::string MemberName(const GangSpec& gang, int32_t index);

// Applies fabric, nodes and what runs there; says so, with the seed.
void BuildCluster(const ClusterSpec& spec, cluster::State& state);
void AddGang(const GangSpec& gang, cluster::State& state);
void RemoveGang(const GangSpec& gang, cluster::State& state);

}  // namespace hopwise::bench
