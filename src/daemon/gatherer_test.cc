// How long a gang is held back while its members come.
#include "daemon/gatherer.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hopwise::daemon {
namespace {

constexpr Time kStart{1'800'000'000LL * 1'000'000'000LL};

class GathererTest : public ::testing::Test {
 protected:
  GathererTest() {
    cluster::StateOptions options;
    options.scheduler_names = {"volcano"};
    state_ = std::make_unique<cluster::State>(options);
    api::Node node;
    node.meta.name = "n";
    node.allocatable = {{"gpu", 8}, {"pods", 110}};
    state_->Apply(node);
    api::PodGroup group;
    group.meta.ns = "ml";
    group.meta.name = "band";
    group.min_member = 2;
    state_->Apply(group);
  }
  GangId Add(const std::string& name, const std::string& group = "band") {
    api::Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = name;
    pod.meta.uid = "uid-" + name;
    pod.scheduler_name = "volcano";
    pod.request = {{"gpu", 1}};
    if (!group.empty()) {
      pod.meta.annotations = {{"scheduling.k8s.io/group-name", group}};
    }
    state_->Apply(pod);
    return state_->pod(state_->FindPod("ml", name)).gang;
  }
  // A member every `gap`; the time of the last.
  Time Arrive(int count, Duration gap) {
    Time at = kStart;
    for (int i = 0; i < count; ++i) {
      at = kStart + Duration{gap.ns * i};
      EXPECT_TRUE(gatherer_.Came(*state_, Add("band-" + std::to_string(i)), at));
    }
    return at;
  }
  bool IsDue(Time at) { return !gatherer_.Due(at).empty(); }

  std::unique_ptr<cluster::State> state_;
  Gatherer gatherer_;
};

TEST_F(GathererTest, WaitsFourGapsAfterTheLastMember) {
  const Time last = Arrive(8, Millis(5));
  EXPECT_EQ(gatherer_.next_wake(), last + Millis(20));
  EXPECT_FALSE(IsDue(last + Millis(19)));
  EXPECT_TRUE(IsDue(last + Millis(20)));
  EXPECT_FALSE(gatherer_.next_wake().set()) << "told once";
}

TEST_F(GathererTest, WaitsALittleAfterABurstAndNotLongAfterStragglers) {
  const Time burst = Arrive(8, Duration{});
  EXPECT_EQ(gatherer_.next_wake(), burst + kLeastQuiet);
  const Time straggler = burst + Seconds(1);
  gatherer_.Came(*state_, Add("band-9"), straggler);
  EXPECT_EQ(gatherer_.next_wake(), straggler + kMostQuiet);
}

TEST_F(GathererTest, OneMemberWaitsForASecond) {
  Arrive(1, {});
  EXPECT_EQ(gatherer_.next_wake(), kStart + kFirstQuiet);
}

TEST_F(GathererTest, DoesNotWaitForEverHoweverManyCome) {
  Arrive(40, Millis(60));
  EXPECT_EQ(gatherer_.next_wake(), kStart + kMostGather);
}

TEST_F(GathererTest, APodOfItsOwnIsNotHeld) {
  EXPECT_FALSE(gatherer_.Came(*state_, Add("lone", ""), kStart));
  EXPECT_FALSE(gatherer_.next_wake().set());
}

TEST_F(GathererTest, AGangThatHasAPlaceIsNotHeld) {
  const GangId gang = Add("band-0");
  state_->Assume(state_->FindPod("ml", "band-0"), state_->FindNode("n"));
  EXPECT_FALSE(gatherer_.Came(*state_, gang, kStart));
}

}  // namespace
}  // namespace hopwise::daemon
