#include "sched/choose.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "sched/split_groups.h"
#include "sched/split_joint.h"

namespace hopwise::sched {
namespace {

// Clusters up to this size are searched to the end, whatever it takes; above it the work of a
// decision is bounded.
constexpr int64_t kSmallCluster = 256;
constexpr int64_t kSmallBudget = 4'000'000;
// Pairs of states that the split of all parts at once may look at on such a cluster: some tens of
// milliseconds.
constexpr int64_t kJointBudget = 2'000'000;
// Fields that may be merged in all exact splits of one decision on a large cluster: a base and a
// share per pod, about 50 microseconds for 64 pods.
constexpr int64_t kBaseBudget = 40'000;
constexpr int64_t kBudgetPerPod = 200;
// Candidates of a rank that are compared by their bounds, and of those split and packed in full.
constexpr size_t kMostCompared = 64;
constexpr size_t kMostSplit = 4;

struct Candidate {
  DomainId domain;
  uint16_t group_rank = 0;  // lowest limit at which all required groups can be completed
  int64_t members = 0;      // required and surplus that it takes, by sums
  int64_t cells = 0;        // fewest cells at the level below
  int64_t room = 0;
  std::vector<int64_t> damage;
};

bool BetterBound(const Candidate& a, const Candidate& b) {
  if (a.group_rank != b.group_rank) {
    return a.group_rank < b.group_rank;
  }
  if (a.members != b.members) {
    return a.members > b.members;
  }
  if (a.cells != b.cells) {
    return a.cells < b.cells;
  }
  if (a.damage != b.damage) {
    return a.damage < b.damage;
  }
  return a.room != b.room ? a.room < b.room : a.domain < b.domain;
}

bool HasAny(const Batch& batch) {
  return !batch.singles.empty() || !batch.uniform.empty() || !batch.loose.empty();
}

// More than one part, or one that holds members already.
bool HasParts(const Batch& batch) {
  return batch.uniform.size() + batch.singles.size() + (batch.loose.empty() ? 0 : 1) > 1 ||
         !batch.singles.empty();
}

// Moves the next `pods` pods from one list of slots to the other.
void TakeSlots(std::vector<Slot>& from, int32_t pods, std::vector<Slot>& to) {
  for (Slot& slot : from) {
    const int32_t take = std::min(pods, slot.count);
    if (take > 0) {
      to.push_back({slot.node, take, slot.k, kLoose});
      slot.count -= take;
      pods -= take;
    }
  }
  HOPWISE_CHECK(pods == 0);
}

class TreeChooser {
 public:
  TreeChooser(cluster::State& state, GangId gang, const Demand& demand, const TreeScope& scope,
              Tools& tools)
      : state_(state),
        id_(gang),
        gang_(state.gang(gang)),
        demand_(demand),
        scope_(scope),
        tools_(tools),
        trial_(state, scope.tree, demand.classes),
        tree_(trial_.tree()),
        meter_(tree_, trial_.View(Dominant(demand)), scope.anchors) {
    const auto nodes = static_cast<int64_t>(tree_.order.size());
    effort_.shared = nodes > kSmallCluster;
    effort_.exact =
        effort_.shared ? kBaseBudget + kBudgetPerPod * Total(demand.required_counts) : kSmallBudget;
    simple_ = demand.classes.size() == 1 && demand.required.singles.empty() &&
              demand.required.uniform.empty() && !HasAny(demand.optional);
  }

  Choice Run();

 private:
  static size_t Dominant(const Demand& demand) {
    return static_cast<size_t>(std::ranges::max_element(demand.required_counts) -
                               demand.required_counts.begin());
  }
  [[nodiscard]] bool Necessary(DomainId d) const;
  [[nodiscard]] std::vector<Candidate> Candidates(uint16_t rank) const;
  void Bound(std::vector<Candidate>& candidates) const;
  void TryRank(uint16_t rank, Choice& best);
  [[nodiscard]] bool Evaluate(DomainId d, bool compare, Choice& out);
  [[nodiscard]] bool EvaluateSimple(DomainId d, bool compare, Choice& out);
  void Fill(Packer& packer, DomainId d, bool compare, Choice& out);
  template <class Visit>
  void ForEachGroup(Visit visit) const;
  [[nodiscard]] JointRequest AskJointly() const;
  void TakeJointly(const JointRequest& request, const JointAnswer& answer, Placement& out);
  void TryJointly(Choice& best);
  void Measure(DomainId d, Choice& choice) const;
  [[nodiscard]] uint16_t GroupBound(DomainId d) const;
  [[nodiscard]] int64_t ScoreOf(const Choice& choice);
  [[nodiscard]] int64_t NodeScore(size_t k, NodeId node);

