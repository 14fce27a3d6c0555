// Node room as columns: allocatable and used amounts by resource and node, and the journal of nodes
// whose room or traits changed.
//
// Shapes: allocatable(r)[node], used(r)[node], free(r)[node] = the difference, all of size
// node_slots() and int64 (milli-CPU, bytes, counts). Resource kPods is pod slots. Zones are runs of
// kZone node ids, the last one shorter; bounds of the free amounts of each are known, so that a
// sweep reads only the zones in which a resource can bind. Journals: a sequence number counts
// entries ever written; readers remember how far they read and ask for what came after.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/resources.h"
#include "base/ids.h"
#include "base/int128.h"
#include "base/string_pool.h"

namespace hopwise::cluster {

// A request as (resource, amount) pairs sorted by resource id; amounts > 0.
using Request = std::vector<std::pair<ResourceId, int64_t>>;

// What of `resource` a request asks for; 0 when it does not name it.
inline int64_t AmountOf(const Request& request, ResourceId resource) {
  for (const auto& [r, amount] : request) {
    if (r == resource) {
      return amount;
    }
  }
  return 0;
}

// The last entries of an endless list of nodes.
class Journal {
 public:
  void Append(NodeId node);
  // Entries with sequence number >= `from`; nullopt-like: `complete` is false when older ones were
  // dropped already.
  struct Tail {
    std::span<const NodeId> nodes;
    bool complete = true;
  };
  [[nodiscard]] Tail Since(uint64_t from) const;
  [[nodiscard]] uint64_t end() const { return base_ + entries_.size(); }
  // How many entries are kept at least; the rest may go.
  void set_keep(size_t keep) { keep_ = keep; }

 private:
  uint64_t base_ = 0;
  size_t keep_ = 1024;
  std::vector<NodeId> entries_;
};

class Columns {
 public:
  Columns();

  ResourceId Resource(std::string_view name);                          // interns, adds a column
  [[nodiscard]] ResourceId FindResource(std::string_view name) const;  // none when unknown
  [[nodiscard]] const std::string& ResourceName(ResourceId r) const {
    return names_.Text(StringId(r.value));
  }
  [[nodiscard]] size_t resource_count() const { return allocatable_.size(); }
  [[nodiscard]] ResourceId pods() const { return ResourceId(0U); }

  [[nodiscard]] size_t node_slots() const { return slots_; }
  void Resize(size_t slots);

  [[nodiscard]] const std::vector<int64_t>& allocatable(ResourceId r) const {
    return allocatable_[r.index()];
  }
  [[nodiscard]] const std::vector<int64_t>& used(ResourceId r) const { return used_[r.index()]; }
  // Kept beside the two, so that a sweep for room reads one column and not two. Negative where more
  // is used than there is.
  [[nodiscard]] const std::vector<int64_t>& free(ResourceId r) const { return free_[r.index()]; }
  // Bounds of free(r) over the nodes of one zone: least <= free <= most. Changes loosen them where
  // they must; Tighten reads the zone to make them exact again.
  struct Extent {
    int64_t least = 0, most = 0;
    bool exact = true;
  };
  static constexpr size_t kZone = 512;
  [[nodiscard]] const Extent& free_extent(ResourceId r, size_t zone) const {
    return extents_[r.index()][zone];
  }
  void Tighten(ResourceId r, size_t zone) const;

  // At least the largest allocatable amount of any node, now or before: bounds how many of a
  // request fit on one node.
  [[nodiscard]] int64_t max_allocatable(ResourceId r) const { return max_allocatable_[r.index()]; }

  // Sum over all nodes, stuck at the end of int64.
  [[nodiscard]] int64_t total_allocatable(ResourceId r) const;

  // Replaces a node's allocatable amounts; resources it does not name become 0.
  void SetAllocatable(NodeId node, const api::ResourceList& amounts);
  void Use(NodeId node, const Request& request);      // used += request
  void Release(NodeId node, const Request& request);  // used -= request
  void TraitsChanged(NodeId node);                    // labels, taints, readiness, ports

  // How many of `request` fit on `node` now, by resources alone (>= 0).
  [[nodiscard]] int64_t Fit(NodeId node, const Request& request) const;
  // The same on the empty node.
  [[nodiscard]] int64_t FitEmpty(NodeId node, const Request& request) const;

  Request MakeRequest(const api::ResourceList& list);  // adds one pod slot, drops zeros

  [[nodiscard]] const Journal& room_journal() const { return room_; }
  [[nodiscard]] const Journal& traits_journal() const { return traits_; }
  // Bytes held, for the budget per node.
  [[nodiscard]] size_t MemoryBytes() const;

 private:
  void SetFree(ResourceId r, NodeId node);

  StringPool names_;
  size_t slots_ = 0;
  std::vector<std::vector<int64_t>> allocatable_, used_, free_;
  mutable std::vector<std::vector<Extent>> extents_;  // of free_, by resource, by zone
  std::vector<int64_t> max_allocatable_;
  std::vector<Int128> total_allocatable_;
  Journal room_, traits_;
};

}  // namespace hopwise::cluster
