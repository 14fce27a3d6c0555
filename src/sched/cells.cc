#include "sched/cells.h"

#include <array>
#include <functional>

#include "base/check.h"

namespace hopwise::sched {
namespace {

constexpr size_t kHistogram = 64;

uint16_t HighestDomainRank(const topology::Tree& tree, const std::vector<Cell>& cells) {
  uint16_t rank = 0;
  for (const Cell& cell : cells) {
    if (cell.domain.valid()) {
      rank = std::max(rank, tree.at(cell.domain).rank);
    }
  }
  return rank;
}

// Free cells first, then roomy ones, then fabric order.
bool FillsBefore(const Cell& a, const Cell& b) {
  if (a.anchored != b.anchored) {
    return a.anchored;
  }
  return a.room != b.room ? a.room > b.room : a.position < b.position;
}

}  // namespace

void AppendCells(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
                 DomainId d, uint16_t rank, std::vector<Cell>& out) {
  const topology::Domain& domain = tree.at(d);
  if (domain.rank <= rank) {
    if (view.sums[d.index()] > 0) {
      out.push_back({view.sums[d.index()], domain.lo, anchors.Holds(d), d, NodeId()});
    }
    return;
  }
  for (uint32_t at = domain.lo; at < domain.direct; ++at) {
    const NodeId node = tree.order[at];
    if (view.fit[node.index()] > 0) {
      out.push_back({view.fit[node.index()], at, anchors.Holds(node), DomainId(), node});
    }
  }
  for (uint32_t child = d.value + 1; child < domain.end; child = tree.domains[child].end) {
    if (view.sums[child] > 0) {
      AppendCells(tree, view, anchors, DomainId(child), rank, out);
    }
  }
}

void KeepFewest(std::vector<Cell>& cells, int64_t amount) {
  std::ranges::sort(cells, FillsBefore);
  int64_t sum = 0;
  size_t used = 0;
  while (sum < amount) {
    HOPWISE_CHECK(used < cells.size());
    sum += cells[used++].room;
  }
  if (used == 0) {
    cells.clear();
    return;
  }
  // The last one need not be the roomiest left: the tightest that still holds the rest keeps the
  // roomy ones whole.
  const int64_t rest = amount - (sum - cells[used - 1].room);
  size_t best = used - 1;
  for (size_t i = used; i < cells.size() && cells[i].room >= rest && !cells[used - 1].anchored;
       ++i) {
    if (cells[i].room < cells[best].room) {
      best = i;
    }
  }
  std::swap(cells[used - 1], cells[best]);
  cells.resize(used);
}

std::vector<NodeCount> SplitGreedy(const topology::Tree& tree, const RoomView& view,
                                   const Anchors& anchors, DomainId d, int64_t pods) {
  std::vector<Cell> cells;
  std::vector<Cell> finer;
  cells.push_back({view.sums[d.index()], tree.at(d).lo, anchors.Holds(d), d, NodeId()});
  for (uint16_t rank = HighestDomainRank(tree, cells); rank > 0;
       rank = HighestDomainRank(tree, cells)) {
    finer.clear();
    for (const Cell& cell : cells) {
      if (cell.domain.valid()) {
        AppendCells(tree, view, anchors, cell.domain, static_cast<uint16_t>(rank - 1), finer);
      } else {
        finer.push_back(cell);
      }
    }
    KeepFewest(finer, pods);
    cells.swap(finer);
  }
  std::vector<NodeCount> out;
  out.reserve(cells.size());
  for (const Cell& cell : cells) {
    const int64_t take = std::min(cell.room, pods);
    if (take > 0) {
      out.push_back({cell.node, static_cast<int32_t>(take)});
      pods -= take;
    }
  }
  HOPWISE_CHECK(pods == 0);
  return out;
}

int64_t FewestCells(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
                    DomainId d, int64_t pods) {
  const topology::Domain& domain = tree.at(d);
  // Rooms are small numbers in most trees: a histogram from the top is cheaper than a sort.
  std::array<uint32_t, kHistogram> count{};
  std::vector<int64_t> large;
  const auto note = [&](int64_t room, bool anchored) {
    if (anchored) {
      pods -= room;
    } else if (room < static_cast<int64_t>(kHistogram)) {
      ++count[static_cast<size_t>(room)];
    } else {
      large.push_back(room);
    }
  };
  for (uint32_t at = domain.lo; at < domain.direct; ++at) {
    note(view.fit[tree.order[at].index()], anchors.Holds(tree.order[at]));
  }
  for (uint32_t child = d.value + 1; child < domain.end; child = tree.outlines[child].end) {
    note(view.sums[child], anchors.Holds(DomainId(child)));
  }
  std::ranges::sort(large, std::greater<>());
  int64_t opened = 0;
  for (size_t i = 0; i < large.size() && pods > 0; ++i, ++opened) {
    pods -= large[i];
  }
  for (size_t room = kHistogram - 1; room > 0 && pods > 0; --room) {
    const auto size = static_cast<int64_t>(room);
    const int64_t used = std::min<int64_t>(count[room], (pods + size - 1) / size);
    opened += used;
    pods -= used * size;
  }
  return opened;
}

}  // namespace hopwise::sched
