#include "cluster/state.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/test_objects.h"

namespace hopwise::cluster {
namespace {

using testing::Allocated;
using testing::Dump;
using testing::GangOf;
using testing::GroupSpec;
using testing::Names;
using testing::NodeSpec;
using testing::PodOf;
using testing::PodSpec;
using testing::Used;
using Texts = std::vector<std::string>;

constexpr char kGpu[] = "nvidia.com/gpu";

PodId IdOf(const State& state, const std::string& pod) { return state.FindPod("ml", pod); }

api::HyperNode Leaf(const std::string& name, const std::vector<std::string>& nodes) {
  api::HyperNode hypernode;
  hypernode.meta.name = name;
  hypernode.tier = 1;
  for (const std::string& node : nodes) {
    hypernode.members.push_back({api::MemberType::kNode, node, {}, {}});
  }
  return hypernode;
}

// --- nodes

TEST(Nodes, WithoutAllocatableTakeNothingWhateverTheirCapacity) {
  State state;
  NodeSpec node("n");
  node.capacity = node.allocatable;
  node.allocatable.clear();
  state.Apply(node);
  state.Apply(PodSpec("p"));
  EXPECT_EQ(state.fits().Judge(state.FindNode("n"), state.ShapeOf(IdOf(state, "p"))),
            NodeVerdict::kResources);
}

TEST(Nodes, EqualReplacementIsNoChange) {
  State state;
  state.Apply(NodeSpec("n").Label("a", "b").Taint("t", "NoSchedule"));
  state.TakeChanges();
  const uint64_t room = state.columns().room_journal().end();
  NodeSpec again("n");
  again.Label("a", "b").Taint("t", "NoSchedule").meta.resource_version = "8";
  state.Apply(again);
  EXPECT_EQ(state.columns().room_journal().end(), room);
  const Changes changes = state.TakeChanges();
  EXPECT_TRUE(changes.roomier.empty());
  EXPECT_FALSE(changes.topology);
}

TEST(Nodes, MoreRoomIsNewsAndLessIsNot) {
  State state;
  state.Apply(NodeSpec("n"));
  EXPECT_EQ(state.TakeChanges().roomier, (std::vector<NodeId>{state.FindNode("n")}));
  state.Apply(NodeSpec("n").Allocatable(kGpu, 4));
  EXPECT_TRUE(state.TakeChanges().roomier.empty());
  state.Apply(NodeSpec("n").Allocatable(kGpu, 6));
  EXPECT_EQ(state.TakeChanges().roomier.size(), 1U);
  state.Apply(NodeSpec("n").Allocatable(kGpu, 6).Label("a", "b"));
  EXPECT_EQ(state.TakeChanges().roomier.size(), 1U);
  state.RemoveNode("n");
  EXPECT_TRUE(state.TakeChanges().roomier.empty());
}

TEST(Nodes, KeepTheTaintsThatForbidAndTheReadiness) {
  State state;
  NodeSpec node("n");
  node.Taint("a", "NoSchedule").Taint("b", "PreferNoSchedule").Taint("c", "NoExecute");
  node.conditions = {{"Ready", "False", "", "", "", {}}};
  node.unschedulable = true;
  state.Apply(node);
  const NodeRecord& record = state.node(state.FindNode("n"));
  ASSERT_EQ(record.taints.size(), 2U);
  EXPECT_EQ(record.taints[1].key, "c");
  EXPECT_FALSE(record.ready);
  EXPECT_TRUE(record.unschedulable);
}

TEST(Nodes, FollowTheirObjectBothWays) {
  State state;
  NodeSpec node("n");
  node.conditions = {{"Ready", "Unknown", "", "", "", {}}};
  state.Apply(node);
  EXPECT_FALSE(state.node(state.FindNode("n")).ready);
  node.conditions[0].status = "True";
  state.Apply(node);
  EXPECT_TRUE(state.node(state.FindNode("n")).ready);
}

TEST(Nodes, PodsBoundToAnUnknownNodeCountOnceItAppears) {
  State state;
  state.Apply(PodSpec("p").On("n"));
  EXPECT_FALSE(state.FindNode("n").valid());
  EXPECT_FALSE(PodOf(state, "p").node.valid());
  EXPECT_EQ(PodOf(state, "p").state, PodState::kBound);
  state.Apply(NodeSpec("n"));
  EXPECT_EQ(PodOf(state, "p").node, state.FindNode("n"));
  EXPECT_EQ(Used(state, "n", kGpu), 1);
  EXPECT_EQ(Used(state, "n", "pods"), 1);
}

TEST(Nodes, PodsOfARemovedNodeCountAgainWhenItComesBack) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(NodeSpec("other"));
  state.Apply(PodSpec("p").On("n").HostPort(80));
  state.RemoveNode("n");
  EXPECT_FALSE(PodOf(state, "p").node.valid());
  EXPECT_EQ(state.Audit(), "");
  state.Apply(NodeSpec("third"));  // must not take the slot the pod waits on
  state.Apply(NodeSpec("n"));
  EXPECT_EQ(Used(state, "n", kGpu), 1);
  EXPECT_EQ(Used(state, "third", kGpu), 0);
  EXPECT_EQ(state.node(state.FindNode("n")).ports.size(), 1U);
}

TEST(Nodes, SlotsAreUsedAgainWithoutTheOldNodesTraces) {
  State state;
  state.Apply(NodeSpec("a").Label("rack", "r").Taint("t", "NoSchedule"));
  const NodeId slot = state.FindNode("a");
  state.RemoveNode("a");
  EXPECT_EQ(state.node(slot).name, "");
  NodeSpec node("b");
  node.allocatable = {{"pods", 1}};
  state.Apply(node);
  EXPECT_EQ(state.FindNode("b"), slot);
  EXPECT_TRUE(state.node(slot).labels.empty());
  EXPECT_TRUE(state.node(slot).taints.empty());
  EXPECT_EQ(state.columns().allocatable(state.columns().FindResource(kGpu))[slot.index()], 0);
  EXPECT_FALSE(state.FindNode("a").valid());
}

// --- pods

TEST(Pods, CountFromTheirCurrentSpecWhoeverBoundThem) {
  State state;
  state.Apply(NodeSpec("n"));
  PodSpec foreign("f");
  foreign.Scheduler("default-scheduler").On("n");
  state.Apply(foreign);
  EXPECT_EQ(Used(state, "n", "cpu"), 1'000);
  state.TakeChanges();
  state.Apply(foreign.Request("cpu", 3'000));  // resized in place
  EXPECT_EQ(Used(state, "n", "cpu"), 3'000);
  state.Apply(foreign.Request("cpu", 500));
  EXPECT_EQ(Used(state, "n", "cpu"), 500);
  EXPECT_EQ(state.TakeChanges().roomier, (std::vector<NodeId>{state.FindNode("n")}));
}

TEST(Pods, FinishedOnesHoldNothingAndWakeTheirNode) {
  State state;
  state.Apply(NodeSpec("n"));
  for (const api::PodPhase phase : {api::PodPhase::kSucceeded, api::PodPhase::kFailed}) {
    state.Apply(PodSpec("p").On("n"));
    state.TakeChanges();
    state.Apply(PodSpec("p").On("n").Phase(phase));
    EXPECT_EQ(Used(state, "n", "pods"), 0);
    EXPECT_EQ(Allocated(state, "root", "pods"), 0);
    EXPECT_EQ(state.TakeChanges().roomier.size(), 1U);
  }
}

TEST(Pods, TerminatingOnesCountUntilTheyAreGone) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(PodSpec("p").On("n"));
  state.Apply(PodSpec("p").On("n").Deleted());
  EXPECT_EQ(Used(state, "n", kGpu), 1);
  state.RemovePod("ml", "p");
  EXPECT_EQ(Used(state, "n", kGpu), 0);
}

TEST(Pods, StatusUpdatesTouchNothing) {
  State state;
  state.Apply(NodeSpec("n"));
  PodSpec pod("p");
  pod.On("n").Phase(api::PodPhase::kPending);
  state.Apply(pod);
  state.TakeChanges();
  const uint64_t room = state.columns().room_journal().end();
  state.Apply(pod.Phase(api::PodPhase::kRunning));
  EXPECT_TRUE(PodOf(state, "p").running);
  EXPECT_EQ(state.columns().room_journal().end(), room);
  const Changes changes = state.TakeChanges();
  EXPECT_TRUE(changes.roomier.empty());
  EXPECT_TRUE(changes.gangs.empty());
  EXPECT_TRUE(changes.queues.empty());
}

TEST(Pods, AnotherUidUnderTheSameNameIsANewPod) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(PodSpec("p").On("n"));
  state.Apply(PodSpec("p").Uid("reborn"));
  EXPECT_EQ(PodOf(state, "p").state, PodState::kPending);
  EXPECT_EQ(Used(state, "n", kGpu), 0);
}

TEST(Pods, RemovingOnePodFreesThatPodOnly) {
  State state;
  state.Apply(NodeSpec("n"));
  for (const char* name : {"p-0", "p-1", "p-2"}) state.Apply(PodSpec(name).Uid("").On("n"));
  state.RemovePod("ml", "p-1");
  state.RemovePod("ml", "p-1");
  state.RemovePod("other", "p-0");
  EXPECT_EQ(Used(state, "n", kGpu), 2);
  EXPECT_EQ(Allocated(state, "default", kGpu), 2);
}

TEST(Pods, HostPortsAreTakenAndGivenBack) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(PodSpec("a").HostPort(80).Scheduler("default-scheduler").On("n"));
  state.Apply(PodSpec("b").HostPort(80));
  const NodeId node = state.FindNode("n");
  const ShapeId shape = state.ShapeOf(IdOf(state, "b"));
  EXPECT_EQ(state.fits().Judge(node, shape), NodeVerdict::kPort);
  const uint64_t traits = state.columns().traits_journal().end();
  state.RemovePod("ml", "a");
  EXPECT_GT(state.columns().traits_journal().end(), traits);
  EXPECT_EQ(state.fits().Judge(node, shape), NodeVerdict::kFits);
}

TEST(Pods, ZeroRequestsTakeOneSlot) {
  State state;
  state.Apply(NodeSpec("n"));
  PodSpec pod("p");
  pod.request = {{"cpu", 0}};
  state.Apply(pod.On("n"));
  EXPECT_EQ(Used(state, "n", "pods"), 1);
  EXPECT_EQ(state.RequestOf(IdOf(state, "p")).size(), 1U);
}

TEST(Pods, EqualPodsShareAShape) {
  State state;
  PodSpec a("a"), b("b"), c("c");
  a.node_selector = b.node_selector = {{"gpu", "h100"}};
  a.tolerations = {{"x", "", "", true}, {"y", "", "", true}};
  b.tolerations = {{"y", "", "", true}, {"x", "", "", true}};
  for (const PodSpec& pod : {a, b, c}) state.Apply(pod);
  EXPECT_EQ(state.ShapeOf(IdOf(state, "a")), state.ShapeOf(IdOf(state, "b")));
  EXPECT_NE(state.ShapeOf(IdOf(state, "a")), state.ShapeOf(IdOf(state, "c")));
  state.Apply(a.Request("cpu", 5));
  EXPECT_NE(state.ShapeOf(IdOf(state, "a")), state.ShapeOf(IdOf(state, "b")));
}

TEST(Pods, SchedulerNamesDecideWhoseTheyAre) {
  State state({.scheduler_names = {"mine"}, .default_queue = "main"});
  state.Apply(PodSpec("a").Scheduler("mine"));
  state.Apply(PodSpec("b"));
  EXPECT_EQ(PodOf(state, "a").state, PodState::kPending);
  EXPECT_EQ(PodOf(state, "b").state, PodState::kForeign);
  EXPECT_EQ(state.gang(PodOf(state, "a").gang).queue, state.FindQueue("main"));
}

// --- decisions

class Decisions : public ::testing::Test {
 protected:
  Decisions() {
    state_.Apply(NodeSpec("n"));
    state_.Apply(NodeSpec("m"));
    state_.Apply(GroupSpec("g", 1));
    state_.Apply(PodSpec("p").Group("g"));
    state_.Assume(IdOf(state_, "p"), state_.FindNode("n"));
    state_.TakeChanges();
  }
  ~Decisions() override { EXPECT_EQ(state_.Audit(), ""); }

  State state_;
};

TEST_F(Decisions, AssumedPodHoldsItsRoomAndItsShare) {
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kAssumed);
  EXPECT_EQ(Used(state_, "n", kGpu), 1);
  EXPECT_EQ(Allocated(state_, "default", kGpu), 1);
  EXPECT_EQ(Names(state_, state_.PodsOn(state_.FindNode("n"))), (Texts{"p"}));
}

TEST_F(Decisions, ConfirmationIsNotCountedTwiceAndNoNews) {
  state_.Apply(PodSpec("p").Group("g").On("n"));
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kBound);
  EXPECT_EQ(Used(state_, "n", kGpu), 1);
  EXPECT_EQ(Allocated(state_, "default", kGpu), 1);
  const Changes changes = state_.TakeChanges();
  EXPECT_TRUE(changes.roomier.empty());
  EXPECT_TRUE(changes.gangs.empty());
  EXPECT_TRUE(changes.queues.empty());
}

