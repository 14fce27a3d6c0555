#include "sched/order.h"

#include <algorithm>
#include <map>

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

struct Waiting {
  GangId id;
  bool mends = false;
};

bool GoesBefore(const cluster::State& state, const Waiting& a, const Waiting& b) {
  const cluster::Gang& x = state.gang(a.id);
  const cluster::Gang& y = state.gang(b.id);
  if (x.priority != y.priority) {
    return x.priority > y.priority;
  }
  if (a.mends != b.mends) {
    return a.mends;
  }
  if (x.creation != y.creation) {
    return x.creation < y.creation;
  }
  return x.sequence != y.sequence ? x.sequence < y.sequence : a.id < b.id;
}

}  // namespace

Agenda::Agenda(const cluster::State& state, const std::vector<GangId>& gangs) : state_(state) {
  std::map<QueueId, std::vector<Waiting>> by_queue;
  for (const GangId id : gangs) {
    by_queue[state.gang(id).queue].push_back({id, false});
  }
  for (auto& [queue, list] : by_queue) {
    for (Waiting& w : list) {
      w.mends = list.size() > 1 && MissesMembers(state, state.gang(w.id));
    }
    std::ranges::sort(list,
                      [&](const Waiting& a, const Waiting& b) { return GoesBefore(state, b, a); });
    Lane lane{queue, {}};
    for (const Waiting& w : list) {
      lane.gangs.push_back(w.id);
    }
    lanes_.push_back(std::move(lane));
  }
  std::ranges::sort(lanes_, [&](const Lane& a, const Lane& b) {
    const std::string none;
    const std::string& x = a.queue.valid() ? state.queue(a.queue).name : none;
    const std::string& y = b.queue.valid() ? state.queue(b.queue).name : none;
    return x < y;
  });
  if (lanes_.size() > 1) {
    const cluster::Columns& columns = state.columns();
    totals_.assign(columns.resource_count(), 0);
    for (size_t r = 0; r < totals_.size(); ++r) {
      totals_[r] = columns.total_allocatable(ResourceId(r));
    }
  }
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
  for (Lane& lane : lanes_) {
    if (lane.gangs.empty()) {
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
  const GangId gang = best->gangs.back();
  best->gangs.pop_back();
  return gang;
}

}  // namespace hopwise::sched
