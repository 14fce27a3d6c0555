// Groups placed without the exact search: all of them or none, each as low as it can go.
#include "sched/split_groups.h"

#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::AnchorsOn;
using testing::Group;
using testing::Room;
using testing::TestCluster;

constexpr int64_t kPlenty = 1'000'000'000;

//        core
//      /      \.
//   spine      l3
//   /  \       e
//  l1  l2
// a b  c
TEST(GroupRoom, CountsWholeGroupsPerDomainOnly) {
  const Room room("core@3(spine@2(l1@1(a:2 b:1) l2@1(c:3)) l3@1(e:1))");
  EXPECT_EQ(GroupRoom(room.tree, room.View(), room.Domain("core"), 2, 1),
            2);  // never 3+3+1 = 7 / 2
  EXPECT_EQ(GroupRoom(room.tree, room.View(), room.Domain("core"), 2, 2), 3);
  EXPECT_EQ(GroupRoom(room.tree, room.View(), room.Domain("core"), 7, 3), 1);
  EXPECT_EQ(GroupRoom(room.tree, room.View(), room.Domain("core"), 7, 2), 0);
}

TEST(GroupRoom, ANodeOutsideTheDomainsCompletesNone) {
  const Room room("spine@2(l1@1(a:2) x:4)");
  EXPECT_EQ(GroupRoom(room.tree, room.View(), room.Domain("spine"), 2, 1), 1);
  EXPECT_EQ(GroupRoom(room.tree, room.View(), room.Domain("spine"), 2, 2), 3);
}

// Random amounts on this fabric:
//            s1            s2
//         /  |  \         /  \.
//       l1  l2   x      l3   l4
//      2 n  2 n         1 n  2 n
class SplitGroupsTest : public ::testing::Test {
 protected:
  void Draw(Prng& prng) {
    cluster_ = std::make_unique<TestCluster>(kPicture);
    for (const char* node : {"a", "b", "c", "d", "x", "e", "f", "g"}) {
      const int64_t taken = prng.Between(0, 4);
      if (taken > 0) {
        cluster_->Fill(node, taken);
      }
    }
    cluster_->Add(Group("gang", 1)).Pods("gang", 1);
    classes_ = {cluster_->state.ShapeOf(cluster_->PodOf("gang-0"))};
  }

  static constexpr const char* kPicture =
      "s1@2(l1@1(a:4 b:4) l2@1(c:4 d:4) x:4) s2@2(l3@1(e:4) l4@1(f:4 g:4))";
  std::unique_ptr<TestCluster> cluster_;
  std::vector<ShapeId> classes_;
};

std::vector<int> Ranks(const topology::Tree& tree, const std::vector<GroupSplit>& groups) {
  std::vector<int> ranks;
  for (const GroupSplit& group : groups) {
    ranks.push_back(tree.at(group.domain).rank);
  }
  std::ranges::sort(ranks, std::greater<>());
  return ranks;
}

TEST_F(SplitGroupsTest, FindsAPlaceExactlyWhenTheExactSplitDoesAndNoWorseASlowestGroup) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    Draw(prng);
    Trial trial(cluster_->state, 0, classes_);
    SplitRequest request;
    request.domain = DomainId(0U);
    request.groups = static_cast<int32_t>(prng.Between(1, 4));
    request.group_size = static_cast<int32_t>(prng.Between(1, 6));
    request.group_rank = static_cast<uint16_t>(prng.Between(1, 3));
    const Anchors none = AnchorsOn(Room("a:1"), {});
    const SplitAnswer exact =
        SplitExact(trial.tree(), trial.View(0), none, request, nullptr, kPlenty);
    const int64_t before = trial.View(0).sums[0];
    const auto groups = SplitGroups(trial, 0, none, request);
    ASSERT_EQ(groups.has_value(), exact.outcome == SplitOutcome::kFound);
    if (!groups) {
      ASSERT_TRUE(trial.empty());
      continue;
    }
    ASSERT_EQ(before - trial.View(0).sums[0], int64_t{request.groups} * request.group_size);
    ASSERT_EQ(Ranks(trial.tree(), *groups).front(),
              Ranks(trial.tree(), exact.split.groups).front());
  }
}

TEST_F(SplitGroupsTest, PutsEachGroupInsideItsDomain) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    Draw(prng);
    Trial trial(cluster_->state, 0, classes_);
    SplitRequest request;
    request.domain = DomainId(0U);
    request.groups = 2;
    request.group_size = 3;
    request.group_rank = 3;
    const auto groups = SplitGroups(trial, 0, AnchorsOn(Room("a:1"), {}), request);
    if (!groups) {
      continue;
    }
    for (const GroupSplit& group : *groups) {
      int32_t pods = 0;
      for (const NodeCount& n : group.nodes) {
        ASSERT_TRUE(trial.tree().Contains(group.domain, trial.tree().leaf_of[n.node.index()]));
        pods += n.count;
      }
      ASSERT_EQ(pods, 3);
    }
  }
}

}  // namespace
}  // namespace hopwise::sched
