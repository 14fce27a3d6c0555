// What holds for any set of objects and any way there. A failure prints the seed and the shortest
// list of steps; RC_PARAMS="seed=…" replays it.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "topology/forest.h"
#include "topology/natural.h"
#include "topology/test_cluster.h"

namespace hopwise::topology {
namespace {

using testing::Child;
using testing::Exact;
using testing::Labels;
using testing::Pattern;

constexpr uint32_t kNames = 8;  // nodes n1..n8, HyperNodes h1..h8
constexpr uint32_t kSlots = 10;

// One change. The last number picks the variant: labels of the node, members of the HyperNode.
enum class Kind : uint8_t { kNode, kDropNode, kHyperNode, kDropHyperNode, kLook };
using Step = std::tuple<Kind, uint32_t, uint32_t>;

rc::Gen<std::vector<Step>> AnySteps() {
  return rc::gen::container<std::vector<Step>>(
      rc::gen::tuple(rc::gen::element(Kind::kNode, Kind::kNode, Kind::kHyperNode, Kind::kHyperNode,
                                      Kind::kDropNode, Kind::kDropHyperNode, Kind::kLook),
                     rc::gen::inRange<uint32_t>(0, kNames), rc::gen::inRange<uint32_t>(0, 1000)));
}

std::string NodeName(uint32_t index) { return fmt::format("n{}", index + 1); }

api::StringMap NodeLabels(uint32_t variant) {
  api::StringMap labels;
  if (variant % 3 != 0) labels.emplace_back("rack", fmt::format("r{}", variant % 3));
  return labels;
}

api::HyperNodeMember AnyMember(Prng& prng) {
  const std::string number = std::to_string(prng.Between(1, kNames + 1));
  switch (prng.Below(9)) {
    case 0:
      return Pattern(prng.Chance(1, 6) ? "(" : "n[" + number + "8]");
    case 1:
      return Labels({{"rack", fmt::format("r{}", prng.Below(4))}});
    case 2:
    case 3:
    case 4:
      return Child("h" + number);
    default:
      return Exact("n" + number);
  }
}

api::HyperNode AnyHyperNode(uint32_t index, uint32_t variant) {
  Prng prng(variant * kNames + index);
  api::HyperNode hypernode;
  hypernode.meta.name = fmt::format("h{}", index + 1);
  hypernode.meta.creation = {prng.Between(0, 2)};
  // Higher numbers tend to higher tiers, so that sound trees are frequent.
  hypernode.tier = static_cast<int32_t>(prng.Chance(1, 6) ? prng.Below(4) : index / 2);
  if (prng.Chance(1, 2)) hypernode.tier_name = fmt::format("t{}", hypernode.tier);
  if (prng.Chance(1, 8)) hypernode.meta.labels = {{std::string(kFabricKey), "other"}};
  for (uint64_t m = prng.Below(4); m > 0; --m) hypernode.members.push_back(AnyMember(prng));
  return hypernode;
}

// Feeds a forest, and keeps the set of objects that it should by now consist of.
class World {
 public:
  void Do(const Step& step) {
    const auto [kind, index, variant] = step;
    switch (kind) {
      case Kind::kNode:
        PutNode(NodeName(index), NodeLabels(variant), variant);
        break;
      case Kind::kDropNode:
        DropNode(NodeName(index));
        break;
      case Kind::kHyperNode:
        Put(AnyHyperNode(index, variant));
        break;
      case Kind::kDropHyperNode:
        hypernodes_.erase(fmt::format("h{}", index + 1));
        forest_.RemoveHyperNode(fmt::format("h{}", index + 1));
        break;
      case Kind::kLook:
        forest_.Snapshot();
        break;
    }
  }

  // A fresh world with the same objects, put in by an order of its own.
  World Rebuilt(uint64_t seed) const {
    Prng prng(seed);
    std::vector<std::string> order;
    for (const auto& [name, node] : nodes_) order.push_back(name);
    for (const auto& [name, hypernode] : hypernodes_) order.push_back(name);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng.Below(i)]);
    World world;
    for (const std::string& name : order) {
      if (name.starts_with('n')) {
        world.PutNode(name, nodes_.at(name).second, static_cast<uint32_t>(prng.Below(kSlots)));
      } else {
        world.Put(hypernodes_.at(name));
      }
    }
    return world;
  }

