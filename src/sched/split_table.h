// Costs and tables of the exact split (split_exact.h).
//
// A cost is a row of 16-bit fields packed four to a word, most significant first, so that rows add
// and compare word by word:
//   [groups completed per rank, top..1][cells opened per rank, top-1..0]
//   [damage: size descending, rank descending][room left: rank descending]
// What does not fit the row is the least significant. Fields never overflow: each counts groups,
// cells or lost gangs of one split, all bounded by kMostPods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hopwise::sched {

inline constexpr int64_t kMostPods = 16'000;

class CostFields {
 public:
  // For a split of `total` pods over a domain of rank `top` whose roomiest piece takes `largest`.
  CostFields(uint16_t top, bool groups, int64_t largest, int64_t total);

  [[nodiscard]] size_t words() const { return words_; }
  // A group completed in a domain of rank `rank`.
  void AddGroup(uint16_t rank, uint64_t* row) const;
  // Taking `taken` of `before` pods from a cell that stands for the ranks [low, high), `times`
  // over; `opens`: it counts as a new cell.
  void AddCell(int64_t before, int64_t taken, uint16_t low, uint16_t high, bool opens,
               uint64_t times, uint64_t* row) const;

 private:
  void Add(size_t field, uint64_t amount, uint64_t* row) const;

  uint16_t top_;
  int64_t left_cap_;  // keeps the sum of room left over all cells within a field
  size_t cell_base_ = 0, damage_base_ = 0, fields_ = 0, words_ = 0;
  int sizes_ = 0;  // damage fields: sizes 2^(sizes-1) .. 1
};

// The cheapest way to each state (g, p) of a domain: g whole groups placed inside and p pods beside
// them. Row g * (pods + 1) + p; `words` holds words_per_row of each.
struct SplitTable {
  SplitTable() = default;
  SplitTable(int32_t g, int32_t p, size_t words_per_row);

  int32_t groups = 0, pods = 0;
  size_t width = 0;  // words per row
  std::vector<uint64_t> words;
  std::vector<int64_t> scores;
  std::vector<uint8_t> reached;

  [[nodiscard]] size_t states() const { return reached.size(); }
  [[nodiscard]] size_t Row(int32_t g, int32_t p) const {
    return static_cast<size_t>(g) * static_cast<size_t>(pods + 1) + static_cast<size_t>(p);
  }
  [[nodiscard]] uint64_t* Words(size_t row) { return words.data() + row * width; }
  [[nodiscard]] const uint64_t* Words(size_t row) const { return words.data() + row * width; }
  // Takes the row over if the state was not reached yet or only at a higher cost (then a lower
  // score).
  bool Offer(size_t row, const uint64_t* cost, int64_t score);
};

// What a state took from the part merged last.
struct Taken {
  uint16_t groups = 0, pods = 0;
};

struct MergeLimits {
  int32_t groups = 0, pods = 0;  // most in the merged table
  int32_t group_size = 1;
  int64_t total = 0;  // most pods in all, groups counted
  int64_t least = 0;  // fewest, below which a state leads nowhere
};

// Every sum of a state of `acc` and one of `part`, the cheapest kept; `taken` is by state of the
// result. Among equals the one that leaves most to `acc`.
SplitTable Merge(const SplitTable& acc, const SplitTable& part, const MergeLimits& limits,
                 std::vector<Taken>& taken);

}  // namespace hopwise::sched
