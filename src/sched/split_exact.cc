#include "sched/split_exact.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "base/check.h"
#include "sched/split_table.h"

namespace hopwise::sched {
namespace {

// A node with room. Nodes that are alike but for their score form a class.
struct FreeNode {
  uint16_t fit = 0;
  bool anchored = false;
  int64_t score = 0;      // per pod
  uint32_t position = 0;  // in fabric order
  NodeId node;

  [[nodiscard]] bool SameClass(const FreeNode& other) const {
    return fit == other.fit && anchored == other.anchored;
  }
};

// Class by class, the best score first, then in fabric order.
bool Precedes(const FreeNode& a, const FreeNode& b) {
  return std::tuple(b.fit, b.anchored, b.score, a.position) <
         std::tuple(a.fit, a.anchored, a.score, b.position);
}

bool Alike(const FreeNode& a, const FreeNode& b) { return a.SameClass(b) && a.score == b.score; }

// The table of a domain and how its states came about. Domains that are alike share it.
struct Solved {
  SplitTable table;
  std::vector<std::vector<Taken>> taken;  // by part, by state after it was merged
  std::vector<int32_t> widths;            // by part: pods + 1 of those states
  std::vector<uint16_t> completed;        // by state: groups completed in the domain itself
};

// A domain below the one that is split, or that one. Its parts are the classes of its own nodes,
// then its children.
struct Piece {
  DomainId domain;
  std::vector<FreeNode> nodes;  // in the order of Precedes
  std::vector<size_t> classes;  // where each class of them begins, and where the last one ends
  std::vector<std::unique_ptr<Piece>> children;
  std::shared_ptr<const Solved> solved;
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
        budget_(budget),
        total_(request.loose + int64_t{request.groups} * request.group_size),
        fields_(tree.at(request.domain).rank, request.groups > 0, LargestPiece(), total_) {}

  SplitAnswer Run();

 private:
  [[nodiscard]] int64_t LargestPiece() const;
  [[nodiscard]] int64_t MergeCost(DomainId d) const;
  [[nodiscard]] std::unique_ptr<Piece> MakePiece(DomainId d) const;
  [[nodiscard]] bool Solve(Piece& piece);
  [[nodiscard]] bool ShareLast(Piece& piece);
  [[nodiscard]] SplitTable ClassTable(const Piece& piece, size_t c) const;
  [[nodiscard]] bool MergePart(const SplitTable& part, int64_t room, int64_t room_after,
                               Solved& into);
  void CompleteGroups(DomainId d, Solved& solved) const;
  void PruneStranded(DomainId d, SplitTable& table) const;
  void Enter(DomainId d, SplitTable& table) const;
  void Unfold(const Piece& piece, int32_t g, int32_t p, std::vector<NodeCount>& pods,
              Split& out) const;
  void TakeGroup(std::vector<NodeCount>& pods, DomainId d, Split& out) const;

