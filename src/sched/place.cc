#include "sched/place.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "sched/scope.h"
#include "sched/split_groups.h"
#include "sched/split_mixed.h"

namespace hopwise::sched {
namespace {

// What the gang holds, and what earlier parts of the placement opened: later ones use it for free.
Anchors Opened(const topology::Tree& tree, Anchors anchors, const Placement& placement) {
  for (const NodeId node : placement.Nodes()) {
    anchors.Add(tree, node);
  }
  anchors.Finish();
  return anchors;
}

// Takes the next `pods` pods along the fabric.
std::vector<NodeCount> TakeAlong(std::vector<NodeCount>& nodes, size_t& at, int32_t pods) {
  std::vector<NodeCount> out;
  while (pods > 0) {
    const int32_t take = std::min(nodes[at].count, pods);
    out.push_back({nodes[at].node, take});
    pods -= take;
    nodes[at].count -= take;
    at += nodes[at].count == 0 ? 1U : 0U;
  }
  return out;
}

}  // namespace

DomainId HomeOf(const cluster::State& state, const topology::Tree& tree,
                const cluster::SubGroup& group) {
  DomainId home;
  for (const PodId id : group.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    if (cluster::HoldsRoom(pod.state) && pod.node.valid()) {
      const DomainId leaf = tree.leaf_of[pod.node.index()];
      home = home.valid() ? tree.CommonDomain(home, leaf) : leaf;
    }
  }
  return home;
}

DomainId CommonDomain(const topology::Tree& tree, DomainId common, const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    const DomainId leaf = tree.leaf_of[slot.node.index()];
    common = common.valid() ? tree.CommonDomain(common, leaf) : leaf;
  }
  return common;
}

std::vector<NodeId> Placement::Nodes() const {
  std::vector<NodeId> nodes;
  for (const PlacedSet& set : sets) {
    for (const Slot& slot : set.slots) {
      nodes.push_back(slot.node);
    }
  }
  std::ranges::sort(nodes);
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
  return nodes;
}

int64_t Placement::members() const {
  int64_t sum = 0;
  for (const PlacedSet& set : sets) {
    for (const Slot& slot : set.slots) {
      sum += slot.count;
    }
  }
  return sum;
}

Packer::Packer(cluster::State& state, GangId gang, const Demand& demand, Trial& trial,
               const Anchors& anchors, std::function<int64_t(size_t, NodeId)> score, Effort& effort)
    : state_(state),
      gang_(state.gang(gang)),
      demand_(demand),
      trial_(trial),
      anchors_(anchors),
      score_(std::move(score)),
      effort_(effort) {}

bool Packer::PlaceRequired(DomainId d, Placement& out) {
  const Batch& batch = demand_.required;
  const bool several =
      batch.uniform.size() + batch.singles.size() + (batch.loose.empty() ? 0 : 1) > 1;
  // One part after the other is a heuristic as soon as there are several; a second and third order
  // mend most of what the first spoils.
  for (const Order order : {Order::kGroupsFirst, Order::kReversed, Order::kLooseFirst}) {
    Trial::Scope scope(trial_);
    Placement placement;
    if (PlaceInOrder(d, order, placement)) {
      scope.Keep();
      out = std::move(placement);
      return true;
    }
    if (!several) {
      break;
    }
    effort_.gave_up = true;
  }
  return false;
}

