#include "control/job_controller.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/quantity.h"
#include "base/time.h"
#include "control/discovery.h"
#include "control/expand.h"
#include "control/job_pods.h"
#include "control/job_volumes.h"
#include "control/vcjob.h"

namespace hopwise::control {
namespace {

using Verb = Write::Verb;

constexpr std::string_view kPending = "Pending", kRunning = "Running", kRestarting = "Restarting",
                           kAborting = "Aborting", kAborted = "Aborted", kCompleting = "Completing",
                           kCompleted = "Completed", kTerminating = "Terminating",
                           kTerminated = "Terminated", kFailed = "Failed";
// In status.controlledResources.
constexpr std::string_view kHostsMark = "hosts";

bool IsFinal(std::string_view phase) {
  return phase == kCompleted || phase == kTerminated || phase == kFailed;
}
// Everything of the job is being ended, or has been.
bool IsEnding(std::string_view phase) {
  return IsFinal(phase) || phase == kAborting || phase == kAborted || phase == kCompleting ||
         phase == kTerminating;
}

Time TimeAt(const Json& object, Path path) {
  const Result<Time> time = ParseRfc3339(Text(object, path));
  return time ? *time : Time();
}

class JobReconciler {
 public:
  JobReconciler(const JobView& view, JobMemory& memory)
      : view_(view),
        memory_(memory),
        job_(*view.store.FindObject(view.job)),
        tasks_(VcTasks(job_)),
        status_(job_.contains("status") ? job_["status"] : Json::object()),
        next_(status_),
        phase_(Text(status_, {"state", "phase"})),
        pods_(JobPodsOf(view.store, job_)),
        min_available_(VcMinAvailable(job_, tasks_)) {
    for (const VcTask& task : tasks_) {
      total_ = SaturatingAdd(total_, task.replicas);
    }
  }

  Outcome Run() {
    if (!Text(job_, {"metadata", "deletionTimestamp"}).empty()) {
      return {};
    }
    if (phase_.empty()) {
      Enter(kPending, "", "");
      CheckDependencies();
    }
    const JobRequest request = TakeRequest();
    const bool acted = Act(request);
    if (IsEnding(phase_)) {
      End();
    } else if (phase_ == kRestarting) {
      Restart(acted ? request : JobRequest());
    } else {
      Sync();
    }
    WriteStatus();
    Assemble(acted);
    return std::move(out_);
  }

 private:
  // --- what there is
  [[nodiscard]] int64_t version() const { return Number(next_, {"version"}, 0); }
  [[nodiscard]] int64_t retries() const { return Number(next_, {"retryCount"}, 0); }
  [[nodiscard]] int64_t max_retry() const {
    return Number(job_, {"spec", "maxRetry"}, kDefaultMaxRetry);
  }
  // Those that end and those that are about to be deleted.
  [[nodiscard]] bool IsLeaving(const JobPod& pod) const {
    return pod.terminating || leaving_.contains(pod.uid);
  }

  // --- what happened

  JobRequest TakeRequest() {
    for (const Key& key : view_.commands) {
      const Json& command = *view_.store.FindObject(key);
      Write write;
      write.verb = Verb::kDelete;
      write.key = key;
      write.uid = Uid(command);
      commands_.push_back(std::move(write));
      const std::string word = Text(command, {"action"});
      if (const std::optional<JobAction> action = ParseJobAction(word)) {
        Tell(false, "CommandIssued", fmt::format("command {} is carried out, once", word));
        return {*action, {"CommandIssued", "", "", -1, {}, view_.now}};
      }
      Tell(true, "CommandIssued", fmt::format("command {} is not known", word));
    }
    if (view_.most_failures > 0 && memory_.failures >= view_.most_failures) {
      Tell(true, "ExecuteAction",
           fmt::format("what it needs failed {} times one after the other, and it is given up",
                       memory_.failures));
      memory_.failures = 0;
      return {JobAction::kTerminateJob, {"OutOfSync", "", "", -1, {}, view_.now}};
    }
    return ApplyPolicies(job_, Events(), view_.now, out_.again);
  }

