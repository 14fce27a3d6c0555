// Steps, time, deletion, adoption: the life of the virtual cluster.
#include "sim/simulator.h"

#include <gmock/gmock.h>

#include "sim/testing.h"

namespace hopwise::sim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string BarePod(std::string_view name, int cpu, std::string_view annotations = "",
                    std::string_view more_spec = "") {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + std::string(name) +
         ", annotations: {" + std::string(annotations) + "}}\nspec: {schedulerName: volcano" +
         std::string(more_spec) +
         ", containers: [{name: c, image: i, resources: {requests: {cpu: \"" + std::to_string(cpu) +
         "\"}}}]}\n";
}

std::string Delete(std::string_view api_version, std::string_view kind, std::string_view name) {
  return "---\napiVersion: " + std::string(api_version) + "\nkind: " + std::string(kind) +
         "\nmetadata: {name: " + std::string(name) +
         ", annotations: {hopwise.dev/simulate: delete}}\n";
}

std::string VcJob(std::string_view name, int replicas, int cpu, std::string_view annotations = "") {
  return "---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: " +
         std::string(name) + "}\nspec: {tasks: [{name: w, replicas: " + std::to_string(replicas) +
         ", template: " + Template(cpu, annotations, ", restartPolicy: Never") + "}]}\n";
}

TEST(Step, ABoundPodRunsAtOnceWithConditionsAndAnEvent) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + BarePod("p", 1));
  const Json pod = cluster.Pod("p");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
  EXPECT_EQ(cluster.PhaseOf("p"), "Running");
  const Json* scheduled = ConditionOf(pod, "PodScheduled");
  ASSERT_NE(scheduled, nullptr);
  EXPECT_EQ(Text(*scheduled, {"status"}), "True");
  EXPECT_EQ(Text(*scheduled, {"lastTransitionTime"}), "2026-01-01T00:00:00Z");
  EXPECT_THAT(cluster.EventsOf("p"),
              ElementsAre("Scheduled: Successfully assigned default/p to n1"));
}

TEST(Step, APodThatDoesNotFitSaysWhyOnce) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + BarePod("big", 8));
  const Json pod = cluster.Pod("big");
  const Json* scheduled = ConditionOf(pod, "PodScheduled");
  ASSERT_NE(scheduled, nullptr);
  EXPECT_EQ(Text(*scheduled, {"status"}), "False");
  EXPECT_EQ(Text(*scheduled, {"reason"}), "Unschedulable");
  EXPECT_THAT(Text(*scheduled, {"message"}), HasSubstr("cpu"));
  ASSERT_EQ(cluster.EventsOf("big").size(), 1U);
  cluster.Step("");
  EXPECT_EQ(cluster.EventsOf("big").size(), 1U);
}

TEST(Step, NothingAtAllIsFine) {
  Cluster cluster;
  cluster.Step("");
  cluster.Step("apiVersion: v1\nkind: List\nitems: []\n");
  EXPECT_THAT(cluster.PodNames(), IsEmpty());
  EXPECT_EQ(cluster.simulator.Snapshot().substr(0, 23), "{\"apiVersion\":\"v1\",\"ite");
}

TEST(Step, ALaterApplyKeepsWhatTheClusterWrote) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + BarePod("p", 1));
  const std::string uid = Uid(cluster.Pod("p"));
  cluster.Step(BarePod("p", 1, "note: changed"));
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
  EXPECT_EQ(cluster.PhaseOf("p"), "Running");
  EXPECT_EQ(Uid(cluster.Pod("p")), uid);
  EXPECT_EQ(Annotation(cluster.Pod("p"), "note"), "changed");
}

TEST(Step, PodsOfOtherSchedulersAreLeftAloneUnlessAsked) {
  const std::string yaml = Nodes("n", 1) +
                           "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: "
                           "{containers: [{name: c, image: i}]}\n";
  Cluster cluster;
  cluster.Step(yaml);
  EXPECT_EQ(cluster.PhaseOf("p"), "Pending");
  EXPECT_EQ(MakeReport(cluster.simulator).foreign.at("default-scheduler"), 1);
  SimulatorOptions options;
  options.place_foreign = true;
  Cluster all(options);
  all.Step(yaml);
  EXPECT_EQ(all.PhaseOf("p"), "Running");
}

