#include "control/hypernode_status.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "control/discovery.h"

namespace hopwise::control {
namespace {

bool IsBroken(const topology::Fault& fault) {
  return fault.isolates || fault.kind == topology::FaultKind::kEmpty;
}

// By object: the faults, those that count most first.
std::map<std::string_view, std::vector<const topology::Fault*>> FaultsByObject(
    const topology::Topology& topology) {
  std::map<std::string_view, std::vector<const topology::Fault*>> faults;
  for (const bool broken : {true, false}) {
    for (const topology::Fault& fault : topology.faults) {
      if (IsBroken(fault) == broken) faults[fault.object].push_back(&fault);
    }
  }
  return faults;
}

const api::Condition* FindCondition(const api::HyperNode& object, std::string_view type) {
  const auto at = std::ranges::find(object.conditions, type, &api::Condition::type);
  return at == object.conditions.end() ? nullptr : &*at;
}

// Names that no HyperNode of the same source holds.
std::set<std::string_view> TopmostOf(std::string_view source,
                                     const std::vector<const api::HyperNode*>& objects) {
  std::set<std::string_view> topmost;
  std::set<std::string_view> held;
  for (const api::HyperNode* object : objects) {
    const std::string* label = api::Find(object->meta.labels, kSourceLabel);
    if (label == nullptr || *label != source) continue;
    topmost.insert(object->meta.name);
    for (const api::HyperNodeMember& member : object->members) {
      if (member.type == api::MemberType::kHyperNode && member.exact) held.insert(*member.exact);
    }
  }
  std::erase_if(topmost, [&](std::string_view name) { return held.contains(name); });
  return topmost;
}

api::Condition MakeCondition(std::string_view type, bool good, std::string_view reason,
                             std::string_view message) {
  api::Condition condition;
  condition.type = type;
  condition.status = good ? "True" : "False";
  condition.reason = reason;
  condition.message = message;
  return condition;
}

// Puts `next` in its place; its time moves with its status alone. Whether anything but that
// changed.
bool Put(const api::HyperNode& object, api::Condition next, Time now,
         std::vector<api::Condition>& conditions) {
  const api::Condition* shown = FindCondition(object, next.type);
  next.last_transition =
      shown != nullptr && shown->status == next.status ? shown->last_transition : now;
  const bool same = shown != nullptr && shown->status == next.status &&
                    shown->reason == next.reason && shown->message == next.message;
  const auto at = std::ranges::find(conditions, next.type, &api::Condition::type);
  if (at == conditions.end()) {
    conditions.push_back(std::move(next));
  } else {
    *at = std::move(next);
  }
  return !same;
}

}  // namespace

std::vector<HyperNodeStatus> PlanStatuses(const topology::Topology& topology,
                                          const std::vector<const api::HyperNode*>& objects,
                                          const std::vector<SourceState>& sources, Time now) {
  const auto faults = FaultsByObject(topology);
  std::map<std::string_view, const SourceState*> told;  // by topmost HyperNode
  for (const SourceState& source : sources) {
    for (const std::string_view name : TopmostOf(source.source, objects)) told[name] = &source;
  }
  std::vector<HyperNodeStatus> writes;
  for (const api::HyperNode* object : objects) {
    const std::string& name = object->meta.name;
    const auto state =
        std::ranges::lower_bound(topology.hypernodes, name, {}, &topology::HyperNodeState::name);
    if (state == topology.hypernodes.end() || state->name != name) continue;
    HyperNodeStatus next = {object, state->node_count, {}, object->conditions};
    next.ready = MakeCondition(kReady, true, kReady, "");
    if (const auto found = faults.find(name); found != faults.end()) {
      const topology::Fault& worst = *found->second.front();
      std::string message;
      for (const topology::Fault* fault : found->second) {
        message += (message.empty() ? "" : " ") + fault->message;
      }
      next.ready = MakeCondition(kReady, !IsBroken(worst), topology::ReasonOf(worst.kind), message);
    }
    bool changed = Put(*object, next.ready, now, next.conditions);
    next.ready = *std::ranges::find(next.conditions, kReady, &api::Condition::type);
    if (const auto at = told.find(name); at != told.end()) {
      const SourceState& source = *at->second;
      if (!source.reason.empty() || FindCondition(*object, kDiscovered) != nullptr) {
        const bool good = source.reason.empty();
        changed = Put(*object,
                      MakeCondition(kDiscovered, good, good ? kDiscovered : source.reason,
                                    source.message),
                      now, next.conditions) ||
                  changed;
      }
    } else {
      // Not topmost any more, or its source is not asked any more.
      changed =
          std::erase_if(next.conditions,
                        [](const api::Condition& one) { return one.type == kDiscovered; }) > 0 ||
          changed;
    }
    if (changed || object->node_count != next.node_count) writes.push_back(std::move(next));
  }
  return writes;
}

}  // namespace hopwise::control