  std::vector<JobEvent> Events() {
    std::vector<JobEvent> events;
    for (const JobPod& pod : pods_) {
      if (pod.version < Number(status_, {"version"}, 0)) {
        memory_.expected.insert(pod.uid);
        continue;
      }
      AddPodEvent(pod, events);
    }
    std::ranges::move(memory_.evicted, std::back_inserter(events));
    memory_.evicted.clear();
    AddTaskEvents(events);
    const int64_t generation = Number(job_, {"metadata", "generation"}, 0);
    const int64_t before = std::exchange(memory_.generation, generation);
    if (before != 0 && before != generation) {
      events.push_back({"JobUpdated", "", "", -1, {}, view_.now});
    }
    if (const Json* group = FindGroup();
        group != nullptr && Text(*group, {"status", "phase"}) == "Unknown") {
      events.push_back({"Unknown", "", "", -1, {}, view_.now});
    }
    return events;
  }

  void AddPodEvent(const JobPod& pod, std::vector<JobEvent>& events) {
    JobEvent event = {"", pod.task, pod.key.name, pod.partition, {}, view_.now};
    if (pod.terminating) {
      const bool news = memory_.expected.insert(pod.uid).second;
      if (news && !pod.finished()) {
        event.name = "PodEvicted";
        events.push_back(std::move(event));
      }
    } else if (pod.phase == "Failed") {
      event.name = "PodFailed";
      event.exit_code = ExitCodeOf(*pod.object);
      event.since = memory_.seen.try_emplace(pod.uid, view_.now).first->second;
      events.push_back(std::move(event));
    } else if (pod.phase == kPending) {
      event.name = "PodPending";
      const Time created = TimeAt(*pod.object, {"metadata", "creationTimestamp"});
      event.since = created.set() ? created : view_.now;
      events.push_back(std::move(event));
    }
  }

  void AddTaskEvents(std::vector<JobEvent>& events) const {
    for (const VcTask& task : tasks_) {
      int64_t succeeded = 0;
      int64_t restarts = 0;
      for (const JobPod& pod : pods_) {
        if (pod.task != task.name || pod.terminating) {
          continue;
        }
        succeeded += pod.phase == "Succeeded" ? 1 : 0;
        restarts += pod.finished() ? 0 : RestartsOf(*pod.object);
      }
      if (task.replicas > 0 && succeeded >= task.replicas) {
        events.push_back({"TaskCompleted", task.name, "", -1, {}, view_.now});
      }
      if (task.max_retry >= 0 && restarts > task.max_retry) {
        events.push_back({"TaskFailed", task.name, "", -1, {}, view_.now});
      }
    }
  }

  // --- from state to state

  void Enter(std::string_view phase, std::string_view reason, std::string_view message) {
    phase_ = phase;
    const std::string time = FormatRfc3339(view_.now);
    next_["state"] = {{"phase", phase}, {"lastTransitionTime", time}};
    if (!reason.empty()) {
      next_["state"]["reason"] = reason;
    }
    if (!message.empty()) {
      next_["state"]["message"] = message;
    }
    Append(next_, "conditions", {{"status", phase}, {"lastTransitionTime", time}});
    if (IsEnding(phase)) {
      const Time created = TimeAt(job_, {"metadata", "creationTimestamp"});
      next_["runningDuration"] = FormatGoDuration(created.set() ? view_.now - created : Duration{});
    }
  }

  // A kill of the whole: pods of the version before are of the past from here on.
  void EnterKill(std::string_view phase, const JobRequest& request) {
    next_["version"] = version() + 1;
    Enter(phase, request.event.name, Because(request));
    whole_ = true;
  }

  static std::string Because(const JobRequest& request) {
    const JobEvent& event = request.event;
    std::string text = fmt::format("{} because of {}", NameOf(request.action), event.name);
    if (!event.pod.empty()) {
      text += " of pod " + event.pod;
    } else if (!event.task.empty()) {
      text += " of task " + event.task;
    }
    if (event.exit_code) {
      text += fmt::format(", exit code {}", *event.exit_code);
    }
    return text;
  }

  // Whether the request changed the state.
  bool Act(const JobRequest& request) {
    const JobAction action = request.action;
    const bool alive = phase_ == kPending || phase_ == kRunning;
    const bool resumable = phase_ == kAborted || phase_ == kAborting;
    if (action == JobAction::kResumeJob ? !resumable : !alive) {
      return false;
    }
    switch (action) {
      case JobAction::kSync:
        return false;
      case JobAction::kAbortJob:
        EnterKill(kAborting, request);
        break;
      case JobAction::kTerminateJob:
        EnterKill(kTerminating, request);
        break;
      case JobAction::kCompleteJob:
        EnterKill(kCompleting, request);
        break;
      case JobAction::kRestartJob:
      case JobAction::kResumeJob:
        next_["retryCount"] = retries() + 1;
        EnterKill(kRestarting, request);
        break;
      case JobAction::kRestartTask:
      case JobAction::kRestartPod:
      case JobAction::kRestartPartition:
        next_["retryCount"] = retries() + 1;
        Enter(kRestarting, request.event.name, Because(request));
        break;
    }
    Tell(false, "ExecuteAction", Because(request));
    return true;
  }

