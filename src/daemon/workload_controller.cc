#include "daemon/workload_controller.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "control/commands.h"
#include "control/expand.h"
#include "control/job_controller.h"
#include "control/pod_group_controller.h"
#include "control/queue_controller.h"
#include "daemon/object_cache.h"

namespace hopwise::daemon {
namespace {

using control::Key;
using control::Write;
using json::Json;

// What is written.
constexpr std::array<kube::Resource, 10> kWritten = {
    kube::kPods,     kube::kPodGroups, kube::kVcJobs,     kube::kQueues, kube::kCommands,
    kube::kServices, kube::kSecrets,   kube::kConfigMaps, kube::kClaims, kube::kNetworkPolicies};

kube::Resource ResourceOf(const Key& key) {
  const auto at = std::ranges::find_if(kWritten, [&](const kube::Resource& resource) {
    return resource.group == key.group && resource.kind == key.kind;
  });
  HOPWISE_CHECK(at != kWritten.end());
  return *at;
}

bool IsVcJob(const Key& key) { return key.group == control::kVolcanoBatch && key.kind == "Job"; }
bool IsQueue(const Key& key) {
  return key.group == control::kVolcanoScheduling && key.kind == "Queue";
}
bool IsPod(const Key& key) { return key.group.empty() && key.kind == "Pod"; }
// Of pods: ReplicaSets, StatefulSets, batch Jobs.
bool IsOwner(const Key& key) { return key.group == control::kApps || key.group == control::kBatch; }

// The vcjob that controls the object, whether or not it is there.
std::string JobUidOf(const Json& object) {
  const Json* ref = control::ControllerOf(object);
  const bool job = ref != nullptr && json::Text(*ref, {"kind"}) == "Job" &&
                   control::GroupOf(json::Text(*ref, {"apiVersion"})) == control::kVolcanoBatch;
  return job ? json::Text(*ref, {"uid"}) : "";
}

std::string PhaseOf(const Json& job) { return json::Text(job, {"status", "state", "phase"}); }

ObjectWrite ToWrite(const Write& write) {
  using From = Write::Verb;
  using To = ObjectWrite::Verb;
  ObjectWrite out;
  out.verb = write.verb == From::kCreate        ? To::kCreate
             : write.verb == From::kPatch       ? To::kPatch
             : write.verb == From::kPatchStatus ? To::kPatchStatus
                                                : To::kDelete;
  out.resource = ResourceOf(write.key);
  out.ns = write.key.ns;
  out.name = write.key.name;
  out.uid = write.uid;
  out.body = write.body.is_null() ? "" : json::Dump(write.body);
  out.exists_ok = write.exists_ok;
  return out;
}

// The reason of the Event that tells of a write that failed.
std::string_view ReasonOf(const ObjectWrite& write) {
  const kube::Resource& resource = write.resource;
  if (resource == kube::kClaims) {
    return "PVCError";
  }
  if (resource == kube::kPodGroups) {
    return "PodGroupError";
  }
  if (resource == kube::kVcJobs) {
    return "JobStatusError";
  }
  if (resource == kube::kPods) {
    return write.verb == ObjectWrite::Verb::kDelete ? "FailedDelete" : "FailedCreate";
  }
  return "PluginError";
}

kube::ObjectReference ReferenceTo(const Key& key, const std::string& uid) {
  const std::string version =
      IsOwner(key) ? key.group + "/v1" : kube::ApiVersionOf(ResourceOf(key));
  return {version, key.kind, key.ns, key.name, uid};
}

Duration RefusalWait(int failures) {
  const int times = std::clamp(failures - 1, 0, 10);
  return {std::min(kMostRefusalWait.ns, kRefusalWait.ns << times)};
}

// An object to look at.
struct Work {
  Time due;            // not set: nothing to do
  uint64_t batch = 0;  // under way, 0: none
  bool again = false;  // something changed meanwhile
  int failures = 0;    // refusals one after the other
  int conflicts = 0;   // likewise
  Time not_before;     // after a failure
  ObjectWrite failed;  // of the batch: the first write that failed, and why
  kube::ApiError error;
};

}  // namespace

struct WorkloadController::Impl {
  Impl(const ControllerOptions& o, server::Metrics& m,
       std::function<std::optional<control::SshKeys>()> k)
      : options(o),
        metrics(m),
        keys(std::move(k)),
        cache([this](const Key& key, const Json& object) { return Keeps(key, object); },
              [this](const Key& key, const Json* before, const Json* after) {
                Changed(key, before, after);
              }) {}

