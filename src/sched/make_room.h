// Stage 9, preempt and reclaim: the cheapest set of pods without which a gang fits.
//
// Candidates are domains that the rule allows (and single nodes, for what fits on one): those that
// would hold the gang with all eligible victims gone. They are ordered by a bound, and the most
// promising are cleared in earnest: as many units as it takes, the cheapest first, then each unit,
// the dearest first, is put back if the gang fits all the same. Whether it fits is asked of the
// very code that places gangs, with the pods lifted from the state (cluster/lifted.h): what is
// found is proved, and none of its victims is unneeded. Pods that are on their way out already
// count as gone and cost nothing.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "cluster/state.h"
#include "sched/choose.h"
#include "sched/config.h"
#include "sched/demand.h"
#include "sched/plan.h"
#include "sched/scope.h"
#include "sched/victims.h"

namespace hopwise::sched {

// Domains tried for one gang, with those that turn out to be of no use: room in pieces, or too few
// victims that may be asked. Of those of use Victims::max_domains are compared.
inline constexpr size_t kMostTried = 64;

struct Room {
  bool found = false;
  std::vector<Unit> units;     // to be evicted; none where those on their way out suffice
  std::vector<PodId> leaving;  // on their way out, on the nodes of the binds
  std::vector<Bind> binds;     // of the required members, once all of these are gone
  size_t tree = 0;             // of the place
  EvictCost cost;
};

// `request`: of the required members, by resource id. Precondition: the demand has required members
// and they do not fit as things are. The state is as before when it returns.
Room MakeRoom(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
              const std::vector<int64_t>& request, const Victims& victims, Tools& tools);

}  // namespace hopwise::sched
