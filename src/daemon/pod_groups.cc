#include "daemon/pod_groups.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/json.h"
#include "cluster/pod_group_phase.h"
#include "sched/reasons.h"

namespace hopwise::daemon {
namespace {

constexpr std::string_view kUnschedulable = "Unschedulable";
constexpr std::string_view kScheduled = "Scheduled";

// Only what the API server has confirmed counts: a phase Running that a failed bind takes back
// would make a gang look as if it had run.
cluster::MemberCounts CountMembers(const cluster::State& state, const cluster::Gang& gang) {
  cluster::MemberCounts counts;
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    const bool finished = pod.state == cluster::PodState::kFinished;
    ++counts.total;
    counts.bound += pod.state == cluster::PodState::kBound && !pod.terminating ? 1 : 0;
    counts.running += pod.running && !finished ? 1 : 0;
    counts.succeeded += finished && pod.succeeded ? 1 : 0;
    counts.failed += finished && !pod.succeeded ? 1 : 0;
  }
  return counts;
}

void RemoveCondition(std::vector<api::Condition>& conditions, std::string_view type) {
  std::erase_if(conditions, [&](const api::Condition& c) { return c.type == type; });
}

// lastTransitionTime and transitionID move with what they tell of only.
void SetCondition(std::vector<api::Condition>& conditions, std::string_view type,
                  std::string_view reason, std::string_view message, Time now,
                  const std::string& run) {
  auto at = std::ranges::find(conditions, type, &api::Condition::type);
  if (at == conditions.end()) {
    at = conditions.insert(conditions.end(), api::Condition());
    at->type = std::string(type);
  }
  if (at->status == "True" && at->reason == reason && at->message == message) {
    return;
  }
  if (at->status != "True") {
    at->last_transition = now;
  }
  at->status = "True";
  at->reason = std::string(reason);
  at->message = std::string(message);
  at->transition_id = run;
}

std::string PlaceWords(const sched::Location& location, const GroupStatus& status,
                       const cluster::MemberCounts& counts) {
  if (!location.known) {
    return "";
  }
  const std::string where =
      location.domain_name.empty() ? "more than one tree of the fabric" : location.domain_name;
  const std::string name = location.tier_name.empty() ? "" : " (" + location.tier_name + ")";
  return fmt::format("{} pods in {}, tier {}{}; at most {} links apart", counts.bound, where,
                     status.tier, name, status.distance);
}

// Two links per rank of the domain that holds all members: up and down again.
void SetPlace(cluster::State& state, const cluster::Gang& gang, const sched::Location& location,
              GroupStatus& status) {
  if (!location.known) {
    return;
  }
  NodeId first;
  bool one_node = true;
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    if (!cluster::HoldsRoom(pod.state) || !pod.node.valid()) {
      continue;
    }
    one_node = one_node && (!first.valid() || first == pod.node);
    first = first.valid() ? first : pod.node;
  }
  const topology::Tree& tree = *state.trees()[location.tree];
  status.tier = std::to_string(location.tier);
  status.domain = location.domain_name;
  status.distance = std::to_string(one_node ? 0 : 2 * int{tree.at(location.domain).rank});
}

auto Compared(const api::Condition& c) { return std::tie(c.type, c.status, c.reason, c.message); }

std::string AnnotationOf(const api::PodGroup& object, std::string_view key) {
  const std::string* value = api::Find(object.meta.annotations, key);
  return value == nullptr ? "" : *value;
}

GroupStatus Shown(const api::PodGroup& object) {
  return {object.phase,
          object.running,
          object.succeeded,
          object.failed,
          object.conditions,
          AnnotationOf(object, kPlacedTier),
          AnnotationOf(object, kPlacedDomain),
          AnnotationOf(object, kPredictedDistance)};
}

json::Json ConditionsJson(const std::vector<api::Condition>& conditions) {
  json::Json list = json::Json::array();
  for (const api::Condition& c : conditions) {
    json::Json item = {{"type", c.type}, {"status", c.status}};
    const std::pair<const char*, std::string> fields[] = {
        {"reason", c.reason},
        {"message", c.message},
        {"transitionID", c.transition_id},
        {"lastTransitionTime", FormatRfc3339(c.last_transition)}};
    for (const auto& [key, text] : fields) {
      if (!text.empty()) {
        item[key] = text;
      }
    }
    list.push_back(std::move(item));
  }
  return list;
}

const kube::Resource& ResourceOf(const api::PodGroup& object) {
  return object.scheduler_plugins ? kube::kPluginPodGroups : kube::kPodGroups;
}

// Null where an annotation is to go.
json::Json AnnotationChanges(const GroupStatus& now, const GroupStatus& next) {
  json::Json changes = json::Json::object();
  const std::tuple<std::string_view, std::string, std::string> places[] = {
      {kPlacedTier, now.tier, next.tier},
      {kPlacedDomain, now.domain, next.domain},
      {kPredictedDistance, now.distance, next.distance}};
  for (const auto& [key, have, want] : places) {
    if (have != want) {
      changes[std::string(key)] = want.empty() ? json::Json() : json::Json(want);
    }
  }
  return changes;
}

