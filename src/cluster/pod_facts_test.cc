#include "cluster/pod_facts.h"

#include <string>

#include <gtest/gtest.h>

#include "cluster/test_objects.h"

namespace hopwise::cluster {
namespace {

using testing::PodSpec;
using Mode = TopologyRule::Mode;

constexpr char kConstraint[] = "alibabacloud.com/topology-aware-constraint";

TEST(PodFacts, PlainPodIsAloneAndAsksForNothing) {
  const PodFacts facts = ReadPodFacts(PodSpec("p"));
  EXPECT_EQ(facts.kind, GangKind::kLone);
  EXPECT_EQ(facts.declaration, Declaration{});
  EXPECT_EQ(facts.blocker, "");
}

TEST(PodFacts, VolcanosAnnotationGoesBeforeEveryOtherGroupAndSaysSo) {
  PodSpec pod("p");
  pod.Group("v").LabelGroup("l", "3").Label("scheduling.x-k8s.io/pod-group", "x");
  const PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.kind, GangKind::kVolcano);
  EXPECT_EQ(facts.group, "v");
  EXPECT_EQ(facts.declaration.warnings,
            (std::vector<std::string>{"pods name two groups: scheduling.k8s.io/group-name counts, "
                                      "pod-group.scheduling.sigs.k8s.io/name is ignored",
                                      "pods name two groups: scheduling.k8s.io/group-name counts, "
                                      "scheduling.x-k8s.io/pod-group is ignored"}));
}

TEST(PodFacts, LabelGroupGoesBeforeThePluginsGroup) {
  PodSpec pod("p");
  pod.LabelGroup("l", "3").Label("scheduling.x-k8s.io/pod-group", "x");
  const PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.kind, GangKind::kLabels);
  EXPECT_EQ(facts.group, "l");
  EXPECT_EQ(facts.declaration.min_member, 3);
  EXPECT_EQ(facts.declaration.warnings.size(), 1U);
}

TEST(PodFacts, LabelGroupMayAlsoStandInAnnotations) {
  PodSpec pod("p");
  pod.Annotation("pod-group.scheduling.sigs.k8s.io/name", "l");
  pod.Annotation("pod-group.scheduling.sigs.k8s.io/min-available", "4");
  const PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.kind, GangKind::kLabels);
  EXPECT_EQ(facts.declaration.min_member, 4);
}

TEST(PodFacts, LabelGroupWithoutAMinimumCountsAsOneWithAWarning) {
  const PodFacts facts =
      ReadPodFacts(PodSpec("p").Label("pod-group.scheduling.sigs.k8s.io/name", "l"));
  EXPECT_EQ(facts.declaration.min_member, 1);
  EXPECT_EQ(facts.declaration.warnings.size(), 1U);
  EXPECT_EQ(facts.blocker, "");
}

TEST(PodFacts, MalformedMinimumBlocksThePod) {
  for (const char* text : {"many", "-1", "3.5", "99999999999", "3 "}) {
    const PodFacts facts = ReadPodFacts(PodSpec("p").LabelGroup("l", text));
    EXPECT_EQ(facts.blocker, "pod-group.scheduling.sigs.k8s.io/min-available: \"" +
                                 std::string(text) + "\" is not a number of pods");
  }
}

TEST(PodFacts, EmptyGroupNameIsNone) {
  EXPECT_EQ(ReadPodFacts(PodSpec("p").Group("")).kind, GangKind::kLone);
}

TEST(PodFacts, TopologyAnnotationsOfALabelGroupAreItsRule) {
  PodSpec pod("p");
  pod.LabelGroup("l", "2").Annotation("volcano.sh/network-topology-mode", "soft");
  pod.Annotation("volcano.sh/network-topology-highest-tier", "2");
  const PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.declaration.rule.mode, Mode::kSoft);
  EXPECT_EQ(facts.declaration.rule.highest_tier, 2);
  EXPECT_EQ(facts.declaration.waits_for, "");
}

