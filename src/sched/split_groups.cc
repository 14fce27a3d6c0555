#include "sched/split_groups.h"

#include <algorithm>

#include "base/check.h"

namespace hopwise::sched {
namespace {

// Cells that are domains of rank <= rank, with their room counted in groups.
void AppendGroupCells(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
                      DomainId d, int32_t size, uint16_t rank, uint16_t limit,
                      std::vector<Cell>& out) {
  const topology::Domain& domain = tree.at(d);
  if (domain.rank <= rank) {
    const int64_t room = GroupRoom(tree, view, d, size, limit);
    if (room > 0) {
      out.push_back({room, domain.lo, anchors.Holds(d), d, NodeId()});
    }
    return;
  }
  for (uint32_t child = d.value + 1; child < domain.end; child = tree.domains[child].end) {
    if (view.sums[child] >= size) {
      AppendGroupCells(tree, view, anchors, DomainId(child), size, rank, limit, out);
    }
  }
}

class GroupSplitter {
 public:
  GroupSplitter(Trial& trial, size_t k, const Anchors& anchors, const SplitRequest& request)
      : trial_(trial), k_(k), anchors_(anchors), request_(request) {}

  // Completes `groups` groups inside d, whose smallest domains have rank <= limit. They fit by
  // GroupRoom.
  void Place(DomainId d, int64_t groups, uint16_t limit) {
    const topology::Tree& tree = trial_.tree();
    const topology::Domain& domain = tree.at(d);
    const auto below = static_cast<uint16_t>(std::min<int>(limit, domain.rank - 1));
    const int64_t inner = std::min(groups, InnerRoom(d, below));
    if (inner > 0) {
      std::vector<Cell> cells;
      AppendGroupCells(tree, trial_.View(k_), anchors_, d, request_.group_size,
                       static_cast<uint16_t>(domain.rank - 1), below, cells);
      KeepFewest(cells, inner);
      int64_t left = inner;
      for (const Cell& cell : cells) {
        const int64_t here = std::min(left, cell.room);
        if (here > 0) {
          Place(cell.domain, here, below);
          left -= here;
        }
      }
    }
    for (int64_t g = inner; g < groups; ++g) {
      PlaceOne(d);
    }
  }

  std::vector<GroupSplit> Take() { return std::move(out_); }

 private:
  // Groups that the children of d can complete.
  [[nodiscard]] int64_t InnerRoom(DomainId d, uint16_t below) const {
    const topology::Tree& tree = trial_.tree();
    int64_t room = 0;
    for (uint32_t child = d.value + 1; child < tree.at(d).end; child = tree.domains[child].end) {
      room += GroupRoom(tree, trial_.View(k_), DomainId(child), request_.group_size, below);
    }
    return room;
  }

  void PlaceOne(DomainId d) {
    GroupSplit group;
    group.domain = d;
    group.nodes = SplitGreedy(trial_.tree(), trial_.View(k_), anchors_, d, request_.group_size);
    for (const NodeCount& n : group.nodes) {
      trial_.Place(k_, n.node, n.count);
    }
    out_.push_back(std::move(group));
  }

  Trial& trial_;
  size_t k_;
  const Anchors& anchors_;
  const SplitRequest& request_;
  std::vector<GroupSplit> out_;
};

}  // namespace

int64_t GroupRoom(const topology::Tree& tree, const RoomView& view, DomainId d, int32_t size,
                  uint16_t rank) {
  const topology::Domain& domain = tree.at(d);
  if (domain.rank <= rank) {
    return view.sums[d.index()] / size;
  }
  int64_t room = 0;
  for (uint32_t child = d.value + 1; child < domain.end; child = tree.domains[child].end) {
    if (view.sums[child] >= size) {
      room += GroupRoom(tree, view, DomainId(child), size, rank);
    }
  }
  return room;
}

std::optional<std::vector<GroupSplit>> SplitGroups(Trial& trial, size_t k, const Anchors& anchors,
                                                   const SplitRequest& request) {
  const RoomView view = trial.View(k);
  const uint16_t top = std::min(request.group_rank, trial.tree().at(request.domain).rank);
  // The lowest level at which all groups can be completed keeps the worst group's rank least.
  for (uint16_t limit = 1; limit <= top; ++limit) {
    if (GroupRoom(trial.tree(), view, request.domain, request.group_size, limit) >=
        request.groups) {
      GroupSplitter splitter(trial, k, anchors, request);
      splitter.Place(request.domain, request.groups, limit);
      std::vector<GroupSplit> groups = splitter.Take();
      std::ranges::sort(groups, {}, [&](const GroupSplit& g) {
        return std::pair(g.domain, trial.tree().position[g.nodes.front().node.index()]);
      });
      return groups;
    }
  }
  return std::nullopt;
}

}  // namespace hopwise::sched
