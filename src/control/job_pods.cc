#include "control/job_pods.h"

#include <string_view>
#include <utility>

#include "control/conditions.h"
#include "control/expand.h"

namespace hopwise::control {
namespace {

bool IsReady(const Json& pod) {
  const Json* condition = ConditionOf(pod, "Ready");
  return condition != nullptr && Text(*condition, {"status"}) == "True";
}

}  // namespace

JobPod JobPodOf(const Key& key, const Json& pod) {
  JobPod view;
  view.key = key;
  view.object = &pod;
  view.uid = Uid(pod);
  view.task = Annotation(pod, "volcano.sh/task-spec");
  view.phase = Text(pod, {"status", "phase"}, "Pending");
  view.version = CountIn(Annotation(pod, "volcano.sh/job-version"), 0);
  view.partition = CountIn(Label(pod, "volcano.sh/partition-id"), -1);
  view.terminating = !Text(pod, {"metadata", "deletionTimestamp"}).empty();
  view.ready = IsReady(pod);
  return view;
}

std::vector<JobPod> JobPodsOf(const Store& store, const Json& job) {
  std::vector<JobPod> pods;
  const std::string uid = Uid(job);
  store.EachDependent(uid, [&](const Key& key, const Entry& entry) {
    if (key.kind == "Pod" && key.group.empty() && entry.controller == uid) {
      pods.push_back(JobPodOf(key, entry.object));
    }
  });
  return pods;
}

std::optional<int64_t> ExitCodeOf(const Json& pod) {
  const Json& statuses = List(pod, {"status", "containerStatuses"});
  if (statuses.empty() || Get(statuses.front(), {"state", "terminated", "exitCode"}) == nullptr) {
    return std::nullopt;
  }
  return Number(statuses.front(), {"state", "terminated", "exitCode"}, 0);
}

int64_t RestartsOf(const Json& pod) {
  int64_t restarts = 0;
  for (const char* field : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& status : List(pod, {"status", field})) {
      restarts += Number(status, {"restartCount"}, 0);
    }
  }
  return restarts;
}

void PodCounts::Add(const JobPod& pod, bool leaving) {
  if (leaving) {
    ++terminating;
    return;
  }
  ++by_task[pod.task][pod.phase];
  pending += pod.phase == "Pending" ? 1 : 0;
  running += pod.phase == "Running" ? 1 : 0;
  succeeded += pod.phase == "Succeeded" ? 1 : 0;
  failed += pod.phase == "Failed" ? 1 : 0;
  unknown += pod.phase == "Unknown" ? 1 : 0;
}

int64_t PodCounts::Of(const std::string& task, const std::string& phase) const {
  const auto found = by_task.find(task);
  if (found == by_task.end()) {
    return 0;
  }
  const auto count = found->second.find(phase);
  return count == found->second.end() ? 0 : count->second;
}

void PodCounts::WriteInto(Json& status) const {
  const std::pair<const char*, int64_t> fields[] = {
      {"pending", pending}, {"running", running},         {"succeeded", succeeded},
      {"failed", failed},   {"terminating", terminating}, {"unknown", unknown}};
  for (const auto& [name, count] : fields) {
    if (count == 0) {
      status.erase(name);
    } else {
      status[name] = count;
    }
  }
  Json tasks = Json::object();
  for (const auto& [task, phases] : by_task) {
    for (const auto& [phase, count] : phases) {
      tasks[task]["phase"][phase] = count;
    }
  }
  status["taskStatusCount"] = std::move(tasks);
}

}  // namespace hopwise::control
