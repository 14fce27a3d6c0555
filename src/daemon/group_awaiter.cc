#include "daemon/group_awaiter.h"

#include <algorithm>

#include "cluster/pod_facts.h"

namespace hopwise::daemon {
namespace {

// Creation times have whole seconds.
constexpr Duration kGrain = Seconds(1);

bool IsToCome(const api::Pod& pod) {
  const bool waits =
      pod.node_name.empty() && pod.phase == api::PodPhase::kPending && !pod.meta.deletion.set();
  const auto owner = std::ranges::find_if(pod.meta.owners, &api::OwnerReference::controller);
  return waits && owner != pod.meta.owners.end() && owner->kind != "DaemonSet" &&
         cluster::ReadPodFacts(pod).kind == cluster::GangKind::kLone;
}

}  // namespace

void GroupAwaiter::Look(api::Pod& pod, bool fresh, Time now) {
  const std::string& uid = pod.meta.uid;
  const auto at = held_.find(uid);
  // What is older was passed over by the controller, if there is one.
  const bool young = now < pod.meta.creation + kGrain + limit_;
  const bool begins = at == held_.end() && fresh && young && limit_.ns > 0;
  if (!(begins || at != held_.end()) || !IsToCome(pod)) {
    Forget(uid);
    return;
  }
  const Time until = begins ? now + limit_ : at->second.until;
  held_.insert_or_assign(uid, Held{pod, until});
  due_.emplace(until, uid);
  pod.scheduling_gates.emplace_back(kAwaitsGroup);
}

void GroupAwaiter::Forget(const std::string& uid) {
  if (const auto at = held_.find(uid); at != held_.end()) {
    due_.erase({at->second.until, uid});
    held_.erase(at);
  }
}

std::vector<api::Pod> GroupAwaiter::Due(Time now) {
  std::vector<api::Pod> over;
  while (!due_.empty() && due_.begin()->first <= now) {
    const auto at = held_.find(due_.begin()->second);
    over.push_back(std::move(at->second.pod));
    held_.erase(at);
    due_.erase(due_.begin());
  }
  return over;
}

}  // namespace hopwise::daemon