// The annotations as a server-side apply has them: ours are those it names, and what it names no
// more goes. The uid keeps it from making an object that is gone.
std::string AppliedPlace(const api::PodGroup& shown, const GroupStatus& next) {
  json::Json annotations = json::Json::object();
  const std::pair<std::string_view, std::string> places[] = {
      {kPlacedTier, next.tier}, {kPlacedDomain, next.domain}, {kPredictedDistance, next.distance}};
  for (const auto& [key, text] : places) {
    if (!text.empty()) {
      annotations[std::string(key)] = text;
    }
  }
  return json::Dump({{"apiVersion", kube::ApiVersionOf(ResourceOf(shown))},
                     {"kind", "PodGroup"},
                     {"metadata",
                      {{"name", shown.meta.name},
                       {"namespace", shown.meta.ns},
                       {"uid", shown.meta.uid},
                       {"annotations", std::move(annotations)}}}});
}

// Against the version seen, so that what others wrote meanwhile is not lost. Volcano's PodGroup has
// no status subresource and takes all in one patch; that of scheduling.x-k8s.io has one, which
// passes over annotations.
void PushPatches(const api::PodGroup& shown, const GroupStatus& next, Effects& effects) {
  const bool plugins = shown.scheduler_plugins;
  const kube::Resource& resource = ResourceOf(shown);
  const ObjectName name = {shown.meta.ns, shown.meta.name, shown.meta.uid};
  json::Json status = {{"phase", next.phase},
                       {"running", next.running},
                       {"succeeded", next.succeeded},
                       {"failed", next.failed}};
  if (!plugins) {
    status["conditions"] = ConditionsJson(next.conditions);
  }
  json::Json body = {{"metadata", {{"uid", shown.meta.uid}}}, {"status", std::move(status)}};
  if (!shown.meta.resource_version.empty()) {
    body["metadata"]["resourceVersion"] = shown.meta.resource_version;
  }
  json::Json annotations = AnnotationChanges(Shown(shown), next);
  if (plugins && !annotations.empty()) {
    effects.patches.push_back({resource, name, "", kube::kApplyPatch, AppliedPlace(shown, next)});
  } else if (!annotations.empty()) {
    body["metadata"]["annotations"] = std::move(annotations);
  }
  effects.patches.push_back(
      {resource, name, plugins ? "status" : "", kube::kMergePatch, json::Dump(body)});
}

// What people are told when a condition appears or says something new.
void TellConditions(const api::PodGroup& shown, const GroupStatus& next, Effects& effects) {
  for (const api::Condition& c : next.conditions) {
    const bool scheduled = c.type == kScheduled;
    if (!scheduled && c.type != kUnschedulable) {
      continue;
    }
    const auto old = std::ranges::find(shown.conditions, c.type, &api::Condition::type);
    const bool known = old != shown.conditions.end() && old->status == c.status;
    if (known && (scheduled || old->message == c.message)) {
      continue;
    }
    // What the queue does not admit is no fault, as in Volcano.
    const bool queued = c.reason.starts_with("Queue");
    effects.events.push_back({ReferenceTo(shown),
                              {.warning = !scheduled && !queued,
                               .reason = c.type,
                               .message = scheduled ? c.reason : c.message,
                               .key = ""}});
  }
}

}  // namespace

kube::ObjectReference ReferenceTo(const api::PodGroup& object) {
  return {kube::ApiVersionOf(ResourceOf(object)), "PodGroup", object.meta.ns, object.meta.name,
          object.meta.uid};
}

bool operator==(const GroupStatus& a, const GroupStatus& b) {
  return std::tie(a.phase, a.running, a.succeeded, a.failed, a.tier, a.domain, a.distance) ==
             std::tie(b.phase, b.running, b.succeeded, b.failed, b.tier, b.domain, b.distance) &&
         std::ranges::equal(a.conditions, b.conditions, {}, Compared, Compared);
}

