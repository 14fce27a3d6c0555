// Split and pack: everything required goes in or nothing does, then the surplus that fits.
#include "sched/place.h"

#include <string>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::HardTier;
using testing::TestCluster;

//      spine
//     /     \.
//   l1       l2
//  a:4 b:4   c:4
class PackerTest : public ::testing::Test {
 protected:
  // Packs the gang's required members, and the surplus, into domain d of the fabric.
  bool Pack(const std::string& gang, uint32_t d, bool optional = false) {
    const GangId id = cluster_.Gang(gang);
    demand_ = BuildDemand(cluster_.state, id);
    trial_ = std::make_unique<Trial>(cluster_.state, 0, demand_.classes);
    anchors_ = Anchors();
    for (const PodId pod : demand_.placed) {
      anchors_.Add(trial_->tree(), cluster_.state.pod(pod).node);
    }
    anchors_.Finish();
    Packer packer(cluster_.state, id, demand_, *trial_, anchors_, nullptr, effort_);
    placement_ = Placement();
    const bool placed = packer.PlaceRequired(DomainId(d), placement_);
    if (placed && optional) {
      packer.PlaceOptional(DomainId(d), placement_);
    }
    return placed;
  }
  std::string Draw() const {
    std::string text;
    for (const PlacedSet& set : placement_.sets) {
      text += set.required ? "[" : "(";
      for (const Slot& slot : set.slots) {
        text += cluster_.state.node(slot.node).name + ":" + std::to_string(slot.count) + " ";
      }
      text.back() = set.required ? ']' : ')';
    }
    return text;
  }

  static constexpr uint32_t kSpine = 1, kL1 = 2, kL2 = 3;
  TestCluster cluster_{"spine@2(l1@1(a:4 b:4) l2@1(c:4))"};
  Demand demand_;
  std::unique_ptr<Trial> trial_;
  Anchors anchors_;
  Effort effort_{1'000'000, false};
  Placement placement_;
};

TEST_F(PackerTest, PlacesTheRequiredMembers) {
  cluster_.Add(Group("g", 5)).Pods("g", 5);
  EXPECT_TRUE(Pack("g", kL1));
  EXPECT_EQ(placement_.members(), 5);
  EXPECT_EQ(placement_.Nodes().size(), 2U);
  EXPECT_EQ(trial_->View(0).sums[kL1], 3);
}

TEST_F(PackerTest, LeavesTheTrialAsItWasWhenTheyDoNotFit) {
  cluster_.Add(Group("g", 5)).Pods("g", 5);
  EXPECT_FALSE(Pack("g", kL2));
  EXPECT_TRUE(trial_->empty());
  EXPECT_TRUE(placement_.sets.empty());
}

TEST_F(PackerTest, PlacesTheSurplusThatFits) {
  cluster_.Add(Group("g", 2)).Pods("g", 9);
  EXPECT_TRUE(Pack("g", kL1, true));
  EXPECT_EQ(placement_.members(), 8);
}

TEST_F(PackerTest, TakesNoHalfSubGroupAsSurplus) {
  cluster_.Add(Group("g", 3).Parts("w", 3, 1, HardTier(1)));
  cluster_.Pods("g", 3, Ask{.role = "w", .part = "0"}).Pods("g", 3, Ask{.role = "w", .part = "1"});
  EXPECT_TRUE(Pack("g", kL2, true));
  EXPECT_EQ(placement_.members(), 3);  // room for four
}

TEST_F(PackerTest, CompletesEachGroupInsideItsRule) {
  cluster_.Add(Group("g", 6).Parts("w", 3, 2, HardTier(1)));
  cluster_.Pods("g", 3, Ask{.gpu = 2, .role = "w", .part = "0"})
      .Pods("g", 3, Ask{.gpu = 2, .role = "w", .part = "1"});
  // l1 takes four of them, l2 two: six by count, one group by rule.
  EXPECT_FALSE(Pack("g", kSpine));
}

TEST_F(PackerTest, KeepsAGroupNextToItsRunningMember) {
  cluster_.Add(Group("g", 2).Parts("w", 2, 1, HardTier(1)));
  cluster_.Pods("g", 1, Ask{.role = "w", .part = "0", .node = "c"})
      .Pods("g", 1, Ask{.role = "w", .part = "0"});
  EXPECT_TRUE(Pack("g", kSpine));
  EXPECT_EQ(Draw(), "[c:1]");
}

TEST_F(PackerTest, NeverSendsAMemberAwayFromItsGroup) {
  cluster_.Add(Group("g", 2).Parts("w", 2, 1, HardTier(1)));
  cluster_.Pods("g", 1, Ask{.gpu = 4, .role = "w", .part = "0", .node = "c"});
  cluster_.Pods("g", 1, Ask{.role = "w", .part = "0"});
  EXPECT_FALSE(Pack("g", kSpine));
}

TEST_F(PackerTest, FitsTwoClassesTogether) {
  cluster_.Add(Group("g", 4)).Pods("g", 2, Ask{.gpu = 3}).Pods("g", 2, Ask{.gpu = 1});
  EXPECT_TRUE(Pack("g", kL1));
  EXPECT_EQ(placement_.members(), 4);
}

TEST(Placement, NamesItsNodesOnce) {
  Placement placement;
  placement.sets.push_back(
      {0, DomainId(), true, {{NodeId(2U), 1, 0, kLoose}, {NodeId(1U), 2, 0, kLoose}}});
  placement.sets.push_back({1, DomainId(), true, {{NodeId(2U), 3, 1, kLoose}}});
  EXPECT_EQ(placement.Nodes(), (std::vector<NodeId>{NodeId(1U), NodeId(2U)}));
  EXPECT_EQ(placement.members(), 6);
}

}  // namespace
}  // namespace hopwise::sched
