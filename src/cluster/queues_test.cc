#include "cluster/queues.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state.h"
#include "cluster/test_objects.h"

namespace hopwise::cluster {
namespace {

using testing::Allocated;
using testing::GangOf;
using testing::GroupSpec;
using testing::NodeSpec;
using testing::PodSpec;
using testing::QueueOf;
using testing::QueueSpec;

constexpr char kGpu[] = "nvidia.com/gpu";

// `count` pods of one GPU each, bound, in a group of the same name in the queue.
void RunGang(State& state, const std::string& name, const std::string& queue, int count) {
  state.Apply(GroupSpec(name, 1).In(queue));
  for (int i = 0; i < count; ++i) {
    state.Apply(PodSpec(name + "-" + std::to_string(i)).Group(name).On("n"));
  }
}

TEST(Queues, DefaultAndRootExistAndAreOpenWithoutObjects) {
  State state;
  ASSERT_TRUE(state.FindQueue("default").valid());
  EXPECT_TRUE(QueueOf(state, "default").open);
  EXPECT_EQ(QueueOf(state, "default").weight, 1);
  EXPECT_EQ(QueueOf(state, "default").parent, state.FindQueue("root"));
  EXPECT_FALSE(QueueOf(state, "root").parent.valid());
  EXPECT_FALSE(state.FindQueue("team").valid());
}

TEST(Queues, RemovedDefaultQueueFallsBackToItsBuiltInSelf) {
  State state;
  state.Apply(QueueSpec("default").State("Closed").Capability(kGpu, 2));
  EXPECT_FALSE(QueueOf(state, "default").open);
  state.RemoveQueue("default");
  EXPECT_TRUE(QueueOf(state, "default").open);
  EXPECT_EQ(QueueOf(state, "default").CapabilityOf(state.columns().FindResource(kGpu)), -1);
  EXPECT_EQ(state.Audit(), "");
}

TEST(Queues, OnlyClosedAndClosingAreNotOpen) {
  State state;
  for (const char* text : {"", "Open", "Unknown"}) {
    state.Apply(QueueSpec("q").State(text));
    EXPECT_TRUE(QueueOf(state, "q").open) << text;
  }
  for (const char* text : {"Closed", "Closing"}) {
    state.Apply(QueueSpec("q").State(text));
    EXPECT_FALSE(QueueOf(state, "q").open) << text;
  }
}

// root ── company ─┬─ research ── nlp
//                  └─ product
TEST(Queues, AllocationCountsTheQueueAndEverythingBelow) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(QueueSpec("nlp", "research"));
  state.Apply(QueueSpec("research", "company"));
  state.Apply(QueueSpec("product", "company"));
  state.Apply(QueueSpec("company"));
  RunGang(state, "a", "nlp", 2);
  RunGang(state, "b", "research", 1);
  RunGang(state, "c", "product", 4);
  EXPECT_EQ(Allocated(state, "nlp", kGpu), 2);
  EXPECT_EQ(Allocated(state, "research", kGpu), 3);
  EXPECT_EQ(Allocated(state, "product", kGpu), 4);
  EXPECT_EQ(Allocated(state, "company", kGpu), 7);
  EXPECT_EQ(Allocated(state, "root", kGpu), 7);
  EXPECT_EQ(Allocated(state, "root", "pods"), 7);
  EXPECT_EQ(Allocated(state, "default", kGpu), 0);
}

TEST(Queues, ReparentingMovesWhatTheQueueHolds) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(QueueSpec("a"));
  state.Apply(QueueSpec("b"));
  state.Apply(QueueSpec("q", "a"));
  RunGang(state, "g", "q", 3);
  state.Apply(QueueSpec("q", "b"));
  EXPECT_EQ(Allocated(state, "a", kGpu), 0);
  EXPECT_EQ(Allocated(state, "b", kGpu), 3);
  EXPECT_EQ(Allocated(state, "root", kGpu), 3);
}

TEST(Queues, RequeueingAGangMovesWhatItHolds) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(QueueSpec("a"));
  state.Apply(QueueSpec("b"));
  RunGang(state, "g", "a", 3);
  state.Apply(GroupSpec("g", 1).In("b"));
  EXPECT_EQ(Allocated(state, "a", kGpu), 0);
  EXPECT_EQ(Allocated(state, "b", kGpu), 3);
  EXPECT_EQ(state.Audit(), "");
}

TEST(Queues, GangsMayComeBeforeTheirQueueAndStayAfterIt) {
  State state;
  state.Apply(NodeSpec("n"));
  RunGang(state, "g", "late", 2);
  EXPECT_EQ(GangOf(state, "g").queue_name, "late");
  EXPECT_FALSE(GangOf(state, "g").queue.valid());
  EXPECT_EQ(Allocated(state, "root", kGpu), 0);
  state.Apply(QueueSpec("late"));
  EXPECT_EQ(GangOf(state, "g").queue, state.FindQueue("late"));
  EXPECT_EQ(Allocated(state, "late", kGpu), 2);
  EXPECT_EQ(Allocated(state, "root", kGpu), 2);
  state.RemoveQueue("late");
  EXPECT_FALSE(GangOf(state, "g").queue.valid());
  EXPECT_FALSE(state.FindQueue("late").valid());
  EXPECT_EQ(Allocated(state, "root", kGpu), 0);
  EXPECT_EQ(state.Audit(), "");
}

