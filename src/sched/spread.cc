#include "sched/spread.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "sched/split_mixed.h"

namespace hopwise::sched {
namespace {

constexpr int64_t kExactBudget = 4'000'000;
constexpr int64_t kNoScore = INT64_MIN;

struct Best {
  int64_t score = kNoScore;
  NodeId node;
};

// The best nodes for one class, kept per domain.
class Ladder {
 public:
  Ladder(const cluster::State& state, Trial& trial, DomainTotals& totals, const Scorer& scorer,
         size_t k)
      : state_(state),
        trial_(trial),
        tree_(trial.tree()),
        totals_(totals),
        scorer_(scorer),
        k_(k),
        request_(state.fits().ShapeRequest(trial.shape(k))) {
    own_.assign(state.node_slots(), kNoScore);
    best_.resize(tree_.domains.size());
    for (size_t d = tree_.domains.size(); d-- > 0;) {
      const topology::Domain& domain = tree_.domains[d];
      for (uint32_t at = domain.lo; at < domain.direct; ++at) {
        ScoreNode(tree_.order[at]);
      }
      Refresh(DomainId(d));
    }
  }

  [[nodiscard]] NodeId Top() const { return best_[0].node; }

  void Placed(NodeId node) {
    const DomainId leaf = tree_.leaf_of[node.index()];
    totals_.Add(tree_, leaf, request_, 1);
    ScoreNode(node);
    for (DomainId d = leaf; d.valid(); d = tree_.at(d).parent) {
      Refresh(d);
    }
  }

 private:
  void ScoreNode(NodeId node) {
    if (trial_.View(k_).fit[node.index()] == 0) {
      own_[node.index()] = kNoScore;
      return;
    }
    std::vector<int64_t> extra;
    if (!trial_.empty()) {
      extra.assign(state_.columns().resource_count(), 0);
      trial_.AddPlaced(node, extra);
    }
    own_[node.index()] = scorer_.NodeScore(node, request_, extra.empty() ? nullptr : &extra);
  }

  // Terms of the ranks between a part of rank `below` and its parent of rank `above`, which have no
  // domain there.
  [[nodiscard]] int64_t Gap(uint16_t below, uint16_t above) const {
    int64_t sum = 0;
    for (auto rank = static_cast<uint16_t>(below + 1); rank < above && scorer_.scores_normal_pods();
         ++rank) {
      sum += scorer_.MissingTerm(tree_, rank);
    }
    return sum;
  }

  void Refresh(DomainId d) {
    const topology::Domain& domain = tree_.at(d);
    Best best;
    const int64_t bare = Gap(0, domain.rank);
    for (uint32_t at = domain.lo; at < domain.direct; ++at) {
      const NodeId node = tree_.order[at];
      const int64_t own = own_[node.index()];
      if (own != kNoScore && (!best.node.valid() || own + bare > best.score)) {
        best = {own + bare, node};
      }
    }
    for (uint32_t child = d.value + 1; child < domain.end; child = tree_.domains[child].end) {
      const Best& part = best_[child];
      const int64_t score =
          part.node.valid() ? part.score + Gap(tree_.domains[child].rank, domain.rank) : kNoScore;
      if (part.node.valid() && (!best.node.valid() || score > best.score)) {
        best = {score, part.node};
      }
    }
    if (best.node.valid() && scorer_.scores_normal_pods()) {
      best.score += scorer_.TierTerm(tree_, totals_, d, request_);
    }
    best_[d.index()] = best;
  }

  const cluster::State& state_;
  Trial& trial_;
  const topology::Tree& tree_;
  DomainTotals& totals_;
  const Scorer& scorer_;
  size_t k_;
  const cluster::Request& request_;
  std::vector<int64_t> own_;  // by node
  std::vector<Best> best_;    // by domain
};

class Spreader {
 public:
  Spreader(cluster::State& state, GangId gang, const Demand& demand, Tools& tools)
      : state_(state),
        gang_(state.gang(gang)),
        demand_(demand),
        tools_(tools),
        trial_(state, 0, demand.classes),
        totals_(tools.totals.front()) {}

  Choice Run() {
    Choice choice;
    totals_.Update(state_.columns(), trial_.tree(), state_.trees_version());
    if (!Enough(demand_.required_counts)) {
      return choice;
    }
    std::vector<Slot> slots;
    if (!PlaceCounts(demand_.required_counts, slots) && !PlaceExactly(slots, choice)) {
      return choice;
    }
    choice.found = true;
    Hand(demand_.required, true, slots, choice.placement);
    PlaceOptional(choice.placement);
    totals_.Update(state_.columns(), trial_.tree(), state_.trees_version());
    choice.found = choice.placement.members() > 0;
    return choice;
  }

 private:
  [[nodiscard]] bool Enough(const std::vector<int32_t>& counts) const {
    for (size_t k = 0; k < counts.size(); ++k) {
      if (trial_.View(k).sums[0] < counts[k]) {
        return false;
      }
    }
    return true;
  }

  // Class by class, the one with the least room first. All or nothing: on failure the trial is as
  // before.
  bool PlaceCounts(const std::vector<int32_t>& counts, std::vector<Slot>& out) {
    Trial::Scope scope(trial_);
    std::vector<size_t> order(counts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, [&](size_t a, size_t b) {
      const int64_t room_a = trial_.View(a).sums[0];
      const int64_t room_b = trial_.View(b).sums[0];
      return room_a != room_b ? room_a < room_b : a < b;
    });
    std::vector<Slot> slots;
    for (const size_t k : order) {
      if (counts[k] > 0 && PlaceSome(k, counts[k], slots) < counts[k]) {
        return false;
      }
    }
    scope.Keep();
    out.insert(out.end(), slots.begin(), slots.end());
    return true;
  }

