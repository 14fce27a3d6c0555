#include "sched/split_exact.h"

#include <algorithm>

#include "base/check.h"
#include "sched/quality.h"

namespace hopwise::sched {
namespace {

// A cost is a row of 16-bit fields packed four to a word, most significant first, so that rows add
// and compare word by word. Fields never overflow: each counts groups, cells or lost gangs of one
// split, all bounded by kMostPods.
constexpr int64_t kMostPods = 16'000;
constexpr size_t kMostFields = 96;
constexpr size_t kFieldsPerWord = 4;
constexpr size_t kFieldBits = 16;

constexpr uint32_t kNoPlan = 0xffffffffU;

struct Plan {
  enum class Kind : uint8_t { kEmpty, kNode, kMerge, kGroup };
  Kind kind = Kind::kEmpty;
  uint32_t a = kNoPlan, b = kNoPlan;  // kMerge: both; kGroup: a
  uint32_t id = 0;                    // kNode: node; kGroup: domain
  int32_t count = 0;                  // kNode: pods
};

// Costs and plans of the states of one domain; state (g, p) is row g * (pods + 1) + p.
struct Table {
  int32_t groups = 0, pods = 0;
  std::vector<uint64_t> words;  // by state, by word
  std::vector<int64_t> scores;
  std::vector<uint32_t> plans;  // kNoPlan: unreachable

