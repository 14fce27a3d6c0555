// Volcano's job controller, as far as it makes pods: PodGroup first, pods once the group is
// admitted, status.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "sim/controllers.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

std::string JobPhase(const Json& job) { return Text(job, {"status", "state", "phase"}); }

bool IsFinal(const std::string& phase) {
  constexpr std::array<std::string_view, 4> kFinal = {"Completed", "Failed", "Terminated",
                                                      "Aborted"};
  return std::find(kFinal.begin(), kFinal.end(), phase) != kFinal.end();
}

struct Counts {
  int64_t pending = 0, running = 0, succeeded = 0, failed = 0;
  std::map<std::string, std::map<std::string, int64_t>> by_task;  // task -> pod phase -> count
};

Counts CountPods(const Store& store, const std::vector<Key>& pods) {
  Counts counts;
  for (const Key& key : pods) {
    const Json& pod = *store.FindObject(key);
    const std::string phase = Text(pod, {"status", "phase"}, "Pending");
    ++counts.by_task[Annotation(pod, "volcano.sh/task-spec")][phase];
    counts.pending += phase == "Pending" ? 1 : 0;
    counts.running += phase == "Running" ? 1 : 0;
    counts.succeeded += phase == "Succeeded" ? 1 : 0;
    counts.failed += phase == "Failed" ? 1 : 0;
  }
  return counts;
}

int64_t CountOf(const Counts& counts, const std::string& task, const std::string& phase) {
  const auto found = counts.by_task.find(task);
  if (found == counts.by_task.end()) {
    return 0;
  }
  const auto count = found->second.find(phase);
  return count == found->second.end() ? 0 : count->second;
}

// Volcano's state machine (state/pending.go, state/running.go) without commands and policies.
std::string NextPhase(const Json& job, const std::vector<VcTask>& tasks, const Counts& counts) {
  std::string phase = JobPhase(job);
  const int64_t min_available = VcMinAvailable(job, tasks);
  int64_t replicas = 0;
  for (const VcTask& task : tasks) {
    replicas += task.replicas;
  }
  const int64_t finished = counts.succeeded + counts.failed;
  const bool started = counts.running + finished >= min_available;
  if (phase.empty() || phase == "Pending" || phase == "Restarting") {
    return started && counts.running + finished > 0 ? "Running" : "Pending";
  }
  if (phase != "Running") {
    return phase;
  }
  if (const int64_t enough = Number(job, {"spec", "minSuccess"}, 0);
      enough > 0 && counts.succeeded >= enough) {
    return "Completed";
  }
  if (replicas > 0 && finished >= replicas) {
    const bool task_short = std::any_of(tasks.begin(), tasks.end(), [&](const VcTask& task) {
      return CountOf(counts, task.name, "Succeeded") < task.min_available;
    });
    return !task_short && counts.succeeded >= min_available ? "Completed" : "Failed";
  }
  return counts.pending > replicas - min_available ? "Pending" : phase;
}

}  // namespace

void Controllers::ReconcileVcJob(const Key& key) {
  const Json& job = *world_.store.FindObject(key);
  if (IsFinal(JobPhase(job))) {
    for (const Key& pod : PodsOf(job)) {
      if (!IsFinished(*world_.store.FindObject(pod))) {
        world_.Delete(pod);
      }
    }
    return;
  }
  const Key group = EnsureVcPodGroup(key);
  const Json* object = world_.store.FindObject(group);
  const std::string phase = Text(*object, {"status", "phase"});
  if ((!phase.empty() && phase != "Pending") || world_.admitted.count(Uid(*object)) > 0) {
    MakeVcPods(key, group);
  }
  WriteVcStatus(key);
}

