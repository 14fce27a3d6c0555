// Names, labels and annotations of what the controllers make.
#include <gmock/gmock.h>

#include "sim/apps.h"
#include "sim/objects.h"
#include "sim/testing.h"

namespace hopwise::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string VcJob(std::string_view name, std::string_view spec) {
  return "---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: " +
         std::string(name) + "}\nspec: " + std::string(spec) + "\n";
}

TEST(VcJobExpansion, PodsAndGroupAreNamedAndMarkedAsVolcanoDoes) {
  Cluster cluster;
  cluster.Step(Nodes("n", 4) +
               VcJob("train",
                     "{queue: default, tasks: [{name: w, replicas: 4, partitionPolicy: "
                     "{totalPartitions: 2, partitionSize: 2, networkTopology: {mode: soft}}, "
                     "template: " +
                         Template(1) + "}]}"));
  EXPECT_THAT(cluster.PodNames(), ElementsAre("train-w-0", "train-w-1", "train-w-2", "train-w-3"));
  const Json* job = cluster.Find(kVolcanoBatch, "Job", "train");
  ASSERT_NE(job, nullptr);
  const std::string group = "train-" + Uid(*job);
  EXPECT_THAT(cluster.Names(kVolcanoScheduling, "PodGroup"), ElementsAre(group));
  const Json pod = cluster.Pod("train-w-3");
  EXPECT_EQ(Annotation(pod, "scheduling.k8s.io/group-name"), group);
  EXPECT_EQ(Annotation(pod, "volcano.sh/task-index"), "3");
  EXPECT_EQ(Annotation(pod, "volcano.sh/task-spec"), "w");
  EXPECT_EQ(Annotation(pod, "volcano.sh/job-name"), "train");
  EXPECT_EQ(Annotation(pod, "volcano.sh/queue-name"), "default");
  EXPECT_EQ(Annotation(pod, "volcano.sh/job-version"), "0");
  EXPECT_EQ(Annotation(pod, "volcano.sh/template-uid"), "train-w");
  EXPECT_EQ(Annotation(pod, "volcano.sh/job-retry-count"), "0");
  EXPECT_EQ(Label(pod, "volcano.sh/task-index"), "3");
  EXPECT_EQ(Label(pod, "volcano.sh/job-name"), "train");
  EXPECT_EQ(Label(pod, "volcano.sh/job-namespace"), "default");
  EXPECT_EQ(Label(pod, "volcano.sh/partition-id"), "1");
  EXPECT_EQ(Label(pod, "app"), "test");
  const Json& owner = List(pod, {"metadata", "ownerReferences"})[0];
  EXPECT_EQ(Text(owner, {"uid"}), Uid(*job));
  EXPECT_TRUE(Flag(owner, {"controller"}, false));
  const Json& made = *cluster.Find(kVolcanoScheduling, "PodGroup", group);
  EXPECT_EQ(Number(made, {"spec", "minMember"}, 0), 4);
  EXPECT_EQ(Number(made, {"spec", "minTaskMember", "w"}, 0), 4);
  const Json& policy = List(made, {"spec", "subGroupPolicy"})[0];
  EXPECT_EQ(Text(policy, {"name"}), "w");
  EXPECT_EQ(Number(policy, {"subGroupSize"}, 0), 2);
  EXPECT_EQ(Text(policy, {"networkTopology", "mode"}), "soft");
  EXPECT_EQ(Text(made, {"spec", "minResources", "cpu"}), "4");
  EXPECT_EQ(Text(made, {"status", "phase"}), "Running");
}

TEST(VcJobExpansion, MinimumsFollowTasksAndPartitions) {
  const Result<Json> job = ParseJson(R"({"metadata":{"name":"j"},"spec":{"tasks":[
      {"replicas":6,"minAvailable":2},
      {"name":"p","replicas":8,
       "partitionPolicy":{"totalPartitions":4,"partitionSize":2,"minPartitions":3}},
      {"name":"zero","replicas":0}]}})");
  ASSERT_TRUE(job);
  const std::vector<VcTask> tasks = VcTasks(*job);
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].name, "default0");
  EXPECT_EQ(tasks[0].min_available, 2);
  EXPECT_EQ(tasks[1].min_available, 6);
  EXPECT_EQ(tasks[2].min_available, 0);
  EXPECT_EQ(VcMinAvailable(*job, tasks), 8);
}

TEST(VcJobExpansion, PodsWaitForAQueueThatExistsAndIsOpen) {
  Cluster cluster;
  cluster.Step(
      Nodes("n", 1) +
      VcJob("j", "{queue: later, tasks: [{name: w, replicas: 1, template: " + Template(1) + "}]}"));
  EXPECT_THAT(cluster.PodNames(), IsEmpty());
  const std::string group = cluster.Names(kVolcanoScheduling, "PodGroup").at(0);
  const Json& waiting = *cluster.Find(kVolcanoScheduling, "PodGroup", group);
  EXPECT_EQ(Text(waiting, {"status", "phase"}), "Pending");
  const Json* condition = ConditionOf(waiting, "Unschedulable");
  ASSERT_NE(condition, nullptr);
  EXPECT_THAT(Text(*condition, {"message"}), ::testing::HasSubstr("queue later"));
  cluster.Step(
      "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: later}\nspec: "
      "{weight: 1}\n");
  EXPECT_EQ(cluster.PhaseOf("j-w-0"), "Running");
}