  // Pods that a restart of a part means.
  static bool IsTarget(const JobRequest& request, const JobPod& pod) {
    const JobEvent& event = request.event;
    const bool task = event.task.empty() || pod.task == event.task;
    return request.action == JobAction::kRestartTask  ? task
           : request.action == JobAction::kRestartPod ? pod.key.name == event.pod
           : request.action == JobAction::kRestartPartition
               ? task && pod.partition == event.partition
               : false;
  }

  // --- what a state asks for

  void End() {
    const bool settled = IsFinal(phase_) || phase_ == kAborted;
    for (const JobPod& pod : pods_) {
      if (!pod.finished()) {
        DeletePod(pod);
      }
    }
    if (!settled || phase_ != kCompleted) {
      if (const Json* group = FindGroup(); group != nullptr && phase_ != kFailed) {
        Delete(group_key_, Uid(*group));
      }
    }
    RemoveObjects();
    const bool all_gone = std::ranges::all_of(
        pods_, [](const JobPod& pod) { return pod.finished() && !pod.terminating; });
    if (all_gone && !settled) {
      Enter(phase_ == kAborting     ? kAborted
            : phase_ == kCompleting ? kCompleted
                                    : kTerminated,
            "", "");
    }
    if (IsFinal(phase_)) {
      Expire();
    }
  }

  void Expire() {
    const Json* ttl = Get(job_, {"spec", "ttlSecondsAfterFinished"});
    if (ttl == nullptr || !ttl->is_number()) {
      return;
    }
    const Time since = TimeAt(next_, {"state", "lastTransitionTime"});
    const Time due = since + Seconds(Number(job_, {"spec", "ttlSecondsAfterFinished"}, 0));
    if (view_.now < due) {
      AskAgain(due);
      return;
    }
    Write write;
    write.verb = Verb::kDelete;
    write.key = view_.job;
    write.uid = Uid(job_);
    write.body = {{"propagationPolicy", "Foreground"}};
    last_.push_back(std::move(write));
  }

  void Restart(const JobRequest& request) {
    const bool given_up = retries() >= max_retry();
    for (const JobPod& pod : pods_) {
      const bool old = pod.version < version();
      if ((old && !(given_up && pod.finished())) || IsTarget(request, pod)) {
        DeletePod(pod);
      }
    }
    if (whole_) {
      if (const Json* group = FindGroup()) {
        Delete(group_key_, Uid(*group));
      }
    }
    if (given_up) {
      Enter(kFailed, "MaxRetry",
            fmt::format("it was restarted {} times, and maxRetry is {}", retries(), max_retry()));
      return;
    }
    const auto leaving = static_cast<int64_t>(
        std::ranges::count_if(pods_, [&](const JobPod& pod) { return IsLeaving(pod); }));
    if (total_ - leaving >= min_available_) {
      Enter(kPending, "", "");
    }
  }

  void Sync() {
    if (!EnsureObjects()) {
      return;
    }
    const Json* group = EnsureGroup();
    DeleteSurplus();
    if (group != nullptr && view_.admitted(*group)) {
      MakePods();
    }
    if (group != nullptr && phase_ == kPending) {
      TellWhyItWaits(*group);
    }
    MoveOn();
  }

  // Volcano's state/pending.go and state/running.go.
  void MoveOn() {
    const PodCounts counts = Count();
    const int64_t finished = counts.succeeded + counts.failed;
    if (phase_ == kPending) {
      if (counts.running + finished > 0 && counts.running + finished >= min_available_) {
        Enter(kRunning, "", "");
      }
      return;
    }
    if (total_ == 0) {
      return;  // scaled to nothing
    }
    const int64_t enough = Number(job_, {"spec", "minSuccess"}, 0);
    if (enough > 0 && counts.succeeded >= enough) {
      Enter(kCompleted, "", "");
    } else if (finished >= total_) {
      const bool task_short = std::ranges::any_of(tasks_, [&](const VcTask& task) {
        return counts.Of(task.name, "Succeeded") < task.min_available;
      });
      const bool good = enough == 0 && !task_short && counts.succeeded >= min_available_;
      Enter(good ? kCompleted : kFailed, "", "");
    } else if (counts.pending > total_ - min_available_) {
      Enter(kPending, "", "");
    }
  }

