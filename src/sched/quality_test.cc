// The objective: what counts before what, and how cells and damage are counted.
#include "sched/quality.h"

#include <gtest/gtest.h>

#include "sched/test_room.h"

namespace hopwise::sched {
namespace {

using testing::AnchorsOn;
using testing::Room;
using Cells = std::vector<int32_t>;

Quality Middling() {
  Quality q;
  q.group_ranks = {2, 1};
  q.gang_rank = 2;
  q.members = 4;
  q.cells = {2, 3};
  q.damage = {1, 1};
  q.score = 10;
  return q;
}

// Each change betters one criterion and spoils every later one.
TEST(Quality, ComparesFromLeftToRight) {
  const Quality base = Middling();
  Quality better = base;
  better.score = 11;
  EXPECT_TRUE(Compare(better, base) < 0);
  better.score = 0;
  better.damage = {1, 0};
  EXPECT_TRUE(Compare(better, base) < 0);
  better.damage = {9, 9};
  better.cells = {2, 2};
  EXPECT_TRUE(Compare(better, base) < 0);
  better.cells = {9, 9};
  better.members = 5;
  EXPECT_TRUE(Compare(better, base) < 0);
  better.members = 1;
  better.gang_rank = 1;
  EXPECT_TRUE(Compare(better, base) < 0);
  better.gang_rank = 9;
  better.group_ranks = {1, 1};
  EXPECT_TRUE(Compare(better, base) < 0);
  EXPECT_TRUE(Compare(base, Middling()) == 0);
}

TEST(Quality, CountsTheTopRanksCellsBeforeLowerOnes) {
  Quality few_leaves = Middling();
  few_leaves.cells = {1, 9};
  EXPECT_TRUE(Compare(few_leaves, Middling()) < 0);
}

//        core
//      /      \      \.
//   spine      l3     x
//   /  \      / \.
//  l1  l2    e   f
// a b  c
Room Mixed() { return Room("core@3(spine@2(l1@1(a:2 b:2) l2@1(c:4)) l3@1(e:4 f:4) x:1)"); }

Cells CellsOf(const std::vector<std::string>& nodes,
              const std::vector<std::string>& anchored = {}) {
  const Room room = Mixed();
  const Anchors anchors = AnchorsOn(room, anchored);
  const Meter meter(room.tree, room.View(), anchors);
  std::vector<NodeId> ids;
  for (const std::string& node : nodes) {
    ids.push_back(room.Node(node));
  }
  return meter.Cells(ids);
}

TEST(Meter, CountsTheCellsOpenedAtEachRankFromTheTop) {
  EXPECT_EQ(CellsOf({"a"}), (Cells{1, 1, 1, 1}));
  EXPECT_EQ(CellsOf({"a", "b"}), (Cells{1, 1, 1, 2}));
  EXPECT_EQ(CellsOf({"a", "c"}), (Cells{1, 1, 2, 2}));
}

TEST(Meter, CountsALeafUnderTheCoreAtEveryRankBetween) {
  EXPECT_EQ(CellsOf({"a", "e"}), (Cells{1, 2, 2, 2}));
}

TEST(Meter, CountsANodeOutsideLeavesAsACellOfItsOwn) {
  EXPECT_EQ(CellsOf({"x"}), (Cells{1, 1, 1, 1}));
  EXPECT_EQ(CellsOf({"x", "e", "f"}), (Cells{1, 2, 2, 3}));
}

TEST(Meter, OpensNothingWhereTheGangIsAlready) {
  EXPECT_EQ(CellsOf({"a"}, {"a"}), (Cells{0, 0, 0, 0}));
  EXPECT_EQ(CellsOf({"b", "c"}, {"a"}), (Cells{0, 0, 1, 2}));
}

TEST(Meter, CountsGangsThatNoLongerFitLargestFirst) {
  const Room room("l1@1(a:2 b:2)");
  const Anchors none = AnchorsOn(room, {});
  const Meter meter(room.tree, room.View(), none);
  ASSERT_EQ(meter.size_count(), 3U);  // gangs of 4, 2 and 1
  // Rows: size 4, 2, 1; columns: root, l1, nodes. One pod on a: no gang of 4 at root and leaf, one
  // of 2 less everywhere, one of 1 less everywhere. Last row: room left in the opened domains.
  EXPECT_EQ(meter.Damage({{room.Node("a"), 1}}),
            (std::vector<int64_t>{1, 1, 0, 1, 1, 1, 1, 1, 1, 3, 3, 0}));
  EXPECT_EQ(meter.DamageAbove(room.Domain("l1"), 1),
            (std::vector<int64_t>{1, 1, 0, 1, 1, 0, 1, 1, 0, 3, 3, 0}));
}

TEST(Meter, SeesTheSameDamageFromCountsAndFromViews) {
  const Room room = Mixed();
  const Anchors none = AnchorsOn(room, {});
  const Meter meter(room.tree, room.View(), none);
  for (int32_t a = 0; a <= 2; ++a) {
    for (int32_t e = 0; e <= 4; ++e) {
      Room after = room;
      std::vector<NodeCount> taken;
      std::vector<NodeId> nodes;
      for (const auto& [name, count] : {std::pair("a", a), std::pair("e", e)}) {
        if (count > 0) {
          taken.push_back({room.Node(name), count});
          nodes.push_back(room.Node(name));
          after.fit[room.Node(name).index()] =
              static_cast<uint16_t>(room.fit[room.Node(name).index()] - count);
        }
      }
      after.SumUp();
      EXPECT_EQ(meter.Damage(taken), meter.Damage(nodes, after.View())) << a << " " << e;
    }
  }
}

TEST(Meter, KeepsTheRoomyLeafWhole) {
  const Room room("l1@1(a:4) l2@1(b:2 c:1)");
  const Anchors none = AnchorsOn(room, {});
  const Meter meter(room.tree, room.View(), none);
  EXPECT_LT(meter.Damage({{room.Node("c"), 1}}), meter.Damage({{room.Node("b"), 1}}));
  EXPECT_LT(meter.Damage({{room.Node("b"), 2}, {room.Node("c"), 1}}),
            meter.Damage({{room.Node("a"), 3}}));
}

}  // namespace
}  // namespace hopwise::sched
