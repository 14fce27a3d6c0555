// Amounts by resource and node, and the journals that tell what changed.
#include "cluster/columns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace hopwise::cluster {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr NodeId kA(0U), kB(1U);

class ColumnsTest : public ::testing::Test {
 protected:
  ColumnsTest() {
    columns_.Resize(2);
    columns_.SetAllocatable(kA, {{"cpu", 4000}, {"gpu", 8}, {"pods", 10}});
  }
  int64_t Fit(const api::ResourceList& list) {
    return columns_.Fit(kA, columns_.MakeRequest(list));
  }
  Columns columns_;
};

TEST_F(ColumnsTest, PodSlotsAreTheFirstResource) {
  EXPECT_EQ(columns_.pods(), columns_.FindResource("pods"));
  EXPECT_EQ(columns_.pods().value, 0U);
}

TEST_F(ColumnsTest, AnUnknownResourceIsNone) {
  EXPECT_FALSE(columns_.FindResource("fpga").valid());
}

TEST_F(ColumnsTest, ARequestHoldsAPodSlotAndNoZeros) {
  const Request request = columns_.MakeRequest({{"cpu", 0}, {"gpu", 2}, {"pods", 7}});
  EXPECT_EQ(request, (Request{{columns_.pods(), 1}, {columns_.FindResource("gpu"), 2}}));
}

TEST_F(ColumnsTest, TheScarcestResourceDecides) {
  EXPECT_EQ(Fit({{"gpu", 3}}), 2);
  EXPECT_EQ(Fit({{"cpu", 1000}, {"gpu", 1}}), 4);
  EXPECT_EQ(Fit({}), 10);  // pod slots
  EXPECT_EQ(Fit({{"fpga", 1}}), 0);
}

TEST_F(ColumnsTest, UseAndReleaseAreInverse) {
  const Request request = columns_.MakeRequest({{"gpu", 5}});
  columns_.Use(kA, request);
  EXPECT_EQ(Fit({{"gpu", 1}}), 3);
  EXPECT_EQ(columns_.FitEmpty(kA, request), 1);
  columns_.Release(kA, request);
  EXPECT_EQ(Fit({{"gpu", 1}}), 8);
}

TEST_F(ColumnsTest, AnOverFullNodeHasNoRoomAndNoNegativeFit) {
  columns_.Use(kA, columns_.MakeRequest({{"gpu", 20}}));
  EXPECT_EQ(Fit({{"gpu", 1}}), 0);
}

TEST_F(ColumnsTest, HugeAmountsSaturate) {
  columns_.SetAllocatable(kA, {{"gpu", kMost}, {"pods", 10}});
  const Request huge = columns_.MakeRequest({{"gpu", kMost}});
  EXPECT_EQ(columns_.Fit(kA, huge), 1);
  columns_.Use(kA, huge);
  columns_.Use(kA, huge);
  EXPECT_EQ(columns_.Fit(kA, huge), 0);
}

TEST_F(ColumnsTest, NegativeCapacityIsNone) {
  columns_.SetAllocatable(kA, {{"gpu", -5}, {"pods", 10}});
  EXPECT_EQ(Fit({{"gpu", 1}}), 0);
}

TEST_F(ColumnsTest, WhatANodeNoLongerNamesIsGone) {
  columns_.SetAllocatable(kA, {{"pods", 10}});
  EXPECT_EQ(Fit({{"gpu", 1}}), 0);
}

TEST_F(ColumnsTest, MaxAllocatableBoundsEveryNodeNowAndBefore) {
  columns_.SetAllocatable(kB, {{"gpu", 3}});
  EXPECT_EQ(columns_.max_allocatable(columns_.FindResource("gpu")), 8);
}

// Three zones, the last of 40 nodes; nodes join while pods come and go.
TEST(Zones, BoundTheirFreeAmountsThroughEveryChange) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  Prng prng(kSeed);
  Columns columns;
  const Request pod = columns.MakeRequest({{"gpu", 3}});
  const ResourceId gpu = columns.FindResource("gpu");
  std::vector<int64_t> pods;
  for (int step = 0; step < 4000; ++step) {
    if (pods.size() < 2 * Columns::kZone + 40) {
      columns.Resize(pods.size() + 1);
      pods.push_back(0);
    }
    const NodeId node(static_cast<size_t>(prng.Below(pods.size())));
    const uint64_t what = prng.Below(3);
    if (what == 0) {
      columns.SetAllocatable(node, {{"gpu", static_cast<int64_t>(prng.Below(9))}, {"pods", 4}});
    } else if (what == 1) {
      columns.Use(node, pod);
      ++pods[node.index()];
    } else if (pods[node.index()] > 0) {
      columns.Release(node, pod);
      --pods[node.index()];
    }
    const size_t zone = node.index() / Columns::kZone;
    const auto begin =
        columns.free(gpu).begin() + static_cast<std::ptrdiff_t>(zone * Columns::kZone);
    const auto end = columns.free(gpu).begin() + static_cast<std::ptrdiff_t>(std::min(
                                                     pods.size(), (zone + 1) * Columns::kZone));
    const auto [least, most] = std::minmax_element(begin, end);
    const Columns::Extent& extent = columns.free_extent(gpu, zone);
    ASSERT_LE(extent.least, *least) << "step " << step;
    ASSERT_GE(extent.most, *most) << "step " << step;
    ASSERT_TRUE(!extent.exact || (extent.least == *least && extent.most == *most))
        << "step " << step;
    if (step % 5 == 0) {
      columns.Tighten(gpu, zone);
      ASSERT_EQ(columns.free_extent(gpu, zone).least, *least) << "step " << step;
      ASSERT_EQ(columns.free_extent(gpu, zone).most, *most) << "step " << step;
    }
  }
}

TEST_F(ColumnsTest, JournalsTellWhoChangedSinceWhen) {
  const uint64_t room = columns_.room_journal().end();
  const uint64_t traits = columns_.traits_journal().end();
  columns_.Use(kB, columns_.MakeRequest({{"gpu", 1}}));
  columns_.TraitsChanged(kA);
  const Journal::Tail tail = columns_.room_journal().Since(room);
  ASSERT_TRUE(tail.complete);
  EXPECT_EQ(std::vector<NodeId>(tail.nodes.begin(), tail.nodes.end()),
            (std::vector<NodeId>{kB, kA}));
  EXPECT_EQ(columns_.traits_journal().Since(traits).nodes.size(), 1U);
}

TEST(Journal, SaysWhenItNoLongerKnows) {
  Journal journal;
  journal.set_keep(4);
  for (uint32_t i = 0; i < 20; ++i) {
    journal.Append(NodeId(i));
    const Journal::Tail recent =
        journal.Since(journal.end() - std::min<uint64_t>(journal.end(), 3));
    ASSERT_TRUE(recent.complete) << i;
    ASSERT_EQ(recent.nodes.back(), NodeId(i));
  }
  EXPECT_FALSE(journal.Since(0).complete);
  EXPECT_EQ(journal.end(), 20U);
  EXPECT_TRUE(journal.Since(20).complete);
}

}  // namespace
}  // namespace hopwise::cluster