  // --- PodGroup

  const Json* FindGroup() {
    if (group_known_) {
      return view_.store.FindObject(group_key_);
    }
    group_known_ = true;
    // By name as of now, by the older naming, or by owner.
    std::vector<Key> candidates = {PodGroupKey(view_.job.ns, VcPodGroupName(job_)),
                                   PodGroupKey(view_.job.ns, view_.job.name)};
    view_.store.EachDependent(Uid(job_), [&](const Key& key, const Entry&) {
      if (IsPodGroup(key)) {
        candidates.push_back(key);
      }
    });
    group_key_ = candidates.front();
    for (const Key& candidate : candidates) {
      const Json* found = view_.store.FindObject(candidate);
      if (found != nullptr && (ControllerOf(*found) == nullptr || IsControlledBy(*found, job_))) {
        group_key_ = candidate;
        return found;
      }
    }
    return nullptr;
  }

  // The one that is there, nullptr where it is yet to come.
  const Json* EnsureGroup() {
    const Json* group = FindGroup();
    Json wanted = VcPodGroup(job_, view_.priority_of);
    if (group == nullptr) {
      Create(std::move(wanted));
      return nullptr;
    }
    Json patch = Json::object();
    if (ControllerOf(*group) == nullptr) {
      Set(patch, {"metadata", "ownerReferences"}, Json::array({ControllerRef(job_)}));
    }
    // Once for each wish: what others make of it stays.
    const std::string wish = Dump(wanted["spec"]);
    if (!Covers((*group)["spec"], wanted["spec"]) && memory_.wish != wish) {
      patch["spec"] = wanted["spec"];
    }
    memory_.wish = wish;
    if (!patch.empty()) {
      Set(patch, {"metadata", "uid"}, Uid(*group));
      Patch(group_key_, std::move(patch));
    }
    return group;
  }

  // Whether all of `wanted` is there; the API server adds its defaults.
  static bool Covers(const Json& present, const Json& wanted) {
    if (wanted.is_object() && present.is_object()) {
      return std::ranges::all_of(wanted.items(), [&](const auto& item) {
        return present.contains(item.key()) && Covers(present[item.key()], item.value());
      });
    }
    if (wanted.is_array() && present.is_array()) {
      return std::ranges::equal(wanted, present,
                                [](const Json& a, const Json& b) { return Covers(b, a); });
    }
    return wanted == present;
  }

  // Volcano copies the newest condition that is true and not Scheduled.
  void TellWhyItWaits(const Json& group) {
    std::string message;
    for (const Json& condition : List(group, {"status", "conditions"})) {
      if (Text(condition, {"status"}) == "True" && Text(condition, {"type"}) != "Scheduled") {
        message = Text(condition, {"message"});
      }
    }
    if (!message.empty() && std::exchange(memory_.told, message) != message) {
      Tell(true, "PodGroupPending", fmt::format("PodGroup {}: {}", group_key_.name, message));
    }
  }

  // --- pods

  [[nodiscard]] bool DependenciesMet(const VcTask& task) const {
    const auto met = [&](const std::string& name) {
      const auto other = std::ranges::find(tasks_, name, &VcTask::name);
      const auto good = std::ranges::count_if(pods_, [&](const JobPod& pod) {
        return pod.task == name && !IsLeaving(pod) &&
               (pod.phase == "Succeeded" || (pod.phase == kRunning && pod.ready));
      });
      return other != tasks_.end() && good >= other->min_available;
    };
    return task.depends_on.empty() ||
           (task.depends_on_any ? std::ranges::any_of(task.depends_on, met)
                                : std::ranges::all_of(task.depends_on, met));
  }

  void CheckDependencies() {
    for (const VcTask& task : tasks_) {
      for (const std::string& name : task.depends_on) {
        if (std::ranges::find(tasks_, name, &VcTask::name) == tasks_.end()) {
          Tell(true, "FailedCreate",
               fmt::format("task {} depends on task {}, which does not exist: its pods are never "
                           "made",
                           task.name, name));
        }
      }
    }
  }

