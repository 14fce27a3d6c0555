#include "topology/link.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "topology/contest.h"
#include "topology/cycles.h"
#include "topology/members.h"
#include "topology/natural.h"

namespace hopwise::topology {
namespace {

// Ranks are 16 bits wide and real fabrics have fewer than ten tiers.
constexpr size_t kTiersPerFabric = 4096;

class Linker {
 public:
  explicit Linker(const std::vector<LinkInput>& inputs) : inputs_(inputs) {}

  Links Run() {
    NameFabrics();
    MakeObjects();
    ResolveChildren();
    TakeOutCycles();
    TakeOutWrongTiers();
    TakeOutSuperfluousTiers();
    TakeOutSecondParents();
    return std::move(links_);
  }

 private:
  void NameFabrics();
  void MakeObjects();
  void ResolveChildren();
  void TakeOutCycles();
  void TakeOutWrongTiers();
  void TakeOutSuperfluousTiers();
  void TakeOutSecondParents();
  void TellRedundantParents();

  // Index of the object, or kNoObject.
  uint32_t Find(const std::string& name) const;
  // The objects, not out, that name each object.
  std::vector<std::vector<uint32_t>> SoundParents() const;
  bool IsAbove(uint32_t upper, uint32_t lower);

  void TakeOut(uint32_t object, FaultKind kind, std::string message) {
    links_.objects[object].out = true;
    links_.faults.push_back({NameOf(object), kind, true, std::move(message)});
  }
  void Warn(uint32_t object, FaultKind kind, std::string message) {
    links_.faults.push_back({NameOf(object), kind, false, std::move(message)});
  }
  const std::string& NameOf(uint32_t object) const { return links_.objects[object].name; }
  uint32_t size() const { return static_cast<uint32_t>(inputs_.size()); }

