// PodGroups of pods that have none.
#include "control/pod_group_controller.h"

#include <gmock/gmock.h>

#include "control/expand.h"
#include "control/testing.h"

namespace hopwise::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kReplicaSet =
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs, uid: r, annotations: "
    "{scheduling.volcano.sh/group-min-member: '3', volcano.sh/sla-waiting-time: 1h, other: x}}, "
    "spec: {replicas: 3}}";

std::string PodOf(std::string_view name, std::string_view owner, std::string_view more = "",
                  std::string_view scheduler = "volcano") {
  std::string text = "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + std::string(name) +
                     ", uid: u-" + std::string(name);
  if (!owner.empty()) {
    text += ", ownerReferences: [{apiVersion: apps/v1, kind: " + std::string(owner) +
            ", name: rs, uid: r, controller: true}]";
  }
  return text + std::string(more) + "}, spec: {schedulerName: " + std::string(scheduler) +
         ", priorityClassName: high, containers: [{resources: {requests: {cpu: 500m}}}]}}\n";
}

class GroupPlane : public Plane {
 public:
  PodGroupView view = {
      store, [](const Json& pod) { return Text(pod, {"spec", "schedulerName"}) == "volcano"; }};
  void Pod(std::string_view name) { CarryOut(ReconcilePod(view, PodKey("default", name))); }
  void Owner() { CarryOut(ReconcileOwner(view, {"apps", "ReplicaSet", "default", "rs"})); }
  const Json& Group(std::string_view name) { return Object(PodGroupKey("default", name)); }
};

TEST(PodGroups, PodsOfOneOwnerShareOne) {
  GroupPlane plane;
  plane.Apply(std::string(kReplicaSet) + "\n" + PodOf("a", "ReplicaSet") +
              PodOf("b", "ReplicaSet"));
  plane.Pod("a");
  EXPECT_THAT(plane.writes, ElementsAre("create PodGroup podgroup-r", "-", "patch Pod a"));
  plane.writes.clear();
  plane.Pod("b");
  EXPECT_THAT(plane.writes, ElementsAre("patch Pod b"));
  const Json& group = plane.Group("podgroup-r");
  EXPECT_EQ(Number(group, {"spec", "minMember"}, 0), 3);
  EXPECT_EQ(Text(group, {"spec", "priorityClassName"}), "high");
  EXPECT_EQ(Text(group, {"spec", "queue"}), "default");
  EXPECT_EQ(Text(group, {"spec", "minResources", "cpu"}), "1500m");
  EXPECT_EQ(Annotation(group, "volcano.sh/sla-waiting-time"), "1h");
  EXPECT_EQ(Annotation(group, "other"), "");
  EXPECT_EQ(Text(*ControllerOf(group), {"kind"}), "ReplicaSet");
  EXPECT_EQ(Annotation(plane.Object(PodKey("default", "b")), kGroupNameKey), "podgroup-r");
  plane.writes.clear();
  plane.Pod("a");
  EXPECT_THAT(plane.writes, IsEmpty());
}

TEST(PodGroups, OwnersAnnotationsCountOnlyWhereTheyAreInherited) {
  GroupPlane plane;
  plane.view.inherit = false;
  plane.Apply(std::string(kReplicaSet) + "\n" + PodOf("a", "ReplicaSet"));
  plane.Pod("a");
  EXPECT_EQ(Number(plane.Group("podgroup-r"), {"spec", "minMember"}, 0), 1);
  EXPECT_EQ(Annotation(plane.Group("podgroup-r"), "volcano.sh/sla-waiting-time"), "");
}

struct Case {
  const char* name;
  std::string pod;
  bool gets_one;
};

TEST(PodGroups, WhoGetsOne) {
  const std::string topology = ", annotations: {volcano.sh/network-topology-mode: soft}";
  const Case cases[] = {
      {"of a ReplicaSet", PodOf("p", "ReplicaSet"), true},
      {"of a StatefulSet", PodOf("p", "StatefulSet"), true},
      {"of a DaemonSet", PodOf("p", "DaemonSet"), false},
      {"by itself", PodOf("p", ""), false},
      {"by itself, with a topology", PodOf("p", "", topology), true},
      {"of another scheduler", PodOf("p", "ReplicaSet", "", "default-scheduler"), false},
      {"with a group of its own",
       PodOf("p", "ReplicaSet", ", annotations: {scheduling.k8s.io/group-name: g}"), false},
      {"with a group by label",
       PodOf("p", "ReplicaSet", ", labels: {scheduling.x-k8s.io/pod-group: g}"), false},
      {"with a tier that is no number",
       PodOf("p", "ReplicaSet", ", annotations: {volcano.sh/network-topology-highest-tier: x}"),
       false},
      {"on its way out", PodOf("p", "ReplicaSet", ", deletionTimestamp: '2026-01-01T00:00:00Z'"),
       false}};
  for (const Case& one : cases) {
    GroupPlane plane;
    plane.Apply(one.pod);
    plane.Pod("p");
    EXPECT_EQ(!plane.writes.empty(), one.gets_one) << one.name;
  }
}

TEST(PodGroups, WhatAPodSaysOfTopologyAndQueueIsTaken) {
  GroupPlane plane;
  plane.Apply(
      PodOf("p", "",
            ", annotations: {volcano.sh/network-topology-mode: odd, "
            "volcano.sh/network-topology-highest-tier: '2', "
            "scheduling.volcano.sh/queue-name: q}, labels: {volcano.sh/preemptable: 'true'}"));
  plane.Pod("p");
  const Json& group = plane.Group("podgroup-u-p");
  EXPECT_EQ(Text(group, {"spec", "networkTopology", "mode"}), "hard") << "a bad mode is hard";
  EXPECT_EQ(Number(group, {"spec", "networkTopology", "highestTierAllowed"}, 0), 2);
  EXPECT_EQ(Text(group, {"spec", "queue"}), "q");
  EXPECT_EQ(Label(group, "volcano.sh/preemptable"), "true");
  EXPECT_EQ(Text(*ControllerOf(group), {"kind"}), "Pod");
}

TEST(PodGroups, GoWhenTheirOwnerIsScaledToZero) {
  GroupPlane plane;
  plane.Apply(std::string(kReplicaSet) + "\n" + PodOf("a", "ReplicaSet"));
  plane.Pod("a");
  plane.writes.clear();
  plane.Owner();
  EXPECT_THAT(plane.writes, IsEmpty());
  plane.store.Edit({"apps", "ReplicaSet", "default", "rs"})["spec"]["replicas"] = 0;
  plane.Owner();
  EXPECT_THAT(plane.writes, ElementsAre("delete PodGroup podgroup-r"));
}

TEST(PodGroups, FollowTheirOwnersMinimum) {
  GroupPlane plane;
  plane.Apply(std::string(kReplicaSet) + "\n" + PodOf("a", "ReplicaSet"));
  plane.Pod("a");
  SetAnnotation(plane.store.Edit({"apps", "ReplicaSet", "default", "rs"}), kMinMemberKey, "2");
  plane.Owner();
  EXPECT_EQ(Number(plane.Group("podgroup-r"), {"spec", "minMember"}, 0), 2);
  EXPECT_EQ(Text(plane.Group("podgroup-r"), {"spec", "minResources", "cpu"}), "1");
}

}  // namespace
}  // namespace hopwise::control
