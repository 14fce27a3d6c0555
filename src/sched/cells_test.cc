// Cells: how a domain falls apart at a level, and how few of the parts are opened.
#include "sched/cells.h"

#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/test_room.h"

namespace hopwise::sched {
namespace {

using testing::AnchorsOn;
using testing::Room;

std::string Draw(const Room& room, const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells) {
    const std::string& name =
        cell.domain.valid() ? room.tree.at(cell.domain).name : room.Name(cell.node);
    text += (text.empty() ? "" : " ") + name + ":" + std::to_string(cell.room);
  }
  return text;
}

std::string CellsOf(const Room& room, uint16_t rank) {
  std::vector<Cell> cells;
  AppendCells(room.tree, room.View(), AnchorsOn(room, {}), DomainId(0U), rank, cells);
  return Draw(room, cells);
}

std::string Kept(const Room& room, uint16_t rank, int64_t amount,
                 const std::vector<std::string>& anchored = {}) {
  const Anchors anchors = AnchorsOn(room, anchored);
  std::vector<Cell> cells;
  AppendCells(room.tree, room.View(), anchors, DomainId(0U), rank, cells);
  KeepFewest(cells, amount);
  return Draw(room, cells);
}

//            core
//        /        \     \.
//     spine        l3    x
//    /     \      /  \.
//   l1      l2   e    f
//  a b      c d
Room Mixed() { return Room("core@3(spine@2(l1@1(a:2 b:1) l2@1(c:4 d:0)) l3@1(e:3 f:3) x:1)"); }

TEST(Cells, AreTheLargestDomainsUpToTheRankAndNodesOutsideThem) {
  EXPECT_EQ(CellsOf(Mixed(), 2), "x:1 spine:7 l3:6");
}

TEST(Cells, OfALeafUnderTheCoreAreTheSameAtEveryRankBetween) {
  EXPECT_EQ(CellsOf(Mixed(), 1), "x:1 l1:3 l2:4 l3:6");
}

TEST(Cells, OfRankZeroAreTheNodesWithRoom) {
  EXPECT_EQ(CellsOf(Mixed(), 0), "x:1 a:2 b:1 c:4 e:3 f:3");
}

TEST(Cells, OfADomainBelowTheRankAreTheDomainItself) {
  const Room room = Mixed();
  std::vector<Cell> cells;
  AppendCells(room.tree, room.View(), AnchorsOn(room, {}), room.Domain("l2"), 2, cells);
  EXPECT_EQ(Draw(room, cells), "l2:4");
}

TEST(KeepFewest, TakesTheRoomiestAndLastTheTightestThatHoldsTheRest) {
  EXPECT_EQ(Kept(Mixed(), 1, 7), "l3:6 x:1");
  EXPECT_EQ(Kept(Mixed(), 1, 9), "l3:6 l1:3");
}

TEST(KeepFewest, TakesTheTightestWhenOneIsEnough) { EXPECT_EQ(Kept(Mixed(), 1, 3), "l1:3"); }

TEST(KeepFewest, KeepsNothingForNothing) { EXPECT_EQ(Kept(Mixed(), 1, 0), ""); }

TEST(KeepFewest, TakesAnchoredCellsFirstHoweverSmall) {
  EXPECT_EQ(Kept(Mixed(), 1, 5, {"a"}), "l1:3 l2:4");
}

// Any set of cells that holds the amount has at least as many unanchored ones.
TEST(KeepFewest, IsMinimalOnEverySmallSet) {
  for (int code = 0; code < 5 * 5 * 5 * 5 * 16; ++code) {
    std::vector<Cell> cells;
    int64_t total = 0;
    for (int i = 0, rest = code / 16; i < 4; ++i, rest /= 5) {
      const bool anchored = (code >> i & 1) != 0;
      if (rest % 5 > 0) {
        cells.push_back({rest % 5, static_cast<uint32_t>(i), anchored, DomainId(),
                         NodeId(static_cast<uint32_t>(i))});
        total += rest % 5;
      }
    }
    for (int64_t amount = 1; amount <= total; ++amount) {
      size_t fewest = cells.size();
      for (size_t subset = 0; subset < size_t{1} << cells.size(); ++subset) {
        int64_t room = 0;
        size_t opened = 0;
        for (size_t i = 0; i < cells.size(); ++i) {
          room += (subset >> i & 1) != 0 ? cells[i].room : 0;
          opened += (subset >> i & 1) != 0 && !cells[i].anchored ? 1U : 0U;
        }
        fewest = room >= amount ? std::min(fewest, opened) : fewest;
      }
      std::vector<Cell> kept = cells;
      KeepFewest(kept, amount);
      int64_t room = 0;
      size_t opened = 0;
      for (const Cell& cell : kept) {
        room += cell.room;
        opened += cell.anchored ? 0U : 1U;
      }
      ASSERT_GE(room, amount) << "code " << code;
      ASSERT_EQ(opened, fewest) << "code " << code << " amount " << amount;
    }
  }
}

TEST(SplitGreedy, FillsFewestCellsFromTheTopDown) {
  const Room room = Mixed();
  std::string text;
  for (const NodeCount& n :
       SplitGreedy(room.tree, room.View(), AnchorsOn(room, {}), room.Domain("core"), 6)) {
    text += room.Name(n.node) + ":" + std::to_string(n.count) + " ";
  }
  EXPECT_EQ(text, "e:3 f:3 ");
}

TEST(SplitGreedy, PlacesTheAmountAndNeverMoreThanFits) {
  const uint64_t seed = 11;
  Prng prng(seed);
  for (int round = 0; round < 500; ++round) {
    Room room = Mixed();
    for (uint16_t& fit : room.fit) {
      fit = static_cast<uint16_t>(prng.Below(5));
    }
    room.SumUp();
    for (int64_t pods = 1; pods <= room.sums[0]; ++pods) {
      int64_t placed = 0;
      for (const NodeCount& n :
           SplitGreedy(room.tree, room.View(), AnchorsOn(room, {}), DomainId(0U), pods)) {
        ASSERT_LE(n.count, room.fit[n.node.index()]) << "seed " << seed << " round " << round;
        placed += n.count;
      }
      ASSERT_EQ(placed, pods) << "seed " << seed << " round " << round;
    }
  }
}

TEST(FewestCells, AgreesWithWhatKeepFewestOpens) {
  const uint64_t seed = 12;
  Prng prng(seed);
  for (int round = 0; round < 500; ++round) {
    Room room("l1@1(a:0 b:0 c:0) l2@1(d:0 e:0) l3@1(f:0)");
    for (uint16_t& fit : room.fit) {
      fit = static_cast<uint16_t>(prng.Chance(1, 4) ? prng.Below(200) : prng.Below(4));
    }
    room.SumUp();
    const Anchors anchors = AnchorsOn(
        room, prng.Chance(1, 2) ? std::vector<std::string>{"d"} : std::vector<std::string>{});
    for (int64_t pods = 1; pods <= room.sums[0]; pods += prng.Between(1, 20)) {
      std::vector<Cell> cells;
      AppendCells(room.tree, room.View(), anchors, DomainId(0U), 1, cells);
      KeepFewest(cells, pods);
      const auto opened = std::ranges::count_if(cells, [](const Cell& c) { return !c.anchored; });
      ASSERT_EQ(FewestCells(room.tree, room.View(), anchors, DomainId(0U), pods), opened)
          << "seed " << seed << " round " << round << " pods " << pods;
    }
  }
}

TEST(Anchors, KnowTheSmallestDomainThatHoldsThemAll) {
  const Room room = Mixed();
  EXPECT_FALSE(AnchorsOn(room, {}).common().valid());
  EXPECT_EQ(AnchorsOn(room, {"a", "b"}).common(), room.Domain("l1"));
  EXPECT_EQ(AnchorsOn(room, {"a", "c"}).common(), room.Domain("spine"));
  EXPECT_EQ(AnchorsOn(room, {"a", "e"}).common(), room.Domain("core"));
  EXPECT_TRUE(AnchorsOn(room, {"a"}).Holds(room.Domain("spine")));
  EXPECT_FALSE(AnchorsOn(room, {"a"}).Holds(room.Domain("l2")));
}

}  // namespace
}  // namespace hopwise::sched
