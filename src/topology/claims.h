// Which HyperNodes hold a node: for each node id a sorted set of HyperNode slots, packed into one
// array so that a pass over 100,000 nodes stays in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace hopwise::topology {

class ClaimTable {
 public:
  // Sorted, unique. Valid until the next Set.
  [[nodiscard]] std::span<const uint32_t> Of(NodeId node) const;
  // Replaces the set of `node`; `slots` is sorted and unique and not a part of this table. True if
  // that changed anything.
  bool Set(NodeId node, std::span<const uint32_t> slots);
  // How many nodes have the slot in their set.
  [[nodiscard]] uint32_t NodeCount(uint32_t slot) const;

 private:
  struct Range {
    uint32_t begin = 0, size = 0;
  };
  void Compact();

  std::vector<Range> ranges_;     // by node id
  std::vector<uint32_t> packed_;  // the sets, with gaps left behind by replaced ones
  std::vector<uint32_t> counts_;  // by slot
  size_t used_ = 0;               // entries of packed_ that belong to a range
};

}  // namespace hopwise::topology