  [[nodiscard]] size_t states() const { return plans.size(); }
  [[nodiscard]] size_t Row(int32_t g, int32_t p) const {
    return static_cast<size_t>(g) * static_cast<size_t>(pods + 1) + static_cast<size_t>(p);
  }
};

class Exact {
 public:
  Exact(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
        const SplitRequest& request, const std::function<int64_t(NodeId)>& score, int64_t budget)
      : tree_(tree),
        view_(view),
        anchors_(anchors),
        request_(request),
        score_(score),
        budget_(budget) {
    total_ = request.loose + int64_t{request.groups} * request.group_size;
    left_cap_ = std::min(kMostLeft, 65'535 / std::max<int64_t>(1, total_));
    LayOutFields();
  }

  SplitAnswer Run();

 private:
  void LayOutFields();
  [[nodiscard]] size_t GroupField(uint16_t rank) const { return size_t{top_} - rank; }
  [[nodiscard]] size_t CellField(uint16_t rank) const {
    return cell_base_ + (size_t{top_} - 1 - rank);
  }
  void AddField(std::vector<uint64_t>& row, size_t field, uint64_t amount) const;

  Table MakeTable(int32_t groups, int32_t pods) const;
  [[nodiscard]] Table NodeTable(NodeId node, uint16_t parent_rank);
  [[nodiscard]] bool DomainTable(DomainId d, Table& out);
  [[nodiscard]] bool MergeInto(Table& acc, const Table& child, int64_t room);
  void CompleteGroups(DomainId d, Table& table);
  void Enter(DomainId d, Table& table) const;
  void PruneStranded(DomainId d, Table& table) const;
  [[nodiscard]] std::vector<uint64_t> EnterCost(int64_t before, int64_t taken, uint16_t low,
                                                uint16_t high, bool cell) const;
  [[nodiscard]] bool Better(const uint64_t* words, int64_t score, const Table& table,
                            size_t row) const;
  void Unfold(uint32_t plan, std::vector<NodeCount>& pods, Split& out) const;
  void TakeGroup(std::vector<NodeCount>& pods, DomainId d, Split& out) const;

  const topology::Tree& tree_;
  RoomView view_;
  const Anchors& anchors_;
  const SplitRequest& request_;
  const std::function<int64_t(NodeId)>& score_;
  int64_t budget_;
  int64_t total_ = 0;
  int64_t left_cap_ = kMostLeft;  // keeps the sum over all cells within a field
  uint16_t top_ = 0;              // rank of the domain that is split
  size_t cell_base_ = 0, damage_base_ = 0, fields_ = 0, words_ = 0;
  int sizes_ = 0;  // damage fields: sizes 2^(sizes-1) .. 1
  std::vector<Plan> plans_;
};

// [group ranks top..1][cells top-1..0][damage: size descending, rank descending][room left: rank
// descending]. What does not fit
// the row is the least significant.
void Exact::LayOutFields() {
  top_ = tree_.at(request_.domain).rank;
  cell_base_ = request_.groups > 0 ? size_t{top_} : 0;
  damage_base_ = cell_base_ + top_;
  int64_t largest = 0;  // room of the roomiest piece below the domain
  const topology::Domain& domain = tree_.at(request_.domain);
  for (uint32_t child = request_.domain.value + 1; child < domain.end;
       child = tree_.domains[child].end) {
    largest = std::max(largest, view_.sums[child]);
  }
  largest = std::max<int64_t>(
      largest, std::min<int64_t>(view_.max_fit, view_.sums[request_.domain.index()]));
  for (; largest > 0; largest /= 2) {
    ++sizes_;
  }
  fields_ = std::min(kMostFields, damage_base_ + static_cast<size_t>(sizes_ + 1) * top_);
  words_ = (fields_ + kFieldsPerWord - 1) / kFieldsPerWord;
}

void Exact::AddField(std::vector<uint64_t>& row, size_t field, uint64_t amount) const {
  if (field < fields_) {
    row[field / kFieldsPerWord] += amount
                                   << (kFieldBits * (kFieldsPerWord - 1 - field % kFieldsPerWord));
  }
}

// Cost of taking `taken` pods from a cell with room `before` that stands for the ranks [low, high).
std::vector<uint64_t> Exact::EnterCost(int64_t before, int64_t taken, uint16_t low, uint16_t high,
                                       bool cell) const {
  std::vector<uint64_t> row(words_, 0);
  for (uint16_t rank = low; cell && rank < high; ++rank) {
    AddField(row, CellField(rank), 1);
  }
  for (int i = 0; i < sizes_; ++i) {
    const int64_t size = int64_t{1} << (sizes_ - 1 - i);
    const int64_t lost = before / size - (before - taken) / size;
    for (uint16_t rank = low; lost != 0 && rank < high; ++rank) {
      const size_t field = damage_base_ + static_cast<size_t>(i) * top_ + (size_t{top_} - 1 - rank);
      AddField(row, field, static_cast<uint64_t>(lost));
    }
  }
  const size_t left = damage_base_ + static_cast<size_t>(sizes_) * top_;
  for (uint16_t rank = low; low > 0 && taken > 0 && rank < high; ++rank) {
    AddField(row, left + (size_t{top_} - 1 - rank),
             static_cast<uint64_t>(std::min(before - taken, left_cap_)));
  }
  return row;
}

Table Exact::MakeTable(int32_t groups, int32_t pods) const {
  Table table;
  table.groups = groups;
  table.pods = pods;
  const size_t states = static_cast<size_t>(groups + 1) * static_cast<size_t>(pods + 1);
  table.words.assign(states * words_, 0);
  table.scores.assign(states, 0);
  table.plans.assign(states, kNoPlan);
  return table;
}

bool Exact::Better(const uint64_t* words, int64_t score, const Table& table, size_t row) const {
  if (table.plans[row] == kNoPlan) {
    return true;
  }
  const uint64_t* other = table.words.data() + row * words_;
  for (size_t i = 0; i < words_; ++i) {
    if (words[i] != other[i]) {
      return words[i] < other[i];
    }
  }
  return score > table.scores[row];
}

Table Exact::NodeTable(NodeId node, uint16_t parent_rank) {
  const int64_t room = view_.fit[node.index()];
  const auto most = static_cast<int32_t>(std::min(room, total_));
  Table table = MakeTable(0, most);
  const int64_t score = score_ ? score_(node) : 0;
  const bool opens = !anchors_.Holds(node);
  for (int32_t p = 0; p <= most; ++p) {
    const auto row = static_cast<size_t>(p);
    if (p > 0) {
      const std::vector<uint64_t> cost = EnterCost(room, p, 0, parent_rank, opens);
      std::ranges::copy(cost, table.words.begin() + static_cast<std::ptrdiff_t>(row * words_));
    }
    table.scores[row] = score * p;
    table.plans[row] = static_cast<uint32_t>(plans_.size());
    plans_.push_back(p == 0 ? Plan{} : Plan{Plan::Kind::kNode, kNoPlan, kNoPlan, node.value, p});
  }
  return table;
}

bool Exact::MergeInto(Table& acc, const Table& child, int64_t room) {
  const auto groups = static_cast<int32_t>(std::min<int64_t>(
      {request_.groups, int64_t{acc.groups} + child.groups, room / request_.group_size}));
  const auto pods =
      static_cast<int32_t>(std::min<int64_t>({total_, int64_t{acc.pods} + child.pods, room}));
  budget_ -= static_cast<int64_t>(acc.states() * child.states() * (words_ + 1));
  if (budget_ < 0) {
    return false;
  }
  Table merged = MakeTable(groups, pods);
  std::vector<std::pair<uint32_t, uint32_t>> from(merged.states());
  std::vector<uint64_t> row(words_);
  // From the most downwards: among equals the earlier children in fabric order are filled.
  for (int32_t ga = acc.groups; ga >= 0; --ga) {
    for (int32_t pa = acc.pods; pa >= 0; --pa) {
      const size_t a = acc.Row(ga, pa);
      if (acc.plans[a] == kNoPlan) {
        continue;
      }
      for (int32_t gb = 0; gb <= std::min(child.groups, groups - ga); ++gb) {
        for (int32_t pb = 0; pb <= std::min(child.pods, pods - pa); ++pb) {
          const size_t b = child.Row(gb, pb);
          if (child.plans[b] == kNoPlan ||
              int64_t{ga + gb} * request_.group_size + pa + pb > total_) {
            continue;
          }
          for (size_t i = 0; i < words_; ++i) {
            row[i] = acc.words[a * words_ + i] + child.words[b * words_ + i];
          }
          const int64_t score = acc.scores[a] + child.scores[b];
          const size_t to = merged.Row(ga + gb, pa + pb);
          if (Better(row.data(), score, merged, to)) {
            std::ranges::copy(row, merged.words.begin() + static_cast<std::ptrdiff_t>(to * words_));
            merged.scores[to] = score;
            merged.plans[to] = 0;
            from[to] = {acc.plans[a], child.plans[b]};
          }
        }
      }
    }
  }
  for (size_t i = 0; i < merged.states(); ++i) {
    if (merged.plans[i] != kNoPlan) {
      merged.plans[i] = static_cast<uint32_t>(plans_.size());
      plans_.push_back({Plan::Kind::kMerge, from[i].first, from[i].second, 0, 0});
    }
  }
  acc = std::move(merged);
  return true;
}

// Loose pods of d that make up whole groups: their smallest domain is d.
void Exact::CompleteGroups(DomainId d, Table& table) {
  const uint16_t rank = tree_.at(d).rank;
  if (request_.groups == 0 || rank > request_.group_rank) {
    return;
  }
  const int32_t size = request_.group_size;
  const auto most = static_cast<int32_t>(
      std::min<int64_t>(request_.groups, int64_t{table.groups} + table.pods / size));
  Table wide = MakeTable(most, table.pods);
  std::vector<uint64_t> row(words_);
  for (int32_t g = 0; g <= table.groups; ++g) {
    for (int32_t p = 0; p <= table.pods; ++p) {
      const size_t a = table.Row(g, p);
      if (table.plans[a] == kNoPlan) {
        continue;
      }
      std::copy_n(table.words.begin() + static_cast<std::ptrdiff_t>(a * words_), words_,
                  row.begin());
      uint32_t plan = table.plans[a];
      for (int32_t k = 0; g + k <= most && p >= k * size; ++k) {
        if (k > 0) {
          AddField(row, GroupField(rank), 1);
        }
        const size_t to = wide.Row(g + k, p - k * size);
        if (Better(row.data(), table.scores[a], wide, to)) {
          std::ranges::copy(row, wide.words.begin() + static_cast<std::ptrdiff_t>(to * words_));
          wide.scores[to] = table.scores[a];
          wide.plans[to] = plan;
        }
        plans_.push_back({Plan::Kind::kGroup, plan, kNoPlan, d.value, 0});
        plan = static_cast<uint32_t>(plans_.size() - 1);
      }
    }
  }
  table = std::move(wide);
}

// Where no domain above may complete a group, pods beyond the loose ones are lost.
void Exact::PruneStranded(DomainId d, Table& table) const {
  const DomainId parent = tree_.at(d).parent;
  const bool last_chance =
      d == request_.domain || !parent.valid() || tree_.at(parent).rank > request_.group_rank;
  if (request_.groups == 0 || !last_chance) {
    return;
  }
  for (int32_t g = 0; g <= table.groups; ++g) {
    for (int32_t p = 0; p <= table.pods; ++p) {
      if (p > request_.loose) {
        table.plans[table.Row(g, p)] = kNoPlan;
      }
    }
  }
}

void Exact::Enter(DomainId d, Table& table) const {
  const topology::Domain& domain = tree_.at(d);
  const uint16_t above = tree_.at(domain.parent).rank;
  const bool opens = !anchors_.Holds(d);
  std::vector<std::vector<uint64_t>> by_taken;  // the cost depends on the number of pods only
  for (int64_t taken = 0; taken <= std::min(total_, view_.sums[d.index()]); ++taken) {
    by_taken.push_back(
        EnterCost(view_.sums[d.index()], taken, domain.rank, above, opens && taken > 0));
  }
  for (int32_t g = 0; g <= table.groups; ++g) {
    for (int32_t p = 0; p <= table.pods; ++p) {
      const size_t at = table.Row(g, p);
      const auto taken = static_cast<size_t>(int64_t{g} * request_.group_size + p);
      if (table.plans[at] == kNoPlan || taken >= by_taken.size()) {
        table.plans[at] = kNoPlan;
        continue;
      }
      for (size_t i = 0; i < words_; ++i) {
        table.words[at * words_ + i] += by_taken[taken][i];
      }
    }
  }
}

bool Exact::DomainTable(DomainId d, Table& out) {
  const topology::Domain& domain = tree_.at(d);
  out = MakeTable(0, 0);
  out.plans[0] = static_cast<uint32_t>(plans_.size());
  plans_.push_back({});
  int64_t room = 0;
  for (uint32_t at = domain.lo; at < domain.direct; ++at) {
    const NodeId node = tree_.order[at];
    if (view_.fit[node.index()] > 0) {
      room += view_.fit[node.index()];
      if (!MergeInto(out, NodeTable(node, domain.rank), room)) {
        return false;
      }
    }
  }
  for (uint32_t child = d.value + 1; child < domain.end; child = tree_.domains[child].end) {
    if (view_.sums[child] <= 0) {
      continue;
    }
    Table table;
    room += view_.sums[child];
    if (!DomainTable(DomainId(child), table) || !MergeInto(out, table, room)) {
      return false;
    }
  }
  CompleteGroups(d, out);
  PruneStranded(d, out);
  if (d != request_.domain) {
    Enter(d, out);
  }
  return true;
}

// Takes the next group_size pods in fabric order for a group completed in d.
void Exact::TakeGroup(std::vector<NodeCount>& pods, DomainId d, Split& out) const {
  std::ranges::sort(pods, {}, [&](const NodeCount& n) { return tree_.position[n.node.index()]; });
  GroupSplit group;
  group.domain = d;
  int32_t missing = request_.group_size;
  for (NodeCount& have : pods) {
    const int32_t take = std::min(have.count, missing);
    if (take > 0) {
      group.nodes.push_back({have.node, take});
      have.count -= take;
      missing -= take;
    }
  }
  HOPWISE_CHECK(missing == 0);
  std::erase_if(pods, [](const NodeCount& n) { return n.count == 0; });
  out.groups.push_back(std::move(group));
}

// Collects the loose pods of a plan into `pods`, groups into `out`. Depth: domains on a path times
// children, at most the nodes split over.
void Exact::Unfold(uint32_t plan, std::vector<NodeCount>& pods, Split& out) const {
  // Merges lean to the left (acc, child), so the left side is walked in a loop and only children
  // recurse.
  std::vector<uint32_t> right;
  uint32_t at = plan;
  while (plans_[at].kind == Plan::Kind::kMerge) {
    right.push_back(plans_[at].b);
    at = plans_[at].a;
  }
  if (plans_[at].kind == Plan::Kind::kNode) {
    pods.push_back({NodeId(plans_[at].id), plans_[at].count});
  } else if (plans_[at].kind == Plan::Kind::kGroup) {
    std::vector<NodeCount> inner;
    Unfold(plans_[at].a, inner, out);
    TakeGroup(inner, DomainId(plans_[at].id), out);
    pods.insert(pods.end(), inner.begin(), inner.end());
  }
  for (size_t i = right.size(); i-- > 0;) {
    Unfold(right[i], pods, out);
  }
}

SplitAnswer Exact::Run() {
  SplitAnswer answer;
  const int64_t room = view_.sums[request_.domain.index()];
  if (room < total_) {
    return answer;
  }
  const int64_t nodes = tree_.at(request_.domain).node_count();
  if (total_ > kMostPods || nodes * static_cast<int64_t>(words_) > budget_) {
    answer.outcome = SplitOutcome::kTooLarge;
    return answer;
  }
  Table table;
  if (!DomainTable(request_.domain, table)) {
    answer.outcome = SplitOutcome::kTooLarge;
    return answer;
  }
  if (table.groups < request_.groups || table.pods < request_.loose) {
    return answer;
  }
  const size_t row = table.Row(request_.groups, static_cast<int32_t>(request_.loose));
  if (table.plans[row] == kNoPlan) {
    return answer;
  }
  answer.outcome = SplitOutcome::kFound;
  Unfold(table.plans[row], answer.split.loose, answer.split);
  std::ranges::sort(answer.split.groups, {}, [&](const GroupSplit& g) {
    return std::pair(g.domain, tree_.position[g.nodes.front().node.index()]);
  });
  return answer;
}

}  // namespace

SplitAnswer SplitExact(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
                       const SplitRequest& request, const std::function<int64_t(NodeId)>& score,
                       int64_t budget) {
  return Exact(tree, view, anchors, request, score, budget).Run();
}

}  // namespace hopwise::sched