bool Packer::PlaceInOrder(DomainId d, Order order, Placement& out) {
  const Batch& batch = demand_.required;
  const auto place_loose = [&] {
    if (batch.loose.empty()) {
      return true;
    }
    PlacedSet set;
    if (!PlaceLoose(d, demand_.CountClasses(state_, batch.loose),
                    Opened(trial_.tree(), anchors_, out), set)) {
      return false;
    }
    out.sets.push_back(std::move(set));
    return true;
  };
  if (order == Order::kLooseFirst && !place_loose()) {
    return false;
  }
  // Groups with members that run already are the least free, then the largest.
  std::vector<const UniformGroups*> uniform;
  for (const UniformGroups& u : batch.uniform) {
    uniform.push_back(&u);
  }
  std::ranges::sort(uniform, [&](const UniformGroups* a, const UniformGroups* b) {
    return a->size != b->size ? (a->size > b->size) != (order == Order::kReversed) : a < b;
  });
  for (const SingleGroup& group : batch.singles) {
    if (!PlaceSingle(d, group, true, out)) {
      return false;
    }
  }
  for (const UniformGroups* u : uniform) {
    if (!PlaceUniform(d, *u, 0, static_cast<int32_t>(u->sub_groups.size()), true, out)) {
      return false;
    }
  }
  return order == Order::kLooseFirst || place_loose();
}

uint16_t Packer::GroupLimit(uint32_t policy, DomainId d) const {
  return std::min(LimitRank(trial_.tree(), gang_.policies[policy].rule), trial_.tree().at(d).rank);
}

// Groups without a rule of their own: the fewest cells count, and groups are neighbours along them.
std::vector<GroupSplit> Packer::SplitUnruled(DomainId d, const UniformGroups& u, int32_t groups,
                                             const Anchors& opened) {
  std::vector<NodeCount> nodes = SplitOne(d, u.k, int64_t{groups} * u.size, opened);
  std::ranges::sort(nodes, {},
                    [&](const NodeCount& n) { return trial_.tree().position[n.node.index()]; });
  std::vector<GroupSplit> splits(static_cast<size_t>(groups));
  size_t at = 0;
  for (GroupSplit& split : splits) {
    split.nodes = TakeAlong(nodes, at, u.size);
    for (const NodeCount& n : split.nodes) {
      trial_.Place(u.k, n.node, n.count);
      const DomainId leaf = trial_.tree().leaf_of[n.node.index()];
      split.domain = split.domain.valid() ? trial_.tree().CommonDomain(split.domain, leaf) : leaf;
    }
  }
  return splits;
}

// Groups with a rule: as low as they go. Empty: they do not fit.
std::vector<GroupSplit> Packer::SplitRuled(DomainId d, const UniformGroups& u, int32_t groups,
                                           const Anchors& opened) {
  SplitRequest request;
  request.domain = d;
  request.groups = groups;
  request.group_size = u.size;
  request.group_rank = GroupLimit(u.policy, d);
  if (request.group_rank == 0) {
    return {};
  }
  const auto score = [&](NodeId node) { return score_ ? score_(u.k, node) : 0; };
  SplitAnswer answer =
      SplitExact(trial_.tree(), trial_.View(u.k), opened, request, score, effort_.exact);
  effort_.Spend(answer.spent);
  if (answer.outcome == SplitOutcome::kImpossible) {
    return {};
  }
  if (answer.outcome == SplitOutcome::kTooLarge) {
    return SplitGroups(trial_, u.k, opened, request).value_or(std::vector<GroupSplit>());
  }
  for (const GroupSplit& split : answer.split.groups) {
    for (const NodeCount& n : split.nodes) {
      trial_.Place(u.k, n.node, n.count);
    }
  }
  return std::move(answer.split.groups);
}

// Groups number `from` .. from + groups of u.
bool Packer::PlaceUniform(DomainId d, const UniformGroups& u, size_t from, int32_t groups,
                          bool required, Placement& out) {
  if (trial_.View(u.k).sums[d.index()] < int64_t{groups} * u.size) {
    return false;
  }
  const Anchors opened = Opened(trial_.tree(), anchors_, out);
  const bool ruled = gang_.policies[u.policy].rule.mode != cluster::TopologyRule::Mode::kNone;
  std::vector<GroupSplit> splits =
      ruled ? SplitRuled(d, u, groups, opened) : SplitUnruled(d, u, groups, opened);
  if (splits.empty()) {
    return false;
  }
  HOPWISE_CHECK(splits.size() == static_cast<size_t>(groups));
  for (size_t i = 0; i < splits.size(); ++i) {
    PlacedSet set;
    set.sub_group = u.sub_groups[from + i];
    set.domain = splits[i].domain;
    set.required = required;
    for (const NodeCount& n : splits[i].nodes) {
      set.slots.push_back({n.node, n.count, static_cast<uint16_t>(u.k), kLoose});
    }
    out.sets.push_back(std::move(set));
  }
  return true;
}