  cluster::State& state_;
  GangId id_;
  const cluster::Gang& gang_;
  const Demand& demand_;
  const TreeScope& scope_;
  Tools& tools_;
  Trial trial_;
  const topology::Tree& tree_;
  Meter meter_;
  Effort effort_;
  struct Scored {
    size_t k = 0;
    NodeId node;
    int64_t score = 0;
  } scored_;
  bool simple_ = false;  // one class, no sub-groups, no surplus
};

// Stage 4. No domain that fails it can hold the gang.
bool TreeChooser::Necessary(DomainId d) const {
  for (size_t k = 0; k < demand_.required_counts.size(); ++k) {
    if (trial_.View(k).sums[d.index()] < demand_.required_counts[k]) {
      return false;
    }
  }
  return !scope_.anchors.common().valid() || tree_.Contains(d, scope_.anchors.common());
}

// Lowest limit at which domain d completes every set of alike groups; 0 when the sets have no rule,
// root rank + 1 when it cannot.
uint16_t TreeChooser::GroupBound(DomainId d) const {
  uint16_t bound = 0;
  for (const UniformGroups& u : demand_.required.uniform) {
    const cluster::TopologyRule& rule = gang_.policies[u.policy].rule;
    if (rule.mode == cluster::TopologyRule::Mode::kNone) {
      continue;
    }
    const uint16_t limit = std::min(LimitRank(tree_, rule), tree_.at(d).rank);
    uint16_t lowest = static_cast<uint16_t>(tree_.root_rank() + 1);
    for (uint16_t rank = 1; rank <= limit; ++rank) {
      if (GroupRoom(tree_, trial_.View(u.k), d, u.size, rank) >=
          static_cast<int64_t>(u.sub_groups.size())) {
        lowest = rank;
        break;
      }
    }
    bound = std::max(bound, lowest);
  }
  return bound;
}

std::vector<Candidate> TreeChooser::Candidates(uint16_t rank) const {
  std::vector<Candidate> out;
  for (const DomainId d : tree_.by_rank[rank]) {
    if (!Necessary(d)) {
      continue;
    }
    Candidate c;
    c.domain = d;
    c.group_rank = demand_.has_group_rule ? GroupBound(c.domain) : 0;
    if (c.group_rank > tree_.root_rank()) {
      continue;
    }
    c.members = FitBySums(trial_, c.domain, demand_.all_counts);
    c.room = trial_.View(0).sums[d.index()];
    out.push_back(std::move(c));
  }
  return out;
}

// Fills in the bounds and leaves the most promising candidates in front.
void TreeChooser::Bound(std::vector<Candidate>& candidates) const {
  if (candidates.size() <= 1) {
    return;
  }
  const bool one_class = demand_.classes.size() == 1;
  for (Candidate& c : candidates) {
    // With at most one pod on each node a leaf of nodes needs as many cells as pods, whichever leaf
    // it is.
    const bool constant = tree_.at(c.domain).direct == tree_.at(c.domain).hi &&
                          trial_.View(0).max_fit == 1 && scope_.anchors.empty();
    if (one_class && !constant) {
      c.cells = FewestCells(tree_, trial_.View(0), scope_.anchors, c.domain, c.members);
    }
  }
  const size_t compared = std::min(kMostCompared, candidates.size());
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<std::ptrdiff_t>(compared),
                            BetterBound);
  candidates.resize(compared);
  if (one_class) {
    const Candidate front = candidates.front();
    std::erase_if(candidates, [&](const Candidate& c) {
      return c.group_rank != front.group_rank || c.members != front.members ||
             c.cells != front.cells;
    });
    for (Candidate& c : candidates) {
      c.damage = meter_.DamageAbove(c.domain, c.members);
    }
    std::ranges::sort(candidates, BetterBound);
  }
}

bool TreeChooser::EvaluateSimple(DomainId d, bool compare, Choice& out) {
  const int64_t pods = demand_.required_counts.front();
  SplitRequest request;
  request.domain = d;
  request.loose = pods;
  const auto score = [&](NodeId node) { return NodeScore(0, node); };
  SplitAnswer exact =
      SplitExact(tree_, trial_.View(0), scope_.anchors, request, score, effort_.exact);
  effort_.Spend(exact.spent);
  const std::vector<NodeCount> nodes =
      exact.outcome == SplitOutcome::kFound
          ? std::move(exact.split.loose)
          : SplitGreedy(tree_, trial_.View(0), scope_.anchors, d, pods);
  PlacedSet set;
  for (const NodeCount& n : nodes) {
    set.slots.push_back({n.node, n.count, 0, kLoose});
  }
  out.found = true;
  out.tree = scope_.tree;
  out.domain = d;
  out.placement.sets.push_back(std::move(set));
  if (compare) {
    Measure(d, out);
    out.quality.damage = meter_.Damage(nodes);
  }
  return true;
}

bool TreeChooser::Evaluate(DomainId d, bool compare, Choice& out) {
  if (simple_) {
    return EvaluateSimple(d, compare, out);
  }
  Trial::Scope scope(trial_);
  Packer packer(
      state_, id_, demand_, trial_, scope_.anchors,
      [&](size_t k, NodeId node) { return NodeScore(k, node); }, effort_);
  if (!packer.PlaceRequired(d, out.placement)) {
    return false;
  }
  Fill(packer, d, compare, out);
  return true;
}

// The surplus after what is required, and what the whole is worth.
void TreeChooser::Fill(Packer& packer, DomainId d, bool compare, Choice& out) {
  packer.PlaceOptional(d, out.placement);
  out.found = true;
  out.tree = scope_.tree;
  out.domain = d;
  Measure(d, out);
  const size_t dominant = Dominant(demand_);
  if (compare) {
    const cluster::ShapeFit& before =
        state_.fits().Get(demand_.classes[dominant], state_.trees(), state_.trees_version());
    const std::vector<int64_t>& sums =
        state_.fits().Sums(demand_.classes[dominant], state_.trees(), scope_.tree);
    const Meter meter(tree_, {before.fit.data(), sums.data(), before.max_fit}, scope_.anchors);
    out.quality.damage = meter.Damage(out.placement.Nodes(), trial_.View(dominant));
  }
}

// visit(sub_group, pods by class) for each sub-group of which members are required.
template <class Visit>
void TreeChooser::ForEachGroup(Visit visit) const {
  for (const SingleGroup& group : demand_.required.singles) {
    visit(group.sub_group, demand_.CountClasses(state_, group.pods));
  }
  for (const UniformGroups& u : demand_.required.uniform) {
    std::vector<int32_t> pods(demand_.classes.size(), 0);
    pods[u.k] = u.size;
    for (const uint32_t sub_group : u.sub_groups) {
      visit(sub_group, pods);
    }
  }
}

// Sub-groups without a rule ask for nothing that loose pods do not.
JointRequest TreeChooser::AskJointly() const {
  JointRequest request;
  request.limit = scope_.limit;
  request.loose = demand_.required_counts;
  ForEachGroup([&](uint32_t sub_group, const std::vector<int32_t>& pods) {
    const uint32_t policy = gang_.sub_groups[sub_group].policy;
    const cluster::TopologyRule& rule = gang_.policies[policy].rule;
    if (rule.mode == cluster::TopologyRule::Mode::kNone) {
      return;
    }
    JointGroup group{sub_group, pods, HomeOf(state_, tree_, gang_.sub_groups[sub_group]), 0};
    group.limit = LimitRank(tree_, rule);
    if (group.home.valid()) {
      group.limit = std::max(group.limit, tree_.at(group.home).rank);
    }
    for (size_t k = 0; k < pods.size(); ++k) {
      request.loose[k] -= pods[k];
    }
    request.groups.push_back(std::move(group));
  });
  return request;
}

// Puts the answer into the trial and hands its loose pods to the sub-groups without a rule and to
// those of no sub-group, in that order.
void TreeChooser::TakeJointly(const JointRequest& request, const JointAnswer& answer,
                              Placement& out) {
  std::vector<std::vector<Slot>> loose(demand_.classes.size());
  for (const JointPiece& piece : answer.pieces) {
    for (const Slot& slot : piece.slots) {
      trial_.Place(slot.k, slot.node, slot.count);
      if (piece.sub_group == kLoose) {
        loose[slot.k].push_back(slot);
      }
    }
    if (piece.sub_group != kLoose) {
      const auto group = std::ranges::find(request.groups, piece.sub_group, &JointGroup::sub_group);
      out.sets.push_back(
          {piece.sub_group, CommonDomain(tree_, group->home, piece.slots), true, piece.slots});
    }
  }
  const auto hand_out = [&](uint32_t sub_group, const std::vector<int32_t>& pods) {
    PlacedSet set;
    set.sub_group = sub_group;
    for (size_t k = 0; k < pods.size(); ++k) {
      TakeSlots(loose[k], pods[k], set.slots);
    }
    set.domain = CommonDomain(tree_, DomainId(), set.slots);
    if (!set.slots.empty()) {
      out.sets.push_back(std::move(set));
    }
  };
  ForEachGroup([&](uint32_t sub_group, const std::vector<int32_t>& pods) {
    if (std::ranges::find(request.groups, sub_group, &JointGroup::sub_group) ==
        request.groups.end()) {
      hand_out(sub_group, pods);
    }
  });
  hand_out(kLoose, demand_.CountClasses(state_, demand_.required.loose));
}

// Small clusters: all parts of the gang at once, which packing one after the other may miss.
void TreeChooser::TryJointly(Choice& best) {
  const JointRequest request = AskJointly();
  const JointAnswer answer = SplitJoint(state_, trial_, scope_.anchors, request, kJointBudget);
  if (answer.outcome == SplitOutcome::kImpossible) {
    effort_.gave_up = false;
  }
  if (answer.outcome != SplitOutcome::kFound) {
    return;
  }
  Trial::Scope scope(trial_);
  Packer packer(
      state_, id_, demand_, trial_, scope_.anchors,
      [&](size_t k, NodeId node) { return NodeScore(k, node); }, effort_);
  Choice choice;
  TakeJointly(request, answer, choice.placement);
  Fill(packer, answer.domain, true, choice);
  if (!best.found || Compare(choice.quality, best.quality) < 0) {
    best = std::move(choice);
  }
}

// Everything of the objective but damage and scores.
void TreeChooser::Measure(DomainId d, Choice& choice) const {
  Quality& q = choice.quality;
  q = Quality();
  for (const PlacedSet& set : choice.placement.sets) {
    if (set.required && set.sub_group != kLoose) {
      const uint32_t policy = gang_.sub_groups[set.sub_group].policy;
      if (gang_.policies[policy].rule.mode != cluster::TopologyRule::Mode::kNone) {
        q.group_ranks.push_back(tree_.at(set.domain).rank);
      }
    }
  }
  std::ranges::sort(q.group_ranks, std::greater<>());
  q.gang_rank = tree_.at(d).rank;
  q.members = choice.placement.members();
  q.cells = meter_.Cells(choice.placement.Nodes());
}

// Neighbours are often alike, so the last score is kept.
int64_t TreeChooser::NodeScore(size_t k, NodeId node) {
  if (!scored_.node.valid() || scored_.k != k || !tools_.scorer.SameLoad(scored_.node, node)) {
    const cluster::Request& request = state_.fits().ShapeRequest(demand_.classes[k]);
    scored_ = {k, node, tools_.scorer.NodeScore(node, request, nullptr)};
  }
  return scored_.score;
}

int64_t TreeChooser::ScoreOf(const Choice& choice) {
  std::vector<int64_t> amounts(state_.columns().resource_count(), 0);
  int64_t score = 0;
  for (const PlacedSet& set : choice.placement.sets) {
    for (const Slot& slot : set.slots) {
      for (const auto& [r, amount] : state_.fits().ShapeRequest(demand_.classes[slot.k])) {
        amounts[r.index()] += amount * slot.count;
      }
      score += NodeScore(slot.k, slot.node) * slot.count;
    }
  }
  cluster::Request sum;
  for (size_t r = 0; r < amounts.size(); ++r) {
    if (amounts[r] > 0) {
      sum.emplace_back(ResourceId(r), amounts[r]);
    }
  }
  if (tools_.totals.size() <= scope_.tree) {
    return score;
  }
  DomainTotals& totals = tools_.totals[scope_.tree];
  totals.Update(state_.columns(), tree_, state_.trees_version());
  return score + tools_.scorer.HyperNodeOrder(totals, choice.domain, sum);
}

void TreeChooser::TryRank(uint16_t rank, Choice& best) {
  std::vector<Candidate> candidates = Candidates(rank);
  Bound(candidates);
  const bool small = static_cast<int64_t>(tree_.order.size()) <= kSmallCluster;
  const size_t most = small ? candidates.size() : kMostSplit;
  const bool compare = candidates.size() > 1 || demand_.has_group_rule;
  size_t split = 0;
  for (const Candidate& c : candidates) {
    // Failures do not count: the search goes on until enough candidates were confirmed.
    if (split >= most) {
      break;
    }
    Choice choice;
    if (!Evaluate(c.domain, compare, choice)) {
      continue;
    }
    ++split;
    const auto order =
        best.found ? Compare(choice.quality, best.quality) : std::strong_ordering::less;
    if (order == std::strong_ordering::equal) {
      best.quality.score = ScoreOf(best);
      choice.quality.score = ScoreOf(choice);
    }
    if (order < 0 || (order == 0 && choice.quality.score > best.quality.score)) {
      choice.quality.score = 0;
      best = std::move(choice);
    } else {
      best.quality.score = 0;
    }
  }
}

Choice TreeChooser::Run() {
  Choice best;
  for (uint16_t rank = 1; rank <= scope_.limit; ++rank) {
    TryRank(rank, best);
    if (!best.found) {
      continue;
    }
    // All groups in lowest domains cannot be bettered by a wider gang; without group rules nothing
    // wider can.
    const bool lowest =
        std::ranges::all_of(best.quality.group_ranks, [](uint16_t r) { return r <= 1; });
    if (!demand_.has_group_rule || lowest) {
      break;
    }
  }
  if (!effort_.shared && !simple_ && HasParts(demand_.required)) {
    TryJointly(best);
  }
  if (best.found && HasAny(demand_.optional) && tree_.at(best.domain).rank < scope_.limit) {
    Trial::Scope scope(trial_);
    for (const PlacedSet& set : best.placement.sets) {
      for (const Slot& slot : set.slots) {
        trial_.Place(slot.k, slot.node, slot.count);
      }
    }
    PlaceSurplus(state_, id_, demand_, scope_, trial_, scope_.anchors, effort_, best.placement);
  }
  best.undecided = !best.found && effort_.gave_up;
  return best;
}

}  // namespace