  const ControllerOptions& options;
  server::Metrics& metrics;
  std::function<std::optional<control::SshKeys>()> keys;
  ObjectCache cache;
  std::map<Key, Work> works;
  std::set<std::pair<int64_t, Key>> due;
  std::map<uint64_t, Key> batches;
  std::map<std::string, control::JobMemory, std::less<>> memories;  // by uid of the job
  uint64_t last_batch = 0;
  bool synced = false, leading = false;
  Time now;  // of the event or answer at hand

  // --- which objects are to be looked at

  [[nodiscard]] bool IsOurs(const Json& pod) const {
    const std::string name = json::Text(pod, {"spec", "schedulerName"});
    return std::ranges::find(options.scheduler_names, name) != options.scheduler_names.end();
  }
  [[nodiscard]] bool Keeps(const Key& key, const Json& object) const {
    return !IsPod(key) || IsOurs(object) || !JobUidOf(object).empty();
  }

  void Schedule(const Key& key, Time when) {
    Work& work = works[key];
    when = std::max(when, work.not_before);
    if (work.due.set() && work.due <= when) {
      return;
    }
    if (work.due.set()) {
      due.erase({work.due.ns, key});
    }
    work.due = when;
    due.emplace(when.ns, key);
  }
  void Mark(const Key& key) { Schedule(key, now + kWorkQuiet); }
  void MarkUid(const std::string& uid, Duration quiet = kWorkQuiet) {
    if (const Key* key = uid.empty() ? nullptr : cache.store().FindUid(uid); key != nullptr) {
      Schedule(*key, now + quiet);
    }
  }
  void Forget(const Key& key) {
    const auto at = works.find(key);
    if (at == works.end() || at->second.batch != 0) {
      return;  // what is under way ends first
    }
    if (at->second.due.set()) {
      due.erase({at->second.due.ns, key});
    }
    works.erase(at);
  }

  void Changed(const Key& key, const Json* before, const Json* after);
  void PodChanged(const Key& key, const Json* before, const Json* after);
  void JobChanged(const Json* before, const Json* after);
  void MarkQueues(const Key& changed);
  void MarkAll();

  // --- what follows

