// Groups, queues, HyperNodes, vcjobs and workloads.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/decode.h"

namespace hopwise::api {
namespace {

using Lines = std::vector<std::string>;

// Decodes {"apiVersion","kind","metadata"} with `rest`; warnings go to `warnings`.
template <class T>
T As(const std::string& api_version, const std::string& kind, const std::string& rest,
     Lines* warnings = nullptr) {
  auto decoded = DecodeObject(R"({"apiVersion":")" + api_version + R"(","kind":")" + kind +
                              R"(","metadata":{"name":"x"},)" + rest + "}");
  if (!decoded) {
    ADD_FAILURE() << decoded.error().message;
    return {};
  }
  if (warnings != nullptr) {
    *warnings = decoded->warnings;
  } else {
    EXPECT_EQ(decoded->warnings, Lines{});
  }
  return std::get<T>(std::move(decoded->object));
}
PodGroup Group(const std::string& rest, Lines* warnings = nullptr) {
  return As<PodGroup>("scheduling.volcano.sh/v1beta1", "PodGroup", rest, warnings);
}
HyperNode Hyper(const std::string& rest, Lines* warnings = nullptr) {
  return As<HyperNode>("topology.volcano.sh/v1alpha1", "HyperNode", rest, warnings);
}
VcJob Job(const std::string& rest, Lines* warnings = nullptr) {
  return As<VcJob>("batch.volcano.sh/v1alpha1", "Job", rest, warnings);
}

TEST(PodGroupTest, DefaultsAreThoseOfTheCrd) {
  const PodGroup group = Group(R"("spec":{})");
  EXPECT_EQ(group.min_member, 0);
  EXPECT_EQ(group.queue, "default");
  EXPECT_FALSE(group.topology || group.min_resources);
  EXPECT_FALSE(group.scheduler_plugins);
  EXPECT_EQ(group.phase, "");
}

TEST(PodGroupTest, ReadsAllOfIt) {
  const PodGroup group = Group(R"("spec":{"minMember":4,"minTaskMember":{"w":3,"m":1},
      "queue":"team","priorityClassName":"high","minResources":{"cpu":"4"},
      "networkTopology":{"mode":"soft","highestTierAllowed":2},
      "subGroupPolicy":[{"name":"s","subGroupSize":8,"minSubGroups":2,
      "networkTopology":{"highestTierName":"leaf"},"labelSelector":{"matchLabels":{"r":"w"},
      "matchExpressions":[{"key":"i","operator":"NotIn","values":["b","a"]}]},
      "matchLabelKeys":["volcano.sh/partition-id"]},{}]},
      "status":{"phase":"Inqueue","conditions":[{"type":"Unschedulable","status":"True"}]})");
  EXPECT_EQ(group.min_member, 4);
  EXPECT_EQ(group.min_task_member,
            (std::vector<std::pair<std::string, int32_t>>{{"m", 1}, {"w", 3}}));
  EXPECT_EQ(group.queue, "team");
  EXPECT_EQ(AmountOf(*group.min_resources, "cpu"), 4'000);
  EXPECT_EQ(group.topology->mode, TopologyMode::kSoft);
  EXPECT_EQ(group.topology->highest_tier, 2);
  ASSERT_EQ(group.sub_groups.size(), 2U);
  const SubGroupPolicy& policy = group.sub_groups[0];
  EXPECT_EQ(policy.sub_group_size, 8);
  EXPECT_EQ(policy.min_sub_groups, 2);
  EXPECT_EQ(policy.topology->highest_tier_name, "leaf");
  EXPECT_EQ(policy.topology->mode, TopologyMode::kHard);
  ASSERT_EQ(policy.selector->requirements.size(), 2U);
  EXPECT_EQ(policy.selector->requirements[0].op, Operator::kIn);
  EXPECT_EQ(policy.selector->requirements[1].values, (Lines{"a", "b"}));
  EXPECT_EQ(policy.match_label_keys, (Lines{"volcano.sh/partition-id"}));
  EXPECT_EQ(group.sub_groups[1].sub_group_size, 1);
  EXPECT_FALSE(group.sub_groups[1].selector);
  EXPECT_EQ(group.phase, "Inqueue");
  EXPECT_EQ(group.conditions.size(), 1U);
}