int64_t FitBySums(const Trial& trial, DomainId d, const std::vector<int32_t>& counts) {
  int64_t pods = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    pods += std::min<int64_t>(counts[k], trial.View(k).sums[d.index()]);
  }
  return pods;
}

void PlaceSurplus(cluster::State& state, GangId gang, const Demand& demand, const TreeScope& scope,
                  Trial& trial, const Anchors& anchors, Effort& effort, Placement& placement) {
  const topology::Tree& tree = trial.tree();
  DomainId common = anchors.common();
  for (const NodeId node : placement.Nodes()) {
    const DomainId leaf = tree.leaf_of[node.index()];
    common = common.valid() ? tree.CommonDomain(common, leaf) : leaf;
  }
  Packer packer(state, gang, demand, trial, anchors, nullptr, effort);
  for (DomainId d = common; d.valid() && tree.at(d).rank <= scope.limit; d = tree.at(d).parent) {
    packer.PlaceOptional(d, placement);
  }
}

Choice ChooseDomain(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
                    Tools& tools) {
  Choice best;
  for (const TreeScope& tree : scope.trees) {
    Choice choice = TreeChooser(state, gang, demand, tree, tools).Run();
    best.undecided |= choice.undecided;
    // Fabrics compare by the objective; the primary one, which comes first, wins ties.
    if (choice.found && (!best.found || Compare(choice.quality, best.quality) < 0)) {
      best = std::move(choice);
    }
  }
  if (best.found) {
    best.undecided = false;
  }
  return best;
}

