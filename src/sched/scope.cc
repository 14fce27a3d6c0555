#include "sched/scope.h"

#include <algorithm>
#include <set>

namespace hopwise::sched {
namespace {

using cluster::TopologyRule;

// The tiers in use, for people: "leaf (tier 1), spine (tier 2)".
std::string KnownTiers(const std::vector<const topology::Tree*>& trees, size_t fabrics) {
  std::set<std::pair<int32_t, std::string>> tiers;
  for (size_t t = 0; t < fabrics; ++t) {
    for (const topology::Domain& d : trees[t]->domains) {
      if (d.parent.valid()) {
        tiers.emplace(d.tier, d.tier_name);
      }
    }
  }
  std::string text;
  for (const auto& [tier, name] : tiers) {
    text += text.empty() ? "" : ", ";
    text += name.empty() ? "tier " + std::to_string(tier)
                         : name + " (tier " + std::to_string(tier) + ")";
  }
  return text;
}

std::string UnmetRule(cluster::State& state, const TopologyRule& rule) {
  const auto& topology = state.topology();
  if (!rule.fabric.empty()) {
    const bool known = std::ranges::any_of(
        topology.trees, [&](const topology::Tree& t) { return t.fabric == rule.fabric; });
    if (!known) {
      return "asks for fabric \"" + rule.fabric + "\", but no HyperNode belongs to it";
    }
  }
  if (!rule.label_keys.empty()) {
    std::string keys;
    for (const std::string& key : rule.label_keys) {
      keys += (keys.empty() ? "" : ", ") + key;
    }
    return "asks for one domain of the node label " + keys + ", but no node has it";
  }
  const std::string known = KnownTiers(state.trees(), topology.trees.size());
  if (known.empty()) {
    return "has a hard topology rule, but no sound HyperNode exists (" +
           std::to_string(topology.hypernodes.size()) + " are broken): no topology known";
  }
  if (!rule.highest_tier_name.empty() && !rule.highest_tier) {
    return "asks for tier name \"" + rule.highest_tier_name +
           "\", which no HyperNode has; known are " + known;
  }
  return "allows tiers up to " + std::to_string(rule.highest_tier.value_or(0)) +
         ", but the known ones are " + known;
}

bool AllBestEffort(const cluster::State& state, const cluster::Gang& gang) {
  return !gang.pods.empty() &&
         std::ranges::all_of(gang.pods, [&](PodId id) { return state.pod(id).best_effort; });
}

// Anchors, and the domain they confine the gang to when the rule is hard.
void Confine(cluster::State& state, const TopologyRule& rule, const std::vector<PodId>& placed,
             TreeScope& scope, std::vector<std::string>& warnings) {
  const topology::Tree& tree = *state.trees()[scope.tree];
  for (const PodId id : placed) {
    scope.anchors.Add(tree, state.pod(id).node);
  }
  scope.anchors.Finish();
  const DomainId common = scope.anchors.common();
  if (!common.valid() || rule.mode != TopologyRule::Mode::kHard) {
    return;
  }
  if (tree.at(common).rank > scope.limit) {
    scope.limit = tree.at(common).rank;
    const std::string where =
        tree.at(common).parent.valid() ? tree.at(common).name : "several trees";
    warnings.push_back(
        "its running members already span " + where +
        ", more than its topology rule allows; missing members are placed inside that domain");
  }
}

}  // namespace

uint16_t LimitRank(const topology::Tree& tree, const TopologyRule& rule) {
  const uint16_t root = tree.root_rank();
  if (rule.mode == TopologyRule::Mode::kSoft || rule.mode == TopologyRule::Mode::kNone) {
    return root;
  }
  if (rule.highest_tier) {
    uint16_t limit = 0;
    for (size_t i = 0; i < tree.tiers.size(); ++i) {
      limit = tree.tiers[i] <= *rule.highest_tier ? static_cast<uint16_t>(i + 1) : limit;
    }
    return limit;
  }
  if (!rule.highest_tier_name.empty()) {
    uint16_t limit = 0;
    for (const uint16_t rank : tree.RanksNamed(rule.highest_tier_name)) {
      limit = std::max(limit, rank);
    }
    return limit;
  }
  return static_cast<uint16_t>(root - 1);  // hard without a tier: inside one tree
}

Scope GangScope(cluster::State& state, GangId id, const std::vector<PodId>& placed) {
  const cluster::Gang& gang = state.gang(id);
  const TopologyRule& rule = gang.rule;
  Scope scope;
  const bool grouped = std::ranges::any_of(gang.policies, [](const cluster::SubGroupPolicy& p) {
    return p.rule.mode != TopologyRule::Mode::kNone;
  });
  if (rule.mode == TopologyRule::Mode::kNone && !grouped) {
    return scope;
  }
  if (AllBestEffort(state, gang)) {
    scope.warnings.emplace_back("all its pods are BestEffort: its topology rule is not applied");
    return scope;
  }
  const size_t fabrics = state.topology().trees.size();
  if (rule.label_keys.empty() && state.topology().hypernodes.empty()) {
    scope.warnings.emplace_back("no HyperNode exists: its topology rule is not applied");
    return scope;
  }
  scope.kind = Scope::Kind::kRuled;
  std::vector<size_t> candidates;
  if (!rule.label_keys.empty()) {
    candidates.push_back(state.LabelTreeIndex(rule.label_keys));
  } else {
    for (size_t t = 0; t < fabrics; ++t) {
      if (rule.fabric.empty() || state.trees()[t]->fabric == rule.fabric) {
        candidates.push_back(t);
      }
    }
  }
  for (const size_t t : candidates) {
    TreeScope tree;
    tree.tree = t;
    tree.limit = LimitRank(*state.trees()[t], rule);
    const bool bare = state.trees()[t]->domains.size() == 1 && fabrics > 1;
    if (tree.limit > 0 && !bare) {
      Confine(state, rule, placed, tree, scope.warnings);
      scope.trees.push_back(std::move(tree));
    }
  }
  if (scope.trees.empty()) {
    scope.kind = Scope::Kind::kUnknown;
    scope.problem = UnmetRule(state, rule);
  }
  for (const cluster::SubGroupPolicy& policy : gang.policies) {
    const bool met = std::ranges::any_of(scope.trees, [&](const TreeScope& t) {
      return LimitRank(*state.trees()[t.tree], policy.rule) > 0;
    });
    if (!scope.trees.empty() && !met) {
      scope.kind = Scope::Kind::kUnknown;
      scope.problem = "its sub-group policy " + policy.name + " " + UnmetRule(state, policy.rule);
    }
  }
  return scope;
}

}  // namespace hopwise::sched