TEST(VcJobExpansion, ATaskStartsAfterTheTasksItDependsOn) {
  Cluster cluster;
  cluster.Step(
      Nodes("n", 1) +
      VcJob("j",
            "{minAvailable: 1, tasks: [{name: a, replicas: 1, template: " + Template(1) +
                "}, {name: b, replicas: 1, dependsOn: {name: [a]}, template: " + Template(4) +
                "}, {name: c, replicas: 1, minAvailable: 0, dependsOn: {name: [b]}, template: " +
                Template(1) + "}]}"));
  EXPECT_EQ(cluster.PhaseOf("j-a-0"), "Running");
  EXPECT_EQ(cluster.PhaseOf("j-b-0"), "Pending");
  EXPECT_TRUE(cluster.Pod("j-c-0").is_null());
}

TEST(VcJobExpansion, FewerReplicasDeleteTheLastPods) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) +
               VcJob("j", "{tasks: [{name: w, replicas: 3, template: " + Template(1) + "}]}"));
  cluster.Step(VcJob("j", "{tasks: [{name: w, replicas: 1, template: " + Template(1) + "}]}"));
  EXPECT_THAT(cluster.PodNames(), ElementsAre("j-w-0"));
  const std::string group = cluster.Names(kVolcanoScheduling, "PodGroup").at(0);
  EXPECT_EQ(Number(*cluster.Find(kVolcanoScheduling, "PodGroup", group), {"spec", "minMember"}, 0),
            1);
}

TEST(DeploymentExpansion, GoesThroughAReplicaSetAndSharesOnePodGroup) {
  Cluster cluster;
  cluster.Step(
      Nodes("n", 2) +
      "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, annotations: "
      "{scheduling.volcano.sh/group-min-member: \"2\", volcano.sh/x: why}}\nspec: {replicas: 2, "
      "selector: {matchLabels: {app: test}}, template: " +
      Template(1) + "}\n");
  const std::vector<std::string> sets = cluster.Names(kApps, "ReplicaSet");
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_THAT(sets[0], ::testing::MatchesRegex("web-[bcdfghjklmnpqrstvwxz2456789]+"));
  const Json& set = *cluster.Find(kApps, "ReplicaSet", sets[0]);
  const std::vector<std::string> pods = cluster.PodNames();
  ASSERT_EQ(pods.size(), 2U);
  for (const std::string& name : pods) {
    EXPECT_THAT(name, StartsWith(sets[0] + "-"));
    EXPECT_EQ(name.size(), sets[0].size() + 6);
    EXPECT_EQ("web-" + Label(cluster.Pod(name), "pod-template-hash"), sets[0]);
    EXPECT_EQ(Annotation(cluster.Pod(name), "scheduling.k8s.io/group-name"),
              "podgroup-" + Uid(set));
  }
  const Json& group = *cluster.Find(kVolcanoScheduling, "PodGroup", "podgroup-" + Uid(set));
  EXPECT_EQ(Number(group, {"spec", "minMember"}, 0), 2);
  EXPECT_EQ(Annotation(group, "volcano.sh/x"), "why");
  EXPECT_EQ(Text(List(group, {"metadata", "ownerReferences"})[0], {"name"}), sets[0]);
  EXPECT_EQ(Number(*cluster.Find(kApps, "Deployment", "web"), {"status", "readyReplicas"}, 0), 2);
}

TEST(StatefulSetExpansion, OrderedPodsComeOneAfterTheOther) {
  const std::string set =
      "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {replicas: 3, "
      "serviceName: db, "
      "selector: {matchLabels: {app: test}}, template: " +
      Template(3) + "}\n";
  Cluster cluster;
  cluster.Step(Nodes("n", 1) + set);
  EXPECT_THAT(cluster.PodNames(),
              ElementsAre("db-0", "db-1"));  // db-1 does not fit, so there is no db-2
  const Json pod = cluster.Pod("db-0");
  EXPECT_EQ(Label(pod, "statefulset.kubernetes.io/pod-name"), "db-0");
  EXPECT_EQ(Label(pod, "apps.kubernetes.io/pod-index"), "0");
  EXPECT_THAT(Label(pod, "controller-revision-hash"), StartsWith("db-"));
  cluster.Step(Nodes("m", 2));
  EXPECT_EQ(cluster.CountPods("Running"), 3);
}