  std::shared_ptr<const Topology> Look() { return forest_.Snapshot(); }
  const auto& nodes() const { return nodes_; }
  const auto& hypernodes() const { return hypernodes_; }
  std::string NameOf(NodeId id) const {
    for (const auto& [name, node] : nodes_) {
      if (node.first == id) return name;
    }
    return "?";
  }

 private:
  void Put(const api::HyperNode& hypernode) {
    hypernodes_[hypernode.meta.name] = hypernode;
    forest_.UpsertHyperNode(hypernode);
  }
  // A new node takes a free slot near `wish`, so that slots change hands.
  void PutNode(const std::string& name, const api::StringMap& labels, uint32_t wish) {
    if (!nodes_.contains(name)) {
      uint32_t slot = wish % kSlots;
      while (NameOf(NodeId(slot)) != "?") slot = (slot + 1) % kSlots;
      nodes_[name].first = NodeId(slot);
    }
    nodes_[name].second = labels;
    forest_.UpsertNode(nodes_[name].first, name, labels);
  }
  void DropNode(const std::string& name) {
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) return;
    forest_.RemoveNode(it->second.first);
    nodes_.erase(it);
  }

  Forest forest_;
  std::map<std::string, std::pair<NodeId, api::StringMap>> nodes_;
  std::map<std::string, api::HyperNode> hypernodes_;
};

// The picture in words, without ids, which are not a matter of the set of objects.
std::string Describe(const World& world, const Topology& topology) {
  std::string text;
  for (const Tree& tree : topology.trees) {
    text += fmt::format("fabric '{}'\n", tree.fabric);
    for (const Domain& d : tree.domains) {
      text += fmt::format("  {} tier {} {} rank {} parent {} end {} at {} {} {}\n", d.name, d.tier,
                          d.tier_name, d.rank, d.parent.value, d.end, d.lo, d.direct, d.hi);
    }
    for (const NodeId node : tree.order) text += " " + world.NameOf(node);
    for (size_t i = 0; i < tree.tiers.size(); ++i) {
      text += fmt::format(" {}={}", tree.tiers[i], tree.tier_names[i]);
    }
    text += "\n";
  }
  for (const Fault& fault : topology.faults) {
    text += fmt::format("{} {} {} {}\n", fault.object, ReasonOf(fault.kind), fault.isolates,
                        fault.message);
  }
  for (const HyperNodeState& state : topology.hypernodes) {
    text += fmt::format("{} {} {}\n", state.name, state.node_count, state.in_tree);
  }
  return text;
}

void ExpectNodesOnce(const World& world, const Tree& tree) {
  RC_ASSERT(tree.order.size() == world.nodes().size());
  std::vector<uint32_t> positions(tree.position.size(), Tree::kNoPosition);
  for (const auto& [name, node] : world.nodes()) {
    const uint32_t position = tree.position.at(node.first.index());
    RC_ASSERT(position < tree.order.size());
    RC_ASSERT(tree.order[position] == node.first);
    positions[node.first.index()] = position;
    const Domain& leaf = tree.at(tree.leaf_of.at(node.first.index()));
    RC_ASSERT(leaf.lo <= position && position < leaf.direct);
  }
  RC_ASSERT(tree.position == positions);
}

