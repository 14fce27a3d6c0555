// Cycles in a directed graph.
#pragma once

#include <cstdint>
#include <vector>

namespace hopwise::topology {

// edges[v] lists where v points to. Returns for each vertex the number of its cycle group (its
// strongly connected component, counted from 0 in the order of their least vertex), or
// kInNoCycle for those on no cycle.
inline constexpr uint32_t kInNoCycle = 0xffffffffU;
std::vector<uint32_t> FindCycles(const std::vector<std::vector<uint32_t>>& edges);

}  // namespace hopwise::topology
