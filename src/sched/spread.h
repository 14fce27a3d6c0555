// Placing without a topology rule: pod by pod onto the node with the best plugin score, all
// required members or none.
//
// The score of a node is its own (binpack, nodeorder) plus a term for each domain on its path
// (network-topology-aware's packing of normal pods), so the best node of a domain is the best of
// its parts plus the domain's term: one path is recomputed per pod placed, not the cluster.
#pragma once

#include "cluster/state.h"
#include "sched/choose.h"
#include "sched/demand.h"

namespace hopwise::sched {

// All of demand.required, then what fits of demand.optional. found is false when a required member
// does not fit. With several classes a failure is retried by the exact search on small clusters,
// else reported as undecided.
Choice SpreadByScore(cluster::State& state, GangId gang, const Demand& demand, Tools& tools);

}  // namespace hopwise::sched
