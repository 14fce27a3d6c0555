// The nodes of a Forest: names and labels by id, and all live ones in natural order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta.h"
#include "base/ids.h"
#include "topology/lookup.h"

namespace hopwise::topology {

class NodeTable {
 public:
  enum class Change : uint8_t { kNone, kLabels, kIdentity };

  // Creates the node or replaces what the slot held. kIdentity: the slot has another name now.
  Change Upsert(NodeId id, std::string_view name, const api::StringMap& labels);
  // False when the slot holds no node.
  bool Remove(NodeId id);

  // All live nodes in natural order of their names.
  std::span<const NodeId> Sorted();
  // None when no live node has the name.
  [[nodiscard]] NodeId Find(std::string_view name) const;
  [[nodiscard]] bool IsLive(NodeId id) const {
    return id.index() < ids() && live_[id.index()] != 0;
  }
  [[nodiscard]] const api::StringMap& LabelsOf(NodeId id) const { return labels_[id.index()]; }
  [[nodiscard]] const std::string& NameOf(NodeId id) const { return names_[id.index()]; }
  // By node id; one past the highest id ever used.
  [[nodiscard]] std::span<const std::string> names() const { return names_; }
  [[nodiscard]] size_t ids() const { return names_.size(); }

 private:
  std::vector<std::string> names_;
  std::vector<api::StringMap> labels_;
  std::vector<char> live_;
  NameMap<NodeId> by_name_;

  std::vector<NodeId> sorted_;    // live nodes, but for what is still to do:
  std::vector<char> listed_;      // by id: has a good entry in sorted_
  std::vector<NodeId> unlisted_;  // live nodes to be entered, perhaps repeated or dead by now
  bool has_stale_ = false;        // sorted_ has entries that are not good
};

}  // namespace hopwise::topology