  void MakePods() {
    for (const VcTask& task : tasks_) {
      if (!DependenciesMet(task)) {
        continue;
      }
      for (int64_t i = 0; i < task.replicas; ++i) {
        const Key key = PodKey(view_.job.ns, VcPodName(job_, task, i));
        if (const Json* present = view_.store.FindObject(key); present != nullptr) {
          TellIfForeign(key, *present);
          continue;
        }
        if (std::ssize(made_) >= view_.most_pods) {
          return;  // the rest when these are made
        }
        Write write;
        write.key = key;
        write.body = Pod(task, i);
        made_.push_back(std::move(write));
      }
    }
  }

  [[nodiscard]] Json Pod(const VcTask& task, int64_t index) const {
    Json pod = VcPod(job_, task, index, group_key_.name);
    SetAnnotation(pod, "volcano.sh/job-version", std::to_string(version()));
    SetAnnotation(pod, "volcano.sh/job-retry-count", std::to_string(retries()));
    MountVolumes(job_, pod);
    DressPod(job_, tasks_, task, index, pod);
    return pod;
  }

  void TellIfForeign(const Key& key, const Json& pod) {
    if (!IsControlledBy(pod, job_) && memory_.foreign.insert(key.name).second) {
      Tell(true, "FailedCreate",
           fmt::format("cannot make pod {}: it exists and does not belong to the job", key.name));
    }
  }

  // Replicas beyond what is asked, and pods of a past version.
  void DeleteSurplus() {
    std::set<std::string> wanted;
    for (const VcTask& task : tasks_) {
      for (int64_t i = 0; i < task.replicas; ++i) {
        wanted.insert(VcPodName(job_, task, i));
      }
    }
    for (const JobPod& pod : pods_) {
      if (!wanted.contains(pod.key.name) || pod.version < version()) {
        DeletePod(pod);
      }
    }
  }

  void DeletePod(const JobPod& pod) {
    memory_.expected.insert(pod.uid);
    if (!pod.terminating && leaving_.insert(pod.uid).second) {
      Delete(pod.key, pod.uid);
    }
  }

  void Delete(const Key& key, const std::string& uid) {
    Write write;
    write.verb = Verb::kDelete;
    write.key = key;
    write.uid = uid;
    first_.push_back(std::move(write));
  }

  // --- volumes and plugins

  [[nodiscard]] bool IsRecorded(const std::string& name) const {
    return Get(next_, {"controlledResources", name}) != nullptr;
  }

  void Create(Json object) {
    Write write;
    write.key = KeyOf(object);
    write.body = std::move(object);
    write.exists_ok = true;
    first_.push_back(std::move(write));
  }

  // What the plugins and volumes need, once; recorded in the status. False while keys are made.
  bool EnsureObjects() {
    for (Json& claim : ClaimsOf(job_)) {
      const std::string name = Name(claim);
      if (!IsRecorded("volume-pvc-" + name)) {
        Set(next_, {"controlledResources", "volume-pvc-" + name}, name);
        Create(std::move(claim));
      }
    }
    const std::vector<std::string> plugins = PluginsOf(job_);
    const bool fresh = std::ranges::any_of(
        plugins, [&](const std::string& name) { return !IsRecorded("plugin-" + name); });
    if (fresh) {
      std::optional<SshKeys> keys = SshKeys();
      if (NeedsKeys(job_)) {
        keys = view_.keys();
      }
      if (!keys) {
        AskAgain(view_.now + kKeysPause);
        return false;
      }
      for (const std::string& problem : PluginProblems(job_)) {
        Tell(true, "PluginError", problem);
      }
      for (Json& object : PluginObjects(job_, tasks_, *keys)) {
        Create(std::move(object));
      }
      for (const std::string& name : plugins) {
        Set(next_, {"controlledResources", "plugin-" + name}, name);
      }
    }
    UpdateHosts(fresh);
    return true;
  }

  // Replicas that come and go change the hosts that the svc and ssh plugins tell of. A mark of what
  // was last written stands beside the plugins.
  void UpdateHosts(bool fresh) {
    if (!HasPlugin(job_, "svc")) {
      return;
    }
    const Json map = HostsOf(job_, tasks_);
    const std::string mark = StableSuffix(Dump(map["data"]));
    const std::string before = Text(next_, {"controlledResources", kHostsMark});
    if (before == mark) {
      return;
    }
    Set(next_, {"controlledResources", kHostsMark}, mark);
    if (fresh) {
      return;
    }
    Patch(KeyOf(map), {{"data", map["data"]}});
    if (HasPlugin(job_, "ssh")) {
      Patch({"", "Secret", view_.job.ns, SshSecretName(job_)},
            {{"stringData", {{"config", SshConfigOf(job_, tasks_)}}}});
    }
  }

