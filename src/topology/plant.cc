#include "topology/plant.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "topology/members.h"
#include "topology/natural.h"

namespace hopwise::topology {
namespace {

// The values of the labels joined by "/", which no value contains; none when one is lacking or
// there are no keys.
std::optional<std::string> TupleOf(const api::StringMap& labels,
                                   const std::vector<std::string>& keys) {
  if (keys.empty()) return std::nullopt;
  std::string tuple;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string* value = api::Find(labels, keys[i]);
    if (value == nullptr) return std::nullopt;
    if (i > 0) tuple += '/';
    tuple += *value;
  }
  return tuple;
}

std::string JoinKeys(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    if (!text.empty()) text += '/';
    text += key;
  }
  return text;
}

}  // namespace

Tree PlantFabric(const Links& links, const Skeleton& sound, const Assignment& assignment,
                 uint32_t fabric, std::span<const NodeId> nodes, size_t ids) {
  const uint32_t begin = sound.fabric_begin[fabric];
  const uint32_t end = sound.fabric_begin[fabric + 1];
  // Place p of the skeleton is domain p - begin + 1.
  const auto domain_of = [&](uint32_t object) {
    return object == kNoObject ? 0 : sound.place[object] - begin + 1;
  };
  Tree tree;
  tree.fabric = links.fabrics[fabric];
  tree.domains.resize(end - begin + 1);
  tree.domains[0].end = end - begin + 1;
  for (uint32_t place = begin; place < end; ++place) {
    const uint32_t o = sound.preorder[place];
    const LinkObject& object = links.objects[o];
    const bool is_root = object.parent == kNoObject || assignment.out[object.parent] != 0;
    Domain& domain = tree.domains[place - begin + 1];
    domain.name = object.name;
    domain.tier_name = object.tier_name;
    domain.tier = object.tier;
    domain.parent = DomainId(is_root ? 0U : domain_of(object.parent));
    domain.end = sound.end[o] - begin + 1;
  }
  std::vector<uint32_t> domains;
  domains.reserve(nodes.size());
  for (const uint32_t owner : assignment.owner[fabric]) domains.push_back(domain_of(owner));
  LayOut(nodes, domains, ids, tree);
  RankTiers(tree);
  tree.MakeIndexes();
  return tree;
}

Tree PlantLabels(std::span<const NodeId> sorted, const NodeTable& nodes,
                 const std::vector<std::string>& keys) {
  Tree tree;
  tree.fabric = JoinKeys(keys);
  std::vector<std::optional<std::string>> tuples;
  std::map<std::string, uint32_t, NaturalLess> domains;
  for (const NodeId node : sorted) {
    tuples.push_back(TupleOf(nodes.LabelsOf(node), keys));
    if (tuples.back()) domains.try_emplace(*tuples.back(), 0);
  }
  tree.domains.resize(domains.size() + 1);
  tree.domains[0].end = static_cast<uint32_t>(tree.domains.size());
  uint32_t next = 1;
  for (auto& [tuple, index] : domains) {
    index = next++;
    tree.domains[index] = {tuple, tree.fabric, 1, 0, DomainId(0U), next, 0, 0, 0};
  }
  std::vector<uint32_t> domain_of;
  domain_of.reserve(tuples.size());
  for (const auto& tuple : tuples) domain_of.push_back(tuple ? domains[*tuple] : 0);
  LayOut(sorted, domain_of, nodes.ids(), tree);
  RankTiers(tree);
  tree.MakeIndexes();
  return tree;
}

