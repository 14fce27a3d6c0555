// Neighbours in rank are neighbours in the fabric.
#include "sched/ranks.h"

#include <string>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::HardTier;
using testing::TestCluster;

std::string NodeOf(const TestCluster& cluster, const std::string& pod) {
  return cluster.state.node(cluster.state.pod(cluster.PodOf(pod)).node).name;
}
std::string Nodes(const TestCluster& cluster, const std::vector<std::string>& pods) {
  std::string text;
  for (const std::string& pod : pods) {
    text += (text.empty() ? "" : " ") + NodeOf(cluster, pod);
  }
  return text;
}

//   l1           l2
//  a:2 b:2      c:2
TEST(Ranks, RunAlongTheFabricByNumberNotByTextOrArrival) {
  TestCluster cluster("s@2(l1@1(a:2 b:2) l2@1(c:2))");
  cluster.Add(Group("g", 6).Hard(2));
  for (const char* pod : {"g-10", "g-2", "g-1", "g-9", "g-0", "g-3"}) {
    cluster.Pod(pod, "g", {});
  }
  cluster.Run();
  EXPECT_EQ(Nodes(cluster, {"g-0", "g-1", "g-2", "g-3", "g-9", "g-10"}), "a a b b c c");
}

TEST(Ranks, APodWithoutANumberDisturbsNoOther) {
  TestCluster cluster("s@2(l1@1(a:2) l2@1(b:2))");
  cluster.Add(Group("g", 4).Hard(2));
  for (const char* pod : {"odd", "g-2", "g-0", "g-1"}) {
    cluster.Pod(pod, "g", {});
  }
  cluster.Run();
  EXPECT_EQ(Nodes(cluster, {"g-0", "g-1", "g-2", "odd"}), "a a b b");
}

TEST(Ranks, AreLaidWithinEachSubGroup) {
  TestCluster cluster("s@2(l1@1(a:1 b:1) l2@1(c:1 d:1))");
  cluster.Add(Group("g", 4).Hard(2).Parts("w", 2, 2, HardTier(1)));
  for (const auto& [pod, part] :
       {std::pair("g-3", "1"), {"g-0", "0"}, {"g-2", "1"}, {"g-1", "0"}}) {
    cluster.Pod(pod, "g", Ask{.role = "w", .part = part});
  }
  cluster.Run();
  EXPECT_EQ(Nodes(cluster, {"g-0", "g-1"}), "a b");
  EXPECT_EQ(Nodes(cluster, {"g-2", "g-3"}), "c d");
}

TEST(Ranks, EveryPlacedMemberIsBoundOnce) {
  TestCluster cluster("s@2(l1@1(a:4 b:4) l2@1(c:4))");
  cluster.Add(Group("g", 6)).Pods("g", 3).Pods("g", 3, Ask{.gpu = 2});
  const Plan plan = cluster.Run();
  ASSERT_EQ(plan.gangs.size(), 1U);
  std::vector<PodId> pods;
  for (const Bind& bind : plan.gangs[0].binds) {
    pods.push_back(bind.pod);
  }
  std::ranges::sort(pods);
  EXPECT_EQ(pods.size(), 6U);
  EXPECT_EQ(std::ranges::adjacent_find(pods), pods.end());
}

}  // namespace
}  // namespace hopwise::sched
