#include "control/hypernode_status.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace hopwise::control {
namespace {

// Of several faults of one object the one that counts: what isolates first, then by order.
using Worst = std::map<std::string_view, const topology::Fault*>;

bool IsBroken(const topology::Fault& fault) {
  return fault.isolates || fault.kind == topology::FaultKind::kEmpty;
}

Worst WorstByObject(const topology::Topology& topology) {
  Worst worst;
  for (const topology::Fault& fault : topology.faults) {
    const auto [at, first] = worst.try_emplace(fault.object, &fault);
    if (!first && IsBroken(fault) && !IsBroken(*at->second)) at->second = &fault;
  }
  return worst;
}

const api::Condition* FindReady(const api::HyperNode& object) {
  const auto at = std::ranges::find(object.conditions, kReady, &api::Condition::type);
  return at == object.conditions.end() ? nullptr : &*at;
}

}  // namespace

std::vector<HyperNodeStatus> PlanStatuses(const topology::Topology& topology,
                                          const std::vector<const api::HyperNode*>& objects,
                                          Time now) {
  const Worst worst = WorstByObject(topology);
  std::vector<HyperNodeStatus> writes;
  for (const api::HyperNode* object : objects) {
    const auto state = std::ranges::lower_bound(topology.hypernodes, object->meta.name, {},
                                                &topology::HyperNodeState::name);
    if (state == topology.hypernodes.end() || state->name != object->meta.name) continue;
    HyperNodeStatus next = {object, state->node_count, {}};
    next.ready.type = kReady;
    next.ready.status = "True";
    next.ready.reason = kReady;
    if (const auto fault = worst.find(object->meta.name); fault != worst.end()) {
      next.ready.status = IsBroken(*fault->second) ? "False" : "True";
      next.ready.reason = topology::ReasonOf(fault->second->kind);
      next.ready.message = fault->second->message;
    }
    next.ready.last_transition = now;
    const api::Condition* shown = FindReady(*object);
    if (shown != nullptr && shown->status == next.ready.status) {
      next.ready.last_transition = shown->last_transition;
    }
    const bool same = shown != nullptr && shown->status == next.ready.status &&
                      shown->reason == next.ready.reason && shown->message == next.ready.message;
    if (!same || object->node_count != next.node_count) writes.push_back(std::move(next));
  }
  return writes;
}

}  // namespace hopwise::control
