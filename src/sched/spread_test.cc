// Without a rule the configured scores decide, still all or none.
#include "sched/spread.h"

#include <string>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::TestCluster;

Choice Spread(TestCluster& cluster, const std::string& gang) {
  const Config config = DefaultConfig();
  const Scorer scorer(config, cluster.state.columns());
  std::vector<DomainTotals> totals(cluster.state.trees().size());
  for (DomainTotals& t : totals) {
    t.Configure(cluster.state.columns(), config.network_topology_aware.resources);
  }
  Tools tools{scorer, totals};
  const GangId id = cluster.Gang(gang);
  return SpreadByScore(cluster.state, id, BuildDemand(cluster.state, id), tools);
}

//   l1        l2
//  a:4 b:4   c:4
constexpr const char* kPicture = "l1@1(a:4 b:4) l2@1(c:4)";

TEST(Spread, PlacesAllThatIsRequired) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 12)).Pods("g", 12);
  const Choice choice = Spread(cluster, "g");
  EXPECT_TRUE(choice.found);
  EXPECT_EQ(choice.placement.members(), 12);
}

TEST(Spread, PlacesNothingWhenOneDoesNotFit) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 13)).Pods("g", 13);
  const Choice choice = Spread(cluster, "g");
  EXPECT_FALSE(choice.found);
  EXPECT_FALSE(choice.undecided);
  EXPECT_TRUE(choice.placement.sets.empty());
}

TEST(Spread, PlacesTheSurplusThatFits) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 2)).Pods("g", 20);
  EXPECT_EQ(Spread(cluster, "g").placement.members(), 12);
}

// 3 + 1 on each node; the scores alone would spread the small ones first.
TEST(Spread, SearchesOnWhereTheScoresLeadAstray) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 6)).Pods("g", 3, Ask{.gpu = 3}).Pods("g", 3, Ask{.gpu = 1});
  EXPECT_EQ(Spread(cluster, "g").placement.members(), 6);
}

TEST(Spread, HoldsASelector) {
  TestCluster cluster(kPicture);
  api::Node node;
  node.meta.name = "d";
  node.meta.labels = {{"zone", "z"}};
  node.allocatable = {{"cpu", 100'000}, {"gpu", 1}, {"pods", 110}};
  cluster.state.Apply(node);
  cluster.Add(Group("g", 1)).Pods("g", 2, Ask{.zone = "z"});
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "d:1");
}

TEST(Spread, GivesTheSameAnswerTwice) {
  TestCluster cluster(kPicture);
  cluster.Fill("b", 3);
  cluster.Add(Group("g", 1)).Pods("g", 1);
  const Choice once = Spread(cluster, "g");
  const Choice again = Spread(cluster, "g");
  EXPECT_EQ(once.placement.Nodes(), again.placement.Nodes());
}

}  // namespace
}  // namespace hopwise::sched
