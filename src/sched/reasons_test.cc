// The words for a gang that waits: never or not now, which level, the best domain, what is short
// and who holds it.
#include "sched/reasons.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::HardTier;
using ::testing::HasSubstr;
using testing::TestCluster;

// What the gang is told after one run.
const GangReport& Told(TestCluster& cluster, const std::string& gang) {
  cluster.Run();
  const GangReport* report = cluster.scheduler->LastReport(cluster.Gang(gang));
  EXPECT_NE(report, nullptr);
  return *report;
}

//    l1         l2
//  a:4 b:4     c:4
constexpr const char* kPicture = "l1@1(a:4 b:4) l2@1(c:4)";

TEST(Reasons, NeverWhenNoDomainIsLargeEnoughEvenEmpty) {
  TestCluster cluster(kPicture);
  cluster.Fill("a", 4).Add(Group("g", 9).Hard(1)).Pods("g", 9);
  const GangReport& report = Told(cluster, "g");
  EXPECT_EQ(report.verdict, Verdict::kNever);
  EXPECT_EQ(report.reason, "NeverFits");
  EXPECT_THAT(
      report.message,
      HasSubstr("needs 9 pods in one tier-1 domain, which never fits: the largest, l1, takes 8"));
}

TEST(Reasons, NeverWhenOnePodAsksForMoreThanAnyNodeHas) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 2).Hard(1)).Pods("g", 2, {.gpu = 6});
  EXPECT_THAT(
      Told(cluster, "g").message,
      HasSubstr("takes 0 even when empty; no node has 6 of gpu, the most that one has is 4"));
}

TEST(Reasons, NotNowWithTheBestDomainWhatIsShortAndWhoHoldsIt) {
  TestCluster cluster(kPicture);
  cluster.Fill("a", 3).Add(Group("g", 6).Hard(1)).Pods("g", 6);
  const GangReport& report = Told(cluster, "g");
  EXPECT_EQ(report.verdict, Verdict::kNotNow);
  EXPECT_EQ(report.reason, "NotEnoughResources");
  EXPECT_THAT(report.message,
              HasSubstr("needs 6 pods in one tier-1 domain: best is l1 with room for 5"));
  EXPECT_THAT(report.message, HasSubstr("short of gpu by 1"));
  EXPECT_THAT(report.message, HasSubstr("held by ml/fill-0 (3)"));
}

TEST(Reasons, NotNowWithTheNodesThatAreBarred) {
  TestCluster cluster(kPicture);
  api::Node node;
  node.meta.name = "b";
  node.allocatable = {{"cpu", 100'000}, {"gpu", 4}, {"pods", 110}};
  node.unschedulable = true;
  cluster.state.Apply(node);
  cluster.Add(Group("g", 6).Hard(1)).Pods("g", 6);
  EXPECT_THAT(Told(cluster, "g").message, HasSubstr("1 node cordoned"));
}

TEST(Reasons, CountGroupsAsGroups) {
  TestCluster cluster("s@2(l1@1(a:3) l2@1(b:3))");
  cluster.Add(Group("g", 6).Hard(2).Parts("w", 2, 3, HardTier(1)));
  for (const char* part : {"0", "1", "2"}) {
    cluster.Pods("g", 2, Ask{.role = "w", .part = part});
  }
  const GangReport& report = Told(cluster, "g");
  EXPECT_NE(report.verdict, Verdict::kPlaced);
  EXPECT_THAT(report.message, HasSubstr("3 groups of 2"));
}

api::Queue QueueOf(const std::string& name, int64_t gpus) {
  api::Queue queue;
  queue.meta.name = name;
  queue.capability = {{"gpu", gpus}};
  return queue;
}

TEST(Reasons, NameTheQueueAndItsLimit) {
  TestCluster cluster(kPicture);
  cluster.state.Apply(QueueOf("q", 5));
  cluster.Add(Group("ran", 1).In("q")).Pods("ran", 2, Ask{.node = "a"});
  cluster.Add(Group("g", 4).In("q")).Pods("g", 4);
  const GangReport& report = Told(cluster, "g");
  EXPECT_EQ(report.verdict, Verdict::kQueueLimit);
  EXPECT_EQ(report.reason, "QueueOverLimit");
  EXPECT_EQ(report.message, "queue q has no share left: gpu limit 5, used 2, asked 4");
}

TEST(Reasons, NeverWhenTheQueueIsTooSmallForTheGangEvenEmpty) {
  TestCluster cluster(kPicture);
  cluster.state.Apply(QueueOf("q", 3));
  cluster.Add(Group("g", 4).In("q")).Pods("g", 4);
  const GangReport& report = Told(cluster, "g");
  EXPECT_EQ(report.verdict, Verdict::kNever);
  EXPECT_EQ(report.message, "queue q can never admit it: gpu limit 3, used 0, asked 4");
}

TEST(Reasons, NameTheAncestorWhoseLimitIsPassed) {
  TestCluster cluster(kPicture);
  cluster.state.Apply(QueueOf("dept", 5));
  cluster.Add(Group("ran", 1).In("dept")).Pods("ran", 2, Ask{.node = "a"});
  api::Queue child;
  child.meta.name = "team";
  child.parent = "dept";
  cluster.state.Apply(child);
  cluster.Add(Group("g", 4).In("team")).Pods("g", 4);
  EXPECT_THAT(Told(cluster, "g").message, HasSubstr("queue dept has no share left"));
}

TEST(Reasons, NameAMissingQueue) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 1).In("nowhere")).Pods("g", 1);
  const GangReport& report = Told(cluster, "g");
  EXPECT_EQ(report.verdict, Verdict::kInvalid);
  EXPECT_EQ(report.message, "queue nowhere not found");
}

TEST(Reasons, SayThatTheMinimumRunsWhenOnlySurplusWaits) {
  TestCluster cluster("l1@1(a:4)");
  cluster.Add(Group("g", 3).Hard(1)).Pods("g", 6);
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "a:4");
  EXPECT_THAT(cluster.Why("g"), HasSubstr("has its minimum (4 placed, 3 needed); 2 more pods"));
}

TEST(Reasons, TellTierNamesToPeople) {
  TestCluster cluster("l1@1(a:1)");
  const topology::Tree& tree = *cluster.state.trees()[0];
  EXPECT_EQ(TierWords(tree, 1), "tier-1 domain");
  topology::Tree named = tree;
  named.tier_names[0] = "leaf";
  EXPECT_EQ(TierWords(named, 1), "leaf (tier 1)");
}

TEST(Reasons, NameAmountsBeyondCounting) {
  TestCluster cluster(kPicture);
  cluster.state.Apply(QueueOf("q", 9'000'000'000'000'000'000));
  cluster.Add(Group("g", 2).In("q").Hard(1)).Pods("g", 2, Ask{.gpu = 8'000'000'000'000'000'000});
  const GangReport& report = Told(cluster, "g");
  EXPECT_EQ(report.verdict, Verdict::kInvalid);
  EXPECT_THAT(report.message,
              HasSubstr("asks for 8000000000000000000 of gpu, more than is counted of anything"));
}

}  // namespace
}  // namespace hopwise::sched
