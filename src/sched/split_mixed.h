// The exact split of several classes at once over a domain that is small: which pods of which class
// go to which node so that all fit and the fewest cells are opened, from the top rank down.
//
// State: how many pods of each class are placed so far, walking the nodes in fabric order; a domain
// or node is paid for when its first pod enters.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/state.h"
#include "sched/cells.h"
#include "sched/quality.h"
#include "sched/split_exact.h"
#include "sched/trial.h"

namespace hopwise::sched {

struct MixedAnswer {
  SplitOutcome outcome = SplitOutcome::kImpossible;
  std::vector<Slot> slots;
};

// `wanted[k]` pods of each class k of the trial. Nothing is placed in the trial. `budget` bounds
// the work in steps.
MixedAnswer SplitMixed(cluster::State& state, const Trial& trial, const Anchors& anchors,
                       DomainId domain, const std::vector<int32_t>& wanted, int64_t budget);

}  // namespace hopwise::sched
