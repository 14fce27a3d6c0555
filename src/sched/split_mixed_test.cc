// Several classes at once: what fits at all, and in how few cells.
#include "sched/split_mixed.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::AnchorsOn;
using testing::Ask;
using testing::Group;
using testing::Room;
using testing::TestCluster;

constexpr int64_t kPlenty = 100'000'000;

Anchors None() { return AnchorsOn(Room("a:1"), {}); }

// Two classes that ask for these GPUs.
std::vector<ShapeId> Classes(TestCluster& cluster, int64_t first, int64_t second) {
  cluster.Add(Group("g", 1)).Pods("g", 1, Ask{.gpu = first}).Pods("g", 1, Ask{.gpu = second});
  return {cluster.state.ShapeOf(cluster.PodOf("g-0")), cluster.state.ShapeOf(cluster.PodOf("g-1"))};
}

std::string Draw(const cluster::State& state, std::vector<Slot> slots) {
  std::ranges::sort(slots, {}, [](const Slot& slot) { return std::pair(slot.node, slot.k); });
  std::string text;
  for (const Slot& slot : slots) {
    text += state.node(slot.node).name + ":" + std::to_string(slot.count) + "x" +
            std::to_string(slot.k) + " ";
  }
  return text;
}

//   rack-a      rack-b
//  4     4     8     2
TEST(SplitMixed, AccountsForTheFirstRoleBeforeTheSecond) {
  TestCluster cluster("rack-a@1(a:4 b:4) rack-b@1(c:8 d:2)");
  const std::vector<ShapeId> classes = Classes(cluster, 6, 1);
  const Trial trial(cluster.state, 0, classes);
  const DomainId rack_a(1U);
  const DomainId rack_b(2U);
  EXPECT_EQ(SplitMixed(cluster.state, trial, None(), rack_a, {1, 2}, kPlenty).outcome,
            SplitOutcome::kImpossible);
  const MixedAnswer answer = SplitMixed(cluster.state, trial, None(), rack_b, {1, 2}, kPlenty);
  ASSERT_EQ(answer.outcome, SplitOutcome::kFound);
  EXPECT_EQ(Draw(cluster.state, answer.slots), "c:1x0 c:2x1 ");
}

TEST(SplitMixed, GivesUpRatherThanGuessWhenTheBudgetIsSpent) {
  TestCluster cluster("rack-a@1(a:8 b:8)");
  const Trial trial(cluster.state, 0, Classes(cluster, 2, 1));
  EXPECT_EQ(SplitMixed(cluster.state, trial, None(), DomainId(0U), {3, 3}, 10).outcome,
            SplitOutcome::kTooLarge);
}

TEST(SplitMixed, CountsWhatTheTrialHolds) {
  TestCluster cluster("rack-a@1(a:8)");
  Trial trial(cluster.state, 0, Classes(cluster, 4, 2));
  trial.Place(0, cluster.Node("a"), 1);
  EXPECT_EQ(SplitMixed(cluster.state, trial, None(), DomainId(0U), {1, 1}, kPlenty).outcome,
            SplitOutcome::kImpossible);
  EXPECT_EQ(SplitMixed(cluster.state, trial, None(), DomainId(0U), {0, 2}, kPlenty).outcome,
            SplitOutcome::kFound);
}

// Every way to lay two classes on the nodes, and its cells.
class BruteForce {
 public:
  BruteForce(TestCluster& cluster, const Trial& trial, const Anchors& anchors)
      : cluster_(cluster), meter_(trial.tree(), trial.View(0), anchors) {}

  std::vector<int32_t> Best(int64_t big, int64_t small, std::vector<int32_t> wanted) {
    best_.clear();
    big_ = big;
    small_ = small;
    std::vector<NodeId> nodes;
    Try(0, wanted, nodes);
    return best_;
  }
  [[nodiscard]] std::vector<int32_t> CellsOf(const std::vector<Slot>& slots) const {
    std::vector<NodeId> nodes;
    for (const Slot& slot : slots) {
      nodes.push_back(slot.node);
    }
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    return meter_.Cells(nodes);
  }

 private:
  void Try(size_t n, std::vector<int32_t>& wanted, std::vector<NodeId>& nodes) {
    if (wanted[0] == 0 && wanted[1] == 0) {
      std::vector<int32_t> cells = meter_.Cells(nodes);
      if (best_.empty() || cells < best_) {
        best_ = std::move(cells);
      }
      return;
    }
    if (n == cluster_.state.node_slots()) {
      return;
    }
    const auto& columns = cluster_.state.columns();
    const ResourceId gpu = columns.FindResource("gpu");
    const int64_t free = columns.allocatable(gpu)[n] - columns.used(gpu)[n];
    for (int32_t a = 0; a <= wanted[0]; ++a) {
      for (int32_t b = 0; b <= wanted[1] && a * big_ + b * small_ <= free; ++b) {
        std::vector<int32_t> left{wanted[0] - a, wanted[1] - b};
        if (a + b > 0) {
          nodes.push_back(NodeId(n));
        }
        Try(n + 1, left, nodes);
        if (a + b > 0) {
          nodes.pop_back();
        }
      }
    }
  }

  TestCluster& cluster_;
  Meter meter_;
  std::vector<int32_t> best_;
  int64_t big_ = 0, small_ = 0;
};

TEST(SplitMixed, OpensNoCellTooManyOnRandomSmallClusters) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    TestCluster cluster("s1@2(l1@1(a:8 b:4) x:4) s2@2(l2@1(c:8) l3@1(d:4 e:8))");
    for (const char* node : {"a", "b", "c", "d", "e", "x"}) {
      const int64_t taken = prng.Between(0, 4);
      if (taken > 0) {
        cluster.Fill(node, taken);
      }
    }
    const int64_t big = prng.Between(3, 5);
    const int64_t small = prng.Between(1, 2);
    const Trial trial(cluster.state, 0, Classes(cluster, big, small));
    Anchors anchors;
    if (prng.Chance(1, 2)) {
      anchors.Add(trial.tree(), NodeId(prng.Below(6)));
    }
    anchors.Finish();
    const std::vector<int32_t> wanted{static_cast<int32_t>(prng.Between(1, 3)),
                                      static_cast<int32_t>(prng.Between(1, 4))};
    BruteForce brute(cluster, trial, anchors);
    const std::vector<int32_t> best = brute.Best(big, small, wanted);
    const MixedAnswer answer =
        SplitMixed(cluster.state, trial, anchors, DomainId(0U), wanted, kPlenty);
    ASSERT_EQ(answer.outcome, best.empty() ? SplitOutcome::kImpossible : SplitOutcome::kFound);
    if (!best.empty()) {
      ASSERT_EQ(brute.CellsOf(answer.slots), best) << Draw(cluster.state, answer.slots);
    }
  }
}

}  // namespace
}  // namespace hopwise::sched