  const std::vector<LinkInput>& inputs_;
  Links links_;
  std::vector<std::vector<uint32_t>> children_;  // existing ones of the same fabric
  std::vector<std::vector<uint32_t>> parents_;   // see SoundParents
  std::map<std::pair<uint32_t, uint32_t>, bool> above_;
};

uint32_t Linker::Find(const std::string& name) const {
  const auto it = std::lower_bound(inputs_.begin(), inputs_.end(), name,
                                   [](const LinkInput& a, const auto& b) { return a.name < b; });
  if (it == inputs_.end() || it->name != name) return kNoObject;
  return static_cast<uint32_t>(it - inputs_.begin());
}

void Linker::NameFabrics() {
  std::set<std::string> names = {""};  // sorts first
  for (const LinkInput& input : inputs_) names.insert(input.fabric);
  links_.fabrics.assign(names.begin(), names.end());
}

void Linker::MakeObjects() {
  for (const LinkInput& input : inputs_) {
    const auto fabric =
        std::lower_bound(links_.fabrics.begin(), links_.fabrics.end(), input.fabric);
    LinkObject object;
    object.name = input.name;
    object.tier_name = input.tier_name;
    object.tier = input.tier;
    object.fabric = static_cast<uint32_t>(fabric - links_.fabrics.begin());
    object.creation = input.creation;
    object.out = input.bad_pattern;
    links_.objects.push_back(std::move(object));
    links_.natural.push_back(static_cast<uint32_t>(links_.natural.size()));
  }
  std::sort(links_.natural.begin(), links_.natural.end(),
            [&](uint32_t a, uint32_t b) { return NaturalCompare(NameOf(a), NameOf(b)) < 0; });
}

void Linker::ResolveChildren() {
  children_.resize(size());
  for (uint32_t o = 0; o < size(); ++o) {
    std::vector<std::string> missing;
    std::vector<std::string> foreign;
    for (const std::string& name : *inputs_[o].children) {
      const uint32_t child = Find(name);
      if (child == kNoObject) {
        missing.push_back(name);
        continue;
      }
      ++links_.objects[o].child_count;
      if (links_.objects[child].fabric == links_.objects[o].fabric) {
        children_[o].push_back(child);
      } else {
        foreign.push_back(name);
      }
    }
    if (!missing.empty()) {
      Warn(o, FaultKind::kMissingChild,
           fmt::format("HyperNode {} names as its child {}, which does not exist; its other "
                       "members stand.",
                       NameOf(o), JoinNames(missing)));
    }
    if (!foreign.empty()) {
      Warn(o, FaultKind::kMissingChild,
           fmt::format("HyperNode {} names as its child {}, which belongs to another fabric "
                       "({}); its other members stand.",
                       NameOf(o), JoinNames(foreign), kFabricKey));
    }
  }
}

void Linker::TakeOutCycles() {
  const std::vector<uint32_t> group_of = FindCycles(children_);
  std::map<uint32_t, std::vector<std::string>> groups;
  for (uint32_t o = 0; o < size(); ++o) {
    if (group_of[o] != kInNoCycle) groups[group_of[o]].push_back(NameOf(o));
  }
  for (uint32_t o = 0; o < size(); ++o) {
    if (group_of[o] == kInNoCycle) continue;
    const std::vector<std::string>& names = groups[group_of[o]];
    if (names.size() == 1) {
      TakeOut(o, FaultKind::kCycle,
              fmt::format("HyperNode {} is out: it names itself as a child, which is a cycle.",
                          NameOf(o)));
    } else {
      TakeOut(o, FaultKind::kCycle,
              fmt::format("HyperNode {} is out: {} form a cycle of children.", NameOf(o),
                          JoinNames(names)));
    }
  }
}

void Linker::TakeOutWrongTiers() {
  for (uint32_t o = 0; o < size(); ++o) {
    if (links_.objects[o].out) continue;
    std::vector<std::string> wrong;
    for (const uint32_t child : children_[o]) {
      if (links_.objects[child].tier < links_.objects[o].tier) continue;
      wrong.push_back(fmt::format("{} (tier {})", NameOf(child), links_.objects[child].tier));
    }
    if (wrong.empty()) continue;
    TakeOut(o, FaultKind::kTierOrder,
            fmt::format("HyperNode {} is out: its tier {} is not above that of its child {}.",
                        NameOf(o), links_.objects[o].tier, JoinNames(wrong)));
  }
}

void Linker::TakeOutSuperfluousTiers() {
  std::vector<std::set<int32_t>> tiers(links_.fabrics.size());
  for (const LinkObject& object : links_.objects) tiers[object.fabric].insert(object.tier);
  for (uint32_t o = 0; o < size(); ++o) {
    const LinkObject& object = links_.objects[o];
    const std::set<int32_t>& used = tiers[object.fabric];
    if (object.out || used.size() <= kTiersPerFabric) continue;
    if (object.tier < *std::next(used.begin(), kTiersPerFabric)) continue;
    TakeOut(o, FaultKind::kTierOrder,
            fmt::format("HyperNode {} is out: its tier {} is beyond the {} lowest tiers in use, "
                        "and no fabric may have more.",
                        NameOf(o), object.tier, kTiersPerFabric));
  }
}

std::vector<std::vector<uint32_t>> Linker::SoundParents() const {
  std::vector<std::vector<uint32_t>> parents(size());
  for (uint32_t o = 0; o < size(); ++o) {
    if (links_.objects[o].out) continue;
    for (const uint32_t child : children_[o]) parents[child].push_back(o);
  }
  return parents;
}

// Whether `upper` is reached from `lower` by going from child to parent, along sound parents. These
// have ascending tiers, so the search ends.
bool Linker::IsAbove(uint32_t upper, uint32_t lower) {
  const auto [it, is_new] = above_.try_emplace({upper, lower}, false);
  if (!is_new) return it->second;
  std::set<uint32_t> seen = {lower};
  std::vector<uint32_t> open = {lower};
  while (!open.empty()) {
    const uint32_t o = open.back();
    open.pop_back();
    for (const uint32_t parent : parents_[o]) {
      if (parent == upper) return it->second = true;
      if (links_.objects[parent].tier >= links_.objects[upper].tier) continue;
      if (seen.insert(parent).second) open.push_back(parent);
    }
  }
  return false;
}

void Linker::TakeOutSecondParents() {
  parents_ = SoundParents();
  std::vector<uint32_t> contested;
  std::vector<std::vector<uint32_t>> items;
  std::vector<Claimant> claimants;
  for (uint32_t o = 0; o < size(); ++o) {
    claimants.push_back({NameOf(o), links_.objects[o].creation, parents_[o]});
    if (parents_[o].size() < 2) continue;
    contested.push_back(o);
    items.push_back(parents_[o]);
  }
  const auto nested = [&](uint32_t a, uint32_t b) { return IsAbove(a, b) || IsAbove(b, a); };
  for (const Loss& loss : Decide(claimants, items, nested)) {
    TakeOut(loss.loser, FaultKind::kTwoParents,
            fmt::format("HyperNode {} is out: its child {} is also a child of HyperNode {}, "
                        "which stands because it {}.",
                        NameOf(loss.loser), NameOf(contested[loss.item]), NameOf(loss.winner),
                        TextOf(loss.merit)));
  }
  parents_ = SoundParents();
  TellRedundantParents();
}

// Those parents of an object that still stand are ancestors of each other: the lowest is the
// parent.
void Linker::TellRedundantParents() {
  std::vector<std::vector<std::string>> redundant(size());
  for (uint32_t o = 0; o < size(); ++o) {
    const std::vector<uint32_t>& parents = parents_[o];
    if (parents.empty()) continue;
    links_.objects[o].parent = *std::min_element(
        parents.begin(), parents.end(),
        [&](uint32_t a, uint32_t b) { return links_.objects[a].tier < links_.objects[b].tier; });
    for (const uint32_t parent : parents) {
      if (parent != links_.objects[o].parent) redundant[parent].push_back(NameOf(o));
    }
  }
  for (uint32_t o = 0; o < size(); ++o) {
    if (redundant[o].empty()) continue;
    Warn(o, FaultKind::kTwoParents,
         fmt::format("HyperNode {} names as its child {}, which a HyperNode below it names "
                     "already; that one is the parent.",
                     NameOf(o), JoinNames(redundant[o])));
  }
}

// Depth-first from the roots of each fabric. parent[o] is kNoObject for roots; objects for which
// left_out holds must not be a parent.
Skeleton Grow(const Links& links, const std::vector<uint32_t>& parent,
              const std::vector<char>& left_out) {
  const size_t count = links.objects.size();
  std::vector<std::vector<uint32_t>> children(count);
  std::vector<std::vector<uint32_t>> roots(links.fabrics.size());
  // From the last to the first, so that what is pushed on the stack comes off in natural order.
  for (auto it = links.natural.rbegin(); it != links.natural.rend(); ++it) {
    if (left_out[*it] != 0) continue;
    if (parent[*it] == kNoObject) {
      roots[links.objects[*it].fabric].push_back(*it);
    } else {
      children[parent[*it]].push_back(*it);
    }
  }
  Skeleton skeleton;
  skeleton.place.assign(count, kNoObject);
  skeleton.end.assign(count, 0);
  for (const std::vector<uint32_t>& fabric_roots : roots) {
    skeleton.fabric_begin.push_back(static_cast<uint32_t>(skeleton.preorder.size()));
    std::vector<uint32_t> open = fabric_roots;
    while (!open.empty()) {
      const uint32_t o = open.back();
      open.pop_back();
      skeleton.place[o] = static_cast<uint32_t>(skeleton.preorder.size());
      skeleton.preorder.push_back(o);
      open.insert(open.end(), children[o].begin(), children[o].end());
    }
  }
  skeleton.fabric_begin.push_back(static_cast<uint32_t>(skeleton.preorder.size()));
  for (auto it = skeleton.preorder.rbegin(); it != skeleton.preorder.rend(); ++it) {
    skeleton.end[*it] = std::max(skeleton.end[*it], skeleton.place[*it] + 1);
    if (parent[*it] == kNoObject) continue;
    uint32_t& above = skeleton.end[parent[*it]];
    above = std::max(above, skeleton.end[*it]);
  }
  return skeleton;
}

}  // namespace

Links LinkHyperNodes(const std::vector<LinkInput>& inputs) {
  Links links = Linker(inputs).Run();
  std::vector<uint32_t> parent;
  parent.reserve(links.objects.size());
  for (const LinkObject& object : links.objects) parent.push_back(object.parent);
  links.declared = Grow(links, parent, std::vector<char>(links.objects.size(), 0));
  return links;
}

Skeleton SoundSkeleton(const Links& links, const std::vector<char>& out) {
  std::vector<uint32_t> parent;
  parent.reserve(links.objects.size());
  for (const LinkObject& object : links.objects) {
    const bool has_parent = object.parent != kNoObject && out[object.parent] == 0;
    parent.push_back(has_parent ? object.parent : kNoObject);
  }
  return Grow(links, parent, out);
}

}  // namespace hopwise::topology