void LayOut(std::span<const NodeId> nodes, std::span<const uint32_t> domain_of, size_t ids,
            Tree& tree) {
  HOPWISE_CHECK(nodes.size() == domain_of.size());
  std::vector<uint32_t> next(tree.domains.size(), 0);
  for (const uint32_t d : domain_of) ++next[d];
  uint32_t position = 0;
  for (size_t d = 0; d < tree.domains.size(); ++d) {
    Domain& domain = tree.domains[d];
    domain.lo = position;
    domain.direct = position + next[d];
    next[d] = domain.lo;
    position = domain.direct;
  }
  // A domain ends where the next one that is not under it begins.
  for (Domain& domain : tree.domains) {
    domain.hi = domain.end < tree.domains.size() ? tree.domains[domain.end].lo : position;
  }
  tree.order.resize(nodes.size());
  tree.position.assign(ids, Tree::kNoPosition);
  tree.leaf_of.assign(ids, DomainId(0U));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const uint32_t at = next[domain_of[i]]++;
    tree.order[at] = nodes[i];
    tree.position[nodes[i].index()] = at;
    tree.leaf_of[nodes[i].index()] = DomainId(domain_of[i]);
  }
}

void RankTiers(Tree& tree) {
  std::map<int32_t, std::string> tiers;
  for (size_t d = 1; d < tree.domains.size(); ++d) {
    const Domain& domain = tree.domains[d];
    std::string& name = tiers[domain.tier];
    const bool is_less = name.empty() || domain.tier_name < name;
    if (is_less && !domain.tier_name.empty()) name = domain.tier_name;
  }
  for (const auto& [tier, name] : tiers) {
    tree.tiers.push_back(tier);
    tree.tier_names.push_back(name);
  }
  for (size_t d = 1; d < tree.domains.size(); ++d) {
    Domain& domain = tree.domains[d];
    const auto at = std::lower_bound(tree.tiers.begin(), tree.tiers.end(), domain.tier);
    domain.rank = static_cast<uint16_t>(at - tree.tiers.begin() + 1);
  }
  Domain& root = tree.domains[0];
  root.rank = tree.root_rank();
  root.tier = 1;
  if (!tree.tiers.empty()) {
    root.tier = std::min(tree.tiers.back(), std::numeric_limits<int32_t>::max() - 1) + 1;
  }
}

void WarnOfEmpty(const Tree& tree, std::vector<Fault>& faults) {
  for (size_t d = 1; d < tree.domains.size(); ++d) {
    const Domain& domain = tree.domains[d];
    if (domain.lo < domain.hi) continue;
    faults.push_back({domain.name, FaultKind::kEmpty, false,
                      fmt::format("No node of HyperNode {} exists.", domain.name)});
  }
}

void WarnOfTierNames(const Tree& tree, std::vector<Fault>& faults) {
  std::map<int32_t, std::set<std::string>> names_of;
  std::map<std::string, std::set<int32_t>> tiers_of;
  for (size_t d = 1; d < tree.domains.size(); ++d) {
    const Domain& domain = tree.domains[d];
    if (domain.tier_name.empty()) continue;
    names_of[domain.tier].insert(domain.tier_name);
    tiers_of[domain.tier_name].insert(domain.tier);
  }
  // The lists are written once, not once for each of what may be thousands of domains.
  std::map<int32_t, std::string> several_names;
  for (const auto& [tier, names] : names_of) {
    if (names.size() > 1) several_names[tier] = JoinNames({names.begin(), names.end()});
  }
  std::map<std::string, std::string> several_tiers;
  for (const auto& [name, tiers] : tiers_of) {
    if (tiers.size() < 2) continue;
    std::vector<std::string> numbers;
    numbers.reserve(tiers.size());
    for (const int32_t tier : tiers) numbers.push_back(std::to_string(tier));
    several_tiers[name] = JoinNames(numbers);
  }
  for (size_t d = 1; d < tree.domains.size(); ++d) {
    const Domain& domain = tree.domains[d];
    const auto warn = [&](std::string message) {
      faults.push_back({domain.name, FaultKind::kTierNameClash, false, std::move(message)});
    };
    if (domain.tier_name.empty()) continue;
    if (const auto it = several_names.find(domain.tier); it != several_names.end()) {
      warn(fmt::format("Tier {} of HyperNode {} has several tierNames: {}.", domain.tier,
                       domain.name, it->second));
    }
    if (const auto it = several_tiers.find(domain.tier_name); it != several_tiers.end()) {
      warn(fmt::format("The tierName {} of HyperNode {} is used on several tiers: {}.",
                       domain.tier_name, domain.name, it->second));
    }
  }
}

}  // namespace hopwise::topology
