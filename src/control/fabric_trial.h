// What a HyperNode would do to the topology: the faults that there would be with it and are not
// there without.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch.h"
#include "base/ids.h"
#include "topology/forest.h"

namespace hopwise::control {

class FabricTrial {
 public:
  void UpsertNode(std::string_view name, const api::StringMap& labels);
  void RemoveNode(std::string_view name);
  void UpsertHyperNode(const api::HyperNode& object);
  void RemoveHyperNode(std::string_view name);

  // Of `next` in place of the object of its name. Nothing is kept of it. Faults of its own count
  // as new when they read otherwise than before, those of others when they had none of the kind.
  std::vector<topology::Fault> FaultsBroughtBy(const api::HyperNode& next);

 private:
  struct Node {
    NodeId id;
    api::StringMap labels;
  };

  topology::Forest forest_;
  std::map<std::string, Node, std::less<>> nodes_;
  std::vector<NodeId> free_ids_;
  uint32_t next_id_ = 0;
  std::map<std::string, api::HyperNode, std::less<>> hypernodes_;
  std::shared_ptr<const topology::Topology> present_;  // null: something changed since
};

}  // namespace hopwise::control
