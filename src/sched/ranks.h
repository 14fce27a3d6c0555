// Stage 8, ranks: which member goes to which of the chosen places. Within a set (a sub-group, or
// the loose members) pods in order of their index are laid along the fabric, so that neighbours in
// rank are neighbours in the fabric.
#pragma once

#include <vector>

#include "cluster/state.h"
#include "sched/demand.h"
#include "sched/place.h"
#include "sched/plan.h"
#include "topology/tree.h"

namespace hopwise::sched {

// One bind per slot and count, in the order of the sets.
std::vector<Bind> AssignMembers(cluster::State& state, GangId gang, const Demand& demand,
                                const Placement& placement, const topology::Tree& tree);

}  // namespace hopwise::sched