Key Controllers::EnsureVcPodGroup(const Key& key) {
  const Entry& entry = *world_.store.Find(key);
  const Json& job = entry.object;
  const auto priority_of = [&](const std::string& name) { return world_.PriorityOf(name); };
  const bool changed = SpecChanged(job);
  // By name as of now, by the older naming, or by owner.
  std::vector<Key> candidates = {PodGroupKey(key.ns, VcPodGroupName(job)),
                                 PodGroupKey(key.ns, key.name)};
  for (const Key& dependent : world_.store.Dependents(Uid(job))) {
    if (IsPodGroup(dependent)) {
      candidates.push_back(dependent);
    }
  }
  for (const Key& candidate : candidates) {
    const Json* found = world_.store.FindObject(candidate);
    if (found == nullptr || (ControllerOf(*found) != nullptr && !IsControlledBy(*found, job))) {
      continue;
    }
    if (ControllerOf(*found) == nullptr) {
      Json adopted = *found;
      Set(adopted, {"metadata", "ownerReferences"}, Json::array({ControllerRef(job)}));
      world_.store.Replace(candidate, std::move(adopted));
    } else if (changed) {
      world_.store.Edit(candidate)["spec"] = VcPodGroup(job, priority_of)["spec"];
    }
    return candidate;
  }
  world_.store.Create(VcPodGroup(job, priority_of), world_.now, entry.sequence);
  return candidates.front();
}

bool Controllers::DependenciesMet(const Json& job, const std::string& name) {
  const std::vector<VcTask> tasks = VcTasks(job);
  const auto task = std::find_if(tasks.begin(), tasks.end(),
                                 [&](const VcTask& each) { return each.name == name; });
  if (task == tasks.end() || task->depends_on.empty()) {
    return true;
  }
  const Counts counts = CountPods(world_.store, PodsOf(job));
  const auto met = [&](const std::string& other) {
    const auto found = std::find_if(tasks.begin(), tasks.end(),
                                    [&](const VcTask& each) { return each.name == other; });
    return found == tasks.end() ||
           CountOf(counts, other, "Running") + CountOf(counts, other, "Succeeded") >=
               found->min_available;
  };
  return task->depends_on_any ? std::any_of(task->depends_on.begin(), task->depends_on.end(), met)
                              : std::all_of(task->depends_on.begin(), task->depends_on.end(), met);
}

void Controllers::MakeVcPods(const Key& key, const Key& group) {
  const Json& job = *world_.store.FindObject(key);
  std::set<std::string> wanted;
  for (const VcTask& task : VcTasks(job)) {
    const bool may_start = DependenciesMet(job, task.name);
    for (int64_t i = 0; i < task.replicas; ++i) {
      std::string name = VcPodName(job, task, i);
      if (may_start && !HasOwnPod(job, key.ns, name)) {
        EnsurePod(job, VcPod(job, task, i, group.name));
      }
      wanted.insert(std::move(name));
    }
  }
  for (const Key& pod : PodsOf(job)) {
    if (wanted.count(pod.name) == 0) {
      world_.Delete(pod);
    }
  }
}

void Controllers::WriteVcStatus(const Key& key) {
  const Json& job = *world_.store.FindObject(key);
  const std::vector<VcTask> tasks = VcTasks(job);
  const Counts counts = CountPods(world_.store, PodsOf(job));
  Json by_task = Json::object();
  for (const auto& [task, phases] : counts.by_task) {
    for (const auto& [phase, count] : phases) {
      by_task[task]["phase"][phase] = count;
    }
  }
  Json patch = {{"minAvailable", VcMinAvailable(job, tasks)},
                {"pending", counts.pending},
                {"running", counts.running},
                {"succeeded", counts.succeeded},
                {"failed", counts.failed},
                {"taskStatusCount", std::move(by_task)}};
  const std::string phase = NextPhase(job, tasks, counts);
  if (phase != JobPhase(job)) {
    const std::string time = FormatRfc3339(world_.now);
    patch["state"] = {{"phase", phase}, {"lastTransitionTime", time}};
    Json conditions = List(job, {"status", "conditions"});
    conditions.push_back({{"status", phase}, {"lastTransitionTime", time}});
    patch["conditions"] = std::move(conditions);
  }
  PatchStatus(key, patch);
}

}  // namespace hopwise::sim