TEST_F(Decisions, PodThatTurnsUpElsewhereMovesThere) {
  state_.Apply(PodSpec("p").Group("g").On("m"));
  EXPECT_EQ(Used(state_, "n", kGpu), 0);
  EXPECT_EQ(Used(state_, "m", kGpu), 1);
  EXPECT_EQ(state_.TakeChanges().roomier, (std::vector<NodeId>{state_.FindNode("n")}));
}

TEST_F(Decisions, ObjectThatDoesNotShowTheBindYetDoesNotUndoIt) {
  state_.Apply(PodSpec("p").Group("g").Label("new", "label"));
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kAssumed);
  EXPECT_EQ(Used(state_, "n", kGpu), 1);
}

TEST_F(Decisions, NewPodUnderTheNameDoesUndoIt) {
  state_.Apply(PodSpec("p").Group("g").Uid("reborn"));
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kPending);
  EXPECT_EQ(Used(state_, "n", kGpu), 0);
  EXPECT_EQ(Allocated(state_, "default", kGpu), 0);
}

TEST_F(Decisions, ForgottenPodIsPendingAgainAndItsRoomFree) {
  state_.Forget(IdOf(state_, "p"));
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kPending);
  EXPECT_EQ(Used(state_, "n", kGpu), 0);
  const Changes changes = state_.TakeChanges();
  EXPECT_EQ(changes.roomier, (std::vector<NodeId>{state_.FindNode("n")}));
  EXPECT_EQ(changes.gangs, (std::vector<GangId>{state_.FindGang("ml", "g")}));
  EXPECT_EQ(changes.queues.size(), 2U);
}

