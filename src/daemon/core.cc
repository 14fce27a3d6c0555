#include "daemon/core.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "api/json.h"
#include "base/log.h"
#include "daemon/measures.h"
#include "rt/clock.h"

namespace hopwise::daemon {
namespace {

// Words of a kubelet that will not run what was bound to it: kubernetes pkg/kubelet/lifecycle
// (predicate failures), cm/topologymanager and cm/admission. Out-of-anything is "OutOf<resource>".
bool KubeletRefused(const api::Pod& pod) {
  return pod.phase == api::PodPhase::kFailed &&
         (pod.reason.starts_with("OutOf") || pod.reason == "TopologyAffinityError" ||
          pod.reason == "UnexpectedAdmissionError" || pod.reason == "AdmissionError");
}

Duration PauseAfter(int failures) {
  Duration pause = kFirstBindPause;
  for (int i = 1; i < failures && pause < kMostBindPause; ++i) {
    pause.ns *= 2;
  }
  return std::min(pause, kMostBindPause);
}

template <class T>
const T& As(const kube::WatchEvent& event) {
  return std::get<T>(event.decoded.object);
}

bool IsDeleted(const kube::WatchEvent& event) {
  return event.type == kube::WatchEvent::Type::kDeleted;
}

// What of a queue decides whether gangs are admitted; its counters, which we write ourselves every
// second, do not.
std::tuple<bool, bool, std::string> StandingOf(const cluster::State& state,
                                               const std::string& name) {
  const QueueId id = state.FindQueue(name);
  return id.valid() ? std::tuple(true, state.queue(id).open, state.queue(id).parent_name)
                    : std::tuple(false, false, std::string());
}

Time Earlier(Time a, Time b) { return !a.set() ? b : !b.set() ? a : std::min(a, b); }

}  // namespace

Core::Core(CoreOptions options, sched::Config config, server::Metrics& metrics)
    : options_(std::move(options)),
      metrics_(metrics),
      half_bound_(options_.gang_deadline),
      awaiter_(options_.group_wait) {
  cluster::StateOptions state_options;
  state_options.scheduler_names = options_.scheduler_names;
  state_options.default_queue = options_.default_queue;
  state_ = std::make_unique<cluster::State>(std::move(state_options));
  scheduler_ = std::make_unique<sched::Scheduler>(*state_, std::move(config));
}

Core::~Core() = default;

// --- what happens

void Core::Observe(const kube::Resource& resource, kube::WatchEvent&& event, Time now) {
  dirty_ = true;
  const bool deleted = IsDeleted(event);
  const api::ObjectMeta meta = api::MetaOf(event.decoded.object);
  if (resource == kube::kPods) {
    ObservePod(std::move(event), now);
  } else if (resource == kube::kNodes) {
    ObserveNode(event.decoded.object, deleted);
  } else if (resource == kube::kPodGroups || resource == kube::kPluginPodGroups) {
    ObservePodGroup(std::move(event), resource == kube::kPluginPodGroups);
  } else if (resource == kube::kQueues) {
    const auto before = StandingOf(*state_, meta.name);
    if (deleted) {
      state_->RemoveQueue(meta.name);
      queues_.Remove(meta.name);
    } else {
      state_->Apply(event.decoded.object);
      queues_.Apply(As<api::Queue>(event));
    }
    if (StandingOf(*state_, meta.name) != before) {
      TouchAll();  // a queue that opens admits its gangs
    }
  } else if (resource == kube::kHyperNodes && deleted) {
    state_->RemoveHyperNode(meta.name);
    faults_.Remove(meta.name);
  } else if (resource == kube::kHyperNodes) {
    state_->Apply(event.decoded.object);
    faults_.Apply(As<api::HyperNode>(event));
  } else if (resource == kube::kPriorityClasses && deleted) {
    state_->RemovePriorityClass(meta.name);
  } else if (!deleted) {
    state_->Apply(event.decoded.object);
  }
}

void Core::TouchAll() {
  for (size_t g = 0; g < state_->gang_slots(); ++g) {
    Touch(GangId(g));
  }
}

void Core::Touch(GangId gang) {
  if (gang.valid() && state_->gang(gang).alive) {
    touched_.insert(gang);
  }
}

void Core::ObservePod(kube::WatchEvent&& event, Time now) {
  const api::ObjectMeta& meta = api::MetaOf(event.decoded.object);
  PodId id = state_->FindPod(meta.ns, meta.name);
  const bool known = id.valid();
  const std::string old_uid = known ? state_->pod(id).uid : "";
  const GangId old_gang = known ? state_->pod(id).gang : GangId();
  const cluster::Gang gang_before = old_gang.valid() ? state_->gang(old_gang) : cluster::Gang();
  const bool was_bound =
      known && old_uid == meta.uid && state_->pod(id).state == cluster::PodState::kBound;
  if (IsDeleted(event) && known && !meta.uid.empty() && old_uid != meta.uid) {
    return;  // an earlier pod of the name; the present one was told before
  }
  if (known) {
    Touch(state_->pod(id).gang);
  }
  if (const auto at = binding_.find(meta.uid); at != binding_.end()) {
    at->second.version = meta.resource_version;
  }
  if (known && (IsDeleted(event) || old_uid != meta.uid)) {
    waiters_.LosePod(id);
    failures_.erase(old_uid);
    if (binding_.erase(old_uid) > 0) {
      pending_.cancelled.push_back({meta.ns, meta.name, old_uid});
    }
  }
  if (IsDeleted(event)) {
    warned_.erase(old_uid);
    awaiter_.Forget(old_uid);
    state_->RemovePod(meta.ns, meta.name);
    LetGo(old_gang, gang_before);
    return;
  }
  api::Pod& pod = std::get<api::Pod>(event.decoded.object);
  if (KubeletRefused(pod) && known) {
    SeeRefused(pod, now);
  }
  const bool fresh = !known || old_uid != meta.uid;
  awaiter_.Look(pod, fresh && IsOurs(pod), now);
  state_->Apply(event.decoded.object);
  id = state_->FindPod(meta.ns, meta.name);
  const cluster::PodRecord& record = state_->pod(id);
  Touch(record.gang);
  if (old_gang != record.gang) {
    LetGo(old_gang, gang_before);
  }
  if (cluster::HoldsRoom(record.state) && record.state == cluster::PodState::kBound) {
    SeeBound(id, pod, was_bound, now);
  } else if (record.state == cluster::PodState::kPending) {
    waiters_.SeePod(id, pod);
    if (old_uid != meta.uid) {
      Gather(record.gang, now);
      if (synced_) {
        MeasureStage(metrics_, record, "Watched", now);
      }
    }
  } else if (record.state == cluster::PodState::kFinished) {
    waiters_.LosePod(id);
  } else if (record.state == cluster::PodState::kAssumed && record.terminating) {
    // The server binds nothing that is being deleted.
    pending_.cancelled.push_back({meta.ns, meta.name, meta.uid});
    Forget(meta.ns, meta.name, meta.uid);
  }
}

void Core::SeeBound(PodId id, const api::Pod& pod, bool was_bound, Time now) {
  waiters_.LosePod(id);
  const auto at = binding_.find(pod.meta.uid);
  const bool ours = state_->pod(id).ours;
  if (at != binding_.end()) {
    const bool failed = at->second.retry.set();
    binding_.erase(at);
    if (!failed) {
      return;  // the binder tells
    }
  }
  if (!ours || was_bound) {
    return;
  }
  const auto scheduled =
      std::ranges::find(pod.conditions, std::string_view("PodScheduled"), &api::Condition::type);
  if (scheduled != pod.conditions.end() && !once_synced_) {
    bound_at_[id] = scheduled->last_transition;
  }
  if (scheduled != pod.conditions.end() && scheduled->status == "True" &&
      now - scheduled->last_transition < kEventGap) {
    OweEvent({pod.meta.ns, pod.meta.name, pod.meta.uid}, pod.node_name, now);
  }
}

// To be told by whoever leads next; told twice, it is written once.
void Core::OweEvent(const ObjectName& pod, const std::string& node, Time now) {
  while (!missing_events_.empty() && now - missing_events_.front().first > kEventGap) {
    missing_events_.pop_front();
  }
  missing_events_.emplace_back(now, ScheduledEvent(pod, node));
}

// What was there when we began, or came while another led, is not new.
void Core::Gather(GangId gang, Time now) {
  if (gang.valid() && deciding() && gatherer_.Came(*state_, gang, now)) {
    scheduler_->Hold(gang);
  }
}

bool Core::IsOurs(const api::Pod& pod) const {
  const std::vector<std::string>& names = options_.scheduler_names;
  return std::ranges::find(names, pod.scheduler_name) != names.end();
}

// Nobody named a group for these: they are placed as they are.
void Core::EndAwaiting(Time now) {
  for (api::Pod& pod : awaiter_.Due(now)) {
    kube::WatchEvent event;
    event.decoded.object = std::move(pod);
    Observe(kube::kPods, std::move(event), now);
  }
}

void Core::EndGathering(Time now) {
  for (const GangId gang : gatherer_.Due(now)) {
    scheduler_->Release(gang);
    dirty_ = true;
  }
}

void Core::SeeRefused(const api::Pod& pod, Time now) {
  const PodId id = state_->FindPod(pod.meta.ns, pod.meta.name);
  const cluster::PodRecord& record = state_->pod(id);
  const NodeId node = state_->FindNode(pod.node_name);
  if (record.state == cluster::PodState::kFinished || !record.ours || !node.valid()) {
    return;
  }
  Log(LogLevel::kWarning, "kubelet_refused",
      {{"pod", pod.meta.ns + "/" + pod.meta.name},
       {"node", pod.node_name},
       {"reason", pod.reason}});
  metrics_.Count("hopwise_binds_total", 1, {{"result", "refused"}});
  state_->SetAvoided(node, record.resource_class, true);
  avoided_.emplace_back(now + kAvoidNode, std::pair(node, record.resource_class));
}

void Core::ObservePodGroup(kube::WatchEvent&& event, bool scheduler_plugins) {
  const api::ObjectMeta& meta = api::MetaOf(event.decoded.object);
  const std::string ns = meta.ns;
  const std::string name = meta.name;
  if (IsDeleted(event)) {
    const GangId gang = state_->FindGang(ns, name);
    const cluster::Gang before = gang.valid() ? state_->gang(gang) : cluster::Gang();
    warned_.erase(meta.uid);
    state_->RemovePodGroup(ns, name, scheduler_plugins);
    groups_.Remove(scheduler_plugins, ns, name);
    LetGo(gang, before);
  } else {
    groups_.Apply(As<api::PodGroup>(event));
    state_->Apply(event.decoded.object);
  }
  Touch(state_->FindGang(ns, name));
  queues_.Touch();
}

// What is kept of a gang by name goes with it.
void Core::LetGo(GangId gang, const cluster::Gang& before) {
  const bool there =
      gang.valid() && state_->gang(gang).alive && state_->gang(gang).sequence == before.sequence;
  if (gang.valid() && !there && before.source != cluster::GangSource::kLonePod) {
    DropGang(metrics_, before);
  }
}

void Core::ObserveNode(const api::Object& object, bool deleted) {
  if (!deleted) {
    state_->Apply(object);
    return;
  }
  const std::string& name = api::MetaOf(object).name;
  const NodeId node = state_->FindNode(name);
  std::vector<PodId> assumed;
  if (node.valid()) {
    for (const PodId id : state_->PodsOn(node)) {
      Touch(state_->pod(id).gang);
      if (state_->pod(id).state == cluster::PodState::kAssumed) {
        assumed.push_back(id);
      }
    }
    std::erase_if(avoided_, [&](const auto& entry) {
      const bool there = entry.second.first == node;
      if (there) {
        state_->SetAvoided(node, entry.second.second, false);
      }
      return there;
    });
  }
  state_->RemoveNode(name);
  // What was to be bound there is placed again, beside the members that are bound.
  std::ranges::sort(assumed);
  for (const PodId id : assumed) {
    const cluster::PodRecord& pod = state_->pod(id);
    pending_.cancelled.push_back({pod.ns, pod.name, pod.uid});
    Forget(pod.ns, pod.name, pod.uid);
  }
}

// Takes the assumption back, if it still stands.
void Core::Forget(const std::string& ns, const std::string& name, const std::string& uid) {
  binding_.erase(uid);
  const PodId id = state_->FindPod(ns, name);
  if (id.valid() && state_->pod(id).uid == uid &&
      state_->pod(id).state == cluster::PodState::kAssumed) {
    Touch(state_->pod(id).gang);
    state_->Forget(id);
    dirty_ = true;
  }
}

void Core::BindEnded(const BindResult& result, Time now) {
  const auto at = binding_.find(result.pod.uid);
  if (result.sent) {
    const char* word = result.error.ok() ? "bound" : "failed";
    metrics_.Count("hopwise_binds_total", 1, {{"result", word}});
    metrics_.Count("volcano_schedule_attempts_total", 1,
                   {{"result", result.error.ok() ? "scheduled" : "error"}});
    ObserveMs(metrics_, "hopwise_bind_duration_milliseconds", result.took);
    ObserveMs(metrics_, "volcano_scheduling_stage_duration_milliseconds", result.took,
              {{"stage", "Bind"}});
  }
  if (result.error.ok()) {
    if (const PodId id = state_->FindPod(result.pod.ns, result.pod.name); id.valid()) {
      MeasureStage(metrics_, state_->pod(id), "Bound", now);
    }
    return;  // the watch shows it
  }
  if (at == binding_.end() || at->second.decision != result.decision) {
    // Gone, decided anew since, or bound after all: then the binder, who has given up, told
    // nothing.
    const PodId id = state_->FindPod(result.pod.ns, result.pod.name);
    if (id.valid() && state_->pod(id).uid == result.pod.uid && IsBound(id)) {
      OweEvent(result.pod, std::string(state_->node(state_->pod(id).node).name), now);
    }
    return;
  }
  dirty_ = true;
  if (!result.sent) {
    Forget(result.pod.ns, result.pod.name, result.pod.uid);
    return;
  }
  Binding& binding = at->second;
  ++binding.failures;
  const Duration pause = PauseAfter(binding.failures);
  retries_.erase({binding.retry, result.pod.uid});
  binding.unsure = result.error.retriable();
  binding.retry = now + (binding.given_back ? Duration{} : pause);
  retries_.emplace(binding.retry, result.pod.uid);
  Log(LogLevel::kWarning, "bind_failed",
      {{"pod", NameOf(result.pod)},
       {"node", result.node},
       {"failures", binding.failures},
       {"again_in", FormatGoDuration(pause)},
       {"error", result.error.message}});
  // The watch may be behind: what is true decides whether the pod is gone, bound, or to be tried
  // again.
  pending_.look_ups.push_back(result.pod);
  const PodId id = state_->FindPod(result.pod.ns, result.pod.name);
  if (id.valid() && state_->pod(id).uid == result.pod.uid) {
    waiters_.TellBindFailed(*state_, id, result.node, result.error.message, now, pending_);
  }
}

void Core::RetryFailed(Time now) {
  while (!retries_.empty() && retries_.begin()->first <= now) {
    const auto [when, uid] = *retries_.begin();
    retries_.erase(retries_.begin());
    const auto at = binding_.find(uid);
    if (at == binding_.end() || at->second.retry != when) {
      continue;  // gone or bound meanwhile, or another bind
    }
    if (at->second.unsure) {
      pending_.look_ups.push_back(at->second.pod);
      at->second.retry = now + PauseAfter(at->second.failures);
      retries_.emplace(at->second.retry, uid);
      continue;
    }
    const Binding binding = at->second;
    const PodId id = state_->FindPod(binding.pod.ns, binding.pod.name);
    const bool stands = id.valid() && state_->pod(id).uid == uid &&
                        state_->pod(id).state == cluster::PodState::kAssumed;
    if (!stands) {
      binding_.erase(uid);
      continue;
    }
    Forget(binding.pod.ns, binding.pod.name, uid);
    failures_[uid] = binding.failures;
  }
}

void Core::PatchEnded(const Patch& patch, const kube::ApiError& error, Time now) {
  if (!error.ok()) {
    const LogLevel level =
        error.failure == kube::Failure::kConflict || error.failure == kube::Failure::kNotFound
            ? LogLevel::kDebug
            : LogLevel::kWarning;
    Log(level, "write_failed", {{"error", error.message}});
  }
  if (patch.resource == kube::kPodGroups || patch.resource == kube::kPluginPodGroups) {
    groups_.Written(patch.resource == kube::kPluginPodGroups, patch.object.ns, patch.object.name,
                    error, now);
  } else if (patch.resource == kube::kQueues) {
    queues_.Written(patch.object.name, error, now);
  } else if (patch.resource == kube::kPods && error.failure == kube::Failure::kConflict) {
    const PodId id = state_->FindPod(patch.object.ns, patch.object.name);
    if (id.valid() && state_->pod(id).uid == patch.object.uid) {
      waiters_.Overtaken(*state_, id, now);
    }
  }
}

void Core::SetSynced(bool synced) {
  synced_ = synced;
  if (!synced || std::exchange(once_synced_, true)) {
    return;
  }
  // A gang by labels has no object to say whether it ran: found bound, it is taken to have, unless
  // it was left in the middle of being bound.
  for (size_t g = 0; g < state_->gang_slots(); ++g) {
    const cluster::Gang& gang = state_->gang(GangId(g));
    if (gang.alive && gang.source == cluster::GangSource::kLabels &&
        std::ranges::any_of(gang.pods, [&](PodId id) { return IsBound(id); }) &&
        !WasLeftHalfBound(gang)) {
      state_->MarkRan(GangId(g));
    }
  }
  bound_at_.clear();
}

bool Core::IsBound(PodId id) const {
  return state_->pod(id).state == cluster::PodState::kBound && !state_->pod(id).terminating;
}

// Whether the members that were there when the last one was bound made the minimum, and fewer are
// bound: whoever bound them died before the rest. What replaces a lost member is made later.
bool Core::WasLeftHalfBound(const cluster::Gang& gang) const {
  Time last;
  for (const PodId id : gang.pods) {
    if (const auto at = bound_at_.find(id); IsBound(id) && at != bound_at_.end()) {
      last = std::max(last, at->second);
    }
  }
  const auto bound = std::ranges::count_if(gang.pods, [&](PodId id) { return IsBound(id); });
  const auto waited = std::ranges::count_if(gang.pods, [&](PodId id) {
    const cluster::PodRecord& pod = state_->pod(id);
    return pod.state == cluster::PodState::kPending && pod.creation <= last;
  });
  return bound < gang.min_member && bound + waited >= gang.min_member;
}

void Core::LookedUp(const ObjectName& pod, kube::WatchEvent&& event, Time now) {
  const auto at = binding_.find(pod.uid);
  if (at == binding_.end()) {
    return;  // gone, or seen bound
  }
  at->second.unsure = false;
  const std::string& version = api::MetaOf(event.decoded.object).resource_version;
  if (IsDeleted(event) || !kube::IsOlder(version, at->second.version)) {
    Observe(kube::kPods, std::move(event), now);
  }
}

void Core::QueueCreationEnded(const std::string& name, const kube::ApiError& error, Time now) {
  if (!error.ok() && error.failure != kube::Failure::kConflict) {
    Log(LogLevel::kWarning, "queue_not_created", {{"queue", name}, {"error", error.message}});
    queues_.NotCreated(name, now);
  }
}

// Whoever stops leading may not send what it decided: what was not sent is given back by the
// binder, what was sent is seen by the watch or given back too.
void Core::SetLeading(bool leading, Time now) {
  leading_ = leading;
  dirty_ = true;
  metrics_.Set("hopwise_leader", leading && !options_.dry_run ? 1 : 0);
  scheduler_->DropClaims();
  for (size_t g = 0; leading && g < state_->gang_slots(); ++g) {
    Touch(GangId(g));
    if (state_->gang(GangId(g)).alive) {
      half_bound_.Look(*state_, GangId(g), now);
    }
  }
}

void Core::SetConfig(sched::Config config) {
  scheduler_->SetConfig(std::move(config));
  dirty_ = true;
}

// --- what follows

Effects Core::Step(Time now) {
  Effects effects = std::exchange(pending_, {});
  if (!deciding()) {
    return effects;
  }
  const Time claim_end = scheduler_->next_claim_end();
  dirty_ = dirty_ || (claim_end.set() && claim_end <= now);
  EndAvoidance(now);
  EndAwaiting(now);
  EndGathering(now);
  RetryFailed(now);
  for (auto& [when, event] : std::exchange(missing_events_, {})) {
    effects.events.push_back(std::move(event));
  }
  if (std::exchange(dirty_, false)) {
    Decide(now, effects);
  }
  Recheck(now, effects);
  faults_.Look(state_->topology(), now, effects);
  const Time due = half_bound_.next_wake();
  if (due.set() && due <= now) {
    for (const GangId id : half_bound_.Due(*state_, now)) {
      if (!options_.dry_run && !IsBeingBound(id) && !scheduler_->HoldsClaim(id)) {
        GiveBack(id, effects);
      }
    }
  }
  std::vector<GangId> told;
  waiters_.Wake(*state_, now, effects, told);
  touched_.insert(told.begin(), told.end());
  for (const GangId id : touched_) {
    const cluster::Gang& gang = state_->gang(id);
    if (!gang.alive || (scheduler_->LastReport(id) == nullptr && gang.invalid.empty())) {
      waiters_.Forget(id);
    }
    groups_.Touch(id);
    half_bound_.Look(*state_, id, now);
  }
  if (!touched_.empty()) {
    queues_.Touch();
  }
  touched_.clear();
  const auto locate = [this](GangId id) { return scheduler_->Locate(id); };
  groups_.Settle(*state_, waiters_, locate, now, fmt::format("run-{}", runs_), effects);
  queues_.CreateMissing(options_.default_queue, now, effects);
  queues_.Settle(*state_, groups_, now, effects);
  MeasureWaiting(now);
  if (options_.dry_run) {
    return {};
  }
  return effects;
}

Time Core::next_wake() const {
  if (!deciding()) {
    return {};
  }
  Time next = Earlier(waiters_.next_wake(), groups_.next_wake());
  next = Earlier(next, queues_.next_wake());
  next = Earlier(next, half_bound_.next_wake());
  next = Earlier(next, gatherer_.next_wake());
  next = Earlier(next, awaiter_.next_wake());
  next = Earlier(next, faults_.next_wake());
  next = Earlier(next, scheduler_->next_claim_end());
  next = Earlier(next, retries_.empty() ? Time() : retries_.begin()->first);
  for (const auto& [when, what] : avoided_) {
    next = Earlier(next, when);
  }
  if (scheduler_->sleeping() > 0) {
    next = Earlier(next, next_recheck_);
  }
  return next;
}

void Core::Decide(Time now, Effects& effects) {
  ++runs_;
  const Time before = rt::MonotonicNow();
  const sched::Plan plan = scheduler_->Run(now);
  const Duration took = rt::MonotonicNow() - before;
  for (const sched::GangReport& report : plan.gangs) {
    CarryOut(report, now, effects);
  }
  CarryOut(plan.evictions, now, effects);
  MeasureRun(metrics_, *state_, plan, took, now);
}

void Core::CarryOut(const sched::GangReport& report, Time now, Effects& effects) {
  const cluster::Gang& gang = state_->gang(report.gang);
  touched_.insert(report.gang);
  waiters_.Report(*state_, report, now, effects);
  for (const std::string& warning : report.warnings) {
    Warn(gang, "TopologyRule", warning, effects);
  }
  for (const sched::Bind& bind : report.nominated) {
    waiters_.TellNominated(*state_, bind.pod, state_->node(bind.node).name, report.message, now,
                           effects);
  }
  if (report.binds.empty()) {
    return;
  }
  Log(LogLevel::kInfo, options_.dry_run ? "would_place" : "gang_placed",
      {{"gang", gang.ns + "/" + gang.name},
       {"pods", report.binds.size()},
       {"placed", report.placed},
       {"waiting", report.waiting},
       {"tier", report.location.tier},
       {"domain", report.location.domain_name}});
  for (const sched::Bind& bind : report.binds) {
    const cluster::PodRecord& pod = state_->pod(bind.pod);
    const std::string& node = state_->node(bind.node).name;
    effects.binds.push_back({{pod.ns, pod.name, pod.uid}, node, ++decisions_});
    if (options_.dry_run) {
      Log(LogLevel::kInfo, "would_bind", {{"pod", pod.ns + "/" + pod.name}, {"node", node}});
      continue;
    }
    MeasureStage(metrics_, pod, "Assumed", now);
    const auto failed = failures_.find(pod.uid);
    const int failures = failed == failures_.end() ? 0 : failed->second;
    if (failed != failures_.end()) {
      failures_.erase(failed);
    }
    Binding& binding = binding_[pod.uid];
    binding = Binding();
    binding.pod = {pod.ns, pod.name, pod.uid};
    binding.node = node;
    binding.decision = decisions_;
    binding.failures = failures;
  }
}

void Core::Warn(const cluster::Gang& gang, const std::string& reason, const std::string& message,
                Effects& effects) {
  const kube::ObjectReference about = ReferenceTo(gang);
  if (!about.uid.empty() && warned_[about.uid].insert(message).second) {
    effects.events.push_back(
        {about, {.warning = true, .reason = reason, .message = message, .key = ""}});
  }
}

kube::ObjectReference Core::ReferenceTo(const cluster::Gang& gang) const {
  if (const api::PodGroup* shown = groups_.ShownOf(gang); shown != nullptr) {
    return daemon::ReferenceTo(*shown);
  }
  if (gang.pods.empty()) {
    return {};
  }
  const cluster::PodRecord& pod = state_->pod(gang.pods.front());
  return {"v1", "Pod", pod.ns, pod.name, pod.uid};
}

// Whether a bind of it has not ended yet: a long queue of binds is no failure.
bool Core::IsBeingBound(GangId id) const {
  return std::ranges::any_of(state_->gang(id).pods, [&](PodId pod) {
    const auto at = binding_.find(state_->pod(pod).uid);
    return at != binding_.end() && at->second.failures == 0 && !at->second.retry.set();
  });
}

void Core::EndAvoidance(Time now) {
  std::erase_if(avoided_, [&](const auto& entry) {
    const bool over = entry.first <= now;
    if (over) {
      state_->SetAvoided(entry.second.first, entry.second.second, false);
      dirty_ = true;
    }
    return over;
  });
}

// One sleeper at a time, so that a wake that was missed is found and counted.
void Core::Recheck(Time now, Effects& effects) {
  if (now < next_recheck_) {
    return;
  }
  const bool first = !next_recheck_.set();
  next_recheck_ = now + kRecheck;
  if (first || scheduler_->sleeping() == 0) {
    return;
  }
  const uint64_t before = scheduler_->counters().unannounced;
  const sched::Plan plan = scheduler_->JudgeAfresh();
  for (const sched::GangReport& report : plan.gangs) {
    CarryOut(report, now, effects);
  }
  const uint64_t found = scheduler_->counters().unannounced - before;
  if (found > 0) {
    metrics_.Count("hopwise_unannounced_verdict_changes_total", static_cast<double>(found));
    Log(LogLevel::kError, "verdict_changed_unannounced",
        {{"gang", state_->gang(plan.gangs.front().gang).name}});
  }
}

std::string Core::DumpText() {
  json::Json waiting = json::Json::array();
  for (size_t g = 0; g < state_->gang_slots(); ++g) {
    const cluster::Gang& gang = state_->gang(GangId(g));
    const sched::GangReport* report = scheduler_->LastReport(GangId(g));
    if (gang.alive && report != nullptr) {
      waiting.push_back({{"gang", gang.ns + "/" + gang.name},
                         {"queue", gang.queue_name},
                         {"placed", report->placed},
                         {"waiting", report->waiting},
                         {"reason", report->reason},
                         {"message", report->message}});
    }
  }
  json::Json binding = json::Json::array();
  for (const auto& [uid, bind] : binding_) {
    binding.push_back(
        {{"pod", NameOf(bind.pod)}, {"node", bind.node}, {"failures", bind.failures}});
  }
  const sched::Counters& counters = scheduler_->counters();
  return json::Dump({{"deciding", deciding()},
                     {"waitingGangs", std::move(waiting)},
                     {"bindsUnderWay", std::move(binding)},
                     {"counters",
                      {{"runs", counters.runs},
                       {"decisions", counters.decisions},
                       {"fromMemory", counters.from_memory},
                       {"woken", counters.woken},
                       {"undecided", counters.undecided},
                       {"unannounced", counters.unannounced}}}});
}

void Core::MeasureWaiting(Time now) {
  if (last_measure_.set() && now - last_measure_ < Seconds(1)) {
    return;
  }
  last_measure_ = now;
  MeasureState(metrics_, *state_, waiters_.CountByReason(), waiters_.CountPods(*state_));
}

}  // namespace hopwise::daemon