Choice ChooseSurplus(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
                     Tools& /*tools*/) {
  Choice choice;
  for (const TreeScope& tree : scope.trees) {
    Trial trial(state, tree.tree, demand.classes);
    Effort effort;
    effort.exact = kBaseBudget;
    if (tree.anchors.empty()) {
      continue;
    }
    PlaceSurplus(state, gang, demand, tree, trial, tree.anchors, effort, choice.placement);
    if (choice.placement.members() > 0) {
      choice.found = true;
      choice.tree = tree.tree;
      return choice;
    }
  }
  return choice;
}

bool NeverByCounts(cluster::State& state, const Demand& demand, const Scope& scope) {
  const auto most_nodes = [](const topology::Tree& tree, uint16_t limit) {
    return std::ranges::max(std::span(tree.most_nodes).first(size_t{limit} + 1));
  };
  int64_t nodes = 0;
  for (const TreeScope& s : scope.trees) {
    nodes = std::max<int64_t>(nodes, most_nodes(*state.trees()[s.tree], s.limit));
  }
  if (scope.kind == Scope::Kind::kFree) {
    nodes = static_cast<int64_t>(state.trees()[0]->order.size());
  }
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    if (nodes * state.fits().MostPerNode(demand.classes[k]) < demand.required_counts[k]) {
      return true;
    }
  }
  return false;
}

BestEffortDomain FindBest(cluster::State& state, const Demand& demand, const Scope& scope) {
  BestEffortDomain best;
  for (const TreeScope& s : scope.trees) {
    const Trial trial(state, s.tree, demand.classes);
    ForEachAllowed(trial.tree(), s, [&](DomainId d) {
      const int64_t pods = FitBySums(trial, d, demand.required_counts);
      if (trial.tree().at(d).node_count() > 0 && (!best.domain.valid() || pods > best.pods)) {
        best = {s.tree, d, pods};
      }
    });
  }
  return best;
}

}  // namespace hopwise::sched
