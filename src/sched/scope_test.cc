// Which domains a rule allows. A hard rule never lapses.
#include "sched/scope.h"

#include <string>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using cluster::TopologyRule;
using testing::Ask;
using testing::Group;
using testing::Room;
using testing::TestCluster;

TopologyRule Hard(std::optional<int32_t> tier, const std::string& name = "") {
  TopologyRule rule;
  rule.mode = TopologyRule::Mode::kHard;
  rule.highest_tier = tier;
  rule.highest_tier_name = name;
  return rule;
}

//     core (tier 7)
//    /     \.
//  l1       l2   (tier 2)
//  a        b
Room Gaps() { return Room("core@7(l1@2(a:1) l2@2(b:1))"); }

TEST(LimitRank, IsTheHighestTierInUseThatTheRuleAllows) {
  const Room room = Gaps();
  EXPECT_EQ(LimitRank(room.tree, Hard(1)), 0);
  EXPECT_EQ(LimitRank(room.tree, Hard(2)), 1);
  EXPECT_EQ(LimitRank(room.tree, Hard(6)), 1);
  EXPECT_EQ(LimitRank(room.tree, Hard(99)), 2);
}

TEST(LimitRank, HardWithoutATierMeansInsideOneTree) {
  EXPECT_EQ(LimitRank(Gaps().tree, Hard({})), 2);
}

TEST(LimitRank, SoftIsAnywhere) {
  TopologyRule rule;
  rule.mode = TopologyRule::Mode::kSoft;
  EXPECT_EQ(LimitRank(Gaps().tree, rule), 3);
}

TEST(LimitRank, AnUnknownNameAllowsNothing) {
  Room room = Gaps();
  room.tree.domains[2].tier_name = "leaf";
  room.tree.MakeIndexes();
  EXPECT_EQ(LimitRank(room.tree, Hard({}, "leaf")), 1);
  EXPECT_EQ(LimitRank(room.tree, Hard({}, "row")), 0);
}

TEST(LimitRank, TheNumberCountsWhenBothAreSet) {
  Room room = Gaps();
  room.tree.domains[2].tier_name = "leaf";
  room.tree.MakeIndexes();
  EXPECT_EQ(LimitRank(room.tree, Hard(7, "leaf")), 2);
}

//   s1          s2
//  /  \         |
// l1   l2      l3
// a    b       c
class GangScopeTest : public ::testing::Test {
 protected:
  Scope Of(const std::string& gang, const std::vector<std::string>& placed = {}) {
    std::vector<PodId> pods;
    for (const std::string& pod : placed) {
      pods.push_back(cluster_.PodOf(pod));
    }
    return GangScope(cluster_.state, cluster_.Gang(gang), pods);
  }
  TestCluster cluster_{"s1@2(l1@1(a:8) l2@1(b:8)) s2@2(l3@1(c:8))"};
};

TEST_F(GangScopeTest, IsFreeWithoutARule) {
  cluster_.Add(Group("g", 1)).Pods("g", 1);
  EXPECT_EQ(Of("g").kind, Scope::Kind::kFree);
}

TEST_F(GangScopeTest, IsRuledByASubGroupsRuleAlone) {
  cluster_.Add(Group("g", 1).Parts("w", 1, 1, testing::HardTier(1)))
      .Pods("g", 1, Ask{.role = "w", .part = "0"});
  const Scope scope = Of("g");
  ASSERT_EQ(scope.kind, Scope::Kind::kRuled);
  EXPECT_EQ(scope.trees[0].limit, 3);
}

TEST_F(GangScopeTest, HoldsTheAnchors) {
  cluster_.Add(Group("g", 2).Hard(1)).Pods("g", 1, Ask{.node = "a"}).Pods("g", 1);
  const Scope scope = Of("g", {"g-0"});
  ASSERT_EQ(scope.trees.size(), 1U);
  EXPECT_EQ(scope.trees[0].limit, 1);
  EXPECT_TRUE(scope.trees[0].anchors.Holds(cluster_.Node("a")));
  EXPECT_TRUE(scope.warnings.empty());
}

TEST_F(GangScopeTest, WidensToWhatTheAnchorsSpanAndSaysSo) {
  cluster_.Add(Group("g", 3).Hard(1))
      .Pods("g", 1, Ask{.node = "a"})
      .Pods("g", 1, Ask{.node = "b"})
      .Pods("g", 1);
  const Scope scope = Of("g", {"g-0", "g-1"});
  ASSERT_EQ(scope.trees.size(), 1U);
  EXPECT_EQ(scope.trees[0].limit, 2);
  ASSERT_EQ(scope.warnings.size(), 1U);
  EXPECT_NE(scope.warnings[0].find("span s1"), std::string::npos) << scope.warnings[0];
}

TEST_F(GangScopeTest, IsUnknownForATierNameThatNoHyperNodeHas) {
  Group group("g", 1);
  group.Rule({api::TopologyMode::kHard, std::nullopt, "row"});
  cluster_.Add(group).Pods("g", 1);
  const Scope scope = Of("g");
  EXPECT_EQ(scope.kind, Scope::Kind::kUnknown);
  EXPECT_NE(scope.problem.find("\"row\""), std::string::npos);
  EXPECT_NE(scope.problem.find("tier 1"), std::string::npos)
      << "names what is known: " << scope.problem;
}

TEST_F(GangScopeTest, IsUnknownBelowTheLowestTier) {
  cluster_.Add(Group("g", 1).Hard(0)).Pods("g", 1);
  EXPECT_EQ(Of("g").kind, Scope::Kind::kUnknown);
}

TEST_F(GangScopeTest, SetsTheRuleAsideForAGangOfBestEffortPods) {
  cluster_.Add(Group("g", 1).Hard(1));
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = "g-0";
  pod.meta.annotations = {{"scheduling.k8s.io/group-name", "g"}};
  pod.scheduler_name = "volcano";
  pod.best_effort = true;
  cluster_.state.Apply(pod);
  const Scope scope = Of("g");
  EXPECT_EQ(scope.kind, Scope::Kind::kFree);
  EXPECT_EQ(scope.warnings.size(), 1U);
  cluster_.Pods("g", 1);  // one with requests: the rule holds for all
  EXPECT_EQ(Of("g").kind, Scope::Kind::kRuled);
}

TEST(GangScope, SetsTheRuleAsideWhereNoHyperNodeExistsAndSaysSo) {
  TestCluster cluster("a:8 b:8");
  cluster.Add(Group("g", 1).Hard(1)).Pods("g", 1);
  const Scope scope = GangScope(cluster.state, cluster.Gang("g"), {});
  EXPECT_EQ(scope.kind, Scope::Kind::kFree);
  EXPECT_EQ(scope.warnings.size(), 1U);
}

TEST(GangScope, DoesNotSetTheRuleAsideWhereEveryHyperNodeIsBroken) {
  TestCluster cluster("a:8");
  api::HyperNode broken;
  broken.meta.name = "broken";
  broken.tier = 1;
  broken.members.emplace_back().pattern = "[";
  cluster.state.Apply(broken);
  cluster.Add(Group("g", 1).Hard(1)).Pods("g", 1);
  EXPECT_EQ(GangScope(cluster.state, cluster.Gang("g"), {}).kind, Scope::Kind::kUnknown);
}

}  // namespace
}  // namespace hopwise::sched
