#include "sched/order.h"

#include <algorithm>

#include "base/int128.h"
#include "base/quantity.h"

namespace hopwise::sched {
namespace {

// Shares are compared in these parts of the whole.
constexpr int64_t kShareScale = 1'000'000'000;

// Some members are placed, but fewer than the minimum: it ran and lost some, or was found half
// bound.
bool MissesMembers(const cluster::State& state, const cluster::Gang& gang) {
  int32_t placed = 0;
  bool waits = false;
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    placed += cluster::HoldsRoom(pod.state) || pod.succeeded ? 1 : 0;
    waits |= pod.state == cluster::PodState::kPending;
  }
  return waits && placed > 0 && placed < gang.min_member;
}

}  // namespace

bool operator<(const Turn& a, const Turn& b) {
  if (a.priority != b.priority) {
    return a.priority > b.priority;
  }
  if (a.mends != b.mends) {
    return a.mends;
  }
  if (a.creation != b.creation) {
    return a.creation < b.creation;
  }
  return a.sequence != b.sequence ? a.sequence < b.sequence : a.gang < b.gang;
}

Turn TurnOf(const cluster::State& state, GangId id) {
  const cluster::Gang& gang = state.gang(id);
  return {gang.priority, MissesMembers(state, gang), gang.creation, gang.sequence, id};
}

Agenda::Agenda(const cluster::State& state, const std::vector<GangId>& gangs) : state_(state) {
  totals_.reserve(state.columns().resource_count());
  for (size_t r = 0; r < state.columns().resource_count(); ++r) {
    totals_.push_back(state.columns().total_allocatable(ResourceId(r)));
  }
  for (const GangId id : gangs) {
    Add(id);
  }
}

void Agenda::Add(GangId id) {
  const QueueId queue = state_.gang(id).queue;
  Lane& lane = lanes_[queue.valid() ? state_.queue(queue).name : ""];
  lane.queue = queue;
  lane.turns.insert(TurnOf(state_, id));
}

// The largest part of any resource that the queue holds, per weight.
int64_t Agenda::Share(const Lane& lane) const {
  if (!lane.queue.valid()) {
    return 0;
  }
  const cluster::Queue& queue = state_.queue(lane.queue);
  int64_t share = 0;
  for (size_t r = 0; r < totals_.size(); ++r) {
    if (totals_[r] > 0) {
      const Int128 part = Int128{queue.AllocatedOf(ResourceId(r))} * kShareScale / totals_[r];
      share = std::max(share, static_cast<int64_t>(std::min<Int128>(part, INT64_MAX)));
    }
  }
  return share / std::max(1, queue.weight);
}

GangId Agenda::Next() {
  Lane* best = nullptr;
  int64_t best_share = 0;
  for (auto& [name, lane] : lanes_) {
    if (lane.turns.empty()) {
      continue;
    }
    const int32_t priority = lane.queue.valid() ? state_.queue(lane.queue).priority : 0;
    const int32_t best_priority =
        best != nullptr && best->queue.valid() ? state_.queue(best->queue).priority : 0;
    const int64_t share = lanes_.size() > 1 ? Share(lane) : 0;
    if (best == nullptr || priority > best_priority ||
        (priority == best_priority && share < best_share)) {
      best = &lane;
      best_share = share;
    }
  }
  if (best == nullptr) {
    return {};
  }
  const GangId gang = best->turns.begin()->gang;
  best->turns.erase(best->turns.begin());
  return gang;
}

}  // namespace hopwise::sched
