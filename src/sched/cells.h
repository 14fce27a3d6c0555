// Cells: the pieces a domain falls into at a level. A cell of rank q is a largest domain of rank <=
// q, or a single node outside such domains.
//
// "Number of domains at rank q" counts cells, so that trees of mixed depth compare: a leaf that
// hangs directly under the core is one cell at every rank between its own and the core's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "sched/trial.h"
#include "topology/tree.h"

namespace hopwise::sched {

// Domains and nodes that hold members of the gang already: using them again opens no new domain.
class Anchors {
 public:
  void Add(const topology::Tree& tree, NodeId node) {
    nodes_.push_back(node.value);
    for (DomainId d = tree.leaf_of[node.index()]; d.valid(); d = tree.at(d).parent) {
      domains_.push_back(d.value);
    }
    common_ = common_.valid() ? tree.CommonDomain(common_, tree.leaf_of[node.index()])
                              : tree.leaf_of[node.index()];
  }
  // Must follow the last Add.
  void Finish() {
    Sort(nodes_);
    Sort(domains_);
  }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] bool Holds(DomainId d) const {
    return std::ranges::binary_search(domains_, d.value);
  }
  [[nodiscard]] bool Holds(NodeId n) const { return std::ranges::binary_search(nodes_, n.value); }
  // Smallest domain with all of them; none when empty.
  [[nodiscard]] DomainId common() const { return common_; }

 private:
  static void Sort(std::vector<uint32_t>& ids) {
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
  }
  std::vector<uint32_t> nodes_, domains_;
  DomainId common_;
};

struct Cell {
  int64_t room = 0;       // pods (or units) it can take
  uint32_t position = 0;  // of its first node in fabric order
  bool anchored = false;
  DomainId domain;  // none for a node
  NodeId node;      // none for a domain
};

struct NodeCount {
  NodeId node;
  int32_t count = 0;
};

// Appends the cells of rank `rank` under d (d itself when its rank is not above) that have room.
void AppendCells(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
                 DomainId d, uint16_t rank, std::vector<Cell>& out);

// Keeps a smallest set of cells that together hold `amount`, the last one chosen to fit best;
// anchored cells are free and come first. Keeps their order: those to be filled first come first.
// Precondition: the rooms add up to `amount` or more.
void KeepFewest(std::vector<Cell>& cells, int64_t amount);

// Splits `pods` pods of one class over d, level by level from the top: at each level the fewest
// cells. Not optimal below the first level when several smallest sets exist; see split_exact.h for
// that. Precondition: view.sums[d] >= pods > 0.
std::vector<NodeCount> SplitGreedy(const topology::Tree& tree, const RoomView& view,
                                   const Anchors& anchors, DomainId d, int64_t pods);

// The number of cells KeepFewest would open at the level below d: the first thing the objective
// compares among domains of one rank. Precondition: view.sums[d] >= pods.
int64_t FewestCells(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
                    DomainId d, int64_t pods);

}  // namespace hopwise::sched
