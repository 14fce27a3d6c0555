// The controllers of batch Jobs and LeaderWorkerSets.
#include <algorithm>
#include <set>
#include <utility>

#include "base/quantity.h"
#include "sim/apps.h"
#include "sim/controllers.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

struct JobPods {
  std::vector<Key> active;
  std::set<int64_t> taken;  // indexes that are running or done
  int64_t succeeded = 0, failed = 0, ready = 0;
};

JobPods CountJobPods(World& world, const std::string& job_uid) {
  JobPods counted;
  std::set<int64_t> done;
  world.store.EachDependent(job_uid, [&](const Key& key, const Entry& entry) {
    ++world.visits;
    if (key.kind != "Pod" || entry.controller != job_uid) {
      return;
    }
    const Standing& pod = StandingOf(entry);
    if (pod.phase == Standing::Phase::kFailed) {
      ++counted.failed;
      return;
    }
    if (pod.index >= 0) {
      counted.taken.insert(pod.index);
    }
    if (pod.finished()) {
      // An index counts once, however often it was run.
      counted.succeeded += pod.index < 0 || done.insert(pod.index).second ? 1 : 0;
      return;
    }
    counted.active.push_back(key);
    counted.ready += pod.phase == Standing::Phase::kRunning ? 1 : 0;
  });
  return counted;
}

bool IsComplete(const Json& job) {
  for (const char* type : {"Complete", "Failed"}) {
    const Json* condition = ConditionOf(job, type);
    if (condition != nullptr && Text(*condition, {"status"}) == "True") {
      return true;
    }
  }
  return false;
}

}  // namespace

void Controllers::ReconcileBatchJob(const Key& key) {
  const Json& job = *world_.store.FindObject(key);
  for (const Key& orphan : world_.store.Orphans(key.ns)) {
    const Json& pod = *world_.store.FindObject(orphan);
    if (Label(pod, "batch.kubernetes.io/job-name") == key.name ||
        Label(pod, "job-name") == key.name) {
      Json adopted = pod;
      Set(adopted, {"metadata", "ownerReferences"}, Json::array({ControllerRef(job)}));
      world_.store.Replace(orphan, std::move(adopted));
    }
  }
  const bool suspended = Flag(job, {"spec", "suspend"}, false);
  const int64_t parallelism = Replicas(job, {"spec", "parallelism"}, 1);
  // Without completions one success is enough, and no pod is made after it.
  const bool queue_like =
      Get(job, {"spec", "completions"}) == nullptr && Get(job, {"spec", "parallelism"}) != nullptr;
  const int64_t completions = Replicas(job, {"spec", "completions"}, queue_like ? parallelism : 1);
  JobPods pods = CountJobPods(world_, Uid(job));
  const bool over = IsComplete(job);
  int64_t wanted = std::min(parallelism, std::max<int64_t>(0, completions - pods.succeeded));
  if (suspended || over) {
    wanted = 0;
  } else if (queue_like && pods.succeeded > 0) {
    wanted = static_cast<int64_t>(pods.active.size());
  }
  const int64_t missing = wanted - static_cast<int64_t>(pods.active.size());
  if (missing < 0) {
    DeleteSurplus(pods.active, -missing);
  }
  int64_t next = 0;
  for (int64_t i = 0; i < missing && world_.pods_made() <= kMaxPodsMade; ++i) {
    if (IsIndexed(job)) {
      while (pods.taken.count(next) > 0) {
        ++next;
      }
      pods.taken.insert(next);
    }
    MakeGenerated(key, IsIndexed(job) ? next : -1);
    if (world_.pods_made() >= kMaxPodsMade) {
      world_.MakePodObject(Json::object());  // says that the limit is reached
      break;
    }
  }
  pods = CountJobPods(world_, Uid(*world_.store.FindObject(key)));
  PatchStatus(key, {{"active", pods.active.size()},
                    {"ready", pods.ready},
                    {"succeeded", pods.succeeded},
                    {"failed", pods.failed},
                    {"startTime", Text(job, {"status", "startTime"}, FormatRfc3339(world_.now))}});
  const bool done =
      queue_like ? pods.succeeded > 0 && pods.active.empty() : pods.succeeded >= completions;
  if (done && !over && !suspended) {
    Json& edited = world_.store.Edit(key);
    SetCondition(edited, "Complete", "True", "CompletionsReached",
                 "Reached expected number of succeeded pods", world_.now);
    Set(edited, {"status", "completionTime"}, FormatRfc3339(world_.now));
  }
  CarryOut(ReconcileOwner(PodGroups(), key), key, 0);
}

void Controllers::ReconcileLws(const Key& key) {
  const Entry& entry = *world_.store.Find(key);
  const Json& lws = entry.object;
  const int64_t groups = Replicas(lws, {"spec", "replicas"}, 1);
  const int64_t size = LwsSize(lws);
  const Json probe = LwsPod(lws, 0, size > 1 ? 1 : 0, "");
  const bool makes_groups = LwsWantsPodGroups(lws) && world_.IsOurs(probe);
  const bool leader_first = Text(lws, {"spec", "startupPolicy"}) == "LeaderReady";
  std::set<std::string> wanted;
  int64_t ready = 0;
  for (int64_t g = 0; g < groups; ++g) {
    std::string group;
    if (makes_groups) {
      Json pod_group = LwsPodGroup(lws, g);
      group = Name(pod_group);
      if (world_.store.Find(KeyOf(pod_group)) == nullptr) {
        world_.store.Create(std::move(pod_group), world_.now, entry.sequence);
      }
    }
    int64_t running = 0;
    for (int64_t i = 0; i < size; ++i) {
      const std::string leader = key.name + "-" + std::to_string(g);
      std::string name = i == 0 ? leader : leader + "-" + std::to_string(i);
      const bool may_start = i == 0 || !leader_first || running > 0;
      if (may_start && !HasOwnPod(lws, key.ns, name)) {
        EnsurePod(lws, LwsPod(lws, g, i, group));
      }
      const Json* pod = world_.store.FindObject(PodKey(key.ns, name));
      running += pod != nullptr && IsRunning(*pod) ? 1 : 0;
      wanted.insert(std::move(name));
    }
    ready += running == size ? 1 : 0;
    wanted.insert(std::move(group));
  }
  for (const Key& dependent : world_.store.Dependents(Uid(lws))) {
    if ((dependent.kind == "Pod" || IsPodGroup(dependent)) && wanted.count(dependent.name) == 0) {
      world_.Delete(dependent);
    }
  }
  PatchStatus(key, {{"replicas", groups}, {"updatedReplicas", groups}, {"readyReplicas", ready}});
}

}  // namespace hopwise::sim