  control::Outcome Reconcile(const Key& key);
  control::Outcome ReconcileJob(const Key& key);
  void Begin(const Key& key, control::Outcome&& outcome, WorkEffects& effects);
  void TellFailures(const Key& key, Work& work, WorkEffects& effects);
  std::vector<Tell> untold;
};

void WorkloadController::Impl::Changed(const Key& key, const Json* before, const Json* after) {
  if (after == nullptr) {
    Forget(key);
  }
  if (IsPod(key)) {
    PodChanged(key, before, after);
    return;
  }
  const Json& object = after == nullptr ? *before : *after;
  if (IsVcJob(key)) {
    JobChanged(before, after);
  } else if (control::IsPodGroup(key)) {
    MarkUid(JobUidOf(object));
    if (after == nullptr) {
      Mark(control::QueueKey(json::Text(object, {"spec", "queue"}, options.default_queue)));
    }
  } else if (IsQueue(key)) {
    MarkQueues(key);
  } else if (const std::optional<Key> target = control::TargetOf(key, object); target) {
    if (after != nullptr) {
      Mark(*target);
    }
    return;
  }
  const bool looked_at = IsVcJob(key) || IsQueue(key) || IsOwner(key);
  if (after != nullptr && looked_at) {
    Mark(key);
  }
}

void WorkloadController::Impl::PodChanged(const Key& key, const Json* before, const Json* after) {
  const std::string job = JobUidOf(after == nullptr ? *before : *after);
  if (!job.empty()) {
    if (after == nullptr && cache.store().FindUid(job) != nullptr) {
      control::PodGone(*before, now, memories[job]);
    }
    MarkUid(job, kPodsQuiet);
  } else if (after != nullptr && !control::NamesItsGroup(*after)) {
    Mark(key);
  }
}

void WorkloadController::Impl::JobChanged(const Json* before, const Json* after) {
  if (after == nullptr) {
    memories.erase(json::Uid(*before));
    return;
  }
  const std::string phase = PhaseOf(*after);
  if (before == nullptr || PhaseOf(*before) == phase) {
    return;
  }
  const bool completed = phase == "Completed";
  if (completed || phase == "Failed") {
    metrics.Count(
        completed ? "volcano_job_completed_phase_count" : "volcano_job_failed_phase_count", 1,
        {{"job_name", json::Namespace(*after) + "/" + json::Name(*after)},
         {"queue_name", json::Text(*after, {"spec", "queue"}, options.default_queue)}});
  }
}

void WorkloadController::Impl::MarkQueues(const Key& changed) {
  cache.store().Each(control::kVolcanoScheduling, "Queue",
                     [&](const Key& key, const control::Entry& entry) {
                       if (control::ParentOf(entry.object) == changed.name) {
                         Mark(key);
                       }
                     });
}

// After a start, or a time in which another led, anything may have to be done.
void WorkloadController::Impl::MarkAll() {
  cache.store().EachObject([&](const Key& key, const control::Entry& entry) {
    const bool pod = IsPod(key) && !control::NamesItsGroup(entry.object);
    if (pod || IsVcJob(key) || IsQueue(key) || IsOwner(key)) {
      Mark(key);
    }
  });
}

control::Outcome WorkloadController::Impl::ReconcileJob(const Key& key) {
  const control::Store& store = cache.store();
  const auto priority_of = [&](const std::string& name) {
    const Json* found = store.FindObject({"scheduling.k8s.io", "PriorityClass", "", name});
    return found == nullptr ? 0 : json::Number(*found, {"value"}, 0);
  };
  const auto admitted = [](const Json& group) {
    const std::string phase = json::Text(group, {"status", "phase"});
    return !phase.empty() && phase != "Pending";
  };
  const control::JobView view = {.store = store,
                                 .job = key,
                                 .now = now,
                                 .commands = control::CommandsFor(store, key),
                                 .priority_of = priority_of,
                                 .admitted = admitted,
                                 .keys = keys,
                                 .most_failures = options.most_failures};
  return control::ReconcileJob(view, memories[json::Uid(*store.FindObject(key))]);
}

control::Outcome WorkloadController::Impl::Reconcile(const Key& key) {
  const control::Store& store = cache.store();
  if (IsVcJob(key)) {
    return options.jobs ? ReconcileJob(key) : control::Outcome();
  }
  if (IsQueue(key)) {
    return options.queues ? control::ReconcileQueue({store, key, control::CommandsFor(store, key)})
                          : control::Outcome();
  }
  if (!options.pod_groups) {
    return {};
  }
  const control::PodGroupView view = {store, [this](const Json& pod) { return IsOurs(pod); },
                                      options.inherit_owner_annotations};
  return IsPod(key) ? control::ReconcilePod(view, key) : control::ReconcileOwner(view, key);
}

void WorkloadController::Impl::Begin(const Key& key, control::Outcome&& outcome,
                                     WorkEffects& effects) {
  for (const control::Happening& event : outcome.events) {
    effects.events.push_back(
        {ReferenceTo(event.about, event.uid),
         {.warning = event.warning, .reason = event.reason, .message = event.message, .key = ""}});
  }
  if (outcome.again.set()) {
    Schedule(key, outcome.again);
  }
  Batch batch;
  for (const std::vector<Write>& step : outcome.steps) {
    std::vector<ObjectWrite>& writes = batch.steps.emplace_back();
    for (const Write& write : step) {
      writes.push_back(ToWrite(write));
    }
  }
  if (batch.steps.empty()) {
    return;
  }
  batch.id = ++last_batch;
  batches[batch.id] = key;
  works[key].batch = batch.id;
  effects.batches.push_back(std::move(batch));
}

WorkloadController::WorkloadController(const ControllerOptions& options, server::Metrics& metrics,
                                       std::function<std::optional<control::SshKeys>()> keys)
    : impl_(std::make_unique<Impl>(options, metrics, std::move(keys))) {}

WorkloadController::~WorkloadController() = default;

void WorkloadController::Observe(const kube::Resource& resource, kube::WatchEvent&& event,
                                 Time now) {
  impl_->now = now;
  impl_->cache.Observe(resource, event);
}

void WorkloadController::SetSynced(bool synced, Time now) {
  impl_->now = now;
  impl_->synced = synced;
  impl_->MarkAll();
}

void WorkloadController::SetLeading(bool leading, Time now) {
  impl_->now = now;
  impl_->leading = leading;
  impl_->memories.clear();
  if (leading) {
    impl_->MarkAll();
  }
}

void WorkloadController::Wrote(uint64_t batch, const WriteResult& result, Time now) {
  impl_->now = now;
  if (result.error.ok()) {
    impl_->cache.Wrote(result);
    return;
  }
  const auto at = impl_->batches.find(batch);
  if (at == impl_->batches.end()) {
    return;
  }
  Work& work = impl_->works[at->second];
  if (work.error.ok()) {
    work.error = result.error;
    work.failed = result.write;
  }
}

void WorkloadController::Ended(uint64_t batch, bool ok, Time now) {
  impl_->now = now;
  const auto at = impl_->batches.find(batch);
  if (at == impl_->batches.end()) {
    return;
  }
  const Key key = at->second;
  impl_->batches.erase(at);
  Work& work = impl_->works[key];
  work.batch = 0;
  const bool again = std::exchange(work.again, false);
  const kube::ApiError error = std::exchange(work.error, {});
  const Json* object = impl_->cache.store().FindObject(key);
  if (object == nullptr) {
    impl_->Forget(key);
    return;
  }
  control::JobMemory* memory = IsVcJob(key) ? &impl_->memories[json::Uid(*object)] : nullptr;
  if (ok) {
    work.failures = work.conflicts = 0;
    work.not_before = {};
    if (memory != nullptr) {
      memory->failures = 0;
      memory->trouble = {};
    }
    if (again) {
      impl_->Mark(key);
    }
    return;
  }
  // What exists and does not appear in the cache within a while is not ours.
  const bool in_the_way = error.reason == "AlreadyExists" && ++work.conflicts > kMostQuickConflicts;
  const bool conflict = !in_the_way && (error.failure == kube::Failure::kConflict ||
                                        error.failure == kube::Failure::kNotFound);
  const bool refused = !conflict && !error.retriable();
  if (refused) {
    ++work.failures;
    const std::string resource = kube::ResourceName(work.failed.resource);
    impl_->metrics.Count("hopwise_controller_write_failures_total", 1, {{"resource", resource}});
    Log(LogLevel::kWarning, "write_refused", {{"error", error.message}});
    const std::string reason(ReasonOf(work.failed));
    impl_->untold.push_back(
        {ReferenceTo(key, json::Uid(*object)),
         {.warning = true, .reason = reason, .message = error.message, .key = ""}});
    if (memory != nullptr) {
      ++memory->failures;
      memory->trouble = {reason, error.message};
    }
  }
  work.not_before = now + (conflict  ? kConflictWait
                           : refused ? RefusalWait(work.failures)
                                     : kUnreachableWait);
  impl_->Schedule(key, work.not_before);
}

WorkEffects WorkloadController::Step(Time now) {
  WorkEffects effects;
  Impl& impl = *impl_;
  impl.now = now;
  effects.events = std::exchange(impl.untold, {});
  if (!impl.leading || !impl.synced) {
    return effects;
  }
  while (!impl.due.empty() && impl.due.begin()->first <= now.ns) {
    const Key key = impl.due.begin()->second;
    impl.due.erase(impl.due.begin());
    Work& work = impl.works[key];
    work.due = {};
    if (work.batch != 0) {
      work.again = true;
    } else if (impl.cache.store().Find(key) == nullptr) {
      impl.works.erase(key);
    } else {
      impl.Begin(key, impl.Reconcile(key), effects);
      if (work.batch == 0 && !work.due.set()) {
        impl.works.erase(key);
      }
    }
  }
  return effects;
}

Time WorkloadController::next_wake() const {
  const bool works = impl_->leading && impl_->synced && !impl_->due.empty();
  return works ? Time{impl_->due.begin()->first} : Time{};
}

std::vector<WatchedKind> WatchedWorkloads(const ControllerOptions& options) {
  std::vector<WatchedKind> kinds;
  if (options.jobs || options.pod_groups) {
    kinds.push_back({kube::kPods});
  }
  if (options.jobs || options.pod_groups || options.queues) {
    kinds.push_back({kube::kPodGroups, true});
  }
  if (options.jobs) {
    kinds.push_back({kube::kVcJobs, true});
    kinds.push_back({kube::kPriorityClasses});
  }
  if (options.queues) {
    kinds.push_back({kube::kQueues, true});
  }
  if (options.jobs || options.queues) {
    kinds.push_back({kube::kCommands, true});
  }
  if (options.pod_groups) {
    kinds.push_back({kube::kReplicaSets});
    kinds.push_back({kube::kStatefulSets});
    kinds.push_back({kube::kBatchJobs});
  }
  return kinds;
}

}  // namespace hopwise::daemon
