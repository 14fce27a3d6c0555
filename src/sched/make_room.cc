#include "sched/make_room.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/quantity.h"
#include "cluster/lifted.h"
#include "sched/ranks.h"
#include "sched/reasons.h"
#include "sched/spread.h"

namespace hopwise::sched {
namespace {

// Clusters up to this size are searched to the end, as when a domain is chosen: all candidates, and
// in each the cheapest of all sets of so many units at most.
constexpr size_t kSmallCluster = 256;
constexpr size_t kMostExact = 9;
// Sets of units tried in all such searches for one gang; some tens of milliseconds.
constexpr int kMostTries = 2'000;

// What may be cleared: an interval of a tree's order of nodes.
struct Candidate {
  size_t tree = 0;
  uint16_t rank = 0;
  size_t lo = 0, hi = 0;
  std::vector<Unit> units;  // the cheapest first; those that may be asked one after the other
  EvictCost bound;
};

EvictCost CostOf(const std::vector<Unit>& units, uint16_t rank) {
  EvictCost cost;
  cost.rank = rank;
  std::set<PodId> pods;
  std::set<GangId> broken;
  int64_t work = 0;
  for (const Unit& unit : units) {
    if (unit.breaks) {
      cost.broken.push_back(unit.priority);
      broken.insert(unit.gang);
    }
  }
  for (const Unit& unit : units) {
    // What belongs to a broken gang is counted with it.
    work = SaturatingAdd(work, unit.breaks || !broken.contains(unit.gang) ? unit.work : 0);
    pods.insert(unit.pods.begin(), unit.pods.end());
  }
  std::ranges::sort(cost.broken, std::greater<>());
  cost.work = static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(work)));
  cost.pods = static_cast<int64_t>(pods.size());
  return cost;
}

class Search {
 public:
  Search(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
         const std::vector<int64_t>& request, const Victims& victims, Tools& tools)
      : state_(state),
        gang_(gang),
        demand_(demand),
        scope_(scope),
        request_(request),
        victims_(victims),
        tools_(tools),
        lifted_(state) {}

  Room Run();

 private:
  void LiftLeaving();
  [[nodiscard]] std::vector<NodeId> NodesOf(const Candidate& candidate) const;
  [[nodiscard]] std::vector<Candidate> Candidates();
  void AddCandidates(const TreeScope& scope, std::vector<Candidate>& out);
  void Bound(Candidate& candidate) const;
  [[nodiscard]] int64_t Shortage(const Candidate& candidate) const;
  [[nodiscard]] Choice TryWithout(const std::vector<Unit>& units);
  [[nodiscard]] std::optional<Room> Clear(const Candidate& candidate);
  void Better(const Candidate& candidate, std::vector<Unit>& needed);
  [[nodiscard]] Room MakeAnswer(const Choice& choice, std::vector<Unit> units, uint16_t rank);

  cluster::State& state_;
  GangId gang_;
  const Demand& demand_;
  const Scope& scope_;
  const std::vector<int64_t>& request_;
  const Victims& victims_;
  Tools& tools_;
  cluster::Lifted lifted_;  // those on their way out, all the time
  std::vector<PodId> leaving_;
  bool small_ = false;
  int tries_ = 0;
  ResourceId scarce_;  // of what is asked, the one that a node has least of
};

void Search::LiftLeaving() {
  for (size_t p = 0; p < state_.pod_slots(); ++p) {
    const cluster::PodRecord& pod = state_.pod(PodId(p));
    if (pod.alive && pod.terminating && cluster::HoldsRoom(pod.state)) {
      lifted_.Lift(PodId(p));
      leaving_.emplace_back(p);
    }
  }
}

std::vector<NodeId> Search::NodesOf(const Candidate& candidate) const {
  const topology::Tree& tree = *state_.trees()[candidate.tree];
  return {tree.order.begin() + static_cast<std::ptrdiff_t>(candidate.lo),
          tree.order.begin() + static_cast<std::ptrdiff_t>(candidate.hi)};
}

