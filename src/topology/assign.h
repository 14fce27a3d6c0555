// Which domain holds which node, and which HyperNodes are out because they hold a node that belongs
// to another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "topology/claims.h"
#include "topology/link.h"

namespace hopwise::topology {

// The live nodes in natural order with what is known of them.
struct NodeView {
  std::span<const NodeId> nodes;
  std::span<const std::string> names;        // by node id
  const ClaimTable* claims = nullptr;        // HyperNode slots
  std::span<const uint32_t> object_of_slot;  // slot -> index into Links::objects
};

struct Assignment {
  // By fabric, then by place in NodeView::nodes: the smallest sound object with the node, or
  // kNoObject.
  std::vector<std::vector<uint32_t>> owner;
  std::vector<char> out;  // by object: out after linking, or out by overlap
  std::vector<Fault> faults;
};

Assignment AssignNodes(const Links& links, const NodeView& view);

}  // namespace hopwise::topology