GroupStatus StatusOf(cluster::State& state, GangId id, const api::PodGroup& shown,
                     const sched::Location& location, const Waiters::Words* words, Time now,
                     const std::string& run) {
  const cluster::Gang& gang = state.gang(id);
  const cluster::MemberCounts counts = CountMembers(state, gang);
  const bool ready = counts.HasMinimum(gang.min_member);
  const bool waits = words != nullptr;
  const bool was_in = !shown.phase.empty() && shown.phase != "Pending";
  const bool admitted = was_in || !sched::QueueRefuses(state, gang);
  GroupStatus next;
  next.phase = cluster::PodGroupPhase(counts, {.minimum = gang.min_member,
                                               .old_phase = shown.phase,
                                               .waits = waits,
                                               .admitted = admitted && !(waits && words->limit),
                                               .scheduler_plugins = shown.scheduler_plugins});
  next.running = static_cast<int32_t>(counts.running);
  next.succeeded = static_cast<int32_t>(counts.succeeded);
  next.failed = static_cast<int32_t>(counts.failed);
  next.conditions = shown.conditions;
  // A gang that is being bound for the first time has no place to speak of before it has its
  // minimum: told now, that would be one write more for each gang.
  if (ready || !AnnotationOf(shown, kPlacedTier).empty()) {
    SetPlace(state, gang, location, next);
  }
  if (ready) {
    RemoveCondition(next.conditions, kUnschedulable);
    SetCondition(next.conditions, kScheduled, cluster::kScheduledReason,
                 PlaceWords(location, next, counts), now, run);
  } else if (waits) {
    RemoveCondition(next.conditions, kScheduled);
    SetCondition(next.conditions, kUnschedulable, words->reason, words->message, now, run);
  } else {
    RemoveCondition(next.conditions, kUnschedulable);
  }
  return next;
}

PodGroups::Key PodGroups::KeyOf(const cluster::Gang& gang) {
  return {gang.scheduler_plugins, gang.ns, gang.name};
}

void PodGroups::Apply(const api::PodGroup& object) {
  View& view = views_[{object.scheduler_plugins, object.meta.ns, object.meta.name}];
  view.object = object;
  view.object.min_task_member.clear();
  view.object.sub_groups.clear();
  view.written_at = {};
  view.seen = view.writing && Shown(object) == view.written;
}

void PodGroups::Remove(bool scheduler_plugins, const std::string& ns, const std::string& name) {
  views_.erase({scheduler_plugins, ns, name});
}

const api::PodGroup* PodGroups::ShownOf(const cluster::Gang& gang) const {
  if (gang.source != cluster::GangSource::kPodGroup) {
    return nullptr;
  }
  const auto at = views_.find(KeyOf(gang));
  return at == views_.end() ? nullptr : &at->second.object;
}

void PodGroups::Settle(cluster::State& state, const Waiters& waiters, const Locate& locate,
                       Time now, const std::string& run, Effects& effects) {
  while (!retries_.empty() && retries_.begin()->first <= now) {
    const auto& [plugins, ns, name] = retries_.begin()->second;
    if (const GangId id = state.FindGang(ns, name); id.valid()) {
      touched_.insert(id);
    }
    retries_.erase(retries_.begin());
  }
  for (const GangId id : std::exchange(touched_, {})) {
    if (state.gang(id).alive) {
      Look(state, id, waiters, locate, now, run, effects);
    }
  }
}

void PodGroups::Look(cluster::State& state, GangId id, const Waiters& waiters, const Locate& locate,
                     Time now, const std::string& run, Effects& effects) {
  const cluster::Gang& gang = state.gang(id);
  const auto at =
      gang.source == cluster::GangSource::kPodGroup ? views_.find(KeyOf(gang)) : views_.end();
  if (at == views_.end()) {
    return;
  }
  View& view = at->second;
  if (view.writing) {
    view.wanting = true;
    return;
  }
  const GroupStatus next =
      StatusOf(state, id, view.object, locate(id), waiters.WordsOf(id), now, run);
  if (next == Shown(view.object)) {
    return;
  }
  // What is shown is older than our own write: a patch against it would conflict.
  const bool unseen = view.written_at.set();
  if (unseen && now - view.written_at < (next == view.written ? kWriteSeen : kConflictRetry)) {
    retries_.emplace(view.written_at + kConflictRetry, at->first);
    return;
  }
  PushPatches(view.object, next, effects);
  TellConditions(view.object, next, effects);
  view.writing = true;
  view.wanting = false;
  view.written = next;
  view.seen = false;
}

void PodGroups::Written(bool scheduler_plugins, const std::string& ns, const std::string& name,
                        const kube::ApiError& error, Time now) {
  const Key key{scheduler_plugins, ns, name};
  const auto at = views_.find(key);
  if (at == views_.end()) {
    return;
  }
  View& view = at->second;
  view.writing = false;
  if (error.ok()) {
    view.written_at = view.seen ? Time() : now;  // the watch may be faster than the answer
    if (view.wanting) {
      retries_.emplace(now, key);
    } else {
      retries_.emplace(now + kWriteSeen, key);
    }
  } else {
    view.written_at = {};
    const bool soon = error.failure == kube::Failure::kConflict;
    retries_.emplace(now + (soon ? kConflictRetry : kWriteSeen), key);
  }
}

std::map<std::string, std::map<std::string, int32_t>> PodGroups::CountPhases() const {
  std::map<std::string, std::map<std::string, int32_t>> counts;
  for (const auto& [key, view] : views_) {
    const api::PodGroup& object = view.object;
    if (!object.scheduler_plugins) {
      ++counts[object.queue][object.phase.empty() ? "Pending" : object.phase];
    }
  }
  return counts;
}

}  // namespace hopwise::daemon
