#include "sched/split_joint.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/check.h"
#include "base/int128.h"
#include "base/quantity.h"

namespace hopwise::sched {
namespace {

// States and costs are rows of 8-bit digits that add up as they are.
constexpr size_t kDigitBits = 8;
constexpr size_t kMostDigits = 16;
constexpr int32_t kMostOfDigit = 127;  // the highest bit of a digit tells that it passed its bound
constexpr int64_t kMostCells = 255;
constexpr Uint128 kDigitMask = 0xff;

Uint128 Digit(size_t digit, uint64_t amount) { return Uint128{amount} << (digit * kDigitBits); }
int32_t DigitOf(Uint128 row, size_t digit) {
  return static_cast<int32_t>((row >> (digit * kDigitBits)) & kDigitMask);
}

struct StateHash {
  size_t operator()(Uint128 state) const {
    const auto low = static_cast<uint64_t>(state);
    const auto high = static_cast<uint64_t>(state >> 64U);
    return boost::hash<uint64_t>()(low ^ (high * 0x9e3779b97f4a7c15U));
  }
};

// How a state came about.
struct Step {
  enum class Kind : uint8_t { kEmpty, kNode, kMerge, kComplete };
  Kind kind = Kind::kEmpty;
  uint32_t a = 0, b = 0;  // kMerge: both; kComplete: a
  uint32_t id = 0;        // kNode: node; kComplete: kind of group
  Uint128 state = 0;      // kNode: its pods
};

struct Entry {
  Uint128 state = 0;
  Uint128 cost = 0;
  uint32_t step = 0;
};
using Table = std::vector<Entry>;  // by state, ascending

// Sub-groups that nothing tells apart.
struct GroupKind {
  std::vector<std::pair<size_t, int32_t>> need;  // digit, pods of one group
  Uint128 needed = 0;                            // the same as a row
  DomainId home;
  uint16_t limit = 0;
  size_t whole = 0;  // digit that counts groups
  std::vector<uint32_t> sub_groups;
};

// Pods on a node that wait to be counted.
struct Lot {
  NodeId node;
  size_t digit = 0;
  int32_t count = 0;
};

class Joint {
 public:
  Joint(const cluster::State& state, const Trial& trial, const Anchors& anchors,
        const JointRequest& request, int64_t budget)
      : state_(state),
        trial_(trial),
        tree_(trial.tree()),
        anchors_(anchors),
        request_(request),
        budget_(budget) {}

  JointAnswer Run();

 private:
  bool NameDigits();
  bool AddDigit(size_t k, int64_t bound);
  [[nodiscard]] bool Solve(DomainId d, Table& out);
  [[nodiscard]] Table NodeTable(NodeId node, uint16_t parent_rank);
  void Enumerate(NodeId node, size_t digit, Uint128 state, std::vector<int64_t>& free, Uint128 cost,
                 Table& out);
  [[nodiscard]] bool Merge(Table& acc, const Table& part);
  void CompleteKind(DomainId d, size_t kind, Table& table);
  void Prune(DomainId d, Table& table) const;
  void Judge(DomainId d, const Table& table);
  [[nodiscard]] Quality QualityOf(DomainId d, Uint128 cost) const;
  [[nodiscard]] Uint128 CellCost(uint16_t low, uint16_t high) const;
  [[nodiscard]] bool Passes(Uint128 state) const { return ((state + guard_) & high_) != 0; }
  [[nodiscard]] bool Covers(Uint128 state, const GroupKind& kind) const;
  void Unfold(uint32_t step, std::vector<Lot>& lots, JointAnswer& out);
  void TakeGroup(const GroupKind& kind, std::vector<Lot>& lots, JointAnswer& out);
  [[nodiscard]] uint32_t NewStep(const Step& step) {
    steps_.push_back(step);
    return static_cast<uint32_t>(steps_.size() - 1);
  }

