// The objective of a placement: a vector of integers compared from left to right (shared design
// section 5).
//
//   1. ranks of the smallest domains that hold the sub-groups, worst first
//   2. rank of the smallest domain that holds the gang
//   3. members placed (more is better)
//   4. cells opened per rank, from the top down to single nodes
//   5. damage: how many gangs of 2^i pods of the dominant class the cluster can take less than
//   before, for the largest size first and within a size
//      for the highest rank first
//      then the room left in opened domains per rank (less is better: a tight domain before a roomy
//      one), which settles what powers of two do not see
//   6. plugin scores (more is better)
// What still ties is decided by domain id, which follows fabric order.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sched/cells.h"
#include "sched/trial.h"
#include "topology/tree.h"

namespace hopwise::sched {

// Room left in an opened domain counts up to this, so that sums stay small.
inline constexpr int64_t kMostLeft = 255;

inline constexpr uint32_t kLoose = 0xffffffffU;

// `count` pods of class k on a node, members of group `group` (an index of the caller's) or loose.
struct Slot {
  NodeId node;
  int32_t count = 0;
  uint16_t k = 0;
  uint32_t group = kLoose;
};

struct Quality {
  std::vector<uint16_t> group_ranks;  // descending
  uint16_t gang_rank = 0;
  int64_t members = 0;
  std::vector<int32_t> cells;   // from the highest rank below the root down to rank 0
  std::vector<int64_t> damage;  // sizes descending, ranks descending within; then room left
  int64_t score = 0;
};

// less = better.
std::strong_ordering Compare(const Quality& a, const Quality& b);

// Cells and damage of a set of placed pods of the dominant class; `before` is the room before the
// placement, `after` with it.
class Meter {
 public:
  Meter(const topology::Tree& tree, const RoomView& before, const Anchors& anchors);

  // Cells that `nodes` (distinct) open, in the order of Quality::cells.
  [[nodiscard]] std::vector<int32_t> Cells(const std::vector<NodeId>& nodes) const;
  // Damage of going from `before` to `after` on `nodes`.
  [[nodiscard]] std::vector<int64_t> Damage(const std::vector<NodeId>& nodes,
                                            const RoomView& after) const;
  // The same when `taken` pods of the dominant class are taken and nothing else.
  [[nodiscard]] std::vector<int64_t> Damage(const std::vector<NodeCount>& taken) const;
  // Damage at d and above when `pods` pods are taken from d, before any split below it is known (a
  // lower bound in every field).
  [[nodiscard]] std::vector<int64_t> DamageAbove(DomainId d, int64_t pods) const;
  // Sizes in play: powers of two up to the room of the whole tree.
  [[nodiscard]] size_t size_count() const { return sizes_; }

 private:
  void AddDamage(int64_t before, int64_t after, uint16_t low, uint16_t high,
                 std::vector<int64_t>& out) const;
  [[nodiscard]] std::vector<uint32_t> Touched(const std::vector<NodeId>& nodes) const;

  const topology::Tree& tree_;
  RoomView before_;
  const Anchors& anchors_;
  size_t sizes_ = 0;
  size_t ranks_ = 0;  // ranks that have cells: 0 .. root_rank
};

}  // namespace hopwise::sched
