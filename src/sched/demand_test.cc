// Which members must be placed for a gang to run, and which may follow.
#include "sched/demand.h"

#include <string>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::HardTier;
using testing::TestCluster;

// One leaf with a node of 8 GPUs; these tests are about counts only.
class DemandTest : public ::testing::Test {
 protected:
  Demand Build(const std::string& gang = "g") {
    return BuildDemand(cluster_.state, cluster_.Gang(gang));
  }
  Ask Part(const std::string& part, const std::string& node = "") {
    return Ask{.role = "w", .part = part, .node = node};
  }
  std::string Names(const std::vector<PodId>& pods) const {
    std::string text;
    for (const PodId id : pods) {
      text += (text.empty() ? "" : " ") + cluster_.state.pod(id).name;
    }
    return text;
  }

  TestCluster cluster_{"l1@1(a:8)"};
};

TEST_F(DemandTest, RequiresTheMinimumAndOffersTheRest) {
  cluster_.Add(Group("g", 2)).Pods("g", 3);
  const Demand demand = Build();
  EXPECT_EQ(Names(demand.required.loose), "g-0 g-1");
  EXPECT_EQ(Names(demand.optional.loose), "g-2");
  EXPECT_EQ(demand.required_counts, std::vector<int32_t>{2});
  EXPECT_EQ(demand.all_counts, std::vector<int32_t>{3});
  EXPECT_EQ(demand.waiting, 3);
}

TEST_F(DemandTest, RequiresMembersOfHigherPriorityFirst) {
  cluster_.Add(Group("g", 2)).Pods("g", 2, Ask{.priority = 1}).Pods("g", 2, Ask{.priority = 9});
  const Demand demand = Build();
  EXPECT_EQ(Names(demand.required.loose), "g-2 g-3");
  EXPECT_EQ(Names(demand.optional.loose), "g-0 g-1");
}

TEST_F(DemandTest, CountsPlacedMembersTowardsTheMinimum) {
  cluster_.Add(Group("g", 2)).Pods("g", 1, Ask{.node = "a"}).Pods("g", 2);
  const Demand demand = Build();
  EXPECT_EQ(Names(demand.placed), "g-0");
  EXPECT_EQ(Names(demand.required.loose), "g-1");
  EXPECT_EQ(Names(demand.optional.loose), "g-2");
}

TEST_F(DemandTest, RequiresNothingOfAGangThatHasItsMinimum) {
  cluster_.Add(Group("g", 1)).Pods("g", 1, Ask{.node = "a"}).Pods("g", 1);
  const Demand demand = Build();
  EXPECT_TRUE(demand.required.loose.empty());
  EXPECT_EQ(Names(demand.optional.loose), "g-1");
}

TEST_F(DemandTest, ADistinctShapeIsAClassOfItsOwn) {
  cluster_.Add(Group("g", 3)).Pods("g", 2).Pods("g", 1, Ask{.gpu = 4});
  EXPECT_EQ(Build().required_counts, (std::vector<int32_t>{2, 1}));
}

TEST_F(DemandTest, GathersAlikeSubGroups) {
  cluster_.Add(Group("g", 4).Parts("w", 2, 2, HardTier(1)));
  cluster_.Pods("g", 2, Part("0")).Pods("g", 2, Part("1"));
  const Demand demand = Build();
  ASSERT_EQ(demand.required.uniform.size(), 1U);
  EXPECT_EQ(demand.required.uniform[0].size, 2);
  EXPECT_EQ(demand.required.uniform[0].sub_groups, (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(demand.required.singles.empty());
  EXPECT_TRUE(demand.has_group_rule);
}

TEST_F(DemandTest, ASubGroupOfTwoClassesStandsAlone) {
  cluster_.Add(Group("g", 2).Parts("w", 2, 1, HardTier(1)));
  cluster_.Pods("g", 1, Part("0")).Pods("g", 1, Ask{.gpu = 2, .role = "w", .part = "0"});
  const Demand demand = Build();
  ASSERT_EQ(demand.required.singles.size(), 1U);
  EXPECT_EQ(Names(demand.required.singles[0].pods), "g-0 g-1");
}

TEST_F(DemandTest, MendsTheSubGroupThatLostAMemberFirst) {
  cluster_.Add(Group("g", 2).Parts("w", 2, 1, HardTier(1)));
  cluster_.Pods("g", 2, Part("0")).Pods("g", 1, Part("1", "a")).Pods("g", 1, Part("1"));
  const Demand demand = Build();
  ASSERT_EQ(demand.required.singles.size(), 1U);
  EXPECT_EQ(Names(demand.required.singles[0].pods), "g-3");
  ASSERT_EQ(demand.optional.uniform.size(), 1U);
}

TEST_F(DemandTest, RequiresNoMoreSubGroupsThanItsPolicyAsks) {
  cluster_.Add(Group("g", 2).Parts("w", 2, 1, HardTier(1)));
  cluster_.Pods("g", 2, Part("0")).Pods("g", 2, Part("1"));
  const Demand demand = Build();
  EXPECT_EQ(demand.required_counts, std::vector<int32_t>{2});
  EXPECT_EQ(demand.all_counts, std::vector<int32_t>{4});
}

// A group size that does not divide the pods: the short rest is no group.
TEST_F(DemandTest, LeavesOutASubGroupThatCannotComplete) {
  cluster_.Add(Group("g", 3).Parts("w", 3, 1, HardTier(1)));
  cluster_.Pods("g", 3, Part("0")).Pods("g", 1, Part("1"));
  const Demand demand = Build();
  EXPECT_EQ(demand.all_counts, std::vector<int32_t>{3});
  EXPECT_EQ(demand.waiting, 4);
}

TEST_F(DemandTest, SaysWhyTheMinimumCannotBeJudged) {
  cluster_.Add(Group("g", 1));
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = "odd";
  pod.meta.annotations = {{"scheduling.k8s.io/group-name", "g"}};
  pod.scheduler_name = "volcano";
  pod.scheduling_gates = {"wait"};
  cluster_.state.Apply(pod);
  const Demand demand = Build();
  EXPECT_TRUE(demand.gated);
  EXPECT_EQ(demand.blocked, "pod ml/odd waits for its scheduling gates");
}

TEST_F(DemandTest, LeavesAloneWhatIsGoneOrGoing) {
  cluster_.Add(Group("g", 1)).Pods("g", 2);
  cluster_.Remove("g-0");
  EXPECT_EQ(Names(Build().required.loose), "g-1");
}

}  // namespace
}  // namespace hopwise::sched
