// One fabric as an immutable tree over the nodes: domains in depth-first order, each an interval of
// node positions.
//
//   domains[0]                     the virtual root: every node, also those outside every HyperNode
//   domains[d+1 .. d.end)          the domains under d, parents before children
//   order[d.lo .. d.direct)        the nodes that are members of d itself
//   order[d.direct .. d.hi)        the nodes of d's children, child by child
//
// Siblings, roots and the nodes of one domain stand in natural order of their names (natural.h).
// A domain may be empty (lo == hi): a HyperNode none of whose nodes exists.
//
// Ranks replace tier numbers in the algorithms: a node has rank 0, the HyperNode tiers in use have
// ranks 1..tiers.size() in ascending order of tier, the virtual root has rank tiers.size()+1. A
// child's rank is less than its parent's; depth may be mixed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace hopwise::topology {

struct Domain {
  std::string name;       // HyperNode's name; a label domain's value; "" for the virtual root
  std::string tier_name;  // spec.tierName, may be ""
  int32_t tier = 0;       // spec.tier; virtual root: highest tier + 1 (1 when there is none)
  uint16_t rank = 0;
  DomainId parent;   // none for the virtual root
  uint32_t end = 0;  // one past the last domain under this one; own index + 1 when childless
  uint32_t lo = 0, direct = 0, hi = 0;  // positions in Tree::order

  [[nodiscard]] uint32_t node_count() const { return hi - lo; }
  friend bool operator==(const Domain&, const Domain&) = default;
};

struct Tree {
  // "" for the primary one; value of hopwise.dev/fabric, or the label key(s) for label trees.
  std::string fabric;
  std::vector<Domain> domains;     // never empty
  std::vector<NodeId> order;       // position -> node
  std::vector<uint32_t> position;  // node id -> position; kNoPosition for ids without a live node
  // Node id -> smallest domain with it; DomainId(0) when outside all, and for ids without a node.
  std::vector<DomainId> leaf_of;
  std::vector<int32_t> tiers;  // rank - 1 -> tier number, ascending
  // Rank - 1 -> tierName ("" when none; the least when HyperNodes disagree). To resolve a name that
  // a user wrote, ask RanksNamed, which also knows the names that lost here.
  std::vector<std::string> tier_names;

  // Made by MakeIndexes. By domain: what walks over thousands of domains read of each, close
  // together.
  struct Outline {
    uint32_t parent = 0, end = 0;
    uint32_t own_nodes = 0;
    uint32_t first_id = 0;  // least id of its own nodes if these are consecutive, else kNoPosition
    uint16_t rank = 0;

    friend bool operator==(const Outline&, const Outline&) = default;
  };
  std::vector<Outline> outlines;
  // The others by rank:
  std::vector<std::vector<DomainId>> by_rank;   // its domains in order
  std::vector<uint32_t> most_nodes;             // of one of them
  std::vector<std::vector<std::string>> names;  // their tier_names, each once, "" left out

  static constexpr uint32_t kNoPosition = 0xffffffffU;

  [[nodiscard]] const Domain& at(DomainId d) const { return domains[d.index()]; }
  [[nodiscard]] uint16_t root_rank() const { return static_cast<uint16_t>(tiers.size() + 1); }
  // Smallest domain that holds both (the virtual root at worst).
  [[nodiscard]] DomainId CommonDomain(DomainId a, DomainId b) const;
  // Whether `inner` lies in `outer` or is it.
  [[nodiscard]] bool Contains(DomainId outer, DomainId inner) const {
    return outer.value <= inner.value && inner.value < domains[outer.index()].end;
  }
  // The ranks, ascending, of the domains whose own tier_name is `tier_name`. Usually one; none for
  // an unknown name and for ""; several when one name is written on several tiers.
  [[nodiscard]] std::vector<uint16_t> RanksNamed(std::string_view tier_name) const;

  // Fills in the indexes once the rest of the tree stands.
  void MakeIndexes();

  // The largest domains of rank <= limit, in order: calls visit(DomainId) for each.
  template <class Visit>
  void ForEachLargest(uint16_t limit, Visit visit) const {
    for (uint32_t d = 0; d < outlines.size();) {
      const bool allowed = outlines[d].rank <= limit;
      if (allowed) {
        visit(DomainId(d));
      }
      d = allowed ? outlines[d].end : d + 1;
    }
  }

  friend bool operator==(const Tree&, const Tree&) = default;
};

}  // namespace hopwise::topology