TEST(PodGroupTest, SchedulerPluginsGroupHasNoQueueOfItsOwn) {
  const auto group = As<PodGroup>("scheduling.x-k8s.io/v1alpha1", "PodGroup",
                                  R"("spec":{"minMember":3,"queue":7,"minResources":{"cpu":1}})");
  EXPECT_TRUE(group.scheduler_plugins);
  EXPECT_EQ(group.min_member, 3);
  EXPECT_EQ(group.queue, "default");
}

TEST(PodGroupTest, SenselessValuesAreWarnedOf) {
  Lines warnings;
  const PodGroup group = Group(R"("spec":{"minMember":-2,"minTaskMember":{"w":-1},
      "networkTopology":{"mode":"firm","highestTierAllowed":1,"highestTierName":"leaf"}})",
                               &warnings);
  EXPECT_EQ(group.min_member, 0);
  EXPECT_EQ(group.min_task_member[0].second, 0);
  EXPECT_EQ(group.topology->mode, TopologyMode::kHard);
  EXPECT_EQ(
      warnings,
      (Lines{"spec.minMember: -2 is below zero; taken as 0",
             "spec.minTaskMember.w: -1 is below zero; taken as 0",
             "spec.networkTopology.mode: \"firm\" is neither hard nor soft; taken as hard",
             "spec.networkTopology: highestTierAllowed and highestTierName exclude each other; "
             "the number counts"}));
}

TEST(QueueTest, ReadsAllOfIt) {
  const auto queue = As<Queue>("scheduling.volcano.sh/v1beta1", "Queue",
                               R"("spec":{"weight":3,"priority":9,"reclaimable":false,
      "capability":{"cpu":"8"},"guarantee":{"resource":{"cpu":"1"}},"deserved":{"cpu":"4"},
      "parent":"root"},"status":{"state":"Closed"})");
  EXPECT_EQ(queue.weight, 3);
  EXPECT_EQ(queue.priority, 9);
  EXPECT_EQ(queue.reclaimable, false);
  EXPECT_EQ(AmountOf(queue.capability, "cpu"), 8'000);
  EXPECT_EQ(AmountOf(queue.guarantee, "cpu"), 1'000);
  EXPECT_EQ(AmountOf(queue.deserved, "cpu"), 4'000);
  EXPECT_EQ(queue.parent, "root");
  EXPECT_EQ(queue.state, "Closed");
  EXPECT_FALSE(As<Queue>("scheduling.volcano.sh/v1beta1", "Queue", R"("spec":{})").reclaimable);
}

TEST(HyperNodeTest, EachWayToNameAMember) {
  const HyperNode node = Hyper(R"("spec":{"tier":2,"tierName":"spine","members":[
      {"type":"HyperNode","selector":{"exactMatch":{"name":"leaf-a"}}},
      {"type":"Node","selector":{"regexMatch":{"pattern":"gpu-[0-"}}},
      {"type":"Node","selector":{"labelMatch":{}}},
      {"type":"Node","selector":{"labelMatch":{"matchLabels":{"r":"1"}},"exactMatch":null}}]})");
  EXPECT_EQ(node.tier, 2);
  EXPECT_EQ(node.tier_name, "spine");
  ASSERT_EQ(node.members.size(), 4U);
  EXPECT_EQ(node.members[0].type, MemberType::kHyperNode);
  EXPECT_EQ(node.members[0].exact, "leaf-a");
  EXPECT_EQ(node.members[1].pattern, "gpu-[0-");
  EXPECT_TRUE(node.members[2].labels->requirements.empty());
  EXPECT_EQ(node.members[3].labels->requirements.size(), 1U);
}