TEST(PodFacts, MissingOrUnknownModeIsHard) {
  PodSpec tier_only("p");
  tier_only.LabelGroup("l", "2").Annotation("volcano.sh/network-topology-highest-tier", "1");
  EXPECT_EQ(ReadPodFacts(tier_only).declaration.rule.mode, Mode::kHard);
  PodSpec unknown("p");
  unknown.LabelGroup("l", "2").Annotation("volcano.sh/network-topology-mode", "strict");
  const PodFacts facts = ReadPodFacts(unknown);
  EXPECT_EQ(facts.declaration.rule.mode, Mode::kHard);
  EXPECT_EQ(facts.declaration.warnings.size(), 1U);
}

TEST(PodFacts, MalformedTierBlocksThePodInsteadOfLiftingTheLimit) {
  PodSpec pod("p");
  pod.LabelGroup("l", "2").Annotation("volcano.sh/network-topology-highest-tier", "leaf");
  EXPECT_EQ(ReadPodFacts(pod).blocker,
            "volcano.sh/network-topology-highest-tier: \"leaf\" is not a tier number");
}

TEST(PodFacts, TopologyOfAPodInVolcanosGroupIsTheGroupsAffair) {
  PodSpec pod("p");
  pod.Group("v").Annotation("volcano.sh/network-topology-highest-tier", "leaf");
  const PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.declaration.rule, TopologyRule{});
  EXPECT_EQ(facts.blocker, "");
}

PodSpec LwsPod(const std::string& group) {
  PodSpec pod("chat-1-2");
  pod.Label("leaderworkerset.sigs.k8s.io/name", "chat")
      .Label("leaderworkerset.sigs.k8s.io/group-index", "1")
      .Label("leaderworkerset.sigs.k8s.io/template-revision-hash", "dd66")
      .Annotation("volcano.sh/network-topology-highest-tier", "1")
      .Annotation("hopwise.dev/fabric", "nvlink");
  return pod.Group(group);
}

TEST(PodFacts, TopologyOfALeaderWorkerSetsPodIsTheRuleOfTheGroupMadeForIt) {
  const PodFacts facts = ReadPodFacts(LwsPod("chat-1-dd66"));
  EXPECT_EQ(facts.kind, GangKind::kVolcano);
  EXPECT_EQ(facts.declaration.rule.mode, Mode::kHard);
  EXPECT_EQ(facts.declaration.rule.highest_tier, 1);
  EXPECT_EQ(facts.declaration.rule.fabric, "nvlink");
}

TEST(PodFacts, TopologyOfALeaderWorkerSetsPodIsNotReadWhereItNamesAnotherGroup) {
  for (const char* group : {"answer", "chat-1", "chat-1-dd6", "chat-2-dd66"}) {
    EXPECT_EQ(ReadPodFacts(LwsPod(group)).declaration.rule, TopologyRule{}) << group;
  }
}

TEST(PodFacts, LonePodThatDeclaresAGroupWaitsForIt) {
  EXPECT_EQ(ReadPodFacts(PodSpec("p").Annotation("volcano.sh/network-topology-mode", "hard"))
                .declaration.waits_for,
            "volcano.sh/network-topology-mode");
  EXPECT_EQ(ReadPodFacts(PodSpec("p").Annotation("scheduling.volcano.sh/group-min-member", "4"))
                .declaration.waits_for,
            "scheduling.volcano.sh/group-min-member");
}

TEST(PodFacts, UnevaluatedConstraintIsNamed) {
  PodSpec pod("p");
  pod.unevaluated = {{"spec.affinity.podAntiAffinity"}, {"spec.topologySpreadConstraints"}};
  EXPECT_EQ(ReadPodFacts(pod).blocker,
            "uses spec.affinity.podAntiAffinity, which this version does not evaluate yet");
}

TEST(PodIndex, ComesFromTheControllersMarksInTheirOrder) {
  PodSpec pod("web-7");
  EXPECT_EQ(ReadIndex(pod.meta), 7);
  pod.Annotation("batch.kubernetes.io/job-completion-index", "3");
  EXPECT_EQ(ReadIndex(pod.meta), 3);
  pod.Label("apps.kubernetes.io/pod-index", "4");
  EXPECT_EQ(ReadIndex(pod.meta), 4);
  pod.Label("leaderworkerset.sigs.k8s.io/worker-index", "5");
  EXPECT_EQ(ReadIndex(pod.meta), 5);
  pod.Annotation("volcano.sh/task-index", "6");
  EXPECT_EQ(ReadIndex(pod.meta), 6);
  pod.Annotation("volcano.sh/task-index", "six");
  EXPECT_EQ(ReadIndex(pod.meta), 5);
}