TEST(Time, StandsStillWhileNobodyWaits) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + BarePod("p", 1, "hopwise.dev/run-time: 10s"));
  EXPECT_EQ(cluster.PhaseOf("p"), "Running");
  EXPECT_EQ(cluster.simulator.now(), World::kEpoch);
}

TEST(Time, JumpsToTheEndThatHelpsAWaitingPod) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + BarePod("first", 4, "hopwise.dev/run-time: 1m30s") +
               BarePod("second", 4));
  EXPECT_EQ(cluster.PhaseOf("first"), "Succeeded");
  EXPECT_EQ(cluster.PhaseOf("second"), "Running");
  EXPECT_EQ(FormatRfc3339(cluster.simulator.now()), "2026-01-01T00:01:30Z");
  const Json second = cluster.Pod("second");
  EXPECT_EQ(Text(*ConditionOf(second, "PodScheduled"), {"lastTransitionTime"}),
            "2026-01-01T00:01:30Z");
}

TEST(Time, DoesNotJumpForAPodThatCanNeverRun) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + BarePod("runs", 4, "hopwise.dev/run-time: 10s") +
               BarePod("giant", 99));
  EXPECT_EQ(cluster.PhaseOf("runs"), "Running");
  EXPECT_EQ(cluster.PhaseOf("giant"), "Pending");
}

TEST(Time, AReasonThatChangesWithEveryJumpIsToldAtTheEndOfTheStepOnly) {
  Cluster cluster;
  std::string yaml = Nodes("n", 4, 1);
  for (int i = 0; i < 4; ++i) {
    yaml += BarePod("r" + std::to_string(i), 1,
                    "hopwise.dev/run-time: " + std::to_string(10 + i) + "s");
  }
  // Four of its five fit in the end: it waits through all four jumps, short of less each time.
  cluster.Step(yaml + VcJob("j", 5, 1));
  EXPECT_EQ(cluster.PhaseOf("r0"), "Running");  // five never fit on four nodes: time stands still
  cluster.Step(Nodes("m", 1, 1) + BarePod("stays", 1, "", ", nodeName: m1"));
  EXPECT_EQ(cluster.CountPods("Succeeded"), 4);
  EXPECT_EQ(cluster.PhaseOf("j-w-0"), "Pending");
  EXPECT_LE(cluster.EventsOf("j-w-0").size(), 3U);
  const std::string message = Text(*ConditionOf(cluster.Pod("j-w-0"), "PodScheduled"), {"message"});
  const std::string group = Annotation(cluster.Pod("j-w-0"), "scheduling.k8s.io/group-name");
  const Json& shown = *cluster.Find(kVolcanoScheduling, "PodGroup", group);
  EXPECT_EQ(Text(*ConditionOf(shown, "Unschedulable"), {"message"}), message);
  const StepReport report = MakeReport(cluster.simulator);
  EXPECT_EQ(report.gangs.at(0).message, message);
}

TEST(Odd, ObjectsOfOtherProjectsWithOurKindsNamesAreLeftAlone) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) +
               "---\napiVersion: example.com/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: "
               "{spec: {containers: [{name: c}]}}}\n"
               "---\napiVersion: example.com/v1\nkind: PodGroup\nmetadata: {name: g}\n"
               "---\napiVersion: example.com/v1\nkind: Queue\nmetadata: {name: default}\n");
  EXPECT_THAT(cluster.PodNames(), IsEmpty());
  EXPECT_FALSE(cluster.Find("example.com", "PodGroup", "g")->contains("status"));
}

