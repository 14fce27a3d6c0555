// Stages 4 and 5: the necessary test on sums per domain, then the choice of the domain.
//
// Candidates are tried rank by rank from the bottom; the first rank with a confirmed candidate
// wins, unless sub-groups have rules of their own: the slowest group counts before the gang, so
// higher ranks are looked at as long as they could better it. Among the candidates of a rank those
// with the best bounds are split and packed in full and compared by the objective (quality.h).
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/state.h"
#include "sched/demand.h"
#include "sched/place.h"
#include "sched/scope.h"
#include "sched/score.h"

namespace hopwise::sched {

struct Choice {
  bool found = false;
  bool undecided = false;  // a bounded search gave up somewhere: not found is no proof
  size_t tree = 0;
  DomainId domain;  // the candidate chosen
  Placement placement;
  Quality quality;
};

// The best domain of the scope for the message of a gang that does not fit: the first of those that
// take most of its required pods.
struct BestEffortDomain {
  size_t tree = 0;
  DomainId domain;   // none when nothing is allowed
  int64_t pods = 0;  // required pods that fit there by sums
};

// What a decision reads besides the state.
struct Tools {
  const Scorer& scorer;
  std::vector<DomainTotals>& totals;  // by tree, kept between decisions
};

// Precondition: scope.kind is kRuled and the demand has required members.
Choice ChooseDomain(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
                    Tools& tools);

// Surplus for a gang that runs (or was just placed with `placement` in tree `tree`): nearest first,
// inside the scope.
void PlaceSurplus(cluster::State& state, GangId gang, const Demand& demand, const TreeScope& scope,
                  Trial& trial, const Anchors& anchors, Effort& effort, Placement& placement);

// Surplus of a gang without anything required: tries the trees of the scope in order, the first
// that takes anything wins.
Choice ChooseSurplus(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
                     Tools& tools);

// Whether the largest domains could not hold the required members though every node were as large
// as the largest and empty: a proof of "never" that looks at no node.
bool NeverByCounts(cluster::State& state, const Demand& demand, const Scope& scope);

BestEffortDomain FindBest(cluster::State& state, const Demand& demand, const Scope& scope);

// Pods of `counts` that fit domain d by sums alone, class by class.
int64_t FitBySums(const Trial& trial, DomainId d, const std::vector<int32_t>& counts);

}  // namespace hopwise::sched