TEST(Queues, UnknownParentIsAWarningAndCountsAsRoot) {
  State state;
  state.Apply(QueueSpec("q", "absent"));
  EXPECT_EQ(QueueOf(state, "q").parent, state.FindQueue("root"));
  EXPECT_EQ(QueueOf(state, "q").warnings,
            (std::vector<std::string>{"parent queue absent not found; root counts as its parent"}));
  state.Apply(QueueSpec("absent"));
  EXPECT_EQ(QueueOf(state, "q").parent, state.FindQueue("absent"));
  EXPECT_TRUE(QueueOf(state, "q").warnings.empty());
}

// a ─► b ─► c ─► a, and d below a
TEST(Queues, CycleOfParentsIsCutAndNothingIsCountedTwice) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(QueueSpec("a", "b"));
  state.Apply(QueueSpec("b", "c"));
  state.Apply(QueueSpec("c", "a"));
  state.Apply(QueueSpec("d", "a"));
  RunGang(state, "g", "d", 2);
  EXPECT_EQ(Allocated(state, "root", kGpu), 2);
  EXPECT_EQ(Allocated(state, "a", kGpu), 2);
  EXPECT_EQ(Allocated(state, "b", kGpu), 0);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(QueueOf(state, name).parent, state.FindQueue("root"));
    EXPECT_EQ(QueueOf(state, name).warnings.size(), 1U);
  }
  EXPECT_EQ(state.Audit(), "");
  state.Apply(QueueSpec("c"));
  EXPECT_EQ(Allocated(state, "c", kGpu), 2);
  EXPECT_EQ(state.Audit(), "");
}

TEST(Queues, QueueThatIsItsOwnParentIsAChildOfRoot) {
  State state;
  state.Apply(QueueSpec("q", "q"));
  EXPECT_EQ(QueueOf(state, "q").parent, state.FindQueue("root"));
}

TEST(Queues, FallingUseIsAChangeOfTheQueueAndItsAncestors) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(QueueSpec("a"));
  state.Apply(QueueSpec("q", "a"));
  state.Apply(QueueSpec("other"));
  RunGang(state, "g", "q", 2);
  state.TakeChanges();
  state.RemovePod("ml", "g-0");
  std::vector<QueueId> expected = {state.FindQueue("q"), state.FindQueue("a"),
                                   state.FindQueue("root")};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(state.TakeChanges().queues, expected);
}

TEST(Queues, RisingUseIsNoChange) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(QueueSpec("q"));
  RunGang(state, "g", "q", 1);
  state.TakeChanges();
  state.Apply(PodSpec("g-1").Group("g").On("n"));
  EXPECT_TRUE(state.TakeChanges().queues.empty());
}

TEST(Queues, CapabilityCoversResourcesThatComeLater) {
  State state;
  state.Apply(QueueSpec("q").Capability(kGpu, 4));
  state.Apply(NodeSpec("n").Allocatable("example.com/fpga", 2));
  const Queue& queue = QueueOf(state, "q");
  EXPECT_EQ(queue.capability.size(), state.columns().resource_count());
  EXPECT_EQ(queue.CapabilityOf(state.columns().FindResource(kGpu)), 4);
  EXPECT_EQ(queue.CapabilityOf(state.columns().FindResource("example.com/fpga")), -1);
}

TEST(Queues, PodsThatAreNotOursAreNoQueuesAffair) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(PodSpec("p").Scheduler("default-scheduler").On("n"));
  EXPECT_EQ(Allocated(state, "root", "cpu"), 0);
}

TEST(Queues, LonePodsAndLabelGroupsNameTheirQueueThemselves) {
  State state;
  state.Apply(QueueSpec("q"));
  state.Apply(NodeSpec("n"));
  state.Apply(PodSpec("p").Annotation("scheduling.volcano.sh/queue-name", "q").On("n"));
  state.Apply(PodSpec("l-0").LabelGroup("l", "1").On("n"));
  EXPECT_EQ(Allocated(state, "q", kGpu), 1);
  EXPECT_EQ(Allocated(state, "default", kGpu), 1);
  state.Apply(
      PodSpec("l-1").LabelGroup("l", "1").Annotation("scheduling.volcano.sh/queue-name", "q"));
  EXPECT_EQ(GangOf(state, "l").queue_name, "q");
  EXPECT_EQ(Allocated(state, "q", kGpu), 2);
}

TEST(Queues, AbsurdAmountsNeitherOverflowNorStay) {
  State state;
  for (int i = 0; i < 3; ++i) {
    state.Apply(PodSpec("p-" + std::to_string(i)).Request("memory", INT64_MAX).On("n"));
  }
  EXPECT_EQ(state.Audit(), "");
  for (int i = 0; i < 3; ++i) state.RemovePod("ml", "p-" + std::to_string(i));
  EXPECT_EQ(Allocated(state, "root", "memory"), 0);
}

}  // namespace
}  // namespace hopwise::cluster