TEST(HyperNodeTest, DoubtfulMembersAreKeptAndWarnedOf) {
  Lines warnings;
  const HyperNode node = Hyper(R"("spec":{"tier":1,"members":[
      {"type":"Node"},
      {"type":"Node","selector":{}},
      {"type":"Node","selector":{"matchLabels":{"a":"b"}}},
      {"type":"Node","selector":{"exactMatch":{"name":"a","names":["b"]},
                                 "regexMatch":{"pattern":"a"}}},
      {"type":"Node","selector":{"exactMatch":{}}}]})",
                               &warnings);
  ASSERT_EQ(node.members.size(), 5U);
  EXPECT_TRUE(node.members[3].exact && node.members[3].pattern);
  EXPECT_EQ(node.members[4].exact, "");
  const std::string none =
      ": none of exactMatch, regexMatch and labelMatch; the member selects nothing";
  EXPECT_EQ(warnings,
            (Lines{"spec.members[0]" + none, "spec.members[1]" + none,
                   "spec.members[2].selector.matchLabels: unknown field, ignored; a label selector "
                   "stands under labelMatch",
                   "spec.members[2]" + none,
                   "spec.members[3].selector.exactMatch.names: unknown field, ignored",
                   "spec.members[3].selector: more than one of exactMatch, regexMatch and "
                   "labelMatch"}));
}

TEST(HyperNodeTest, AMemberOfAnotherTypeIsAnError) {
  const auto decoded = DecodeObject(
      R"({"apiVersion":"topology.volcano.sh/v1alpha1","kind":"HyperNode","metadata":{"name":"x"},
      "spec":{"members":[{"type":"Rack"}]}})");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message,
            "spec.members[0].type: expected Node or HyperNode, found \"Rack\"");
}

TEST(VcJobTest, ReadsTasksTemplatesAndPlugins) {
  const VcJob job = Job(R"("spec":{"schedulerName":"hopwise","minAvailable":4,"queue":"",
      "priorityClassName":"p","networkTopology":{"highestTierAllowed":1},
      "plugins":{"svc":["--x"],"env":null,"pytorch":[]},"tasks":[
      {"name":"w","replicas":8,"minAvailable":2,
       "template":{"metadata":{"labels":{"a":"}"}} , "spec":{"priorityClassName":"high",
       "containers":[{"name":"m"}]} },
       "partitionPolicy":{"totalPartitions":2,"partitionSize":4,"minPartitions":1,
       "networkTopology":{"mode":"hard","highestTierName":"leaf"}},
       "dependsOn":{"name":["m"],"iteration":"any"}},
      {"name":"m","template":{}}]},"status":{"state":{"phase":"Running"},"version":3})");
  EXPECT_EQ(job.scheduler_name, "hopwise");
  EXPECT_EQ(job.queue, "default");
  EXPECT_EQ(job.min_available, 4);
  ASSERT_EQ(job.tasks.size(), 2U);
  const VcTask& task = job.tasks[0];
  EXPECT_EQ(task.replicas, 8);
  EXPECT_EQ(task.min_available, 2);
  EXPECT_EQ(task.priority_class, "high");
  EXPECT_EQ(task.pod_template.json,
            "{\"metadata\":{\"labels\":{\"a\":\"}\"}} , \"spec\":{\"priorityClassName\":\"high\",\n"
            "       \"containers\":[{\"name\":\"m\"}]} }");
  EXPECT_EQ(task.partition->total_partitions, 2);
  EXPECT_EQ(task.partition->partition_size, 4);
  EXPECT_EQ(task.partition->min_partitions, 1);
  EXPECT_EQ(task.partition->topology->highest_tier_name, "leaf");
  EXPECT_EQ(task.depends_on, (Lines{"m"}));
  EXPECT_TRUE(task.depends_on_any);
  EXPECT_EQ(job.tasks[1].replicas, 1);
  EXPECT_EQ(job.tasks[1].pod_template.json, "{}");
  EXPECT_FALSE(job.tasks[1].min_available || job.tasks[1].partition);
  EXPECT_EQ(job.plugins, (std::vector<std::pair<std::string, Lines>>{
                             {"env", {}}, {"pytorch", {}}, {"svc", {"--x"}}}));
  EXPECT_EQ(job.phase, "Running");
  EXPECT_EQ(job.version, 3);
}

