// Stage 3, scope: which trees and which domains a topology rule allows, members already placed
// counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/state.h"
#include "sched/cells.h"

namespace hopwise::sched {

// The scope in one tree.
struct TreeScope {
  size_t tree = 0;     // index into State::trees()
  uint16_t limit = 0;  // highest rank of the smallest common domain; root_rank() = anywhere
  Anchors anchors;
};

struct Scope {
  enum class Kind : uint8_t {
    kFree,     // no rule: plugin scores decide
    kRuled,    // one of `trees`
    kUnknown,  // the rule cannot be met by what is known: `problem` says why
  };
  Kind kind = Kind::kFree;
  std::vector<TreeScope> trees;
  std::string problem;  // kUnknown
  std::vector<std::string>
      warnings;  // the rule was set aside as documented, anchors span more than allowed, …
};

// The largest domains that the scope allows, in order: calls visit(DomainId). Every other allowed
// one lies in one of them.
template <class Visit>
void ForEachAllowed(const topology::Tree& tree, const TreeScope& scope, Visit visit) {
  DomainId d = scope.anchors.common();
  if (!d.valid()) {
    tree.ForEachLargest(scope.limit, visit);
  } else if (tree.at(d).rank <= scope.limit) {
    while (tree.at(d).parent.valid() && tree.at(tree.at(d).parent).rank <= scope.limit) {
      d = tree.at(d).parent;
    }
    visit(d);
  }
}

// Ranks that a rule allows in one tree: the limit as a rank, 0 = none at all.
uint16_t LimitRank(const topology::Tree& tree, const cluster::TopologyRule& rule);

// Scope of a whole gang. `placed` are its members with a node.
Scope GangScope(cluster::State& state, GangId gang, const std::vector<PodId>& placed);

}  // namespace hopwise::sched
