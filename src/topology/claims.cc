#include "topology/claims.h"

#include <algorithm>

namespace hopwise::topology {
namespace {

constexpr size_t kGapsTolerated = 1024;  // below this much waste packing again is not worth it

}  // namespace

std::span<const uint32_t> ClaimTable::Of(NodeId node) const {
  if (node.index() >= ranges_.size()) return {};
  const Range range = ranges_[node.index()];
  return std::span(packed_).subspan(range.begin, range.size);
}

bool ClaimTable::Set(NodeId node, std::span<const uint32_t> slots) {
  const std::span<const uint32_t> old = Of(node);
  if (std::equal(old.begin(), old.end(), slots.begin(), slots.end())) return false;
  if (node.index() >= ranges_.size()) ranges_.resize(node.index() + 1);
  if (!slots.empty() && slots.back() >= counts_.size()) counts_.resize(slots.back() + 1);
  for (const uint32_t slot : old) --counts_[slot];
  for (const uint32_t slot : slots) ++counts_[slot];

  Range& range = ranges_[node.index()];
  used_ += slots.size();
  used_ -= range.size;
  if (slots.size() > range.size) {
    range.begin = static_cast<uint32_t>(packed_.size());
    packed_.insert(packed_.end(), slots.begin(), slots.end());
  } else {
    std::copy(slots.begin(), slots.end(),
              packed_.begin() + static_cast<std::ptrdiff_t>(range.begin));
  }
  range.size = static_cast<uint32_t>(slots.size());
  if (packed_.size() - used_ > used_ + kGapsTolerated) Compact();
  return true;
}

uint32_t ClaimTable::NodeCount(uint32_t slot) const {
  return slot < counts_.size() ? counts_[slot] : 0;
}

void ClaimTable::Compact() {
  std::vector<uint32_t> packed;
  packed.reserve(used_);
  for (Range& range : ranges_) {
    const auto from = packed_.begin() + static_cast<std::ptrdiff_t>(range.begin);
    range.begin = static_cast<uint32_t>(packed.size());
    packed.insert(packed.end(), from, from + static_cast<std::ptrdiff_t>(range.size));
  }
  packed_ = std::move(packed);
}

}  // namespace hopwise::topology
