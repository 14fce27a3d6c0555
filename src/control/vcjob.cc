#include "control/vcjob.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/quantity.h"
#include "control/expand.h"

namespace hopwise::control {
namespace {

VcTask ReadTask(const Json& spec, size_t position) {
  VcTask task;
  task.name = Text(spec, {"name"}, fmt::format("default{}", position));
  if (Get(spec, {"partitionPolicy"}) != nullptr) {
    task.partition_size =
        std::max<int64_t>(1, Number(spec, {"partitionPolicy", "partitionSize"}, 1));
    task.min_partitions = Replicas(spec, {"partitionPolicy", "minPartitions"}, 0);
    task.partition_topology = Get(spec, {"partitionPolicy", "networkTopology"});
  }
  const int64_t partitions = Replicas(spec, {"partitionPolicy", "totalPartitions"}, 1);
  const int64_t by_partition = SaturatingMul(partitions, task.partition_size);
  task.replicas = Replicas(spec, {"replicas"}, task.partition_size > 0 ? by_partition : 1);
  const int64_t minimum = task.min_partitions > 0
                              ? SaturatingMul(task.min_partitions, task.partition_size)
                              : task.replicas;
  task.min_available = Replicas(spec, {"minAvailable"}, minimum);
  task.topology_policy = Text(spec, {"topologyPolicy"});
  task.pod_template = Get(spec, {"template"});
  for (const Json& name : List(spec, {"dependsOn", "name"})) {
    if (name.is_string()) {
      task.depends_on.push_back(name.get<std::string>());
    }
  }
  task.max_retry = Number(spec, {"maxRetry"}, -1);
  task.depends_on_any = Text(spec, {"dependsOn", "iteration"}) == "any";
  return task;
}

// Annotations and labels that a vcjob hands down to its pods.
void InheritFromJob(const Json& job, Json& pod) {
  constexpr std::array<std::string_view, 5> kAnnotations = {
      "volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone",
      "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"};
  for (const std::string_view key : kAnnotations) {
    if (const std::string value = Annotation(job, key); !value.empty()) {
      SetAnnotation(pod, key, value);
    }
  }
  for (const std::string_view key : {"volcano.sh/preemptable", "volcano.sh/cooldown-time"}) {
    if (const std::string value = Label(job, key); !value.empty()) {
      SetLabel(pod, key, value);
    }
  }
}

Json SubGroups(const std::vector<VcTask>& tasks) {
  Json policies = Json::array();
  for (const VcTask& task : tasks) {
    if (task.partition_size == 0) {
      continue;
    }
    Json policy = {{"name", task.name},
                   {"labelSelector", {{"matchLabels", {{"volcano.sh/task-spec", task.name}}}}},
                   {"matchLabelKeys", Json::array({"volcano.sh/partition-id"})},
                   {"subGroupSize", task.partition_size},
                   {"minSubGroups", task.min_partitions}};
    if (task.partition_topology != nullptr) {
      policy["networkTopology"] = *task.partition_topology;
    }
    policies.push_back(std::move(policy));
  }
  return policies;
}

// The requests of the pods that minAvailable counts: the tasks' minimums and then more of the most
// important tasks; or, when the job wants less than the minimums, only the most important ones.
Json JobMinResources(const Json& job, const std::vector<VcTask>& tasks, int64_t min_available,
                     const std::function<int64_t(const std::string&)>& priority_of) {
  std::vector<std::pair<int64_t, size_t>> order;  // (-priority, position)
  int64_t minimums = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string name = tasks[i].pod_template == nullptr
                                 ? ""
                                 : Text(*tasks[i].pod_template, {"spec", "priorityClassName"});
    order.emplace_back(-priority_of(name), i);
    minimums = SaturatingAdd(minimums, tasks[i].min_available);
  }
  std::sort(order.begin(), order.end());
  std::vector<int64_t> counts(tasks.size(), 0);
  int64_t left = min_available;
  if (min_available >= minimums) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      counts[i] = tasks[i].min_available;
    }
    left = min_available - minimums;
  }
  for (const auto& [priority, i] : order) {
    const int64_t more = std::clamp<int64_t>(tasks[i].replicas - counts[i], 0, left);
    counts[i] += more;
    left -= more;
  }
  api::ResourceList sum;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (counts[i] > 0) {
      api::ResourceList request = RequestOf(VcPod(job, tasks[i], 0, "none"));
      for (auto& [resource, amount] : request) {
        amount = SaturatingMul(amount, counts[i]);
      }
      sum = api::Sum(sum, request);
    }
  }
  return MinResources(sum, std::accumulate(counts.begin(), counts.end(), int64_t{0}));
}

}  // namespace