// Where the gang would fit, by sums, were all victims gone.
void Search::AddCandidates(const TreeScope& scope, std::vector<Candidate>& out) {
  const Trial trial(state_, scope.tree, demand_.classes);
  const topology::Tree& tree = trial.tree();
  const auto holds = [&](auto count_of) {
    for (size_t k = 0; k < demand_.required_counts.size(); ++k) {
      if (count_of(trial.View(k)) < demand_.required_counts[k]) {
        return false;
      }
    }
    return true;
  };
  if (scope.anchors.empty() || scope_.kind == Scope::Kind::kFree) {
    for (size_t at = 0; at < tree.order.size(); ++at) {
      const size_t node = tree.order[at].index();
      if (holds([&](const RoomView& view) { return int64_t{view.fit[node]}; })) {
        out.push_back({scope.tree, 0, at, at + 1, {}, {}});
      }
    }
  }
  for (uint16_t rank = 1; rank <= scope.limit; ++rank) {
    for (const DomainId d : tree.by_rank[rank]) {
      const topology::Domain& domain = tree.at(d);
      const DomainId anchor = scope.anchors.common();
      if (holds([&](const RoomView& view) { return view.sums[d.index()]; }) &&
          (!anchor.valid() || tree.Contains(d, anchor))) {
        out.push_back({scope.tree, rank, domain.lo, domain.hi, {}, {}});
      }
    }
  }
}

std::vector<Candidate> Search::Candidates() {
  std::vector<Candidate> candidates;
  cluster::Lifted all(state_);
  for (size_t p = 0; p < state_.pod_slots(); ++p) {
    if (state_.pod(PodId(p)).alive && victims_.MayEvict(PodId(p))) {
      all.Lift(PodId(p));
    }
  }
  if (scope_.kind == Scope::Kind::kFree) {
    TreeScope anywhere;
    anywhere.limit = state_.trees()[0]->root_rank();
    AddCandidates(anywhere, candidates);
  } else {
    for (const TreeScope& scope : scope_.trees) {
      AddCandidates(scope, candidates);
    }
  }
  return candidates;
}

// What the domain lacks of the scarce resource, were it in one piece.
int64_t Search::Shortage(const Candidate& candidate) const {
  int64_t free = 0;
  for (const NodeId node : NodesOf(candidate)) {
    free = SaturatingAdd(free, std::max<int64_t>(0, state_.columns().free(scarce_)[node.index()]));
  }
  return SaturatingSub(request_[scarce_.index()], free);
}

// The units that may be asked, and what the first of them cost that make up for the shortage.
void Search::Bound(Candidate& candidate) const {
  Taken taken;
  for (Unit& unit : victims_.On(NodesOf(candidate))) {
    if (victims_.MayGive(unit, taken)) {
      taken.Add(state_, unit);
      candidate.units.push_back(std::move(unit));
    }
  }
  int64_t shortage = Shortage(candidate);
  std::vector<Unit> needed;
  const topology::Tree& tree = *state_.trees()[candidate.tree];
  for (const Unit& unit : candidate.units) {
    if (shortage <= 0) {
      break;
    }
    needed.push_back(unit);
    for (const PodId pod : unit.pods) {
      const size_t at = tree.position[state_.pod(pod).node.index()];
      const bool here = at >= candidate.lo && at < candidate.hi;
      shortage -= here ? cluster::AmountOf(state_.RequestOf(pod), scarce_) : 0;
    }
  }
  candidate.bound = CostOf(needed, candidate.rank);
}

Choice Search::TryWithout(const std::vector<Unit>& units) {
  cluster::Lifted lifted(state_);
  std::set<PodId> pods;
  for (const Unit& unit : units) {
    for (const PodId pod : unit.pods) {
      if (pods.insert(pod).second) {
        lifted.Lift(pod);
      }
    }
  }
  if (!QueueProblem(state_, state_.gang(gang_).queue, request_).empty()) {
    return {};
  }
  return scope_.kind == Scope::Kind::kFree ? SpreadByScore(state_, gang_, demand_, tools_)
                                           : ChooseDomain(state_, gang_, demand_, scope_, tools_);
}

// The cheapest set that suffices, if there is one cheaper than `needed`.
void Search::Better(const Candidate& candidate, std::vector<Unit>& needed) {
  const std::vector<Unit>& units = candidate.units;
  const EvictCost limit = CostOf(needed, candidate.rank);
  std::vector<std::pair<EvictCost, uint32_t>> sets;
  const auto take = [&](uint32_t bits) {
    std::vector<Unit> set;
    for (size_t i = 0; i < units.size(); ++i) {
      if ((bits >> i & 1U) != 0) {
        set.push_back(units[i]);
      }
    }
    return set;
  };
  for (uint32_t bits = 1; bits < 1U << units.size(); ++bits) {
    EvictCost cost = CostOf(take(bits), candidate.rank);
    if (cost < limit) {
      sets.emplace_back(std::move(cost), bits);
    }
  }
  std::ranges::sort(sets);
  for (const auto& [cost, bits] : sets) {
    if (++tries_ > kMostTries) {
      return;
    }
    std::vector<Unit> set = take(bits);
    if (TryWithout(set).found) {
      needed = std::move(set);
      return;
    }
  }
}