  void Patch(const Key& key, Json body) {
    Write write;
    write.verb = Verb::kPatch;
    write.key = key;
    write.body = std::move(body);
    first_.push_back(std::move(write));
  }

  // Of a job that is over; claims stay until it is deleted.
  void RemoveObjects() {
    const bool recorded = std::ranges::any_of(
        PluginsOf(job_), [&](const std::string& name) { return IsRecorded("plugin-" + name); });
    if (!recorded) {
      return;
    }
    for (const Json& object : PluginObjects(job_, tasks_, {})) {
      Delete(KeyOf(object), "");
    }
    for (const std::string& name : PluginsOf(job_)) {
      Unset(next_, {"controlledResources", "plugin-" + name});
    }
    Unset(next_, {"controlledResources", kHostsMark});
  }

  // --- status

  [[nodiscard]] PodCounts Count() const {
    PodCounts counts;
    for (const JobPod& pod : pods_) {
      counts.Add(pod, IsLeaving(pod));
    }
    return counts;
  }

  void WriteStatus() {
    Count().WriteInto(next_);
    next_["minAvailable"] = min_available_;
    // What hinders it stands where people look, until it does not.
    Json& state = next_["state"];
    if (!memory_.trouble.message.empty() && !IsEnding(phase_)) {
      state["reason"] = memory_.trouble.reason;
      state["message"] = memory_.trouble.message;
    } else if (std::ranges::find(kJobTroubles, Text(state, {"reason"})) != kJobTroubles.end()) {
      state.erase("reason");
      state.erase("message");
    }
  }

  // An action is written before what it does; else the status tells what was done, or, where that
  // failed before, why it cannot be done.
  void Assemble(bool acted) {
    const bool status_first = acted || memory_.failures > 0;
    std::vector<Write> status;
    if (Json change = MergeDiff(status_, next_); !change.is_null()) {
      Write write;
      write.verb = Verb::kPatchStatus;
      write.key = view_.job;
      write.body = {
          {"metadata",
           {{"uid", Uid(job_)}, {"resourceVersion", Text(job_, {"metadata", "resourceVersion"})}}},
          {"status", std::move(change)}};
      status.push_back(std::move(write));
    }
    Step(std::move(commands_));
    if (status_first) {
      Step(std::exchange(status, {}));
    }
    Step(std::move(first_));
    Step(std::move(made_));
    Step(std::move(status));
    Step(std::move(last_));
  }

  void Step(std::vector<Write>&& writes) {
    if (!writes.empty()) {
      out_.steps.push_back(std::move(writes));
    }
  }

  void AskAgain(Time when) { out_.again = out_.again.set() ? std::min(out_.again, when) : when; }

  void Tell(bool warning, std::string_view reason, std::string message) {
    out_.events.push_back({view_.job, Uid(job_), warning, std::string(reason), std::move(message)});
  }

  const JobView& view_;
  JobMemory& memory_;
  const Json& job_;
  std::vector<VcTask> tasks_;
  Json status_, next_;  // as it is, and as it should be
  std::string phase_;   // of next_
  std::vector<JobPod> pods_;
  int64_t min_available_ = 0, total_ = 0;
  bool whole_ = false;  // the request kills all of it
  std::set<std::string> leaving_;
  Key group_key_;
  bool group_known_ = false;
  // What is to be written: at the same time, in this order.
  std::vector<Write> commands_, first_, made_, last_;
  Outcome out_;
};

}  // namespace

Outcome ReconcileJob(const JobView& view, JobMemory& memory) {
  return JobReconciler(view, memory).Run();
}

void PodGone(const Json& pod, Time now, JobMemory& memory) {
  const JobPod view = JobPodOf(KeyOf(pod), pod);
  memory.seen.erase(view.uid);
  if (memory.expected.erase(view.uid) > 0 || view.finished()) {
    return;
  }
  memory.evicted.push_back({"PodEvicted", view.task, view.key.name, view.partition, {}, now});
}

}  // namespace hopwise::control