// One sub-group by itself: the lowest domain inside d that its rule allows, its own members
// counted.
bool Packer::PlaceSingle(DomainId d, const SingleGroup& group, bool required, Placement& out) {
  const topology::Tree& tree = trial_.tree();
  const uint32_t policy = gang_.sub_groups[group.sub_group].policy;
  const DomainId home = HomeOf(state_, tree, gang_.sub_groups[group.sub_group]);
  const bool ruled = gang_.policies[policy].rule.mode != cluster::TopologyRule::Mode::kNone;
  uint16_t limit = ruled ? GroupLimit(policy, d) : tree.at(d).rank;
  if (home.valid()) {
    limit = std::max(limit,
                     tree.at(home).rank);  // it spans more already: no further than that
  }
  const std::vector<int32_t> wanted = demand_.CountClasses(state_, group.pods);
  for (uint16_t rank = ruled ? 1 : tree.at(d).rank; rank <= limit; ++rank) {
    DomainId best;
    for (uint32_t c = d.value; c < tree.at(d).end; ++c) {
      const DomainId candidate(c);
      const bool holds_mine = !home.valid() || tree.Contains(candidate, home);
      bool fits = tree.at(candidate).rank == rank && holds_mine;
      for (size_t k = 0; fits && k < wanted.size(); ++k) {
        fits = trial_.View(k).sums[c] >= wanted[k];
      }
      // The tightest domain that the gang uses already, else the tightest.
      const auto room = [&](DomainId x) {
        return std::pair(!anchors_.Holds(x), trial_.View(0).sums[x.index()]);
      };
      if (fits && (!best.valid() || room(candidate) < room(best))) {
        best = candidate;
      }
    }
    PlacedSet set;
    if (best.valid() && PlaceLoose(best, wanted, Opened(tree, anchors_, out), set)) {
      set.sub_group = group.sub_group;
      set.required = required;
      set.domain = CommonDomain(tree, home, set.slots);
      out.sets.push_back(std::move(set));
      return true;
    }
  }
  return false;
}

bool Packer::PlaceLoose(DomainId d, const std::vector<int32_t>& wanted, const Anchors& anchors,
                        PlacedSet& out) {
  size_t kinds = 0;
  for (size_t k = 0; k < wanted.size(); ++k) {
    kinds += wanted[k] > 0 ? 1U : 0U;
    if (trial_.View(k).sums[d.index()] < wanted[k]) {
      return false;
    }
  }
  if (kinds > 1) {
    const MixedAnswer mixed = SplitMixed(state_, trial_, anchors, d, wanted, effort_.exact);
    if (mixed.outcome == SplitOutcome::kImpossible) {
      return false;
    }
    if (mixed.outcome == SplitOutcome::kFound) {
      for (const Slot& slot : mixed.slots) {
        trial_.Place(slot.k, slot.node, slot.count);
        out.slots.push_back(slot);
      }
      return true;
    }
  }
  for (const bool small_first : {false, true}) {
    Trial::Scope scope(trial_);
    PlacedSet set;
    if (PlaceClasses(d, wanted, anchors, small_first, set)) {
      scope.Keep();
      out.slots = std::move(set.slots);
      return true;
    }
    if (kinds < 2) {
      return false;
    }
  }
  effort_.gave_up = true;
  return false;
}

