// HyperNodes and nodes in, trees and faults out. A function of the set of objects: the order in
// which they came never shows in the result.
//
// Members: `Node` by exact name, by regular expression (RE2, matches anywhere in the name) or by
// labels; `HyperNode` by exact name only. The members of one HyperNode are a set: what is matched
// twice counts once.
//
// Faults isolate: each takes out its own branch and gives a reason on that object (shared design
// section 3). They are judged in this order, each on what the ones before it left:
//  1. a bad pattern takes out its HyperNode; a member with a bad selector is ignored and named;
//  2. every member of a cycle is out; what hangs below them stands as roots of their own;
//  3. a missing child (also one of another fabric) is dropped and named, the rest stands;
//  4. a parent whose tier is not above a child's: the parent is out, the child stands;
//  5. two parents of one child: one stands (see below), the others are out, the child stands. But a
//     parent that names a child of its own descendant is only told so: nothing is in doubt there;
//  6. overlap: a node held by two HyperNodes of one fabric that are not ancestor and descendant,
//     whatever their tiers: one stands, the others are out.
// Of two objects that claim the same member, the one linked to a sound parent stands, then the
// older (creation; an object without one is the youngest), then the lesser name. The loser is out
// and its children become roots; what it claimed is never out because of it.
//
// A HyperNode that is out is no domain: nodes that no sound HyperNode holds fall to its next sound
// ancestor, else to the virtual root.
// Trees: one per fabric (label, else annotation, hopwise.dev/fabric on the HyperNode; "" = primary,
// always trees[0]), each over all nodes; label trees on demand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch.h"
#include "base/ids.h"
#include "topology/tree.h"

namespace hopwise::topology {

inline constexpr std::string_view kFabricKey = "hopwise.dev/fabric";

enum class FaultKind : uint8_t {
  kCycle,
  kTwoParents,
  kOverlap,
  kTierOrder,
  kMissingChild,
  kBadPattern,
  kBadSelector,
  kEmpty,
  kNameClash,
  kTierNameClash,
};
// "Cycle", "TwoParents", … as a condition reason.
std::string_view ReasonOf(FaultKind kind);

struct Fault {
  std::string object;  // the HyperNode it is reported on
  FaultKind kind = FaultKind::kEmpty;
  bool isolates = false;  // the object is no domain because of it; else a warning only
  std::string message;    // whole sentence with the names involved

  friend bool operator==(const Fault&, const Fault&) = default;
};

struct HyperNodeState {
  std::string name;
  // status.nodeCount: existing nodes for Node members plus 1 for each existing child.
  int64_t node_count = 0;
  bool in_tree = false;

  friend bool operator==(const HyperNodeState&, const HyperNodeState&) = default;
};

// An immutable picture; shared by whoever still uses it.
struct Topology {
  uint64_t version = 0;       // grows with every change of what follows
  std::vector<Tree> trees;    // trees[0] is the primary fabric, the others follow by name
  std::vector<Fault> faults;  // sorted by object, kind, message
  std::vector<HyperNodeState> hypernodes;  // sorted by name
};

class Forest {
 public:
  Forest();
  ~Forest();
  Forest(Forest&&) noexcept;
  Forest& operator=(Forest&&) noexcept;

  // Create or replace. Only what the change can touch is matched again: a HyperNode against all
  // nodes, a node against all selectors. Matching waits for the next Snapshot.
  void UpsertHyperNode(const api::HyperNode& hypernode);
  void RemoveHyperNode(std::string_view name);
  // A slot may be taken over by another name. One name must not be live in two slots.
  void UpsertNode(NodeId id, std::string_view name, const api::StringMap& labels);
  void RemoveNode(NodeId id);

  // The picture of the present state; rebuilt at most once per batch of changes. The same pointer
  // as before when nothing in the picture changed.
  std::shared_ptr<const Topology> Snapshot();

  // A tree of depth one whose domains (tier 1) are the values of the node label(s) `keys` (several:
  // the tuple, joined by "/"); nodes that lack one lie outside every domain. For constraints that
  // name a label instead of a HyperNode.
  Tree LabelTree(const std::vector<std::string>& keys) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopwise::topology