std::optional<Room> Search::Clear(const Candidate& candidate) {
  const std::vector<Unit>& units = candidate.units;
  const auto first = [&](size_t count) {
    return std::vector<Unit>(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(count));
  };
  if (!TryWithout(units).found) {
    return std::nullopt;
  }
  // The fewest of the cheapest that suffice.
  size_t lo = 0;
  size_t hi = units.size();
  while (lo < hi) {
    const size_t middle = (lo + hi) / 2;
    if (TryWithout(first(middle)).found) {
      hi = middle;
    } else {
      lo = middle + 1;
    }
  }
  std::vector<Unit> needed = first(hi);
  for (size_t i = needed.size(); i-- > 0;) {
    std::vector<Unit> fewer = needed;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (TryWithout(fewer).found) {
      needed = std::move(fewer);
    }
  }
  if (small_ && units.size() <= kMostExact) {
    Better(candidate, needed);
  }
  const Choice choice = TryWithout(needed);
  return choice.found ? std::optional(MakeAnswer(choice, std::move(needed), candidate.rank))
                      : std::nullopt;
}

Room Search::MakeAnswer(const Choice& choice, std::vector<Unit> units, uint16_t rank) {
  Room room;
  room.found = true;
  room.tree = choice.tree;
  room.cost = CostOf(units, rank);
  room.units = std::move(units);
  room.binds =
      AssignMembers(state_, gang_, demand_, choice.placement, *state_.trees()[choice.tree]);
  std::set<NodeId> nodes;
  for (const Bind& bind : room.binds) {
    nodes.insert(bind.node);
  }
  std::ranges::copy_if(leaving_, std::back_inserter(room.leaving),
                       [&](PodId pod) { return nodes.contains(state_.pod(pod).host); });
  return room;
}

Room Search::Run() {
  small_ = state_.trees()[0]->order.size() <= kSmallCluster;
  LiftLeaving();
  if (!leaving_.empty()) {
    const Choice choice = TryWithout({});
    if (choice.found) {
      return MakeAnswer(choice, {}, 0);
    }
  }
  if (!victims_.any()) {
    return {};
  }
  for (size_t r = 0; r < request_.size(); ++r) {
    const auto share = [&](ResourceId id) {
      return Int128{request_[id.index()]} * state_.columns().total_allocatable(scarce_);
    };
    const ResourceId id(r);
    if (!scarce_.valid() ||
        share(id) > Int128{request_[scarce_.index()]} * state_.columns().total_allocatable(id)) {
      scarce_ = id;
    }
  }
  std::vector<Candidate> candidates = Candidates();
  for (Candidate& candidate : candidates) {
    Bound(candidate);
  }
  std::erase_if(candidates, [](const Candidate& c) { return c.units.empty(); });
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    const auto order = a.bound <=> b.bound;
    return order != 0 ? order < 0 : std::tie(a.tree, a.lo) < std::tie(b.tree, b.lo);
  });
  Room best;
  size_t cleared = 0;
  size_t tried = 0;
  for (const Candidate& candidate : candidates) {
    // What makes up for the shortage is no true bound where room is in pieces, but a good guess.
    const bool enough = cleared >= victims_.max_domains() || tried++ >= kMostTried ||
                        (best.found && candidate.bound >= best.cost);
    if (enough && !small_) {
      break;
    }
    std::optional<Room> room = Clear(candidate);
    cleared += room ? 1U : 0U;
    if (room && (!best.found || room->cost < best.cost)) {
      best = std::move(*room);
    }
  }
  return best;
}

}  // namespace

Room MakeRoom(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
              const std::vector<int64_t>& request, const Victims& victims, Tools& tools) {
  Demand required = demand;
  required.optional = Batch();
  required.all_counts = required.required_counts;
  return Search(state, gang, required, scope, request, victims, tools).Run();
}

}  // namespace hopwise::sched
