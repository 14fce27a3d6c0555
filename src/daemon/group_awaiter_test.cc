// Pods whose PodGroup is yet to come, as the core treats them.
#include "daemon/group_awaiter.h"

#include <gtest/gtest.h>

#include "daemon/core.h"
#include "daemon/scheduler_metrics.h"

namespace hopwise::daemon {
namespace {

constexpr Time kStart{1'800'000'000LL * 1'000'000'000LL};

api::Pod MakePod(const std::string& name, const std::string& owner_kind,
                 const std::string& group = "") {
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.creation = kStart;
  pod.scheduler_name = "volcano";
  pod.request = {{"gpu", 1}};
  if (!owner_kind.empty()) {
    pod.meta.owners.push_back({"apps/v1", owner_kind, "rs", "uid-rs", true});
  }
  if (!group.empty()) {
    pod.meta.annotations = {{"scheduling.k8s.io/group-name", group}};
  }
  return pod;
}

// A scheduler that leads, with one node.
class AwaiterTest : public ::testing::Test {
 protected:
  explicit AwaiterTest(CoreOptions options = {})
      : core_((DeclareSchedulerMetrics(metrics_), options), sched::DefaultConfig(), metrics_) {
    api::Node node;
    node.meta.name = "n";
    node.allocatable = {{"gpu", 8}, {"pods", 110}};
    Apply(kube::kNodes, node);
    for (const char* name : {"root", "default"}) {
      api::Queue queue;
      queue.meta.name = name;
      queue.state = "Open";
      Apply(kube::kQueues, queue);
    }
    core_.SetSynced(true);
    core_.SetLeading(true, now_);
  }
  template <class T>
  void Apply(const kube::Resource& resource, const T& object, bool deleted = false) {
    kube::WatchEvent event;
    event.type = deleted ? kube::WatchEvent::Type::kDeleted : kube::WatchEvent::Type::kApplied;
    event.decoded.object = object;
    core_.Observe(resource, std::move(event), now_);
  }
  void Group(const std::string& name, int32_t minimum) {
    api::PodGroup group;
    group.meta.ns = "ml";
    group.meta.name = name;
    group.meta.uid = "group";
    group.meta.creation = kStart;
    group.min_member = minimum;
    Apply(kube::kPodGroups, group);
  }
  size_t BindsAfter(Duration later) {
    now_ = now_ + later;
    return core_.Step(now_).binds.size();
  }

  Time now_ = kStart;
  server::Metrics metrics_;
  Core core_;
};

TEST_F(AwaiterTest, AWorkloadsPodIsHeldUntilItsGroupIsNamed) {
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"));
  EXPECT_EQ(BindsAfter({}), 0U);
  EXPECT_EQ(core_.next_wake(), now_ + Seconds(1));
  Group("podgroup-rs", 2);
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet", "podgroup-rs"));
  EXPECT_EQ(BindsAfter(Seconds(2)), 0U) << "one of two";
  Apply(kube::kPods, MakePod("web-1", "ReplicaSet", "podgroup-rs"));
  EXPECT_EQ(BindsAfter(Millis(100)), 2U);
}

TEST_F(AwaiterTest, OneThatGetsNoGroupIsPlacedByItself) {
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"));
  EXPECT_EQ(BindsAfter(Millis(999)), 0U);
  EXPECT_EQ(BindsAfter(Millis(1)), 1U);
}

TEST_F(AwaiterTest, NewsOfOneThatIsHeldDoesNotHoldItLonger) {
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"));
  EXPECT_EQ(BindsAfter(Millis(900)), 0U);
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"));
  EXPECT_EQ(BindsAfter(Millis(100)), 1U);
}

TEST_F(AwaiterTest, OneThatWasThereLongAgoIsNotHeld) {
  now_ = now_ + Seconds(10);
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"));
  EXPECT_EQ(BindsAfter({}), 1U);
}

TEST_F(AwaiterTest, OneThatIsDeletedMeanwhileIsForgotten) {
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"));
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"), true);
  EXPECT_EQ(BindsAfter(Seconds(2)), 0U);
}

TEST_F(AwaiterTest, PodsByThemselvesAndOfDaemonSetsAreNeverHeld) {
  Apply(kube::kPods, MakePod("lone", ""));
  Apply(kube::kPods, MakePod("agent", "DaemonSet"));
  EXPECT_EQ(BindsAfter({}), 2U);
}

class NoAwaiterTest : public AwaiterTest {
 protected:
  NoAwaiterTest()
      : AwaiterTest([] {
          CoreOptions options;
          options.group_wait = {};
          return options;
        }()) {}
};

TEST_F(NoAwaiterTest, NobodyIsHeldWhereNoControllerIsExpected) {
  Apply(kube::kPods, MakePod("web-0", "ReplicaSet"));
  EXPECT_EQ(BindsAfter({}), 1U);
}

}  // namespace
}  // namespace hopwise::daemon
