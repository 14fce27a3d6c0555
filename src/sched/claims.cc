#include "sched/claims.h"

#include <algorithm>

namespace hopwise::sched {
namespace {

bool HoldsRoomStill(const cluster::State& state, PodId id, const std::string& uid) {
  const cluster::PodRecord& pod = state.pod(id);
  return pod.alive && pod.uid == uid && cluster::HoldsRoom(pod.state);
}

bool IsOver(const cluster::State& state, NodeId node) {
  for (size_t r = 0; r < state.columns().resource_count(); ++r) {
    if (state.columns().free(ResourceId(r))[node.index()] < 0) {
      return true;
    }
  }
  return false;
}

bool SomebodyLeaves(const cluster::State& state, NodeId node) {
  return std::ranges::any_of(state.PodsOn(node),
                             [&](PodId pod) { return state.pod(pod).terminating; });
}

}  // namespace

void Claims::Make(cluster::State& state, GangId gang, const Room& room, Time now) {
  Claim claim;
  claim.sequence = state.gang(gang).sequence;
  claim.binds = room.binds;
  claim.tree = room.tree;
  claim.since = now;
  std::set<PodId> victims(room.leaving.begin(), room.leaving.end());
  for (const Unit& unit : room.units) {
    victims.insert(unit.pods.begin(), unit.pods.end());
  }
  for (const PodId pod : victims) {
    claim.victims.push_back({pod, state.pod(pod).uid});
  }
  for (const Bind& bind : room.binds) {
    claim.uids.push_back(state.pod(bind.pod).uid);
    state.Assume(bind.pod, bind.node);
  }
  claims_.insert_or_assign(gang, std::move(claim));
}

Claims::Outcome Claims::Judge(const cluster::State& state, GangId gang, const Claim& claim,
                              Time now) {
  const cluster::Gang& record = state.gang(gang);
  if (claim.refused || !record.alive || record.sequence != claim.sequence ||
      !record.invalid.empty() || now >= claim.since + kLongestClaim) {
    return Outcome::kDropped;
  }
  for (size_t i = 0; i < claim.binds.size(); ++i) {
    const Bind& bind = claim.binds[i];
    const cluster::PodRecord& pod = state.pod(bind.pod);
    const cluster::NodeRecord& node = state.node(bind.node);
    if (!pod.alive || pod.uid != claim.uids[i] || pod.state != cluster::PodState::kAssumed ||
        !node.alive || node.unschedulable || !node.ready) {
      return Outcome::kDropped;
    }
  }
  bool over = false;
  for (const Bind& bind : claim.binds) {
    if (IsOver(state, bind.node)) {
      over = true;
      if (SomebodyLeaves(state, bind.node)) {
        return Outcome::kWaits;
      }
    }
  }
  const bool leaving = std::ranges::any_of(claim.victims, [&](const Leaver& victim) {
    return HoldsRoomStill(state, victim.pod, victim.uid);
  });
  return leaving ? Outcome::kWaits : over ? Outcome::kDropped : Outcome::kDone;
}

void Claims::PutBack(cluster::State& state, const Claim& claim) {
  for (size_t i = 0; i < claim.binds.size(); ++i) {
    const PodId id = claim.binds[i].pod;
    if (state.pod(id).alive && state.pod(id).uid == claim.uids[i] &&
        state.pod(id).state == cluster::PodState::kAssumed) {
      state.Forget(id);
    }
  }
}

Claims::Settled Claims::Settle(cluster::State& state, Time now) {
  Settled settled;
  for (auto at = claims_.begin(); at != claims_.end();) {
    const Outcome outcome = Judge(state, at->first, at->second, now);
    if (outcome == Outcome::kWaits) {
      ++at;
      continue;
    }
    if (outcome == Outcome::kDone) {
      settled.done.push_back({at->first, at->second.binds, at->second.tree});
    } else {
      PutBack(state, at->second);
      settled.dropped.push_back(at->first);
    }
    at = claims_.erase(at);
  }
  return settled;
}

void Claims::Drop(cluster::State& state, GangId gang) {
  const auto at = claims_.find(gang);
  if (at != claims_.end()) {
    PutBack(state, at->second);
    claims_.erase(at);
  }
}

std::vector<GangId> Claims::DropAll(cluster::State& state) {
  std::vector<GangId> gangs;
  while (!claims_.empty()) {
    gangs.push_back(claims_.begin()->first);
    Drop(state, gangs.back());
  }
  return gangs;
}

Time Claims::next_end() const {
  Time next;
  for (const auto& [gang, claim] : claims_) {
    const Time end = claim.since + kLongestClaim;
    next = !next.set() || end < next ? end : next;
  }
  return next;
}

void Claims::Stays(const cluster::State& state, PodId pod, Time now) {
  const std::string& uid = state.pod(pod).uid;
  spared_[uid] = now + kSpare;
  for (auto& [gang, claim] : claims_) {
    claim.refused = claim.refused || std::ranges::any_of(claim.victims, [&](const Leaver& victim) {
                      return victim.pod == pod && victim.uid == uid;
                    });
  }
}

std::set<PodId> Claims::Spared(const cluster::State& state, Time now) {
  std::erase_if(spared_, [&](const auto& entry) { return entry.second <= now; });
  std::set<PodId> pods;
  for (size_t p = 0; p < state.pod_slots() && !spared_.empty(); ++p) {
    if (state.pod(PodId(p)).alive && spared_.contains(state.pod(PodId(p)).uid)) {
      pods.insert(PodId(p));
    }
  }
  return pods;
}

std::string Claims::Words(const cluster::State& state, GangId gang) const {
  const Claim& claim = claims_.at(gang);
  std::set<std::string> holders;
  int pods = 0;
  for (const Leaver& victim : claim.victims) {
    if (HoldsRoomStill(state, victim.pod, victim.uid)) {
      const cluster::PodRecord& pod = state.pod(victim.pod);
      ++pods;
      holders.insert(pod.ns + "/" + (pod.gang.valid() ? state.gang(pod.gang).name : pod.name));
    }
  }
  std::string names;
  for (const std::string& holder : holders) {
    names += (names.empty() ? "" : ", ") + holder;
  }
  return "its place is held for it: waits for " + std::to_string(pods) +
         (pods == 1 ? " pod of " : " pods of ") + names + " to go";
}

}  // namespace hopwise::sched
