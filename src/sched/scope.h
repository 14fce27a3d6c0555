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
  DomainId within;  // the whole decision stays inside this domain (none: no bound beyond `limit`)
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

// Ranks that a rule allows in one tree: the limit as a rank, 0 = none at all.
uint16_t LimitRank(const topology::Tree& tree, const cluster::TopologyRule& rule);

// Scope of a whole gang. `placed` are its members with a node.
Scope GangScope(cluster::State& state, GangId gang, const std::vector<PodId>& placed);

}  // namespace hopwise::sched
