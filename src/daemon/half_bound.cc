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
    confirmed += pod.state == cluster::PodState::kBound || pod.succeeded ? 1 : 0;
  }
  return held > 0 && confirmed < gang.min_member;
}

}  // namespace

void HalfBound::Look(const cluster::State& state, GangId gang, Time now) {
  const cluster::Gang& record = state.gang(gang);
  if (!IsHalfBound(state, record)) {
    since_.erase(gang);
    return;
  }
  const auto [at, fresh] = since_.try_emplace(gang, Clock{record.sequence, now});
  if (!fresh && at->second.sequence != record.sequence) {
    at->second = {record.sequence, now};
  }
}

std::vector<GangId> HalfBound::Due(const cluster::State& state, Time now) {
  std::vector<GangId> due;
  for (auto at = since_.begin(); at != since_.end();) {
    const cluster::Gang& gang = state.gang(at->first);
    if (gang.sequence != at->second.sequence || !IsHalfBound(state, gang)) {
      at = since_.erase(at);
      continue;
    }
    if (now - at->second.start >= deadline_) {
      due.push_back(at->first);
      at->second.start = now;
    }
    ++at;
  }
  return due;
}

Time HalfBound::next_wake() const {
  Time next;
  for (const auto& [gang, clock] : since_) {
    const Time due = clock.start + deadline_;
    next = !next.set() || due < next ? due : next;
  }
  return next;
}

}  // namespace hopwise::daemon