std::vector<VcTask> VcTasks(const Json& job) {
  std::vector<VcTask> tasks;
  for (const Json& spec : List(job, {"spec", "tasks"})) {
    tasks.push_back(ReadTask(spec, tasks.size()));
  }
  return tasks;
}

int64_t VcMinAvailable(const Json& job, const std::vector<VcTask>& tasks) {
  if (const int64_t given = Number(job, {"spec", "minAvailable"}, 0); given > 0) {
    return given;
  }
  int64_t sum = 0;
  for (const VcTask& task : tasks) {
    sum = SaturatingAdd(sum, task.min_available);
  }
  return sum;
}

std::string VcPodName(const Json& job, const VcTask& task, int64_t index) {
  return fmt::format("{}-{}-{}", Name(job), task.name, index);
}

Json VcPod(const Json& job, const VcTask& task, int64_t index, std::string_view group) {
  Json pod = MakePod(task.pod_template, Namespace(job), VcPodName(job, task, index), job);
  const std::string queue = Text(job, {"spec", "queue"}, "default");
  const std::string number = std::to_string(index);
  SetAnnotation(pod, "volcano.sh/task-index", number);
  SetAnnotation(pod, "volcano.sh/task-spec", task.name);
  SetAnnotation(pod, kGroupNameKey, group);
  SetAnnotation(pod, "volcano.sh/job-name", Name(job));
  SetAnnotation(pod, "volcano.sh/queue-name", queue);
  SetAnnotation(pod, "volcano.sh/job-version",
                std::to_string(Number(job, {"status", "version"}, 0)));
  SetAnnotation(pod, "volcano.sh/template-uid", fmt::format("{}-{}", Name(job), task.name));
  SetAnnotation(pod, "volcano.sh/job-retry-count",
                std::to_string(Number(job, {"status", "retryCount"}, 0)));
  SetLabel(pod, "volcano.sh/task-index", number);
  SetLabel(pod, "volcano.sh/task-spec", task.name);
  SetLabel(pod, "volcano.sh/job-name", Name(job));
  SetLabel(pod, "volcano.sh/job-namespace", Namespace(job));
  SetLabel(pod, "volcano.sh/queue-name", queue);
  if (task.partition_size > 0) {
    SetLabel(pod, "volcano.sh/partition-id", std::to_string(index / task.partition_size));
  }
  if (!task.topology_policy.empty()) {
    SetAnnotation(pod, "volcano.sh/numa-topology-policy", task.topology_policy);
  }
  InheritFromJob(job, pod);
  if (Text(pod, {"spec", "schedulerName"}).empty()) {
    Set(pod, {"spec", "schedulerName"}, Text(job, {"spec", "schedulerName"}, "volcano"));
  }
  const std::string priority = Text(job, {"spec", "priorityClassName"});
  if (!priority.empty() && Text(pod, {"spec", "priorityClassName"}).empty()) {
    Set(pod, {"spec", "priorityClassName"}, priority);
  }
  return pod;
}

std::string VcPodGroupName(const Json& job) { return fmt::format("{}-{}", Name(job), Uid(job)); }

Json VcPodGroup(const Json& job, const std::function<int64_t(const std::string&)>& priority_of) {
  const std::vector<VcTask> tasks = VcTasks(job);
  const int64_t min_available = VcMinAvailable(job, tasks);
  Json group = MakePodGroup(Namespace(job), VcPodGroupName(job), min_available);
  CopyMeta(job, "annotations", group);
  CopyMeta(job, "labels", group);
  group["metadata"]["ownerReferences"] = Json::array({ControllerRef(job)});
  Json& spec = group["spec"];
  spec["queue"] = Text(job, {"spec", "queue"}, "default");
  if (const std::string priority = Text(job, {"spec", "priorityClassName"}); !priority.empty()) {
    spec["priorityClassName"] = priority;
  }
  for (const VcTask& task : tasks) {
    Set(spec, {"minTaskMember", task.name}, task.min_available);
  }
  if (const Json* topology = Get(job, {"spec", "networkTopology"}); topology != nullptr) {
    spec["networkTopology"] = *topology;
  }
  if (Json policies = SubGroups(tasks); !policies.empty()) {
    spec["subGroupPolicy"] = std::move(policies);
  }
  spec["minResources"] = JobMinResources(job, tasks, min_available, priority_of);
  return group;
}

}  // namespace hopwise::control
