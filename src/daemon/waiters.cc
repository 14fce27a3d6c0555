#include "daemon/waiters.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "api/json.h"

namespace hopwise::daemon {
namespace {

constexpr std::string_view kPodScheduled = "PodScheduled";
constexpr std::string_view kUnschedulable = "Unschedulable";
constexpr std::string_view kSchedulerError = "SchedulerError";

// Reasons that go by themselves while the members of a gang are being made.
bool MayBeGathering(std::string_view reason) {
  return reason == "NotEnoughTasks" || reason == "NotEnoughPodsOfTask" ||
         reason == "PodGroupNotFound";
}

uint64_t HashOf(std::string_view reason, std::string_view message) {
  const std::hash<std::string_view> hash;
  return hash(reason) * 31 + hash(message);
}

struct PodTold {
  std::string_view reason;
  const std::string& message;
  const std::string& version;           // of the pod that is written
  bool moves = false;                   // the condition was not False before
  std::optional<json::Json> nominated;  // set: what nominatedNodeName becomes, null: it goes
};

Patch StatusPatch(const cluster::PodRecord& pod, const PodTold& told, Time now) {
  json::Json condition = {{"type", kPodScheduled},
                          {"status", "False"},
                          {"reason", told.reason},
                          {"message", told.message}};
  if (told.moves) {
    condition["lastTransitionTime"] = FormatRfc3339(now);
  }
  json::Json body = {{"metadata", {{"uid", pod.uid}}},
                     {"status", {{"conditions", json::Json::array({std::move(condition)})}}}};
  if (!told.version.empty()) {
    body["metadata"]["resourceVersion"] = told.version;
  }
  if (told.nominated) {
    body["status"]["nominatedNodeName"] = *told.nominated;
  }
  return {
      kube::kPods, {pod.ns, pod.name, pod.uid}, "status", kube::kStrategicPatch, json::Dump(body)};
}

}  // namespace

void Waiters::SeePod(PodId id, const api::Pod& pod) {
  const auto at = std::ranges::find(pod.conditions, kPodScheduled, &api::Condition::type);
  const bool nominated = !pod.nominated_node.empty();
  const bool none = at == pod.conditions.end();
  Shown& shown = shown_[id];
  shown.hash = none ? 0 : HashOf(at->reason, at->message);
  shown.is_false = !none && at->status == "False";
  shown.nominated = nominated;
  shown.version = pod.meta.resource_version;
}

void Waiters::Overtaken(const cluster::State& state, PodId id, Time now) {
  const auto shown = shown_.find(id);
  const auto gang = gangs_.find(state.pod(id).gang);
  if (shown == shown_.end() || gang == gangs_.end() || !gang->second.said) {
    return;
  }
  shown->second.hash = 0;
  shown->second.overtaken = true;
  const Time due = gang->second.due;
  const Time soon = now + kCatchUp;
  SetDue(gang->first, gang->second, due.set() ? std::min(due, soon) : soon);
}

void Waiters::SetDue(GangId id, Gang& gang, Time due) {
  if (gang.due.set()) {
    due_.erase({gang.due, id});
  }
  gang.due = due;
  if (due.set()) {
    due_.emplace(due, id);
  }
}

void Waiters::Forget(GangId gang) {
  if (const auto at = gangs_.find(gang); at != gangs_.end()) {
    SetDue(gang, at->second, {});
    gangs_.erase(at);
  }
}

void Waiters::Report(const cluster::State& state, const sched::GangReport& report, Time now,
                     Effects& effects) {
  const GangId id = report.gang;
  const cluster::Gang& gang = state.gang(id);
  if (report.waiting == 0 && gang.invalid.empty()) {
    Forget(id);
    return;
  }
  if (const auto at = gangs_.find(id); at != gangs_.end() && at->second.sequence != gang.sequence) {
    Forget(id);
  }
  Gang& mine = gangs_[id];
  const bool came = mine.waiting != report.waiting;
  mine.sequence = gang.sequence;
  mine.waiting = report.waiting;
  mine.latest = {report.reason.empty() ? "NotEnoughResources" : report.reason, report.message,
                 report.verdict == sched::Verdict::kQueueLimit};
  const bool other_reason = !mine.said || mine.told.reason != mine.latest.reason;
  if (other_reason && !MayBeGathering(mine.latest.reason)) {
    Say(state, id, mine, now, effects);
    return;
  }
  if (other_reason) {
    mine.since = mine.since.set() ? mine.since : now;
    const Time wait = now + (mine.waiting == 0 ? kMostMaking : kMostGather);
    SetDue(id, mine, mine.due.set() && !came ? mine.due : std::min(wait, mine.since + kMostMaking));
  } else {
    const bool other_words = mine.told.message != mine.latest.message;
    SetDue(id, mine, other_words ? mine.told_at + kRetell : Time());
  }
  if (mine.due.set() && mine.due <= now) {
    Say(state, id, mine, now, effects);
  } else if (mine.said) {
    TellPods(state, id, mine.told, now, effects);  // members that came since
  }
}

void Waiters::Say(const cluster::State& state, GangId id, Gang& gang, Time now, Effects& effects) {
  SetDue(id, gang, {});
  gang.told = gang.latest;
  gang.told_at = now;
  gang.since = {};
  gang.said = true;
  TellPods(state, id, gang.told, now, effects);
}

void Waiters::TellPods(const cluster::State& state, GangId id, const Words& words, Time now,
                       Effects& effects) {
  const uint64_t hash = HashOf(kUnschedulable, words.message);
  for (const PodId pod_id : state.gang(id).pods) {
    const cluster::PodRecord& pod = state.pod(pod_id);
    if (pod.state != cluster::PodState::kPending) {
      continue;
    }
    Shown& shown = shown_[pod_id];
    if (shown.hash == hash && shown.is_false && !shown.nominated) {
      continue;
    }
    const auto nominated = shown.nominated ? std::optional(json::Json()) : std::nullopt;
    effects.patches.push_back(StatusPatch(
        pod, {kUnschedulable, words.message, shown.version, !shown.is_false, nominated}, now));
    if (!shown.overtaken) {
      effects.events.push_back(
          {{"v1", "Pod", pod.ns, pod.name, pod.uid},
           {.warning = true, .reason = "FailedScheduling", .message = words.message, .key = ""}});
    }
    shown = {hash, true, false, shown.version, false};
  }
}

void Waiters::TellBindFailed(const cluster::State& state, PodId id, const std::string& node,
                             const std::string& message, Time now, Effects& effects) {
  TellHeld(state, id, node, kSchedulerError, message, now, effects);
}

void Waiters::TellNominated(const cluster::State& state, PodId id, const std::string& node,
                            const std::string& message, Time now, Effects& effects) {
  TellHeld(state, id, node, kUnschedulable, message, now, effects);
}

void Waiters::TellHeld(const cluster::State& state, PodId id, const std::string& node,
                       std::string_view reason, const std::string& message, Time now,
                       Effects& effects) {
  const cluster::PodRecord& pod = state.pod(id);
  Shown& shown = shown_[id];
  effects.patches.push_back(
      StatusPatch(pod, {reason, message, shown.version, !shown.is_false, json::Json(node)}, now));
  effects.events.push_back(
      {{"v1", "Pod", pod.ns, pod.name, pod.uid},
       {.warning = true, .reason = "FailedScheduling", .message = message, .key = ""}});
  shown = {HashOf(reason, message), true, true, shown.version, false};
}

void Waiters::Wake(const cluster::State& state, Time now, Effects& effects,
                   std::vector<GangId>& told) {
  while (!due_.empty() && due_.begin()->first <= now) {
    const GangId id = due_.begin()->second;
    Say(state, id, gangs_.at(id), now, effects);
    told.push_back(id);
  }
}

const Waiters::Words* Waiters::WordsOf(GangId gang) const {
  const auto at = gangs_.find(gang);
  return at == gangs_.end() || !at->second.said ? nullptr : &at->second.told;
}

std::map<std::string, int64_t> Waiters::CountByReason() const {
  std::map<std::string, int64_t> counts;
  for (const auto& [id, gang] : gangs_) {
    ++counts[gang.latest.reason];
  }
  return counts;
}

std::map<std::string, int64_t> Waiters::CountPods(const cluster::State& state) const {
  std::map<std::string, int64_t> counts;
  for (const auto& [id, mine] : gangs_) {
    const cluster::Gang& gang = state.gang(id);
    if (gang.alive && gang.sequence == mine.sequence) {
      counts[gang.ns + "/" + gang.name] = mine.waiting;
    }
  }
  return counts;
}

}  // namespace hopwise::daemon