TEST(Time, DrainLetsEverythingEnd) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + VcJob("j", 2, 1, "hopwise.dev/run-time: 5s"));
  ASSERT_TRUE(cluster.simulator.Drain());
  EXPECT_EQ(cluster.CountPods("Succeeded"), 2);
  const Json& job = *cluster.Find(kVolcanoBatch, "Job", "j");
  EXPECT_EQ(Text(job, {"status", "state", "phase"}), "Completed");
  EXPECT_EQ(Number(job, {"status", "succeeded"}, 0), 2);
  const std::string group = cluster.Names(kVolcanoScheduling, "PodGroup").at(0);
  EXPECT_EQ(Text(*cluster.Find(kVolcanoScheduling, "PodGroup", group), {"status", "phase"}),
            "Completed");
}

TEST(Time, PodsThatAreAlwaysStartedAgainNeverEnd) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) +
               BarePod("p", 1, "hopwise.dev/run-time: 5s", ", restartPolicy: Always"));
  ASSERT_TRUE(cluster.simulator.Drain());
  EXPECT_EQ(cluster.PhaseOf("p"), "Running");
  EXPECT_THAT(cluster.simulator.TakeWarnings(),
              Contains(HasSubstr("hopwise.dev/run-time is ignored")));
}

TEST(Deletion, ADeletedPodOfAJobComesBackAsANewOne) {
  Cluster cluster;
  cluster.Step(Nodes("n", 2) + VcJob("j", 2, 4));
  const std::string uid = Uid(cluster.Pod("j-w-0"));
  cluster.Step(Delete("v1", "Pod", "j-w-0"));
  EXPECT_EQ(cluster.PhaseOf("j-w-0"), "Running");
  EXPECT_NE(Uid(cluster.Pod("j-w-0")), uid);
}

TEST(Deletion, AnOwnerTakesItsDependentsAlong) {
  Cluster cluster;
  cluster.Step(Nodes("n", 2) + VcJob("j", 2, 1) +
               "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: "
               "{replicas: 2, selector: "
               "{matchLabels: {app: test}}, template: " +
               Template(1) + "}\n");
  cluster.Step(Delete("batch.volcano.sh/v1alpha1", "Job", "j") +
               Delete("apps/v1", "Deployment", "web"));
  EXPECT_THAT(cluster.PodNames(), IsEmpty());
  EXPECT_THAT(cluster.Names(kVolcanoScheduling, "PodGroup"), IsEmpty());
  EXPECT_THAT(cluster.Names(kApps, "ReplicaSet"), IsEmpty());
}

TEST(Deletion, PodsOfADeletedNodeAreMadeAgainElsewhereWithoutEviction) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + VcJob("j", 1, 4) +
               BarePod("kept", 0, "hopwise.dev/simulate: recreate") + BarePod("lost", 0));
  cluster.Step(Nodes("m", 1) + Delete("v1", "Node", "n1"));
  EXPECT_EQ(cluster.NodeOf("j-w-0"), "m1");
  EXPECT_EQ(cluster.NodeOf("kept"), "m1");
  EXPECT_TRUE(cluster.Pod("lost").is_null());
  EXPECT_THAT(cluster.EventsOf("j-w-0"), Not(Contains(HasSubstr("Evict"))));
}

TEST(Deletion, WhatIsNotThereIsNamed) {
  Cluster cluster;
  cluster.Step(Delete("v1", "Pod", "ghost"));
  EXPECT_THAT(cluster.simulator.TakeWarnings(),
              ElementsAre(HasSubstr("Pod default/ghost: nothing to delete")));
}

TEST(Eviction, IsAnEventAndARecreatedPodComesBack) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + BarePod("again", 1, "hopwise.dev/simulate: recreate") +
               BarePod("gone", 1));
  const std::string uid = Uid(cluster.Pod("again"));
  ASSERT_TRUE(cluster.simulator.EvictPod("default", "again", "preempt"));
  ASSERT_TRUE(cluster.simulator.EvictPod("default", "gone", "preempt"));
  EXPECT_EQ(cluster.PhaseOf("again"), "Running");
  EXPECT_NE(Uid(cluster.Pod("again")), uid);
  EXPECT_TRUE(cluster.Pod("gone").is_null());
  EXPECT_THAT(cluster.EventsOf("gone"), Contains("Evict: Pod is evicted, because of preempt"));
  EXPECT_FALSE(cluster.simulator.EvictPod("default", "ghost", "preempt"));
}

