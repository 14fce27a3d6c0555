// The part of the core that takes pods off their nodes: what is evicted, and what became of it.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/json.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/core.h"

namespace hopwise::daemon {
namespace {

// As kube-scheduler and Volcano mark a pod that gives way. The eviction API itself puts words of
// its own on DisruptionTarget; those on Ready stay until the kubelet has others.
std::string EvictedStatus(const std::string& uid, const std::string& why, Time now) {
  json::Json conditions = json::Json::array();
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"DisruptionTarget", "True", "PreemptionByScheduler"}, {"Ready", "False", "Evict"}};
  for (const auto& [type, status, reason] : rows) {
    conditions.push_back({{"type", type},
                          {"status", status},
                          {"reason", reason},
                          {"message", why},
                          {"lastTransitionTime", FormatRfc3339(now)}});
  }
  return json::Dump({{"metadata", {{"uid", uid}}}, {"status", {{"conditions", conditions}}}});
}

}  // namespace

// Members that somebody makes anew are evicted; the others stay, as nobody would bring them back.
void Core::GiveBack(GangId id, Effects& effects) {
  const cluster::Gang& gang = state_->gang(id);
  const std::string why =
      fmt::format("its gang was not completed within {}", FormatGoDuration(half_bound_.deadline()));
  int evicted = 0;
  int kept = 0;
  const std::vector<PodId> pods = gang.pods;
  for (const PodId pod_id : pods) {
    const cluster::PodRecord& pod = state_->pod(pod_id);
    const ObjectName name = {pod.ns, pod.name, pod.uid};
    if (pod.state == cluster::PodState::kAssumed) {
      // Its room is free once the binder says that it was not sent, or that it failed.
      effects.cancelled.push_back(name);
      if (const auto at = binding_.find(pod.uid); at != binding_.end()) {
        at->second.given_back = true;
      }
    } else if (pod.state == cluster::PodState::kBound && !pod.terminating && pod.owned) {
      effects.evictions.push_back({name, why, ""});
      ++evicted;
    } else if (pod.state == cluster::PodState::kBound && !pod.terminating) {
      ++kept;
    }
  }
  Log(LogLevel::kWarning, "gang_given_back",
      {{"gang", gang.ns + "/" + gang.name}, {"evicted", evicted}, {"kept", kept}});
  if (const auto about = ReferenceTo(gang); evicted > 0 && about.kind == "PodGroup") {
    effects.events.push_back(
        {about,
         {.reason = "Evict", .message = fmt::format("{} pods: {}", evicted, why), .key = ""}});
  }
  if (kept > 0) {
    Warn(gang, "Unschedulable",
         fmt::format("{} members hold room since more than {} while the gang misses others; nobody "
                     "would make them anew, so they are left: delete them to free the room",
                     kept, FormatGoDuration(half_bound_.deadline())),
         effects);
  }
  Touch(id);
}

// Who is to go for whom: the pods one by one, and each gang that they leave once.
void Core::CarryOut(const std::vector<sched::Eviction>& evictions, Time now, Effects& effects) {
  std::map<std::pair<GangId, std::string>, int> by_gang;
  std::map<GangId, std::string_view> claimers;
  for (const sched::Eviction& eviction : evictions) {
    const cluster::PodRecord& pod = state_->pod(eviction.pod);
    claimers[eviction.claimer] = eviction.action;
    if (options_.dry_run) {
      Log(LogLevel::kInfo, "would_evict",
          {{"pod", pod.ns + "/" + pod.name}, {"why", eviction.why}});
      continue;
    }
    effects.evictions.push_back(
        {{pod.ns, pod.name, pod.uid}, eviction.why, EvictedStatus(pod.uid, eviction.why, now)});
    ++by_gang[{pod.gang, eviction.why}];
  }
  for (const auto& [gang_and_why, count] : by_gang) {
    const auto about = ReferenceTo(state_->gang(gang_and_why.first));
    if (about.kind == "PodGroup") {
      effects.events.push_back({about,
                                {.reason = "Evict",
                                 .message = fmt::format("{} pod{}: {}", count,
                                                        count == 1 ? "" : "s", gang_and_why.second),
                                 .key = ""}});
    }
  }
  for (const auto& [claimer, action] : claimers) {
    metrics_.Count("volcano_total_preemption_attempts", 1);
    metrics_.Count("volcano_eviction_transactions_total", 1, {{"action", std::string(action)}});
  }
  if (!evictions.empty()) {
    metrics_.Set("volcano_pod_preemption_victims", static_cast<double>(evictions.size()));
  }
}

void Core::EvictionEnded(const EvictionResult& result, Time now) {
  const char* const word = result.error.ok()                                   ? "evicted"
                           : !result.sent                                      ? "left"
                           : result.error.failure == kube::Failure::kThrottled ? "forbidden"
                                                                               : "failed";
  metrics_.Count("hopwise_evictions_total", 1, {{"result", word}});
  const PodId id = state_->FindPod(result.pod.ns, result.pod.name);
  if (!result.error.ok() && id.valid() && state_->pod(id).uid == result.pod.uid) {
    scheduler_->NotEvicted(id, now);
    dirty_ = true;
  }
}

}  // namespace hopwise::daemon