TEST(BatchJobExpansion, IndexedPodsCarryTheirIndexAndRunInTurns) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) +
               "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: sweep}\nspec: {completions: "
               "3, parallelism: 2, "
               "completionMode: Indexed, template: " +
               Template(1, "hopwise.dev/run-time: 10s", ", restartPolicy: Never") + "}\n");
  ASSERT_EQ(cluster.PodNames().size(), 2U);
  EXPECT_THAT(cluster.PodNames()[0],
              ::testing::MatchesRegex("sweep-0-[bcdfghjklmnpqrstvwxz2456789]+"));
  const Json pod = cluster.Pod(cluster.PodNames()[1]);
  EXPECT_EQ(Annotation(pod, "batch.kubernetes.io/job-completion-index"), "1");
  EXPECT_EQ(Label(pod, "batch.kubernetes.io/job-completion-index"), "1");
  EXPECT_EQ(Label(pod, "batch.kubernetes.io/job-name"), "sweep");
  ASSERT_TRUE(cluster.simulator.Drain());
  EXPECT_EQ(cluster.CountPods("Succeeded"), 3);
  const Json& job = *cluster.Find(kBatch, "Job", "sweep");
  ASSERT_NE(ConditionOf(job, "Complete"), nullptr);
  EXPECT_EQ(Number(job, {"status", "succeeded"}, 0), 3);
  EXPECT_EQ(FormatRfc3339(cluster.simulator.now()), "2026-01-01T00:00:20Z");
}

TEST(BatchJobExpansion, ASuspendedJobHasNoPods) {
  Cluster cluster;
  cluster.Step(Nodes("n", 1) +
               "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {suspend: true, "
               "template: " +
               Template(1) + "}\n");
  EXPECT_THAT(cluster.PodNames(), IsEmpty());
}

TEST(LeaderWorkerSetExpansion, EachGroupIsAGangOfLeaderAndWorkers) {
  Cluster cluster;
  cluster.Step(Nodes("n", 5) +
               "---\napiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: "
               "{name: llm}\nspec: "
               "{replicas: 2, leaderWorkerTemplate: {size: 3, workerTemplate: " +
               Template(4) + "}}\n");
  EXPECT_THAT(cluster.PodNames(),
              ElementsAre("llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1", "llm-1-2"));
  // Five whole nodes: one group of three runs, the other waits as a whole.
  EXPECT_EQ(cluster.CountPods("Running"), 3);
  const Json worker = cluster.Pod("llm-1-2");
  EXPECT_EQ(Label(worker, "leaderworkerset.sigs.k8s.io/name"), "llm");
  EXPECT_EQ(Label(worker, "leaderworkerset.sigs.k8s.io/group-index"), "1");
  EXPECT_EQ(Label(worker, "leaderworkerset.sigs.k8s.io/worker-index"), "2");
  EXPECT_EQ(Annotation(worker, "leaderworkerset.sigs.k8s.io/size"), "3");
  EXPECT_EQ(Annotation(worker, "leaderworkerset.sigs.k8s.io/leader-name"), "llm-1");
  EXPECT_EQ(Label(worker, "leaderworkerset.sigs.k8s.io/group-key"),
            Label(cluster.Pod("llm-1"), "leaderworkerset.sigs.k8s.io/group-key"));
  EXPECT_THAT(cluster.Names(kVolcanoScheduling, "PodGroup"),
              ElementsAre(StartsWith("llm-0-"), StartsWith("llm-1-")));
}

TEST(LeaderWorkerSetExpansion, AGroupsPodGroupIsWhatItsControllerMakes) {
  const auto lws = Json::parse(R"({
    "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
    "metadata": {"name": "llm", "namespace": "ml", "annotations": {
      "scheduling.volcano.sh/queue-name": "q", "volcano.sh/sla-waiting-time": "1h", "own": "x"}},
    "spec": {"leaderWorkerTemplate": {"size": 3, "workerTemplate": {
      "metadata": {"annotations": {"volcano.sh/network-topology-mode": "hard"}},
      "spec": {"priorityClassName": "high"}}}}})");
  const Json group = LwsPodGroup(lws, 1);
  EXPECT_THAT(Name(group), StartsWith("llm-1-"));
  EXPECT_EQ(Number(group, {"spec", "minMember"}, 0), 3);
  EXPECT_EQ(Text(group, {"spec", "queue"}), "q");
  EXPECT_EQ(Annotation(group, "volcano.sh/sla-waiting-time"), "1h");
  EXPECT_EQ(Annotation(group, "own"), "");
  EXPECT_EQ(Get(group, {"spec", "networkTopology"}), nullptr) << "the scheduler asks the pods";
}

TEST(PodGroupController, ABarePodWithATopologyWishGetsItsOwnGroup) {
  Cluster cluster;
  cluster.Step(
      Nodes("n", 1) +
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: "
      "{volcano.sh/network-topology-mode: soft}}\nspec: {schedulerName: volcano, containers: "
      "[{name: c, image: i}]}\n"
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: plain}\nspec: {schedulerName: volcano, "
      "containers: [{name: c, image: i}]}\n");
  EXPECT_EQ(Annotation(cluster.Pod("p"), "scheduling.k8s.io/group-name"),
            "podgroup-" + Uid(cluster.Pod("p")));
  EXPECT_EQ(Annotation(cluster.Pod("plain"), "scheduling.k8s.io/group-name"), "");
  EXPECT_EQ(cluster.CountPods("Running"), 2);
}

}  // namespace
}  // namespace hopwise::sim
