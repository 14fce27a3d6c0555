#include "cluster/gangs.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state.h"
#include "cluster/test_objects.h"

namespace hopwise::cluster {
namespace {

using testing::Dump;
using testing::GangOf;
using testing::GroupSpec;
using testing::Names;
using testing::NodeSpec;
using testing::PodOf;
using testing::PodSpec;
using testing::PriorityClassSpec;
using testing::QueueSpec;
using Mode = TopologyRule::Mode;
using Texts = std::vector<std::string>;

constexpr char kConstraint[] = "alibabacloud.com/topology-aware-constraint";
constexpr char kOneAsw[] = R"({"required": {"topologies": [{"key": "asw"}]}})";

void AddPods(State& state, const std::string& group, int count) {
  for (int i = 0; i < count; ++i) {
    state.Apply(PodSpec(group + "-" + std::to_string(i)).Group(group));
  }
}

const Gang& LoneGangOf(const State& state, const std::string& pod) {
  return state.gang(PodOf(state, pod).gang);
}

TEST(Gangs, EveryOrderOfEventsGivesTheSameState) {
  const std::vector<api::Object> objects = {
      NodeSpec("n").Label("asw", "x"),
      PodSpec("g-0").Group("g").Label("part", "0").On("n"),
      PodSpec("g-1").Group("g").Label("part", "1"),
      GroupSpec("g", 2).In("q").Hard(1).Policy("p", {"part"}, 1, 2),
      QueueSpec("q").Capability("nvidia.com/gpu", 3),
      PriorityClassSpec("high", 5, true)};
  std::vector<size_t> order(objects.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::string expected;
  do {
    State state;
    for (const size_t i : order) state.Apply(objects[i]);
    ASSERT_EQ(state.Audit(), "");
    const std::string dump = Dump(state);
    if (expected.empty()) expected = dump;
    ASSERT_EQ(dump, expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Gangs, PodsBeforeTheirPodGroupWaitForItByName) {
  State state;
  AddPods(state, "g", 2);
  EXPECT_EQ(GangOf(state, "g").invalid, "PodGroup ml/g not found");
  EXPECT_EQ(GangOf(state, "g").invalid_reason, "PodGroupNotFound");
  state.Apply(GroupSpec("g", 2));
  EXPECT_EQ(GangOf(state, "g").invalid, "");
  EXPECT_EQ(GangOf(state, "g").min_member, 2);
  EXPECT_EQ(Names(state, GangOf(state, "g").pods), (Texts{"g-0", "g-1"}));
}

TEST(Gangs, GroupOfAnotherNamespaceIsNotFound) {
  State state;
  GroupSpec group("g", 1);
  group.meta.ns = "other";
  state.Apply(group);
  AddPods(state, "g", 1);
  EXPECT_EQ(GangOf(state, "g").invalid, "PodGroup ml/g not found");
  EXPECT_TRUE(state.gang(state.FindGang("other", "g")).pods.empty());
}

TEST(Gangs, GroupOfTheOtherApiDoesNotServe) {
  State state;
  state.Apply(GroupSpec("g", 1).Plugins());
  AddPods(state, "g", 1);
  EXPECT_EQ(GangOf(state, "g").invalid, "PodGroup ml/g not found");
  state.Apply(PodSpec("x").Label("scheduling.x-k8s.io/pod-group", "g"));
  const Gang& plugins = LoneGangOf(state, "x");
  EXPECT_EQ(plugins.invalid, "");
  EXPECT_TRUE(plugins.scheduler_plugins);
}

TEST(Gangs, DeletingTheGroupUnderRunningPodsKeepsThemTogether) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(GroupSpec("g", 1));
  state.Apply(PodSpec("g-0").Group("g").On("n"));
  state.RemovePodGroup("ml", "g", true);  // the other API's
  EXPECT_EQ(GangOf(state, "g").invalid, "");
  state.RemovePodGroup("ml", "g", false);
  EXPECT_EQ(GangOf(state, "g").invalid, "PodGroup ml/g not found");
  EXPECT_TRUE(GangOf(state, "g").ran);
  state.RemovePod("ml", "g-0");
  EXPECT_FALSE(state.FindGang("ml", "g").valid());
  EXPECT_EQ(state.Audit(), "");
}

TEST(Gangs, TwoHundredRoundsOfMakingAndDeletingUseNoMoreSlots) {
  State state;
  for (int round = 0; round < 200; ++round) {
    state.Apply(NodeSpec("n" + std::to_string(round)));
    AddPods(state, "g" + std::to_string(round), 3);
    state.Apply(GroupSpec("g" + std::to_string(round), 3));
    state.Apply(PodSpec("lone"));
    for (int i = 0; i < 3; ++i) {
      state.RemovePod("ml", "g" + std::to_string(round) + "-" + std::to_string(i));
    }
    state.RemovePod("ml", "lone");
    state.RemovePodGroup("ml", "g" + std::to_string(round), false);
    state.RemoveNode("n" + std::to_string(round));
  }
  EXPECT_EQ(state.pod_slots(), 4U);
  EXPECT_EQ(state.gang_slots(), 2U);
  EXPECT_EQ(state.node_slots(), 1U);
}

TEST(Gangs, LonePodIsAGangOfOne) {
  State state;
  state.Apply(PodSpec("p").Created(7));
  const Gang& gang = LoneGangOf(state, "p");
  EXPECT_EQ(gang.source, GangSource::kLonePod);
  EXPECT_EQ(gang.name, "p");
  EXPECT_EQ(gang.uid, "uid-p");
  EXPECT_EQ(gang.creation.ns, 7);
  EXPECT_EQ(gang.min_member, 1);
  EXPECT_EQ(gang.invalid, "");
  EXPECT_FALSE(state.FindGang("ml", "p").valid());
}

TEST(Gangs, LonePodThatDeclaresATopologyWaitsUntilItsGroupIsNamed) {
  State state;
  PodSpec pod("p");
  pod.Annotation("volcano.sh/network-topology-mode", "hard");
  state.Apply(pod);
  EXPECT_EQ(LoneGangOf(state, "p").invalid,
            "waits for its PodGroup, which a controller makes: the pod declares "
            "volcano.sh/network-topology-mode");
  state.Apply(GroupSpec("podgroup-1", 1).Hard(1));
  state.Apply(pod.Group("podgroup-1"));
  EXPECT_EQ(LoneGangOf(state, "p").name, "podgroup-1");
  EXPECT_EQ(LoneGangOf(state, "p").invalid, "");
  EXPECT_EQ(state.gang_slots(), 2U);
  EXPECT_FALSE(state.gang(GangId(0U)).alive);
}

TEST(Gangs, PodsOfOtherSchedulersJoinOnlyOnceTheyAreBound) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(GroupSpec("g", 2));
  PodSpec foreign("f");
  foreign.Group("g").Scheduler("default-scheduler");
  state.Apply(foreign);
  EXPECT_EQ(PodOf(state, "f").state, PodState::kForeign);
  EXPECT_FALSE(PodOf(state, "f").gang.valid());
  EXPECT_EQ(GangOf(state, "g").invalid, "has 0 of 2 members");
  state.Apply(foreign.On("n"));
  EXPECT_EQ(Names(state, GangOf(state, "g").pods), (Texts{"f"}));
  EXPECT_EQ(GangOf(state, "g").invalid, "has 1 of 2 members");
}

TEST(Gangs, BoundForeignPodWithoutAGroupIsNoGang) {
  State state;
  state.Apply(PodSpec("p").Scheduler("default-scheduler").On("n"));
  EXPECT_EQ(PodOf(state, "p").state, PodState::kBound);
  EXPECT_FALSE(PodOf(state, "p").gang.valid());
}

TEST(Gangs, TerminatingPendingPodIsNobodys) {
  State state;
  state.Apply(GroupSpec("g", 2));
  AddPods(state, "g", 2);
  state.Apply(PodSpec("g-1").Group("g").Deleted());
  EXPECT_EQ(PodOf(state, "g-1").state, PodState::kForeign);
  EXPECT_EQ(Names(state, GangOf(state, "g").pods), (Texts{"g-0"}));
  EXPECT_EQ(GangOf(state, "g").invalid, "has 1 of 2 members");
}

TEST(Gangs, TerminatingBoundPodStaysAnAnchorButCountsForNothing) {
  State state;
  state.Apply(NodeSpec("n"));
  state.Apply(GroupSpec("g", 2));
  AddPods(state, "g", 1);
  state.Apply(PodSpec("g-1").Group("g").On("n").Deleted());
  EXPECT_EQ(GangOf(state, "g").pods.size(), 2U);
  EXPECT_EQ(GangOf(state, "g").invalid, "has 1 of 2 members");
  EXPECT_EQ(GangOf(state, "g").invalid_reason, "NotEnoughTasks");
  EXPECT_EQ(testing::Used(state, "n", "nvidia.com/gpu"), 1);
}

TEST(Gangs, SucceededMembersCountAndFailedOnesDoNot) {
  State state;
  state.Apply(GroupSpec("g", 2));
  state.Apply(PodSpec("g-0").Group("g").On("n").Phase(api::PodPhase::kSucceeded));
  state.Apply(PodSpec("g-1").Group("g").On("n").Phase(api::PodPhase::kFailed));
  EXPECT_EQ(GangOf(state, "g").invalid, "has 1 of 2 members");
  state.Apply(PodSpec("g-2").Group("g"));
  EXPECT_EQ(GangOf(state, "g").invalid, "");
}

TEST(Gangs, GatedPodIsAMemberThatIsNotPlacedYet) {
  State state;
  state.Apply(GroupSpec("g", 1));
  PodSpec pod("g-0");
  pod.Group("g").scheduling_gates = {"quota"};
  state.Apply(pod);
  EXPECT_EQ(PodOf(state, "g-0").state, PodState::kGated);
  EXPECT_EQ(PodOf(state, "g-0").blocker, "");
  EXPECT_EQ(GangOf(state, "g").invalid, "");
  state.TakeChanges();
  pod.scheduling_gates.clear();
  state.Apply(pod);
  EXPECT_EQ(PodOf(state, "g-0").state, PodState::kPending);
  EXPECT_EQ(state.TakeChanges().gangs, (std::vector<GangId>{state.FindGang("ml", "g")}));
}

TEST(Gangs, ZeroIsALegalMinimum) {
  State state;
  state.Apply(GroupSpec("g", 0));
  EXPECT_EQ(GangOf(state, "g").invalid, "");
  EXPECT_FALSE(GangOf(state, "g").ran);
  GroupSpec negative("h", -3);
  state.Apply(negative);
  EXPECT_EQ(GangOf(state, "h").min_member, 0);
}

TEST(Gangs, MembersAreSortedByCreationIndexAndName) {
  State state;
  state.Apply(GroupSpec("g", 1));
  for (const char* name : {"g-10", "g-9", "g-b", "g-a"}) state.Apply(PodSpec(name).Group("g"));
  state.Apply(PodSpec("g-11").Group("g").Created(1));
  EXPECT_EQ(Names(state, GangOf(state, "g").pods), (Texts{"g-11", "g-a", "g-b", "g-9", "g-10"}));
}

TEST(Gangs, CreationIsThePodGroupsElseTheOldestMembers) {
  State state;
  AddPods(state, "g", 1);
  state.Apply(PodSpec("g-1").Group("g").Created(30));
  EXPECT_EQ(GangOf(state, "g").creation.ns, 30);
  state.Apply(GroupSpec("g", 1));
  EXPECT_EQ(GangOf(state, "g").creation.ns, 500);
}

TEST(Gangs, FirstAppearanceIsNumbered) {
  State state;
  AddPods(state, "b", 1);
  AddPods(state, "a", 1);
  EXPECT_LT(GangOf(state, "b").sequence, GangOf(state, "a").sequence);
  EXPECT_LT(PodOf(state, "b-0").sequence, PodOf(state, "a-0").sequence);
}

// --- label groups

TEST(LabelGroups, MinimumIsTheLargestThatAPodNames) {
  State state;
  state.Apply(PodSpec("l-0").LabelGroup("l", "2"));
  state.Apply(PodSpec("l-1").LabelGroup("l", "3"));
  EXPECT_EQ(GangOf(state, "l").source, GangSource::kLabels);
  EXPECT_EQ(GangOf(state, "l").min_member, 3);
  EXPECT_EQ(GangOf(state, "l").invalid, "has 2 of 3 members");
  state.RemovePod("ml", "l-1");
  EXPECT_EQ(GangOf(state, "l").min_member, 2);
}

TEST(LabelGroups, TopologyAnnotationsHoldForTheWholeGroup) {
  State state;
  state.Apply(PodSpec("l-0").LabelGroup("l", "2"));
  state.Apply(PodSpec("l-1")
                  .LabelGroup("l", "2")
                  .Annotation("volcano.sh/network-topology-highest-tier", "1")
                  .Annotation("hopwise.dev/fabric", "nvlink"));
  EXPECT_EQ(GangOf(state, "l").rule.mode, Mode::kHard);
  EXPECT_EQ(GangOf(state, "l").rule.highest_tier, 1);
  EXPECT_EQ(GangOf(state, "l").rule.fabric, "nvlink");
}

TEST(LabelGroups, PodsThatAskForDifferentTopologiesWaitInsteadOfLosingOne) {
  State state;
  for (const char* tier : {"1", "2"}) {
    state.Apply(PodSpec(std::string("l-") + tier)
                    .LabelGroup("l", "2")
                    .Annotation("volcano.sh/network-topology-highest-tier", tier));
  }
  EXPECT_EQ(GangOf(state, "l").invalid, "its pods ask for different topologies");
  EXPECT_EQ(GangOf(state, "l").invalid_reason, "InvalidTopology");
}

TEST(LabelGroups, AConflictShowsTheStricterRuleWhoeverCameFirst) {
  for (const bool hard_first : {true, false}) {
    State state;
    for (const char* mode : {hard_first ? "hard" : "soft", hard_first ? "soft" : "hard"}) {
      state.Apply(PodSpec(std::string("l-") + mode)
                      .LabelGroup("l", "2")
                      .Annotation("volcano.sh/network-topology-mode", mode));
    }
    EXPECT_EQ(GangOf(state, "l").rule.mode, Mode::kHard);
    EXPECT_EQ(GangOf(state, "l").invalid_reason, "InvalidTopology");
  }
}

TEST(LabelGroups, WarningsOfPodsAreTheGroups) {
  State state;
  state.Apply(PodSpec("l-0").Label("pod-group.scheduling.sigs.k8s.io/name", "l"));
  EXPECT_EQ(GangOf(state, "l").warnings,
            (Texts{"pods without pod-group.scheduling.sigs.k8s.io/min-available: 1 counts as "
                   "their minimum"}));
}

// --- groups of a LeaderWorkerSet

PodSpec LwsPod(const std::string& name) {
  PodSpec pod(name);
  pod.Label("leaderworkerset.sigs.k8s.io/name", "chat")
      .Label("leaderworkerset.sigs.k8s.io/group-index", "0")
      .Label("leaderworkerset.sigs.k8s.io/template-revision-hash", "dd66");
  return pod.Group("chat-0-dd66");
}

TEST(LeaderWorkerSets, TheTemplatesTopologyIsTheRuleOfAGroupThatHasNone) {
  State state;
  state.Apply(GroupSpec("chat-0-dd66", 2));
  state.Apply(LwsPod("chat-0"));
  EXPECT_EQ(GangOf(state, "chat-0-dd66").rule.mode, Mode::kNone);
  state.Apply(LwsPod("chat-0-1").Annotation("volcano.sh/network-topology-highest-tier", "1"));
  const Gang& gang = GangOf(state, "chat-0-dd66");
  EXPECT_EQ(gang.rule.mode, Mode::kHard);
  EXPECT_EQ(gang.rule.highest_tier, 1);
  EXPECT_EQ(gang.invalid, "");
}

TEST(LeaderWorkerSets, ARuleWrittenIntoTheGroupCountsBeforeTheTemplates) {
  State state;
  state.Apply(GroupSpec("chat-0-dd66", 1).Soft());
  state.Apply(LwsPod("chat-0").Annotation("volcano.sh/network-topology-highest-tier", "1"));
  EXPECT_EQ(GangOf(state, "chat-0-dd66").rule.mode, Mode::kSoft);
}

// --- topology rules

TEST(TopologyRules, NameAndNumberAreTwoSpellingsOfOneHardRule) {
  State state;
  GroupSpec group("g", 1);
  group.topology = api::NetworkTopology{api::TopologyMode::kHard, std::nullopt, "leaf"};
  state.Apply(group);
  EXPECT_EQ(GangOf(state, "g").rule.mode, Mode::kHard);
  EXPECT_EQ(GangOf(state, "g").rule.highest_tier_name, "leaf");
  group.topology->highest_tier = 2;
  state.Apply(group);
  EXPECT_EQ(GangOf(state, "g").rule.highest_tier, 2);
  EXPECT_EQ(GangOf(state, "g").rule.highest_tier_name, "");
  EXPECT_EQ(GangOf(state, "g").warnings.size(), 1U);
}

TEST(TopologyRules, FabricAnnotationHoldsForGroupAndSubGroups) {
  State state;
  GroupSpec group("g", 1);
  group.Hard(1).Policy("p", {"part"}, 1, 0);
  group.sub_groups[0].topology = api::NetworkTopology{};
  group.meta.annotations = {{"hopwise.dev/fabric", "nvlink"}};
  state.Apply(group);
  EXPECT_EQ(GangOf(state, "g").rule.fabric, "nvlink");
  EXPECT_EQ(GangOf(state, "g").policies[0].rule.fabric, "nvlink");
  EXPECT_EQ(GangOf(state, "g").policies[0].rule.mode, Mode::kHard);
}

TEST(TopologyRules, NodeLabelConstraintOfPodsHoldsForAnyGang) {
  State state;
  state.Apply(GroupSpec("g", 1));
  state.Apply(PodSpec("g-0").Group("g").Annotation(kConstraint, kOneAsw));
  state.Apply(PodSpec("p").Annotation(kConstraint, kOneAsw));
  for (const Gang* gang : {&GangOf(state, "g"), &LoneGangOf(state, "p")}) {
    EXPECT_EQ(gang->rule.mode, Mode::kHard);
    EXPECT_EQ(gang->rule.label_keys, (Texts{"asw"}));
    EXPECT_EQ(gang->invalid, "");
  }
}

TEST(TopologyRules, TwoHardRulesOfDifferentKindsAreNotQuietlyReducedToOne) {
  State state;
  state.Apply(GroupSpec("g", 1).Hard(1));
  state.Apply(PodSpec("g-0").Group("g").Annotation(kConstraint, kOneAsw));
  EXPECT_EQ(GangOf(state, "g").invalid_reason, "InvalidTopology");
}

TEST(TopologyRules, HardRuleOnLabelsBeatsASoftOneOnHyperNodes) {
  State state;
  state.Apply(GroupSpec("g", 1).Soft());
  state.Apply(PodSpec("g-0").Group("g").Annotation(kConstraint, kOneAsw));
  EXPECT_EQ(GangOf(state, "g").rule.label_keys, (Texts{"asw"}));
  EXPECT_EQ(GangOf(state, "g").rule.mode, Mode::kHard);
  EXPECT_EQ(GangOf(state, "g").warnings.size(), 1U);
}

TEST(TopologyRules, NodeSelectorsOfAConstraintBecomePredicatesOfThePod) {
  State state;
  state.Apply(PodSpec("p").Annotation(
      kConstraint, R"({"required": {"nodeSelectors": [{"matchLabels": {"a": "b"}}]}})"));
  const ShapeId shape = state.ShapeOf(state.FindPod("ml", "p"));
  ASSERT_EQ(state.fits().ShapePredicates(shape).extra.size(), 1U);
  EXPECT_EQ(state.fits().ShapePredicates(shape).extra[0][0].key, "a");
}

// --- sub-groups and roles

TEST(SubGroups, FormByTheFirstPolicyWhoseKeysAreAllThere) {
  State state;
  GroupSpec group("g", 1);
  group.Policy("never", {}, 1, 0).Policy("both", {"a", "b"}, 1, 0).Policy("one", {"a"}, 1, 0);
  state.Apply(group);
  state.Apply(PodSpec("p-0").Group("g").Label("a", "1").Label("b", "x"));
  state.Apply(PodSpec("p-1").Group("g").Label("a", "1"));
  state.Apply(PodSpec("p-2").Group("g").Label("a", "1").Label("b", ""));
  state.Apply(PodSpec("p-3").Group("g").Label("b", "x"));
  const Gang& gang = GangOf(state, "g");
  ASSERT_EQ(gang.sub_groups.size(), 2U);
  EXPECT_EQ(gang.sub_groups[0].name, "both-1-x");
  EXPECT_EQ(gang.sub_groups[1].name, "one-1");
  EXPECT_EQ(Names(state, gang.sub_groups[1].pods), (Texts{"p-1", "p-2"}));
  EXPECT_EQ(PodOf(state, "p-3").sub_group, PodRecord::kNoSubGroup);
}

TEST(SubGroups, SelectorDecidesBeforeTheKeys) {
  State state;
  GroupSpec group("g", 1);
  group.Policy("workers", {"part"}, 1, 0);
  group.sub_groups[0].selector = api::LabelSelector{{{"role", api::Operator::kIn, {"worker"}}}};
  state.Apply(group);
  state.Apply(PodSpec("p-0").Group("g").Label("part", "0").Label("role", "ps"));
  state.Apply(PodSpec("p-1").Group("g").Label("part", "0").Label("role", "worker"));
  EXPECT_EQ(Names(state, GangOf(state, "g").sub_groups.at(0).pods), (Texts{"p-1"}));
}

TEST(SubGroups, AreSortedByNumberNotByText) {
  State state;
  state.Apply(GroupSpec("g", 1).Policy("p", {"part"}, 1, 0));
  for (const char* part : {"10", "9", "-1", "+2", "x"}) {
    state.Apply(PodSpec(std::string("p") + part).Group("g").Label("part", part));
  }
  Texts names;
  for (const SubGroup& group : GangOf(state, "g").sub_groups) names.push_back(group.name);
  EXPECT_EQ(names, (Texts{"p--1", "p-x", "p-+2", "p-9", "p-10"}));
  EXPECT_EQ(state.Audit(), "");
}

TEST(SubGroups, FollowLabelsPoliciesAndTheGroupsEnd) {
  State state;
  state.Apply(GroupSpec("g", 1).Policy("p", {"part"}, 1, 0));
  state.Apply(PodSpec("g-0").Group("g").Label("part", "0"));
  state.Apply(PodSpec("g-1").Group("g").Label("part", "1"));
  state.Apply(PodSpec("g-0").Group("g").Label("part", "1"));
  ASSERT_EQ(GangOf(state, "g").sub_groups.size(), 1U);
  EXPECT_EQ(GangOf(state, "g").sub_groups[0].pods.size(), 2U);
  state.Apply(GroupSpec("g", 1).Policy("q", {"part"}, 1, 0));
  EXPECT_EQ(GangOf(state, "g").sub_groups[0].name, "q-1");
  state.RemovePodGroup("ml", "g", false);
  EXPECT_TRUE(GangOf(state, "g").sub_groups.empty());
  EXPECT_EQ(PodOf(state, "g-0").sub_group, PodRecord::kNoSubGroup);
}

TEST(SubGroups, PolicyWithoutATopologyIsNoRuleButStillAGang) {
  State state;
  state.Apply(GroupSpec("g", 1).Policy("p", {"part"}, 2, 1));
  EXPECT_EQ(GangOf(state, "g").policies[0].rule.mode, Mode::kNone);
  state.Apply(PodSpec("g-0").Group("g").Label("part", "0"));
  EXPECT_EQ(GangOf(state, "g").invalid, "sub-group policy p has 0 of 1 groups of 2 members");
  EXPECT_EQ(GangOf(state, "g").invalid_reason, "NotEnoughPodsOfTask");
  state.Apply(PodSpec("g-1").Group("g").Label("part", "0"));
  EXPECT_EQ(GangOf(state, "g").invalid, "");
}

TEST(SubGroups, PolicyWithoutKeysIsAWarning) {
  State state;
  state.Apply(GroupSpec("g", 1).Policy("p", {}, 1, 0));
  EXPECT_EQ(GangOf(state, "g").warnings,
            (Texts{"spec.subGroupPolicy p: without matchLabelKeys it forms no sub-group"}));
}

TEST(Roles, MinimumOfEachRoleMustBeThere) {
  State state;
  GroupSpec group("g", 3);
  group.min_task_member = {{"db", 2}, {"web", 1}};
  state.Apply(group);
  for (int i = 0; i < 3; ++i) {
    state.Apply(PodSpec("web-" + std::to_string(i)).Group("g").Role("web"));
  }
  state.Apply(PodSpec("db-0").Group("g").Label("volcano.sh/task-spec", "db"));
  EXPECT_TRUE(GangOf(state, "g").roles_enforced);
  EXPECT_EQ(GangOf(state, "g").invalid, "task db has 1 of 2 members");
  EXPECT_EQ(GangOf(state, "g").invalid_reason, "NotEnoughPodsOfTask");
  state.Apply(PodSpec("db-1").Group("g").Role("db"));
  EXPECT_EQ(GangOf(state, "g").invalid, "");
}

TEST(Roles, AreNotEnforcedWhenTheGangMinimumIsBelowTheirSum) {
  State state;
  GroupSpec group("g", 1);
  group.min_task_member = {{"db", 2}, {"web", 1}};
  state.Apply(group);
  state.Apply(PodSpec("web-0").Group("g").Role("web"));
  EXPECT_FALSE(GangOf(state, "g").roles_enforced);
  EXPECT_EQ(GangOf(state, "g").min_per_role.size(), 2U);
  EXPECT_EQ(GangOf(state, "g").invalid, "");
}

// --- priorities and history

TEST(Priorities, OfPodsComeFromSpecElseClassElseDefaultElseZero) {
  State state;
  PodSpec with_class("c");
  with_class.priority_class = "high";
  PodSpec with_both("b");
  with_both.priority_class = "high";
  with_both.priority = 3;
  PodSpec system("s");
  system.priority_class = "system-node-critical";
  for (const PodSpec& pod : {with_class, with_both, system, PodSpec("d")}) state.Apply(pod);
  EXPECT_EQ(PodOf(state, "c").priority, 0);
  EXPECT_EQ(PodOf(state, "s").priority, 2'000'001'000);
  state.Apply(PriorityClassSpec("high", 10));
  state.Apply(PriorityClassSpec("standard", 5, true));
  EXPECT_EQ(PodOf(state, "c").priority, 10);
  EXPECT_EQ(PodOf(state, "b").priority, 3);
  EXPECT_EQ(PodOf(state, "d").priority, 5);
  EXPECT_EQ(LoneGangOf(state, "d").priority, 5);
  state.RemovePriorityClass("standard");
  state.RemovePriorityClass("high");
  EXPECT_EQ(PodOf(state, "c").priority, 0);
  EXPECT_EQ(PodOf(state, "d").priority, 0);
}

TEST(Priorities, SystemClassIsBackWhenItsObjectGoes) {
  State state;
  state.Apply(PriorityClassSpec("system-cluster-critical", 1));
  state.RemovePriorityClass("system-cluster-critical");
  PodSpec pod("p");
  pod.priority_class = "system-cluster-critical";
  state.Apply(pod);
  EXPECT_EQ(PodOf(state, "p").priority, 2'000'000'000);
}

TEST(Priorities, OfGangsComeFromTheGroupsClassElseFromTheHighestPod) {
  State state;
  GroupSpec group("g", 1);
  group.priority_class = "late";
  state.Apply(group);
  for (int i = 0; i < 3; ++i) {
    PodSpec pod("g-" + std::to_string(i));
    pod.Group("g").priority = i;
    state.Apply(pod);
  }
  EXPECT_EQ(GangOf(state, "g").priority, 2);
  state.TakeChanges();
  state.Apply(PriorityClassSpec("late", 9));
  EXPECT_EQ(GangOf(state, "g").priority, 9);
  EXPECT_EQ(state.TakeChanges().gangs.size(), 1U);
  state.RemovePriorityClass("late");
  EXPECT_EQ(GangOf(state, "g").priority, 2);
}

TEST(Ran, IsSaidByThePhaseOrByABoundMinimumAndIsKept) {
  State state;
  state.Apply(NodeSpec("n"));
  for (const char* phase : {"Running", "Unknown", "Completed"}) {
    GroupSpec group(phase, 4);
    group.phase = phase;
    state.Apply(group);
    EXPECT_TRUE(GangOf(state, phase).ran);
  }
  GroupSpec inqueue("g", 2);
  inqueue.phase = "Inqueue";
  state.Apply(inqueue);
  AddPods(state, "g", 2);
  state.Assume(state.FindPod("ml", "g-0"), state.FindNode("n"));
  state.Assume(state.FindPod("ml", "g-1"), state.FindNode("n"));
  EXPECT_FALSE(GangOf(state, "g").ran) << "assumed is not bound";
  state.Apply(PodSpec("g-0").Group("g").On("n"));
  EXPECT_FALSE(GangOf(state, "g").ran);
  state.Apply(PodSpec("g-1").Group("g").On("n"));
  EXPECT_TRUE(GangOf(state, "g").ran);
  state.RemovePod("ml", "g-1");
  EXPECT_TRUE(GangOf(state, "g").ran);
}

TEST(Ran, IsForgottenWhenTheGroupIsMadeAnew) {
  State state;
  GroupSpec group("g", 2);
  group.phase = "Running";
  state.Apply(group);
  group.phase = "Pending";
  state.Apply(group);
  EXPECT_TRUE(GangOf(state, "g").ran);
  group.meta.uid = "another";
  state.Apply(group);
  EXPECT_FALSE(GangOf(state, "g").ran);
}

TEST(GangChanges, StatusWritesOfOurOwnAreNoNews) {
  State state;
  GroupSpec group("g", 1);
  state.Apply(group);
  state.TakeChanges();
  group.conditions = {{"Unschedulable", "True", "NotEnoughResources", "", "", {}}};
  group.meta.resource_version = "7";
  state.Apply(group);
  EXPECT_TRUE(state.TakeChanges().gangs.empty());
  state.Apply(group.In("q"));
  EXPECT_EQ(state.TakeChanges().gangs.size(), 1U);
}

}  // namespace
}  // namespace hopwise::cluster