// Class by class: the one with the least room for each of its pods first (or last).
bool Packer::PlaceClasses(DomainId d, const std::vector<int32_t>& wanted, const Anchors& anchors,
                          bool small_first, PlacedSet& out) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    const int64_t room_a = trial_.View(a).sums[d.index()];
    const int64_t room_b = trial_.View(b).sums[d.index()];
    return room_a != room_b ? (room_a < room_b) != small_first : a < b;
  });
  for (const size_t k : order) {
    if (wanted[k] == 0) {
      continue;
    }
    if (trial_.View(k).sums[d.index()] < wanted[k]) {
      return false;
    }
    // Later classes prefer the domains that the earlier ones opened.
    Anchors opened = anchors;
    for (const Slot& slot : out.slots) {
      opened.Add(trial_.tree(), slot.node);
    }
    opened.Finish();
    Commit(k, SplitOne(d, k, wanted[k], opened), out);
  }
  return true;
}

std::vector<NodeCount> Packer::SplitOne(DomainId d, size_t k, int64_t pods,
                                        const Anchors& anchors) {
  SplitRequest request;
  request.domain = d;
  request.loose = pods;
  const auto score = [&](NodeId node) { return score_ ? score_(k, node) : 0; };
  SplitAnswer answer =
      SplitExact(trial_.tree(), trial_.View(k), anchors, request, score, effort_.exact);
  effort_.Spend(answer.spent);
  if (answer.outcome == SplitOutcome::kFound) {
    return std::move(answer.split.loose);
  }
  return SplitGreedy(trial_.tree(), trial_.View(k), anchors, d, pods);
}

void Packer::Commit(size_t k, const std::vector<NodeCount>& nodes, PlacedSet& set) {
  for (const NodeCount& n : nodes) {
    trial_.Place(k, n.node, n.count);
    set.slots.push_back({n.node, n.count, static_cast<uint16_t>(k), kLoose});
  }
}

void Packer::PlaceOptionalGroups(DomainId d, Placement& out) {
  const auto done = [&](uint32_t sub_group) {
    return std::ranges::any_of(
        out.sets, [&](const PlacedSet& s) { return s.sub_group == sub_group && !s.required; });
  };
  for (const SingleGroup& group : demand_.optional.singles) {
    if (!done(group.sub_group)) {
      // Pods beyond a sub-group's minimum are welcome singly; below it only together.
      SingleGroup rest = group;
      while (!rest.pods.empty() && !PlaceSingle(d, rest, false, out)) {
        rest.pods.resize(group.whole ? 0 : rest.pods.size() - 1);
      }
    }
  }
  for (const UniformGroups& u : demand_.optional.uniform) {
    size_t from = 0;
    while (from < u.sub_groups.size() && done(u.sub_groups[from])) {
      ++from;
    }
    const bool ruled = gang_.policies[u.policy].rule.mode != cluster::TopologyRule::Mode::kNone;
    const uint16_t limit = ruled ? GroupLimit(u.policy, d) : trial_.tree().at(d).rank;
    const int64_t room =
        limit == 0 ? 0 : GroupRoom(trial_.tree(), trial_.View(u.k), d, u.size, limit);
    const auto groups = static_cast<int32_t>(
        std::min<int64_t>(room, static_cast<int64_t>(u.sub_groups.size() - from)));
    if (groups > 0 && !PlaceUniform(d, u, from, groups, false, out)) {
      effort_.gave_up = true;
    }
  }
}

void Packer::PlaceOptional(DomainId d, Placement& out) {
  PlaceOptionalGroups(d, out);
  std::vector<int32_t> wanted = demand_.CountClasses(state_, demand_.optional.loose);
  for (const PlacedSet& set : out.sets) {
    for (const Slot& slot : set.slots) {
      if (!set.required && set.sub_group == kLoose) {
        wanted[slot.k] -= slot.count;
      }
    }
  }
  PlacedSet set;
  set.required = false;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const int64_t pods = std::min<int64_t>(wanted[k], trial_.View(k).sums[d.index()]);
    if (pods > 0) {
      Commit(k, SplitOne(d, k, pods, Opened(trial_.tree(), anchors_, out)), set);
    }
  }
  if (!set.slots.empty()) {
    out.sets.push_back(std::move(set));
  }
}

}  // namespace hopwise::sched