  int32_t PlaceSome(size_t k, int32_t count, std::vector<Slot>& slots) {
    Ladder ladder(state_, trial_, totals_, tools_.scorer, k);
    int32_t placed = 0;
    for (; placed < count && ladder.Top().valid(); ++placed) {
      const NodeId node = ladder.Top();
      trial_.Place(k, node, 1);
      ladder.Placed(node);
      slots.push_back({node, 1, static_cast<uint16_t>(k), kLoose});
    }
    return placed;
  }

  // The greedy order failed: several classes may still fit together.
  bool PlaceExactly(std::vector<Slot>& slots, Choice& choice) {
    if (demand_.classes.size() < 2) {
      return false;
    }
    Anchors none;
    none.Finish();
    const MixedAnswer mixed =
        SplitMixed(state_, trial_, none, DomainId(0U), demand_.required_counts, kExactBudget);
    choice.undecided = mixed.outcome == SplitOutcome::kTooLarge;
    if (mixed.outcome != SplitOutcome::kFound) {
      return false;
    }
    for (const Slot& slot : mixed.slots) {
      trial_.Place(slot.k, slot.node, slot.count);
      for (int32_t i = 0; i < slot.count; ++i) {
        slots.push_back({slot.node, 1, slot.k, kLoose});
      }
    }
    return true;
  }

  // Hands single slots out to the members of a batch in fabric order: sub-groups first, each its
  // neighbours.
  void Hand(const Batch& batch, bool required, std::vector<Slot>& slots, Placement& out) const {
    std::vector<std::vector<NodeId>> nodes(demand_.classes.size());
    for (const Slot& slot : slots) {
      nodes[slot.k].push_back(slot.node);
    }
    std::vector<size_t> next(nodes.size(), 0);
    for (auto& list : nodes) {
      std::ranges::sort(list, {}, [&](NodeId n) { return trial_.tree().position[n.index()]; });
    }
    const auto take = [&](PlacedSet& set, size_t k, int32_t count) {
      for (int32_t i = 0; i < count; ++i) {
        set.slots.push_back({nodes[k][next[k]++], 1, static_cast<uint16_t>(k), kLoose});
      }
    };
    const auto add = [&](uint32_t sub_group,
                         const std::vector<std::pair<size_t, int32_t>>& counts) {
      PlacedSet set;
      set.sub_group = sub_group;
      set.required = required;
      for (const auto& [k, count] : counts) {
        take(set, k, count);
      }
      if (!set.slots.empty()) {
        out.sets.push_back(std::move(set));
      }
    };
    for (const SingleGroup& group : batch.singles) {
      add(group.sub_group, Counted(group.pods));
    }
    for (const UniformGroups& u : batch.uniform) {
      for (const uint32_t g : u.sub_groups) {
        add(g, {{u.k, u.size}});
      }
    }
    add(kLoose, Counted(batch.loose));
  }

  [[nodiscard]] std::vector<std::pair<size_t, int32_t>> Counted(
      const std::vector<PodId>& pods) const {
    std::vector<std::pair<size_t, int32_t>> counts;
    for (size_t k = 0; k < demand_.classes.size(); ++k) {
      const auto n = std::ranges::count_if(
          pods, [&](PodId id) { return state_.ShapeOf(id) == demand_.classes[k]; });
      if (n > 0) {
        counts.emplace_back(k, static_cast<int32_t>(n));
      }
    }
    return counts;
  }

  void PlaceGroup(uint32_t sub_group, const std::vector<std::pair<size_t, int32_t>>& counts,
                  Placement& out) {
    std::vector<int32_t> wanted(demand_.classes.size(), 0);
    for (const auto& [k, count] : counts) {
      wanted[k] = count;
    }
    PlacedSet set;
    set.sub_group = sub_group;
    set.required = false;
    if (Enough(wanted) && PlaceCounts(wanted, set.slots)) {
      out.sets.push_back(std::move(set));
    }
  }

  void PlaceOptional(Placement& out) {
    for (const SingleGroup& group : demand_.optional.singles) {
      for (size_t n = group.pods.size(); n > 0; n = group.whole ? 0 : n - 1) {
        const size_t before = out.sets.size();
        PlaceGroup(
            group.sub_group,
            Counted({group.pods.begin(), group.pods.begin() + static_cast<std::ptrdiff_t>(n)}),
            out);
        if (out.sets.size() > before) {
          break;
        }
      }
    }
    for (const UniformGroups& u : demand_.optional.uniform) {
      for (const uint32_t g : u.sub_groups) {
        PlaceGroup(g, {{u.k, u.size}}, out);
      }
    }
    PlacedSet set;
    set.required = false;
    for (const auto& [k, count] : Counted(demand_.optional.loose)) {
      PlaceSome(k, count, set.slots);
    }
    if (!set.slots.empty()) {
      out.sets.push_back(std::move(set));
    }
  }

  cluster::State& state_;
  const cluster::Gang& gang_;
  const Demand& demand_;
  Tools& tools_;
  Trial trial_;
  DomainTotals& totals_;
};

}  // namespace

Choice SpreadByScore(cluster::State& state, GangId gang, const Demand& demand, Tools& tools) {
  return Spreader(state, gang, demand, tools).Run();
}

}  // namespace hopwise::sched
