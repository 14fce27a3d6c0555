// The members of a HyperNode as sets, with what is wrong in how they are written.
#pragma once

#include <string>
#include <vector>

#include "api/batch.h"
#include "topology/forest.h"

namespace hopwise::topology {

struct MemberSpec {
  std::vector<std::string> node_names;  // sorted, unique
  std::vector<std::string> patterns;    // sorted, unique
  std::vector<api::LabelSelector> label_selectors;
  std::vector<std::string> children;  // sorted, unique
  std::vector<Fault> faults;          // kBadSelector, in the order of the members

  // Whether nodes must be tried one by one; exact names are looked up instead.
  [[nodiscard]] bool needs_scan() const { return !patterns.empty() || !label_selectors.empty(); }
};
bool operator==(const MemberSpec& a, const MemberSpec& b);

// A member whose selector sets none or several of the three, names nothing, or is not exactMatch
// on a HyperNode member is left out and named in `faults`.
MemberSpec ReadMembers(const api::HyperNode& hypernode);

// Value of the label, else the annotation, hopwise.dev/fabric; "" is the primary fabric.
std::string FabricOf(const api::ObjectMeta& meta);

// "a, b, c and 4 more": names for a message, of which the first few suffice.
std::string JoinNames(const std::vector<std::string>& names);

}  // namespace hopwise::topology
