// The part of the core that takes pods off their nodes: what is evicted, and what became of it.
#include <fmt/format.h>

#include "base/log.h"
#include "base/time.h"
#include "daemon/core.h"

namespace hopwise::daemon {

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

void Core::EvictionEnded(const EvictionResult& result, Time /*now*/) {
  const char* const word = result.error.ok()                                   ? "evicted"
                           : !result.sent                                      ? "left"
                           : result.error.failure == kube::Failure::kThrottled ? "forbidden"
                                                                               : "failed";
  metrics_.Count("hopwise_evictions_total", 1, {{"result", word}});
}

}  // namespace hopwise::daemon
