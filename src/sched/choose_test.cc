// The choice of the domain: lowest tier, then fewest cells, then least damage to the gangs to come.
#include "sched/choose.h"

#include <string>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::HardTier;
using testing::SoftRule;
using testing::TestCluster;

std::string Placed(TestCluster& cluster, const Group& group, int pods, const Ask& ask = {}) {
  cluster.Add(group).Pods(group.meta.name, pods, ask);
  cluster.Run();
  return cluster.Where(group.meta.name);
}

//   l1   l2       l3
//   a:1  b:2 c:1  d:2
TEST(Choose, TakesTheTightestLeafThatHoldsTheGang) {
  TestCluster cluster("l1@1(a:1) l2@1(b:2 c:1) l3@1(d:2)");
  EXPECT_EQ(Placed(cluster, Group("g", 2).Hard(1), 2), "d:2");
}

// Room by sums is no room by nodes.
//   l1            l2
//   a:1 b:1 c:1   d:2
TEST(Choose, GoesOnWhenTheFirstCandidateCannotPackTheGang) {
  TestCluster cluster("l1@1(a:1 b:1 c:1) l2@1(d:2)");
  EXPECT_EQ(Placed(cluster, Group("g", 1).Hard(1), 1, Ask{.gpu = 2}), "d:1");
}

//        spine-a               spine-b
//      /        \               |
//   l1:2       l2:2            l3:3
TEST(Choose, PrefersALowerTierToATighterFit) {
  TestCluster cluster("spine-a@2(l1@1(a:2) l2@1(b:2)) spine-b@2(l3@1(c:9))");
  EXPECT_EQ(Placed(cluster, Group("g", 4).Soft(), 4), "c:4");
}

//   l1: 2 nodes   l2: 2 nodes   l3: 2 nodes, each node for one pod
TEST(Choose, OpensTwoLeavesForFourNodesAndLeavesOneWhole) {
  TestCluster cluster("core@2(l1@1(a:1 b:1) l2@1(c:1 d:1) l3@1(e:1 f:1))");
  const std::string where = Placed(cluster, Group("g", 4).Soft(), 4);
  EXPECT_TRUE(where == "a:1 b:1 c:1 d:1" || where == "a:1 b:1 e:1 f:1" ||
              where == "c:1 d:1 e:1 f:1")
      << where;
}

//   spine-a (both leaves free)     spine-b (one leaf is full)
//   l1:2  l2:2                     l3:2  l4:full
TEST(Choose, TakesTheLeafWhoseParentIsTheLeastWhole) {
  TestCluster cluster("spine-a@2(l1@1(a:2) l2@1(b:2)) spine-b@2(l3@1(c:2) l4@1(d:2))");
  cluster.Fill("d", 2);
  EXPECT_EQ(Placed(cluster, Group("g", 2).Hard(1), 2), "c:2");
}

//   l1: 3 free   l2: 3 free   l3: 2 free
TEST(Choose, CountsGroupsNotPods) {
  TestCluster cluster("core@2(l1@1(a:3) l2@1(b:3) l3@1(c:2))");
  cluster.Add(Group("g", 6).Hard(2).Parts("w", 2, 3, HardTier(1)));
  for (const char* part : {"0", "1", "2"}) {
    cluster.Pods("g", 2, Ask{.role = "w", .part = part});
  }
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "a:2 b:2 c:2");
}

// The slowest group sets the step: a wider gang with all groups in leaves beats a narrow one with a
// group across leaves.
//      s1            s2
//    /    \        /    \.
//  l1:3  l2:1   l3:2   l4:2
TEST(Choose, LooksAtWiderDomainsForTheSakeOfTheGroups) {
  TestCluster cluster("s1@2(l1@1(a:3) l2@1(b:1)) s2@2(l3@1(c:2) l4@1(d:2))");
  cluster.Add(Group("g", 4).Soft().Parts("w", 2, 2, SoftRule()));
  cluster.Pods("g", 2, Ask{.role = "w", .part = "0"}).Pods("g", 2, Ask{.role = "w", .part = "1"});
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "c:2 d:2");
}

TEST(Choose, AmongEqualTiersTakesWhereMoreSurplusFits) {
  TestCluster cluster("l1@1(a:2) l2@1(b:4)");
  EXPECT_EQ(Placed(cluster, Group("g", 2).Hard(1), 4), "b:4");
}

// Late surplus comes nearest first, inside the rule.
//      s1            s2
//    /    \          |
//  l1:2  l2:1      l3:1
TEST(Choose, PlacesLateSurplusNearestFirst) {
  TestCluster cluster("s1@2(l1@1(a:2) l2@1(b:1)) s2@2(l3@1(c:1))");
  cluster.Add(Group("g", 1).Soft()).Pods("g", 1, Ask{.node = "a"}).Pods("g", 2);
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "a:2 b:1");
}

TEST(Choose, LeavesSurplusThatTheRuleForbids) {
  TestCluster cluster("s1@2(l1@1(a:2) l2@1(b:1))");
  cluster.Add(Group("g", 1).Hard(1)).Pods("g", 1, Ask{.node = "a"}).Pods("g", 2);
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "a:2");
}

TEST(FindBest, NamesTheAllowedDomainThatTakesMost) {
  TestCluster cluster("s1@2(l1@1(a:2) l2@1(b:3))");
  cluster.Add(Group("g", 5).Hard(1)).Pods("g", 5);
  const Demand demand = BuildDemand(cluster.state, cluster.Gang("g"));
  const Scope scope = GangScope(cluster.state, cluster.Gang("g"), {});
  const BestEffortDomain best = FindBest(cluster.state, demand, scope);
  EXPECT_EQ(cluster.state.trees()[best.tree]->at(best.domain).name, "l2");
  EXPECT_EQ(best.pods, 3);
}

TEST(FitBySums, AddsUpClassByClass) {
  TestCluster cluster("l1@1(a:4)");
  cluster.Add(Group("g", 2)).Pods("g", 1).Pods("g", 1, Ask{.gpu = 2});
  const Demand demand = BuildDemand(cluster.state, cluster.Gang("g"));
  const Trial trial(cluster.state, 0, demand.classes);
  EXPECT_EQ(FitBySums(trial, DomainId(1U), {3, 5}), 3 + 2);
}

}  // namespace
}  // namespace hopwise::sched
