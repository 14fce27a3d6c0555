#include "daemon/half_bound.h"

namespace hopwise::daemon {
namespace {

bool IsHalfBound(const cluster::State& state, const cluster::Gang& gang) {
  if (!gang.alive || gang.ran || gang.source == cluster::GangSource::kLonePod) {
    return false;
  }
  int32_t held = 0;
  int32_t confirmed = 0;
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    held += cluster::HoldsRoom(pod.state) && !pod.terminating ? 1 : 0;
    const bool bound = pod.state == cluster::PodState::kBound && !pod.terminating;
    confirmed += bound || pod.succeeded ? 1 : 0;
  }
  return held > 0 && confirmed < gang.min_member;
}

}  // namespace

void HalfBound::Start(GangId gang, const Clock& clock) {
  End(gang);
  since_[gang] = clock;
  due_.emplace(clock.start + deadline_, gang);
}

void HalfBound::End(GangId gang) {
  if (const auto at = since_.find(gang); at != since_.end()) {
    due_.erase({at->second.start + deadline_, gang});
    since_.erase(at);
  }
}

void HalfBound::Look(const cluster::State& state, GangId gang, Time now) {
  const cluster::Gang& record = state.gang(gang);
  if (!IsHalfBound(state, record)) {
    End(gang);
    return;
  }
  const auto at = since_.find(gang);
  if (at == since_.end() || at->second.sequence != record.sequence) {
    Start(gang, {record.sequence, now});
  }
}

std::vector<GangId> HalfBound::Due(const cluster::State& state, Time now) {
  std::vector<GangId> due;
  while (!due_.empty() && due_.begin()->first <= now) {
    const GangId id = due_.begin()->second;
    const cluster::Gang& gang = state.gang(id);
    if (gang.sequence == since_.at(id).sequence && IsHalfBound(state, gang)) {
      due.push_back(id);
      Start(id, {gang.sequence, now});
    } else {
      End(id);
    }
  }
  return due;
}

}  // namespace hopwise::daemon