TEST(VcJobTest, NegativeCountsAreWarnedOf) {
  Lines warnings;
  const VcJob job =
      Job(R"("spec":{"tasks":[{"replicas":-3,"dependsOn":{"iteration":"some"}}]})", &warnings);
  EXPECT_EQ(job.tasks[0].replicas, 0);
  EXPECT_EQ(warnings,
            (Lines{"spec.tasks[0].replicas: -3 is below zero; taken as 0",
                   "spec.tasks[0].dependsOn.iteration: \"some\" is neither any nor all; taken as "
                   "all"}));
}

TEST(WorkloadTest, ReadsWhatMakesPods) {
  const auto deployment = As<Workload>(
      "apps/v1", "Deployment",
      R"("spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{}}})");
  EXPECT_EQ(deployment.kind, WorkloadKind::kDeployment);
  EXPECT_EQ(deployment.replicas, 3);
  EXPECT_EQ(deployment.selector->requirements.size(), 1U);
  EXPECT_EQ(deployment.pod_template.json, R"({"spec":{}})");
  EXPECT_EQ(As<Workload>("apps/v1", "ReplicaSet", R"("spec":{})").replicas, 1);
  EXPECT_EQ(As<Workload>("apps/v1", "DaemonSet", R"("spec":{})").kind, WorkloadKind::kDaemonSet);
  const auto set =
      As<Workload>("apps/v1", "StatefulSet", R"("spec":{"replicas":0,"ordinals":{"start":5}})");
  EXPECT_EQ(set.kind, WorkloadKind::kStatefulSet);
  EXPECT_EQ(set.replicas, 0);
  EXPECT_EQ(set.ordinal_start, 5);
}

TEST(WorkloadTest, ABatchJobCountsByParallelism) {
  const auto job = As<Workload>(
      "batch/v1", "Job",
      R"("spec":{"parallelism":4,"completions":8,"completionMode":"Indexed","template":{}})");
  EXPECT_EQ(job.kind, WorkloadKind::kJob);
  EXPECT_EQ(job.replicas, 4);
  EXPECT_EQ(job.completions, 8);
  EXPECT_TRUE(job.indexed);
  const auto plain = As<Workload>("batch/v1", "Job", R"("spec":{})");
  EXPECT_EQ(plain.replicas, 1);
  EXPECT_EQ(plain.completions, -1);
  EXPECT_FALSE(plain.indexed);
}

TEST(LeaderWorkerSetTest, ReadsBothTemplates) {
  const auto set = As<LeaderWorkerSet>("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
                                       R"("spec":{"replicas":2,"startupPolicy":"LeaderReady",
      "networkConfig":{"subdomainPolicy":"Shared"},"leaderWorkerTemplate":{"size":4,
      "workerTemplate":{"spec":{"a":1}},"subGroupPolicy":{"subGroupSize":2}}})");
  EXPECT_EQ(set.replicas, 2);
  EXPECT_EQ(set.size, 4);
  EXPECT_EQ(set.startup_policy, "LeaderReady");
  EXPECT_EQ(set.subdomain_policy, "Shared");
  EXPECT_EQ(set.leader_template.json, "");
  EXPECT_EQ(set.worker_template.json, R"({"spec":{"a":1}})");
  EXPECT_EQ(set.sub_group_size, 2);
}

}  // namespace
}  // namespace hopwise::api