  const cluster::State& state_;
  const Trial& trial_;
  const topology::Tree& tree_;
  const Anchors& anchors_;
  const JointRequest& request_;
  int64_t budget_;
  std::vector<GroupKind> kinds_;
  std::vector<size_t> class_of_;  // by digit, of those that count pods
  std::vector<int32_t> bounds_;   // by digit
  Uint128 target_ = 0, guard_ = 0, high_ = 0;
  std::vector<Step> steps_;
  std::vector<size_t> handed_out_;  // by kind: groups named so far
  bool found_ = false;
  DomainId best_domain_;
  Quality best_;
  uint32_t best_step_ = 0;
};

bool Joint::AddDigit(size_t k, int64_t bound) {
  class_of_.push_back(k);
  bounds_.push_back(static_cast<int32_t>(std::min<int64_t>(bound, kMostOfDigit + 1)));
  return bound <= kMostOfDigit && bounds_.size() <= kMostDigits;
}

// [pods of each kind and class][loose pods of each class][whole groups of each kind]. False: more
// than a row holds.
bool Joint::NameDigits() {
  std::map<std::tuple<std::vector<int32_t>, DomainId, uint16_t>, std::vector<uint32_t>> alike;
  int64_t pods = 0;
  for (const JointGroup& group : request_.groups) {
    alike[{group.pods, group.home, group.limit}].push_back(group.sub_group);
    for (const int32_t count : group.pods) {
      pods += count;
    }
  }
  bool ok = true;
  for (auto& [key, sub_groups] : alike) {
    GroupKind kind;
    const std::vector<int32_t>& need = std::get<0>(key);
    for (size_t k = 0; k < need.size(); ++k) {
      if (need[k] > 0) {
        kind.need.emplace_back(bounds_.size(), need[k]);
        ok = ok && AddDigit(k, int64_t{need[k]} * static_cast<int64_t>(sub_groups.size()));
      }
    }
    kind.home = std::get<1>(key);
    kind.limit = std::get<2>(key);
    kind.sub_groups = std::move(sub_groups);
    kinds_.push_back(std::move(kind));
  }
  for (size_t k = 0; k < request_.loose.size(); ++k) {
    if (request_.loose[k] > 0) {
      pods += request_.loose[k];
      if (ok) {
        target_ += Digit(bounds_.size(), static_cast<uint64_t>(request_.loose[k]));
      }
      ok = ok && AddDigit(k, request_.loose[k]);
    }
  }
  ok = ok && bounds_.size() + kinds_.size() <= kMostDigits && pods <= kMostCells &&
       size_t{tree_.root_rank()} * 2 < kMostDigits;
  for (size_t i = 0; ok && i < kinds_.size(); ++i) {
    GroupKind& kind = kinds_[i];
    kind.whole = bounds_.size();
    const size_t groups = kind.sub_groups.size();
    ok = groups <= kMostOfDigit;
    bounds_.push_back(static_cast<int32_t>(groups));
    target_ += Digit(kind.whole, groups);
    for (const auto& [digit, need] : kind.need) {
      kind.needed += Digit(digit, static_cast<uint64_t>(need));
    }
  }
  for (size_t i = 0; ok && i < bounds_.size(); ++i) {
    guard_ += Digit(i, static_cast<uint64_t>(kMostOfDigit - bounds_[i]));
    high_ += Digit(i, uint64_t{kMostOfDigit} + 1);
  }
  handed_out_.assign(kinds_.size(), 0);
  return ok;
}

// [groups completed per rank][cells opened per rank], the highest rank most significant.
Uint128 Joint::CellCost(uint16_t low, uint16_t high) const {
  Uint128 cost = 0;
  for (uint16_t rank = low; rank < high; ++rank) {
    cost += Digit(rank, 1);
  }
  return cost;
}

Table Joint::NodeTable(NodeId node, uint16_t parent_rank) {
  Table table = {{0, 0, NewStep({})}};
  const cluster::Columns& columns = state_.columns();
  std::vector<int64_t> free(columns.resource_count(), 0);
  for (size_t r = 0; r < free.size(); ++r) {
    free[r] = columns.free(ResourceId(r))[node.index()];
  }
  const Uint128 cost = anchors_.Holds(node) ? 0 : CellCost(0, parent_rank);
  Enumerate(node, 0, 0, free, cost, table);
  std::ranges::sort(table, {}, &Entry::state);
  return table;
}

// All that fits the node together.
void Joint::Enumerate(NodeId node, size_t digit, Uint128 state, std::vector<int64_t>& free,
                      Uint128 cost, Table& out) {
  if (digit == class_of_.size()) {
    if (state != 0) {
      --budget_;
      out.push_back({state, cost, NewStep({Step::Kind::kNode, 0, 0, node.value, state})});
    }
    return;
  }
  const size_t k = class_of_[digit];
  const cluster::Request& request = state_.fits().ShapeRequest(trial_.shape(k));
  const int32_t most = std::min<int32_t>(bounds_[digit], trial_.View(k).fit[node.index()]);
  int32_t taken = 0;
  while (budget_ >= 0) {
    Enumerate(node, digit + 1, state + Digit(digit, static_cast<uint64_t>(taken)), free, cost, out);
    const bool more =
        taken < most &&
        std::ranges::all_of(
            request, [&](const auto& pair) { return free[pair.first.index()] >= pair.second; });
    if (!more) {
      break;
    }
    for (const auto& [r, amount] : request) {
      free[r.index()] -= amount;
    }
    ++taken;
  }
  for (const auto& [r, amount] : request) {
    free[r.index()] += amount * taken;
  }
}

bool Joint::Merge(Table& acc, const Table& part) {
  if (part.size() == 1) {
    return true;  // nothing goes in there
  }
  budget_ -= static_cast<int64_t>(acc.size() * part.size());
  if (budget_ < 0) {
    return false;
  }
  struct Pair {
    Uint128 cost = 0;
    uint32_t a = 0, b = 0;
  };
  boost::unordered_flat_map<Uint128, Pair, StateHash> best;  // look-up only
  std::vector<Uint128> states;
  // From the most downwards: among equals the earlier children are filled.
  for (size_t i = acc.size(); i-- > 0;) {
    for (const Entry& b : part) {
      const Uint128 state = acc[i].state + b.state;
      if (Passes(state)) {
        continue;
      }
      const Uint128 cost = acc[i].cost + b.cost;
      const auto [at, fresh] = best.try_emplace(state, Pair{cost, acc[i].step, b.step});
      if (fresh) {
        states.push_back(state);
      } else if (cost < at->second.cost) {
        at->second = {cost, acc[i].step, b.step};
      }
    }
  }
  std::ranges::sort(states);
  acc.clear();
  for (const Uint128 state : states) {
    const Pair& pair = best.at(state);
    acc.push_back({state, pair.cost, NewStep({Step::Kind::kMerge, pair.a, pair.b, 0, 0})});
  }
  return true;
}

bool Joint::Covers(Uint128 state, const GroupKind& kind) const {
  return std::ranges::all_of(
      kind.need, [&](const auto& need) { return DigitOf(state, need.first) >= need.second; });
}

// Waiting pods that make up whole groups may be counted as groups whose domain is d.
void Joint::CompleteKind(DomainId d, size_t number, Table& table) {
  const GroupKind& kind = kinds_[number];
  const uint16_t rank = tree_.at(d).rank;
  if (rank > kind.limit || (kind.home.valid() && !tree_.Contains(d, kind.home))) {
    return;
  }
  const Uint128 price = Digit(size_t{tree_.root_rank()} + rank, 1);
  std::map<Uint128, Entry> known;
  for (const Entry& entry : table) {
    known.emplace(entry.state, entry);
  }
  // Fewer waiting pods make a lesser state in the lower digits and a greater one in those of whole
  // groups, so the walk goes by rounds: what one more group leads to.
  Table frontier = table;
  while (!frontier.empty()) {
    Table grown;
    for (const Entry& entry : frontier) {
      if (!Covers(entry.state, kind)) {
        continue;
      }
      const Uint128 state = entry.state - kind.needed + Digit(kind.whole, 1);
      const Uint128 cost = entry.cost + price;
      const auto at = known.find(state);
      if (Passes(state) || (at != known.end() && at->second.cost <= cost)) {
        continue;
      }
      const uint32_t step =
          NewStep({Step::Kind::kComplete, entry.step, 0, static_cast<uint32_t>(number), 0});
      grown.push_back({state, cost, step});
      known[state] = grown.back();
      --budget_;
    }
    frontier = std::move(grown);
  }
  table.clear();
  for (const auto& [state, entry] : known) {
    table.push_back(entry);
  }
}

// Pods of a kind that no domain further up may complete are lost.
void Joint::Prune(DomainId d, Table& table) const {
  const DomainId parent = tree_.at(d).parent;
  const int above = parent.valid() ? tree_.at(parent).rank : tree_.root_rank() + 1;
  Uint128 dead = 0;
  for (const GroupKind& kind : kinds_) {
    for (const auto& [digit, need] : kind.need) {
      dead += above > kind.limit ? Digit(digit, 0xff) : 0;
    }
  }
  std::erase_if(table, [&](const Entry& entry) { return (entry.state & dead) != 0; });
}

Quality Joint::QualityOf(DomainId d, Uint128 cost) const {
  const uint16_t root = tree_.root_rank();
  Quality q;
  for (uint16_t rank = root; rank > 0; --rank) {
    q.group_ranks.insert(q.group_ranks.end(),
                         static_cast<size_t>(DigitOf(cost, size_t{root} + rank)), rank);
  }
  q.gang_rank = tree_.at(d).rank;
  for (uint16_t rank = root; rank-- > 0;) {
    // d and what holds it are one cell at every rank from its own up.
    const int32_t above = anchors_.empty() ? 1 : 0;
    q.cells.push_back(rank >= q.gang_rank ? above : DigitOf(cost, rank));
  }
  return q;
}

// Whether the gang could be placed in d, and better than anywhere so far.
void Joint::Judge(DomainId d, const Table& table) {
  const bool allowed = tree_.at(d).rank <= request_.limit &&
                       (!anchors_.common().valid() || tree_.Contains(d, anchors_.common()));
  const auto at = std::ranges::lower_bound(table, target_, {}, &Entry::state);
  if (!allowed || at == table.end() || at->state != target_) {
    return;
  }
  Quality quality = QualityOf(d, at->cost);
  if (!found_ || Compare(quality, best_) < 0) {
    found_ = true;
    best_domain_ = d;
    best_ = std::move(quality);
    best_step_ = at->step;
  }
}

bool Joint::Solve(DomainId d, Table& out) {
  const topology::Domain& domain = tree_.at(d);
  out = {{0, 0, NewStep({})}};
  for (uint32_t at = domain.lo; at < domain.direct; ++at) {
    if (!Merge(out, NodeTable(tree_.order[at], domain.rank))) {
      return false;
    }
  }
  for (uint32_t child = d.value + 1; child < domain.end; child = tree_.domains[child].end) {
    const DomainId id(child);
    Table table;
    if (!Solve(id, table)) {
      return false;
    }
    const Uint128 price = anchors_.Holds(id) ? 0 : CellCost(tree_.at(id).rank, domain.rank);
    for (Entry& entry : table) {
      entry.cost += entry.state != 0 ? price : 0;
    }
    if (!Merge(out, table)) {
      return false;
    }
  }
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    CompleteKind(d, kind, out);
  }
  Prune(d, out);
  Judge(d, out);
  return budget_ >= 0;
}

// Takes what one group of the kind needs, in fabric order.
void Joint::TakeGroup(const GroupKind& kind, std::vector<Lot>& lots, JointAnswer& out) {
  const auto number = static_cast<size_t>(&kind - kinds_.data());
  JointPiece piece;
  piece.sub_group = kind.sub_groups[handed_out_[number]++];
  for (auto [digit, missing] : kind.need) {
    for (Lot& lot : lots) {
      const int32_t take = lot.digit == digit ? std::min(lot.count, missing) : 0;
      if (take > 0) {
        piece.slots.push_back({lot.node, take, static_cast<uint16_t>(class_of_[digit]), kLoose});
        lot.count -= take;
        missing -= take;
      }
    }
    HOPWISE_CHECK(missing == 0);
  }
  std::erase_if(lots, [](const Lot& lot) { return lot.count == 0; });
  out.pieces.push_back(std::move(piece));
}

// Appends the pods that wait to be counted to `lots`, whole groups to `out`. Recursion follows the
// fabric: merges lean to the left, and that side is walked in a loop.
void Joint::Unfold(uint32_t step, std::vector<Lot>& lots, JointAnswer& out) {
  std::vector<uint32_t> parts;
  while (steps_[step].kind == Step::Kind::kMerge) {
    parts.push_back(steps_[step].b);
    step = steps_[step].a;
  }
  const Step first = steps_[step];
  if (first.kind == Step::Kind::kNode) {
    for (size_t digit = 0; digit < class_of_.size(); ++digit) {
      if (const int32_t count = DigitOf(first.state, digit); count > 0) {
        lots.push_back({NodeId(first.id), digit, count});
      }
    }
  } else if (first.kind == Step::Kind::kComplete) {
    std::vector<Lot> inner;
    Unfold(first.a, inner, out);
    TakeGroup(kinds_[first.id], inner, out);
    lots.insert(lots.end(), inner.begin(), inner.end());
  }
  for (size_t i = parts.size(); i-- > 0;) {
    Unfold(parts[i], lots, out);
  }
}

JointAnswer Joint::Run() {
  JointAnswer answer;
  answer.outcome = SplitOutcome::kTooLarge;
  for (size_t k = 0; k < trial_.class_count(); ++k) {
    // Host ports couple the classes in a way that the enumeration does not see.
    if (!state_.fits().ShapePredicates(trial_.shape(k)).ports.empty()) {
      return answer;
    }
  }
  Table table;
  if (!NameDigits() || !Solve(DomainId(0U), table)) {
    return answer;
  }
  answer.outcome = SplitOutcome::kImpossible;
  if (!found_) {
    return answer;
  }
  answer.outcome = SplitOutcome::kFound;
  answer.domain = best_domain_;
  std::vector<Lot> lots;
  Unfold(best_step_, lots, answer);
  if (!lots.empty()) {
    JointPiece loose;
    for (const Lot& lot : lots) {
      loose.slots.push_back(
          {lot.node, lot.count, static_cast<uint16_t>(class_of_[lot.digit]), kLoose});
    }
    answer.pieces.push_back(std::move(loose));
  }
  return answer;
}

}  // namespace

JointAnswer SplitJoint(const cluster::State& state, const Trial& trial, const Anchors& anchors,
                       const JointRequest& request, int64_t budget) {
  return Joint(state, trial, anchors, request, budget).Run();
}

}  // namespace hopwise::sched
