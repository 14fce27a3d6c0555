#include "daemon/gatherer.h"

#include <algorithm>

namespace hopwise::daemon {
namespace {

bool HasAPlace(const cluster::State& state, const cluster::Gang& gang) {
  return std::ranges::any_of(gang.pods,
                             [&](PodId id) { return cluster::HoldsRoom(state.pod(id).state); });
}

}  // namespace

bool Gatherer::Came(const cluster::State& state, GangId id, Time now) {
  const cluster::Gang& gang = state.gang(id);
  if (gang.source == cluster::GangSource::kLonePod) {
    return false;
  }
  auto [at, is_new] = gangs_.try_emplace(id);
  Arrivals& mine = at->second;
  if (!is_new) {
    due_.erase({mine.due, id});
  }
  if (is_new || mine.sequence != gang.sequence) {
    if (HasAPlace(state, gang)) {
      gangs_.erase(at);
      return false;
    }
    mine = {gang.sequence, now, now, {}, 0};
  }
  mine.last = now;
  ++mine.count;
  Duration quiet = kFirstQuiet;
  if (mine.count > 1) {
    const Duration gap{(mine.last - mine.first).ns / (mine.count - 1)};
    quiet = std::clamp(Duration{kQuietGaps * gap.ns}, kLeastQuiet, kMostQuiet);
  }
  mine.due = std::min(now + quiet, mine.first + kMostGather);
  due_.emplace(mine.due, id);
  return true;
}

std::vector<GangId> Gatherer::Due(Time now) {
  std::vector<GangId> due;
  while (!due_.empty() && due_.begin()->first <= now) {
    due.push_back(due_.begin()->second);
    gangs_.erase(due_.begin()->second);
    due_.erase(due_.begin());
  }
  return due;
}

}  // namespace hopwise::daemon