TEST(Adoption, ADumpOfTheClusterIsAFixPoint) {
  Cluster cluster;
  cluster.Step(Nodes("n", 3) + VcJob("j", 2, 1) + VcJob("waits", 2, 9) +
               "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: "
               "{replicas: 2, selector: "
               "{matchLabels: {app: test}}, template: " +
               Template(1) +
               "}\n"
               "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: "
               "{replicas: 2, selector: "
               "{matchLabels: {app: test}}, template: " +
               Template(1) +
               "}\n"
               "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: b}\nspec: {completions: 2, "
               "parallelism: 2, template: " +
               Template(1) + "}\n");
  const std::vector<std::string> before = cluster.PodNames();
  Cluster replay;
  replay.Step(cluster.simulator.Snapshot());
  EXPECT_EQ(replay.PodNames(), before);
  for (const std::string& name : before) {
    EXPECT_EQ(replay.NodeOf(name), cluster.NodeOf(name));
    EXPECT_EQ(Uid(replay.Pod(name)), Uid(cluster.Pod(name)));
  }
  EXPECT_EQ(replay.Names(kVolcanoScheduling, "PodGroup"),
            cluster.Names(kVolcanoScheduling, "PodGroup"));
  EXPECT_EQ(replay.Names(kApps, "ReplicaSet"), cluster.Names(kApps, "ReplicaSet"));
  EXPECT_EQ(replay.Names("", "Event"), cluster.Names("", "Event"));
}

TEST(Adoption, PodsNamedAsTheJobWouldNameThemAreTaken) {
  Cluster cluster;
  cluster.Step(Nodes("n", 2) + BarePod("j-w-0", 1, "", ", nodeName: n2") + VcJob("j", 2, 1));
  EXPECT_THAT(cluster.PodNames(), ElementsAre("j-w-0", "j-w-1"));
  EXPECT_EQ(cluster.NodeOf("j-w-0"), "n2");
  const std::string group = cluster.Names(kVolcanoScheduling, "PodGroup").at(0);
  EXPECT_EQ(Annotation(cluster.Pod("j-w-0"), "scheduling.k8s.io/group-name"), group);
}

TEST(Adoption, PodsOfAnUnseenReplicaSetCountForTheirDeployment) {
  Cluster cluster;
  const std::string pod =
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-6f9c-abcde, labels: {app: test, "
      "pod-template-hash: 6f9c}, "
      "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-6f9c, uid: some-uid, "
      "controller: true}]}\n"
      "spec: {schedulerName: volcano, nodeName: n1, containers: [{name: main, image: pause}]}\n";
  cluster.Step(Nodes("n", 1) + pod +
               "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: "
               "{replicas: 2, selector: "
               "{matchLabels: {app: test}}, template: " +
               Template(1) + "}\n");
  EXPECT_THAT(cluster.Names(kApps, "ReplicaSet"), ElementsAre("web-6f9c"));
  EXPECT_EQ(cluster.PodNames().size(), 2U);
  EXPECT_EQ(cluster.NodeOf("web-6f9c-abcde"), "n1");
}

TEST(Adoption, APodGroupOfTheOlderNamingServesTheJob) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) +
               "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: "
               "j}\nspec: {minMember: 1}\n" +
               VcJob("j", 1, 1));
  EXPECT_THAT(cluster.Names(kVolcanoScheduling, "PodGroup"), ElementsAre("j"));
  EXPECT_EQ(Annotation(cluster.Pod("j-w-0"), "scheduling.k8s.io/group-name"), "j");
}

TEST(Odd, PodsOnUnknownNodesAreNamedAndStartWhenTheNodeComes) {
  Cluster cluster;
  cluster.Step(BarePod("p", 1, "", ", nodeName: late1"));
  EXPECT_EQ(cluster.PhaseOf("p"), "Pending");
  EXPECT_THAT(cluster.simulator.TakeWarnings(),
              ElementsAre(HasSubstr("node late1, which does not exist")));
  cluster.Step(Nodes("late", 1));
  EXPECT_EQ(cluster.PhaseOf("p"), "Running");
}