  const topology::Tree& tree_;
  RoomView view_;
  const Anchors& anchors_;
  const SplitRequest& request_;
  const std::function<int64_t(NodeId)>& score_;
  int64_t budget_;
  int64_t total_;
  CostFields fields_;
  const Piece* last_leaf_ = nullptr;  // solved last, of those without children
};

// Room of the roomiest piece below the domain.
int64_t Exact::LargestPiece() const {
  const topology::Domain& domain = tree_.at(request_.domain);
  int64_t largest = std::min<int64_t>(view_.max_fit, view_.sums[request_.domain.index()]);
  for (uint32_t child = request_.domain.value + 1; child < domain.end;
       child = tree_.domains[child].end) {
    largest = std::max(largest, view_.sums[child]);
  }
  return largest;
}

// About what merging the children of d and of the domains below it will cost, seen from their room
// alone: a search that cannot end is not begun.
int64_t Exact::MergeCost(DomainId d) const {
  const topology::Domain& domain = tree_.at(d);
  int64_t cost = 0;
  int64_t room = 0;
  for (uint32_t child = d.value + 1; child < domain.end && cost <= budget_;
       child = tree_.domains[child].end) {
    const int64_t part = std::min(view_.sums[child], total_);
    if (part > 0) {
      cost += MergeCost(DomainId(child)) +
              (room + 1) * (part + 1) * static_cast<int64_t>(fields_.words() + 1);
      room = std::min(room + part, total_);
    }
  }
  return cost;
}

std::unique_ptr<Piece> Exact::MakePiece(DomainId d) const {
  const topology::Domain& domain = tree_.at(d);
  auto piece = std::make_unique<Piece>();
  piece->domain = d;
  for (uint32_t at = domain.lo; at < domain.direct; ++at) {
    const NodeId node = tree_.order[at];
    if (view_.fit[node.index()] > 0) {
      piece->nodes.push_back(
          {view_.fit[node.index()], anchors_.Holds(node), score_ ? score_(node) : 0, at, node});
    }
  }
  if (!std::ranges::is_sorted(piece->nodes, Precedes)) {
    std::ranges::sort(piece->nodes, Precedes);
  }
  for (size_t i = 0; i < piece->nodes.size(); ++i) {
    if (i == 0 || !piece->nodes[i].SameClass(piece->nodes[i - 1])) {
      piece->classes.push_back(i);
    }
  }
  piece->classes.push_back(piece->nodes.size());
  for (uint32_t child = d.value + 1; child < domain.end; child = tree_.domains[child].end) {
    if (view_.sums[child] > 0) {
      piece->children.push_back(MakePiece(DomainId(child)));
    }
  }
  return piece;
}

// 0 .. all pods of one class of nodes. Of any number of pods, filling one node after the other
// opens the fewest and leaves what is left in one piece, which no other way betters in any field;
// the best scores are filled first.
SplitTable Exact::ClassTable(const Piece& piece, size_t c) const {
  const size_t begin = piece.classes[c];
  const size_t count = piece.classes[c + 1] - begin;
  const FreeNode& first = piece.nodes[begin];
  const uint16_t rank = tree_.at(piece.domain).rank;
  const int64_t fit = first.fit;
  const auto most = static_cast<int32_t>(std::min(fit * static_cast<int64_t>(count), total_));
  SplitTable table(0, most, fields_.words());
  int64_t filled_score = 0;
  for (int32_t p = 0; p <= most; ++p) {
    const int64_t full = p / fit;
    const int64_t rest = p % fit;
    if (rest == 0 && full > 0) {
      filled_score += fit * piece.nodes[begin + static_cast<size_t>(full) - 1].score;
    }
    const auto row = static_cast<size_t>(p);
    uint64_t* words = table.Words(row);
    if (full > 0) {
      fields_.AddCell(fit, fit, 0, rank, !first.anchored, static_cast<uint64_t>(full), words);
    }
    table.scores[row] = filled_score;
    if (rest > 0) {
      fields_.AddCell(fit, rest, 0, rank, !first.anchored, 1, words);
      table.scores[row] += rest * piece.nodes[begin + static_cast<size_t>(full)].score;
    }
    table.reached[row] = 1;
  }
  return table;
}

// `room`: of all parts so far; `room_after`: of those still to come.
bool Exact::MergePart(const SplitTable& part, int64_t room, int64_t room_after, Solved& into) {
  SplitTable& acc = into.table;
  budget_ -= static_cast<int64_t>(acc.states() * part.states() * (acc.width + 1));
  if (budget_ < 0) {
    return false;
  }
  MergeLimits limits;
  limits.groups = static_cast<int32_t>(std::min<int64_t>(
      {request_.groups, int64_t{acc.groups} + part.groups, room / request_.group_size}));
  limits.pods =
      static_cast<int32_t>(std::min<int64_t>({total_, int64_t{acc.pods} + part.pods, room}));
  limits.group_size = request_.group_size;
  limits.total = total_;
  limits.least = total_ - room_after;
  into.taken.emplace_back();
  acc = Merge(acc, part, limits, into.taken.back());
  into.widths.push_back(acc.pods + 1);
  return true;
}

// Loose pods of d that make up whole groups: their smallest domain is d.
void Exact::CompleteGroups(DomainId d, Solved& solved) const {
  SplitTable& table = solved.table;
  const uint16_t rank = tree_.at(d).rank;
  if (request_.groups == 0 || rank > request_.group_rank) {
    return;
  }
  const int32_t size = request_.group_size;
  const auto most = static_cast<int32_t>(
      std::min<int64_t>(request_.groups, int64_t{table.groups} + table.pods / size));
  SplitTable wide(most, table.pods, table.width);
  solved.completed.assign(wide.states(), 0);
  std::vector<uint64_t> row(table.width);
  for (int32_t g = 0; g <= table.groups; ++g) {
    for (int32_t p = 0; p <= table.pods; ++p) {
      const size_t from = table.Row(g, p);
      if (table.reached[from] == 0) {
        continue;
      }
      std::copy_n(table.Words(from), table.width, row.begin());
      for (int32_t k = 0; g + k <= most && p >= k * size; ++k) {
        if (k > 0) {
          fields_.AddGroup(rank, row.data());
        }
        const size_t to = wide.Row(g + k, p - k * size);
        if (wide.Offer(to, row.data(), table.scores[from])) {
          solved.completed[to] = static_cast<uint16_t>(k);
        }
      }
    }
  }
  table = std::move(wide);
}

// Where no domain above may complete a group, pods beyond the loose ones are lost.
void Exact::PruneStranded(DomainId d, SplitTable& table) const {
  const DomainId parent = tree_.at(d).parent;
  const bool last_chance =
      d == request_.domain || !parent.valid() || tree_.at(parent).rank > request_.group_rank;
  if (request_.groups == 0 || !last_chance) {
    return;
  }
  for (int32_t g = 0; g <= table.groups; ++g) {
    for (int64_t p = request_.loose + 1; p <= table.pods; ++p) {
      table.reached[table.Row(g, static_cast<int32_t>(p))] = 0;
    }
  }
}

// Any pod in d opens it; what that costs depends on their number only.
void Exact::Enter(DomainId d, SplitTable& table) const {
  const topology::Domain& domain = tree_.at(d);
  const uint16_t above = tree_.at(domain.parent).rank;
  const bool opens = !anchors_.Holds(d);
  const int64_t room = view_.sums[d.index()];
  const int64_t most = std::min(total_, room);
  std::vector<uint64_t> by_taken(static_cast<size_t>(most + 1) * table.width, 0);
  for (int64_t taken = 1; taken <= most; ++taken) {
    fields_.AddCell(room, taken, domain.rank, above, opens, 1,
                    by_taken.data() + static_cast<size_t>(taken) * table.width);
  }
  for (int32_t g = 0; g <= table.groups; ++g) {
    for (int32_t p = 0; p <= table.pods; ++p) {
      const size_t row = table.Row(g, p);
      const int64_t taken = int64_t{g} * request_.group_size + p;
      if (taken > most) {
        table.reached[row] = 0;
        continue;
      }
      uint64_t* words = table.Words(row);
      for (size_t i = 0; i < table.width; ++i) {
        words[i] += by_taken[static_cast<size_t>(taken) * table.width + i];
      }
    }
  }
}

// Leaves of a fabric are often alike; what was solved for the last one then holds for this one.
bool Exact::ShareLast(Piece& piece) {
  if (last_leaf_ == nullptr || !piece.children.empty() || piece.domain == request_.domain) {
    return false;
  }
  const topology::Domain& mine = tree_.at(piece.domain);
  const topology::Domain& other = tree_.at(last_leaf_->domain);
  const bool alike = mine.rank == other.rank &&
                     tree_.at(mine.parent).rank == tree_.at(other.parent).rank &&
                     anchors_.Holds(piece.domain) == anchors_.Holds(last_leaf_->domain) &&
                     std::ranges::equal(piece.nodes, last_leaf_->nodes, Alike);
  if (alike) {
    piece.solved = last_leaf_->solved;
  }
  return alike;
}

bool Exact::Solve(Piece& piece) {
  if (ShareLast(piece)) {
    return true;
  }
  const bool top = piece.domain == request_.domain;
  const int64_t whole = view_.sums[piece.domain.index()];
  // Only the top must come to the full number in the end.
  const auto after = [&](int64_t room) { return top ? whole - room : total_; };
  auto solved = std::make_shared<Solved>();
  solved->table = SplitTable(0, 0, fields_.words());
  solved->table.reached[0] = 1;
  int64_t room = 0;
  for (size_t c = 0; c + 1 < piece.classes.size(); ++c) {
    const auto count = static_cast<int64_t>(piece.classes[c + 1] - piece.classes[c]);
    room += count * piece.nodes[piece.classes[c]].fit;
    if (!MergePart(ClassTable(piece, c), room, after(room), *solved)) {
      return false;
    }
  }
  for (const auto& child : piece.children) {
    room += view_.sums[child->domain.index()];
    if (!Solve(*child) || !MergePart(child->solved->table, room, after(room), *solved)) {
      return false;
    }
  }
  CompleteGroups(piece.domain, *solved);
  PruneStranded(piece.domain, solved->table);
  if (!top) {
    Enter(piece.domain, solved->table);
  }
  piece.solved = std::move(solved);
  if (piece.children.empty()) {
    last_leaf_ = &piece;
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

// Appends the pods of state (g, p) that belong to no group to `pods`, its groups to `out`.
void Exact::Unfold(const Piece& piece, int32_t g, int32_t p, std::vector<NodeCount>& pods,
                   Split& out) const {
  const Solved& solved = *piece.solved;
  const uint16_t completed =
      solved.completed.empty() ? uint16_t{0} : solved.completed[solved.table.Row(g, p)];
  g -= completed;
  p += completed * request_.group_size;
  std::vector<Taken> parts(solved.taken.size());
  for (size_t i = parts.size(); i-- > 0;) {
    parts[i] = solved.taken[i][static_cast<size_t>(g) * static_cast<size_t>(solved.widths[i]) +
                               static_cast<size_t>(p)];
    g -= parts[i].groups;
    p -= parts[i].pods;
  }
  HOPWISE_CHECK(g == 0 && p == 0);
  const size_t classes = piece.classes.size() - 1;
  std::vector<NodeCount> mine;
  for (size_t i = 0; i < parts.size(); ++i) {
    int32_t left = parts[i].pods;
    if (i >= classes) {
      Unfold(*piece.children[i - classes], parts[i].groups, left, mine, out);
      continue;
    }
    for (size_t n = piece.classes[i]; left > 0; ++n) {
      const int32_t take = std::min<int32_t>(left, piece.nodes[n].fit);
      mine.push_back({piece.nodes[n].node, take});
      left -= take;
    }
  }
  for (uint16_t k = 0; k < completed; ++k) {
    TakeGroup(mine, piece.domain, out);
  }
  pods.insert(pods.end(), mine.begin(), mine.end());
}

SplitAnswer Exact::Run() {
  SplitAnswer answer;
  if (view_.sums[request_.domain.index()] < total_) {
    return answer;
  }
  const int64_t nodes = tree_.at(request_.domain).node_count();
  if (total_ > kMostPods || nodes + MergeCost(request_.domain) > budget_) {
    answer.outcome = SplitOutcome::kTooLarge;
    return answer;
  }
  const int64_t before = budget_;
  const std::unique_ptr<Piece> piece = MakePiece(request_.domain);
  const bool solved = Solve(*piece);
  answer.spent = before - budget_;
  if (!solved) {
    answer.outcome = SplitOutcome::kTooLarge;
    return answer;
  }
  const SplitTable& table = piece->solved->table;
  if (table.groups < request_.groups || table.pods < request_.loose ||
      table.reached[table.Row(request_.groups, static_cast<int32_t>(request_.loose))] == 0) {
    return answer;
  }
  answer.outcome = SplitOutcome::kFound;
  Unfold(*piece, request_.groups, static_cast<int32_t>(request_.loose), answer.split.loose,
         answer.split);
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