TEST_F(Decisions, PodDeletedWhileAssumedIsNobodysOnceForgotten) {
  state_.Apply(PodSpec("p").Group("g").Deleted());
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kAssumed);
  state_.Forget(IdOf(state_, "p"));
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kForeign);
  EXPECT_FALSE(PodOf(state_, "p").gang.valid());
}

TEST_F(Decisions, NodeThatGoesUnderAnAssumedPodLeavesItAssumed) {
  state_.RemoveNode("n");
  EXPECT_EQ(PodOf(state_, "p").state, PodState::kAssumed);
  EXPECT_FALSE(PodOf(state_, "p").node.valid());
  EXPECT_EQ(state_.TakeChanges().gangs.size(), 1U);
  state_.Forget(IdOf(state_, "p"));
  EXPECT_EQ(state_.node_slots(), 2U);
}

// --- trees

TEST(Trees, UseSurvivesTopologyObjectsMadeAnew) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(Leaf("leaf", {"n"}));
  state.Apply(PodSpec("p").On("n"));
  const std::string before = Dump(state);
  state.RemoveHyperNode("leaf");
  state.Apply(Leaf("leaf", {"n"}));
  EXPECT_EQ(Dump(state), before);
  EXPECT_EQ(Used(state, "n", kGpu), 1);
}

