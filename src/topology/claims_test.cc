#include "topology/claims.h"

#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hopwise::topology {
namespace {

using Set = std::vector<uint32_t>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ClaimTable, ANodeNeverHeardOfHasNoClaims) {
  const ClaimTable table;
  EXPECT_THAT(table.Of(NodeId(7U)), IsEmpty());
  EXPECT_EQ(table.NodeCount(3), 0U);
}

TEST(ClaimTable, TellsWhetherASetChanged) {
  ClaimTable table;
  EXPECT_FALSE(table.Set(NodeId(1U), {}));
  EXPECT_TRUE(table.Set(NodeId(1U), Set{2, 5}));
  EXPECT_FALSE(table.Set(NodeId(1U), Set{2, 5}));
  EXPECT_TRUE(table.Set(NodeId(1U), Set{5}));
  EXPECT_THAT(table.Of(NodeId(1U)), ElementsAre(5));
  EXPECT_EQ(table.NodeCount(2), 0U);
  EXPECT_EQ(table.NodeCount(5), 1U);
}

RC_GTEST_PROP(ClaimTable, AgreesWithAMapOfSetsThroughManyChanges, ()) {
  ClaimTable table;
  std::map<uint32_t, std::set<uint32_t>> model;
  const auto changes = *rc::gen::container<std::vector<std::pair<uint32_t, Set>>>(
      rc::gen::pair(rc::gen::inRange<uint32_t>(0, 20),
                    rc::gen::container<Set>(rc::gen::inRange<uint32_t>(0, 9))));
  // Often enough that the table packs itself again.
  for (int repeat = 0; repeat < 20; ++repeat) {
    for (const auto& [node, slots] : changes) {
      std::set<uint32_t> turned(slots.begin(), slots.end());
      if (repeat % 2 == 1) turned.insert(static_cast<uint32_t>(repeat));
      const bool changed = model[node] != turned;
      model[node] = turned;
      RC_ASSERT(table.Set(NodeId(node), Set(turned.begin(), turned.end())) == changed);
    }
  }
  std::map<uint32_t, uint32_t> counts;
  for (const auto& [node, slots] : model) {
    const auto held = table.Of(NodeId(node));
    RC_ASSERT(Set(held.begin(), held.end()) == Set(slots.begin(), slots.end()));
    for (const uint32_t slot : slots) ++counts[slot];
  }
  for (uint32_t slot = 0; slot < 30; ++slot) RC_ASSERT(table.NodeCount(slot) == counts[slot]);
}

}  // namespace
}  // namespace hopwise::topology
