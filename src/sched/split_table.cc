#include "sched/split_table.h"

#include <algorithm>

#include "sched/quality.h"

namespace hopwise::sched {
namespace {

constexpr size_t kMostFields = 96;
constexpr size_t kFieldsPerWord = 4;
constexpr size_t kFieldBits = 16;
constexpr int64_t kFieldMax = 65'535;

// One state of `acc`, with every state of `part` that may follow it. W: words per row, 0 when not
// known at compile time.
template <size_t W>
class Merger {
 public:
  Merger(const SplitTable& acc, const SplitTable& part, const MergeLimits& limits, SplitTable& out,
         std::vector<Taken>& taken)
      : acc_(acc), part_(part), limits_(limits), out_(out), taken_(taken) {}

  // From the most downwards: among equals the earlier parts are filled.
  void Run() {
    for (int32_t g = acc_.groups; g >= 0; --g) {
      for (int32_t p = acc_.pods; p >= 0; --p) {
        const size_t row = acc_.Row(g, p);
        if (acc_.reached[row] != 0) {
          Follow(g, p, row);
        }
      }
    }
  }

 private:
  [[nodiscard]] size_t width() const { return W == 0 ? acc_.width : W; }

  void Follow(int32_t g, int32_t p, size_t row) {
    const int64_t size = limits_.group_size;
    const int32_t most_groups = std::min(part_.groups, limits_.groups - g);
    for (int32_t gb = 0; gb <= most_groups; ++gb) {
      const int64_t have = (int64_t{g} + gb) * size + p;
      const int64_t least = std::max<int64_t>(0, limits_.least - have);
      const int64_t most = std::min<int64_t>({part_.pods, limits_.pods - p, limits_.total - have});
      const size_t from = part_.Row(gb, 0);
      const size_t to = out_.Row(g + gb, p);
      for (int64_t pb = least; pb <= most; ++pb) {
        const auto at = static_cast<size_t>(pb);
        if (part_.reached[from + at] != 0 && Offer(row, from + at, to + at)) {
          taken_[to + at] = {static_cast<uint16_t>(gb), static_cast<uint16_t>(pb)};
        }
      }
    }
  }

  bool Offer(size_t a, size_t b, size_t to) {
    const uint64_t* x = acc_.Words(a);
    const uint64_t* y = part_.Words(b);
    uint64_t* z = out_.Words(to);
    const int64_t score = acc_.scores[a] + part_.scores[b];
    size_t differs = 0;
    if (out_.reached[to] != 0) {
      while (differs < width() && x[differs] + y[differs] == z[differs]) {
        ++differs;
      }
      const bool better =
          differs < width() ? x[differs] + y[differs] < z[differs] : score > out_.scores[to];
      if (!better) {
        return false;
      }
    }
    for (size_t i = differs; i < width(); ++i) {
      z[i] = x[i] + y[i];
    }
    out_.scores[to] = score;
    out_.reached[to] = 1;
    return true;
  }

  const SplitTable& acc_;
  const SplitTable& part_;
  const MergeLimits& limits_;
  SplitTable& out_;
  std::vector<Taken>& taken_;
};

}  // namespace

CostFields::CostFields(uint16_t top, bool groups, int64_t largest, int64_t total)
    : top_(top), left_cap_(std::min(kMostLeft, kFieldMax / std::max<int64_t>(1, total))) {
  cell_base_ = groups ? size_t{top} : 0;
  damage_base_ = cell_base_ + top;
  for (; largest > 0; largest /= 2) {
    ++sizes_;
  }
  fields_ = std::min(kMostFields, damage_base_ + static_cast<size_t>(sizes_ + 1) * top);
  words_ = (fields_ + kFieldsPerWord - 1) / kFieldsPerWord;
}

void CostFields::Add(size_t field, uint64_t amount, uint64_t* row) const {
  if (field < fields_) {
    row[field / kFieldsPerWord] += amount
                                   << (kFieldBits * (kFieldsPerWord - 1 - field % kFieldsPerWord));
  }
}

void CostFields::AddGroup(uint16_t rank, uint64_t* row) const { Add(size_t{top_} - rank, 1, row); }

void CostFields::AddCell(int64_t before, int64_t taken, uint16_t low, uint16_t high, bool opens,
                         uint64_t times, uint64_t* row) const {
  for (uint16_t rank = low; opens && rank < high; ++rank) {
    Add(cell_base_ + (size_t{top_} - 1 - rank), times, row);
  }
  for (int i = 0; i < sizes_; ++i) {
    const int shift = sizes_ - 1 - i;
    const auto lost = static_cast<uint64_t>((before >> shift) - ((before - taken) >> shift));
    const size_t base = damage_base_ + static_cast<size_t>(i) * top_ + (size_t{top_} - 1);
    for (uint16_t rank = low; lost != 0 && rank < high; ++rank) {
      Add(base - rank, lost * times, row);
    }
  }
  const size_t left = damage_base_ + static_cast<size_t>(sizes_) * top_ + (size_t{top_} - 1);
  for (uint16_t rank = low; low > 0 && taken > 0 && rank < high; ++rank) {
    Add(left - rank, static_cast<uint64_t>(std::min(before - taken, left_cap_)), row);
  }
}

SplitTable::SplitTable(int32_t g, int32_t p, size_t words_per_row)
    : groups(g), pods(p), width(words_per_row) {
  const size_t count = static_cast<size_t>(g + 1) * static_cast<size_t>(p + 1);
  words.assign(count * width, 0);
  scores.assign(count, 0);
  reached.assign(count, 0);
}

bool SplitTable::Offer(size_t row, const uint64_t* cost, int64_t score) {
  uint64_t* mine = Words(row);
  if (reached[row] != 0) {
    const auto order =
        std::lexicographical_compare_three_way(cost, cost + width, mine, mine + width);
    if (order > 0 || (order == 0 && score <= scores[row])) {
      return false;
    }
  }
  std::copy_n(cost, width, mine);
  scores[row] = score;
  reached[row] = 1;
  return true;
}

SplitTable Merge(const SplitTable& acc, const SplitTable& part, const MergeLimits& limits,
                 std::vector<Taken>& taken) {
  SplitTable out(limits.groups, limits.pods, acc.width);
  taken.assign(out.states(), {});
  switch (acc.width) {
    case 1:
      Merger<1>(acc, part, limits, out, taken).Run();
      break;
    case 2:
      Merger<2>(acc, part, limits, out, taken).Run();
      break;
    case 3:
      Merger<3>(acc, part, limits, out, taken).Run();
      break;
    case 4:
      Merger<4>(acc, part, limits, out, taken).Run();
      break;
    case 5:
      Merger<5>(acc, part, limits, out, taken).Run();
      break;
    case 6:
      Merger<6>(acc, part, limits, out, taken).Run();
      break;
    default:
      Merger<0>(acc, part, limits, out, taken).Run();
      break;
  }
  return out;
}

}  // namespace hopwise::sched
