#include "control/fabric_trial.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hopwise::control {

void FabricTrial::UpsertNode(std::string_view name, const api::StringMap& labels) {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) {
    NodeId id(next_id_);
    if (free_ids_.empty()) {
      ++next_id_;
    } else {
      id = free_ids_.back();
      free_ids_.pop_back();
    }
    nodes_.emplace(name, Node{id, labels});
    forest_.UpsertNode(id, name, labels);
  } else if (at->second.labels != labels) {
    at->second.labels = labels;
    forest_.UpsertNode(at->second.id, name, labels);
  } else {
    return;  // a heartbeat
  }
  present_.reset();
}

void FabricTrial::RemoveNode(std::string_view name) {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return;
  forest_.RemoveNode(at->second.id);
  free_ids_.push_back(at->second.id);
  nodes_.erase(at);
  present_.reset();
}

void FabricTrial::UpsertHyperNode(const api::HyperNode& object) {
  hypernodes_[object.meta.name] = object;
  forest_.UpsertHyperNode(object);
  present_.reset();
}

void FabricTrial::RemoveHyperNode(std::string_view name) {
  const auto at = hypernodes_.find(name);
  if (at == hypernodes_.end()) return;
  forest_.RemoveHyperNode(name);
  hypernodes_.erase(at);
  present_.reset();
}

std::vector<topology::Fault> FabricTrial::FaultsBroughtBy(const api::HyperNode& next) {
  if (present_ == nullptr) present_ = forest_.Snapshot();
  const std::shared_ptr<const topology::Topology> before = present_;
  const std::string& name = next.meta.name;
  forest_.UpsertHyperNode(next);
  const std::shared_ptr<const topology::Topology> after = forest_.Snapshot();
  // As it was; that picture is at hand, and is not made again.
  if (const auto at = hypernodes_.find(name); at != hypernodes_.end()) {
    forest_.UpsertHyperNode(at->second);
  } else {
    forest_.RemoveHyperNode(name);
  }

  std::set<std::pair<std::string_view, topology::FaultKind>> had;
  for (const topology::Fault& fault : before->faults) had.emplace(fault.object, fault.kind);
  std::vector<topology::Fault> brought;
  for (const topology::Fault& fault : after->faults) {
    const bool known = fault.object == name
                           ? std::ranges::find(before->faults, fault) != before->faults.end()
                           : had.contains({fault.object, fault.kind});
    if (!known) brought.push_back(fault);
  }
  return brought;
}

}  // namespace hopwise::control