TEST(Trees, ChangeOnlyWithWhatTheyAreMadeOf) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(Leaf("leaf", {"n"}));
  EXPECT_TRUE(state.TakeChanges().topology);
  const uint64_t version = state.trees_version();
  state.Apply(PodSpec("p").On("n"));
  state.Apply(NodeSpec("n").Allocatable(kGpu, 3));
  EXPECT_EQ(state.trees_version(), version);
  EXPECT_FALSE(state.TakeChanges().topology);
  state.Apply(Leaf("other", {}));
  state.RemoveHyperNode("leaf");
  EXPECT_TRUE(state.TakeChanges().topology);
  EXPECT_NE(state.trees_version(), version);
}

TEST(Trees, OfLabelsAreMadeOnDemandAndFollowTheNodes) {
  State state;
  state.Apply(NodeSpec("n-0").Label("asw", "a"));
  state.Apply(NodeSpec("n-1").Label("asw", "b"));
  state.Apply(NodeSpec("n-2"));
  const size_t index = state.LabelTreeIndex({"asw"});
  EXPECT_EQ(state.LabelTreeIndex({"asw"}), index);
  ASSERT_LT(index, state.trees().size());
  EXPECT_EQ(state.trees()[index]->domains.size(), 3U);
  const uint64_t version = state.trees_version();
  state.Apply(NodeSpec("n-2").Label("asw", "a"));
  EXPECT_NE(state.trees_version(), version);
  EXPECT_EQ(state.trees()[index]->at(state.trees()[index]->leaf_of[2]).name, "a");
  EXPECT_EQ(state.LabelTreeIndex({"asw", "pod"}), index + 1);
}

}  // namespace
}  // namespace hopwise::cluster