TEST(Odd, ZeroReplicasAndZeroRequestsAreNoTrouble) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + VcJob("none", 0, 1) + BarePod("free", 0) +
               "---\napiVersion: v1\nkind: Node\nmetadata: {name: bare}\n");
  EXPECT_THAT(cluster.PodNames(), ElementsAre("free"));
  EXPECT_EQ(cluster.NodeOf("free"), "n1");
}

TEST(Topology, FaultsAreConditionsAndEventsOfTheHyperNode) {
  const auto hypernode = [](std::string_view name, std::string_view members) {
    return "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: " +
           std::string(name) + "}\nspec: {tier: 1, members: [" + std::string(members) + "]}\n";
  };
  Cluster cluster;
  cluster.Step(Nodes("n", 2) +
               hypernode("fine", "{type: Node, selector: {exactMatch: {name: n1}}}") +
               hypernode("broken", "{type: Node, selector: {regexMatch: {pattern: \"n[\"}}}"));
  const Json& fine = *cluster.Find(kVolcanoTopology, "HyperNode", "fine", "");
  EXPECT_EQ(Number(fine, {"status", "nodeCount"}, -1), 1);
  EXPECT_EQ(Text(*ConditionOf(fine, "Ready"), {"status"}), "True");
  const Json& broken = *cluster.Find(kVolcanoTopology, "HyperNode", "broken", "");
  EXPECT_EQ(Text(*ConditionOf(broken, "Ready"), {"status"}), "False");
  EXPECT_EQ(Text(*ConditionOf(broken, "Ready"), {"reason"}), "BadPattern");
  EXPECT_THAT(cluster.EventsOf("broken"), ElementsAre(HasSubstr("BadPattern: ")));
}

TEST(Snapshot, TwoRunsAreByteIdentical) {
  const std::string yaml =
      Nodes("n", 3) + VcJob("j", 3, 2, "hopwise.dev/run-time: 7s") + VcJob("k", 3, 2) +
      BarePod("p", 1) +
      "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3, "
      "selector: {matchLabels: {app: test}}, template: " +
      Template(1) + "}\n";
  Cluster first;
  Cluster second;
  first.Step(yaml);
  second.Step(yaml);
  EXPECT_EQ(first.simulator.Snapshot(), second.simulator.Snapshot());
  EXPECT_EQ(Dump(ToJson(MakeReport(first.simulator), {})),
            Dump(ToJson(MakeReport(second.simulator), {})));
}

TEST(Queues, StatusTellsStateAndUse) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) +
               "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: "
               "default}\nspec: {weight: 1}\n" +
               VcJob("j", 2, 1));
  const Json& queue = *cluster.Find(kVolcanoScheduling, "Queue", "default", "");
  EXPECT_EQ(Text(queue, {"status", "state"}), "Open");
  EXPECT_EQ(Text(queue, {"status", "allocated", "cpu"}), "2");
  EXPECT_EQ(Number(queue, {"status", "running"}, 0), 1);
}

TEST(Explain, TellsRuleMembersAndVerdict) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + VcJob("j", 2, 1) + VcJob("big", 1, 64));
  const Result<std::string> placed = Explain(cluster.simulator, "default/j");
  ASSERT_TRUE(placed);
  EXPECT_THAT(*placed, HasSubstr("Placed:     2 of 2"));
  EXPECT_THAT(*placed, HasSubstr("j-w-1   n1"));
  const Result<std::string> waits = Explain(cluster.simulator, "big");
  ASSERT_TRUE(waits);
  EXPECT_THAT(*waits, HasSubstr("Verdict:    never"));
  const Result<std::string> unknown = Explain(cluster.simulator, "nobody");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "no gang is called nobody; there are: default/big, default/j");
}

}  // namespace
}  // namespace hopwise::sim