TEST(PodIndex, IsNoneForNamesWithoutANumberAndForGeneratedOnes) {
  EXPECT_EQ(ReadIndex(PodSpec("web").meta), -1);
  EXPECT_EQ(ReadIndex(PodSpec("web-99999999999999").meta), -1);
  PodSpec generated("web-5d8f7-x2v45");
  generated.meta.generate_name = "web-5d8f7-";
  EXPECT_EQ(ReadIndex(generated.meta), -1);
}

TEST(NodeConstraint, RequiredTopologyIsAHardRuleOnNodeLabels) {
  const auto constraint = ParseNodeConstraint(
      R"({"name": "one-asw", "required": {"topologies": [{"key": "asw-id"}, {"key": "pod"}],
          "nodeSelectors": [{"matchLabels": {"a": "b"},
                             "matchExpressions": [{"key": "c", "operator": "NotIn",
                                                   "values": ["z", "y"]},
                                                  {"key": "d", "operator": "Exists"}]}]}})");
  ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
  EXPECT_EQ(constraint->rule.mode, Mode::kHard);
  EXPECT_EQ(constraint->rule.label_keys, (std::vector<std::string>{"asw-id", "pod"}));
  ASSERT_EQ(constraint->selectors.size(), 1U);
  ASSERT_EQ(constraint->selectors[0].size(), 3U);
  EXPECT_EQ(constraint->selectors[0][1].values, (std::vector<std::string>{"y", "z"}));
}

TEST(NodeConstraint, PreferredTopologyIsASoftRuleWhoseSelectorsForbidNothing) {
  const auto constraint = ParseNodeConstraint(
      R"({"preferred": {"topologies": [{"key": "k"}], "nodeSelectors": [{"matchLabels": {}}]}})");
  ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
  EXPECT_EQ(constraint->rule.mode, Mode::kSoft);
  EXPECT_TRUE(constraint->selectors.empty());
  EXPECT_EQ(constraint->warnings.size(), 1U);
}

TEST(NodeConstraint, SelectorsAloneAreNoTopology) {
  const auto constraint =
      ParseNodeConstraint(R"({"required": {"nodeSelectors": [{"matchLabels": {"a": "b"}}]}})");
  ASSERT_TRUE(constraint.has_value());
  EXPECT_EQ(constraint->rule.mode, Mode::kNone);
  EXPECT_EQ(constraint->selectors.size(), 1U);
}

TEST(NodeConstraint, WhatIsMalformedIsNeverNoConstraint) {
  const char* broken[] = {
      "",
      "{\"name\":",
      "[]",
      "null",
      "7",
      "{}",
      R"({"required": 1})",
      R"({"required": {}})",
      R"({"required": {"topologies": {}}})",
      R"({"required": {"topologies": [{}]}})",
      R"({"required": {"topologies": ["k"]}})",
      R"({"required": {"topologies": [{"key": ""}]}})",
      R"({"required": {"topologies": [{"key": 1}]}})",
      R"({"required": {"nodeSelectors": [1]}})",
      R"({"required": {"nodeSelectors": [{"matchLabels": []}]}})",
      R"({"required": {"nodeSelectors": [{"matchLabels": {"a": 1}}]}})",
      R"({"required": {"nodeSelectors": [{"matchExpressions": [{"key": "a"}]}]}})",
      R"({"required": {"nodeSelectors": [{"matchExpressions":
          [{"key": "a", "operator": "In"}]}]}})",
      R"({"required": {"nodeSelectors": [{"matchExpressions":
          [{"key": "a", "operator": "Exists", "values": ["b"]}]}]}})",
      R"({"required": {"nodeSelectors": [{"matchExpressions":
          [{"key": "a", "operator": "Like", "values": ["b"]}]}]}})"};
  for (const char* text : broken) {
    const PodFacts facts = ReadPodFacts(PodSpec("p").Group("g").Annotation(kConstraint, text));
    EXPECT_EQ(facts.blocker.rfind("annotation " + std::string(kConstraint) + ": ", 0), 0U) << text;
    EXPECT_EQ(facts.declaration.nodes, TopologyRule{}) << text;
  }
}

}  // namespace
}  // namespace hopwise::cluster
