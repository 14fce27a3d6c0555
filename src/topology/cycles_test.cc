#include "topology/cycles.h"

#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hopwise::topology {
namespace {

using Edges = std::vector<std::vector<uint32_t>>;
using ::testing::Each;
using ::testing::ElementsAre;
constexpr uint32_t kNo = kInNoCycle;

TEST(Cycles, ATreeHasNone) {
  EXPECT_THAT(FindCycles({{1, 2}, {3}, {}, {}}), Each(kNo));
  EXPECT_THAT(FindCycles({}), ElementsAre());
}

TEST(Cycles, AVertexThatPointsToItselfIsACycleOfOne) {
  EXPECT_THAT(FindCycles({{1}, {1}, {1}}), ElementsAre(kNo, 0, kNo));
}

// 0 -> 1 <-> 2 -> 3 -> 4 -> 5 -> 3
TEST(Cycles, WhatHangsAboveBelowOrBetweenIsOnNone) {
  EXPECT_THAT(FindCycles({{1}, {2}, {1, 3}, {4}, {5}, {3}}), ElementsAre(kNo, 0, 0, 1, 1, 1));
  // 0 <-> 1 -> 2 -> 3 <-> 4
  EXPECT_THAT(FindCycles({{1}, {0, 2}, {3}, {4}, {3}}), ElementsAre(0, 0, kNo, 1, 1));
}

TEST(Cycles, AChainOfAHundredThousandNeedsNoDeepStack) {
  Edges edges(100'000);
  for (uint32_t v = 0; v + 1 < edges.size(); ++v) edges[v] = {v + 1};
  EXPECT_THAT(FindCycles(edges), Each(kNo));
  edges.back() = {0};
  EXPECT_THAT(FindCycles(edges), Each(0));
}

// Two vertices are on one cycle when each reaches the other.
RC_GTEST_PROP(Cycles, AgreeWithReachability, ()) {
  const auto count = *rc::gen::inRange<uint32_t>(1, 9);
  Edges edges(count);
  std::vector<std::vector<bool>> reach(count, std::vector<bool>(count, false));
  for (uint32_t v = 0; v < count; ++v) {
    edges[v] = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, count));
    if (edges[v].size() > 3) edges[v].resize(3);
    for (const uint32_t w : edges[v]) reach[v][w] = true;
  }
  for (uint32_t k = 0; k < count; ++k) {
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t j = 0; j < count; ++j) {
        if (reach[i][k] && reach[k][j]) reach[i][j] = true;
      }
    }
  }
  const std::vector<uint32_t> groups = FindCycles(edges);
  for (uint32_t i = 0; i < count; ++i) {
    RC_ASSERT((groups[i] != kNo) == reach[i][i]);
    for (uint32_t j = 0; j < count; ++j) {
      if (groups[i] == kNo || groups[j] == kNo) continue;
      RC_ASSERT((groups[i] == groups[j]) == (reach[i][j] && reach[j][i]));
    }
  }
}

}  // namespace
}  // namespace hopwise::topology