void ExpectIntervals(const Tree& tree) {
  RC_ASSERT(tree.domains[0].end == tree.domains.size());
  RC_ASSERT(tree.domains[0].lo == 0U);
  RC_ASSERT(tree.domains[0].hi == tree.order.size());
  RC_ASSERT(!tree.domains[0].parent.valid());
  RC_ASSERT(tree.domains[0].rank == tree.root_rank());
  for (uint32_t d = 0; d < tree.domains.size(); ++d) {
    const Domain& domain = tree.domains[d];
    RC_ASSERT(domain.lo <= domain.direct && domain.direct <= domain.hi);
    uint32_t reached = domain.direct;  // the children's intervals follow without a gap
    for (uint32_t c = d + 1; c < domain.end; c = tree.domains[c].end) {
      const Domain& child = tree.domains[c];
      RC_ASSERT(child.end > c && child.end <= domain.end);
      RC_ASSERT(child.parent == DomainId(d));
      RC_ASSERT(child.lo == reached);
      RC_ASSERT(child.rank < domain.rank);
      RC_ASSERT(child.rank >= 1);
      RC_ASSERT(tree.tiers[child.rank - 1U] == child.tier);
      reached = child.hi;
      if (child.end < domain.end) {
        RC_ASSERT(NaturalCompare(child.name, tree.domains[child.end].name) < 0);
      }
    }
    RC_ASSERT(reached == domain.hi);
  }
}

void ExpectFaultsExplain(const Topology& topology) {
  std::set<std::string> in_tree;
  for (const Tree& tree : topology.trees) {
    for (size_t d = 1; d < tree.domains.size(); ++d) {
      const bool is_new = in_tree.insert(tree.domains[d].name).second;
      RC_ASSERT(is_new);
    }
  }
  std::set<std::string> isolated;
  for (const Fault& fault : topology.faults) {
    RC_ASSERT(fault.message.find(fault.object) != std::string::npos);
    if (fault.isolates) isolated.insert(fault.object);
  }
  for (const HyperNodeState& state : topology.hypernodes) {
    RC_ASSERT(state.in_tree == in_tree.contains(state.name));
    RC_ASSERT(state.in_tree != isolated.contains(state.name));
  }
}

// With nothing out, each node lies in every HyperNode that names it.
void ExpectMembersInside(const World& world, const Topology& topology) {
  for (const Fault& fault : topology.faults) {
    if (fault.isolates) return;
  }
  for (const Tree& tree : topology.trees) {
    for (size_t d = 1; d < tree.domains.size(); ++d) {
      for (const auto& member : world.hypernodes().at(tree.domains[d].name).members) {
        if (member.type != api::MemberType::kNode || !member.exact) continue;
        const auto node = world.nodes().find(*member.exact);
        if (node == world.nodes().end()) continue;
        const uint32_t position = tree.position[node->second.first.index()];
        RC_ASSERT(tree.domains[d].lo <= position && position < tree.domains[d].hi);
      }
    }
  }
}

RC_GTEST_PROP(ForestProperty, EveryPictureIsSoundAndItsFaultsExplainIt, ()) {
  World world;
  for (const Step& step : *AnySteps()) world.Do(step);
  const auto topology = world.Look();
  RC_ASSERT(topology->trees[0].fabric.empty());
  for (const Tree& tree : topology->trees) {
    ExpectNodesOnce(world, tree);
    ExpectIntervals(tree);
  }
  ExpectFaultsExplain(*topology);
  ExpectMembersInside(world, *topology);
  RC_CLASSIFY(topology->faults.empty());
}

RC_GTEST_PROP(ForestProperty, OnlyTheSetOfObjectsCountsNotTheOrder, (uint64_t seed)) {
  World world;
  for (const Step& step : *AnySteps()) world.Do(step);
  const std::string expected = Describe(world, *world.Look());
  for (uint64_t i = 0; i < 3; ++i) {
    World other = world.Rebuilt(seed + i);
    RC_ASSERT(Describe(other, *other.Look()) == expected);
  }
}

RC_GTEST_PROP(ForestProperty, AfterEachStepItIsWhatAFreshForestWouldBe, (uint64_t seed)) {
  World world;
  uint64_t version = 0;
  for (const Step& step : *AnySteps()) {
    world.Do(step);
    World fresh = world.Rebuilt(seed);
    const auto topology = world.Look();
    RC_ASSERT(Describe(world, *topology) == Describe(fresh, *fresh.Look()));
    RC_ASSERT(topology->version >= version);
    version = topology->version;
  }
}

}  // namespace
}  // namespace hopwise::topology
