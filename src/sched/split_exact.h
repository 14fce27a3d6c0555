// The exact split of one class over a domain: a tree dynamic programme (a knapsack merged child by
// child) whose cost is the objective's own vector, so that what it finds no other split beats.
//
// State of a domain: (g, p) = g whole groups placed inside it and p pods that belong to groups
// completed further up or to no group. Costs add up over the tree field by field, and lexicographic
// order respects addition, so partial optima combine to the optimum. Groups are alike: `group_size`
// pods each, completed in a domain of rank <= group_rank; without groups only p counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sched/cells.h"
#include "sched/trial.h"
#include "topology/tree.h"

namespace hopwise::sched {

struct SplitRequest {
  DomainId domain;
  int32_t groups = 0;       // whole groups wanted
  int32_t group_size = 1;   // pods of each
  uint16_t group_rank = 0;  // highest rank of a group's smallest domain
  int64_t loose = 0;        // pods of no group
};

struct GroupSplit {
  DomainId domain;  // where the group was completed
  std::vector<NodeCount> nodes;
};
struct Split {
  std::vector<GroupSplit> groups;  // in fabric order of their domains
  std::vector<NodeCount> loose;
};

enum class SplitOutcome : uint8_t { kFound, kImpossible, kTooLarge };

struct SplitAnswer {
  SplitOutcome outcome = SplitOutcome::kImpossible;
  Split split;
  int64_t spent = 0;  // of the budget
};

// `score(node)` is added per pod as the last criterion. `budget` bounds the work in merged fields;
// kTooLarge when it would be passed, which shows early (then nothing is proved). Precondition:
// request.domain's tree is `tree`.
SplitAnswer SplitExact(const topology::Tree& tree, const RoomView& view, const Anchors& anchors,
                       const SplitRequest& request, const std::function<int64_t(NodeId)>& score,
                       int64_t budget);

}  // namespace hopwise::sched
