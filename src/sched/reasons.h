// The words for a gang that waits: which level, the best domain, how many of its pods fit there,
// what is short and who holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/state.h"
#include "sched/choose.h"
#include "sched/demand.h"
#include "sched/plan.h"
#include "sched/scope.h"

namespace hopwise::sched {

struct Refusal {
  Verdict verdict = Verdict::kNotNow;
  std::string reason;   // one word
  std::string message;  // a sentence
};

// A gang whose required members do not fit. Decides between "never" (not even with every pod gone)
// and "not now", each with its numbers. `undecided`: the search gave up, so "not now" is not
// proved.
Refusal ExplainNoFit(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope,
                     bool undecided);

// The same where "never" is proved already (NeverByCounts).
Refusal ExplainNever(cluster::State& state, GangId gang, const Demand& demand, const Scope& scope);

// Surplus of a gang that has its minimum.
Refusal ExplainSurplus(cluster::State& state, GangId gang, const Demand& demand,
                       const Scope& scope);

// Which limit of the queue, or of one above it, the request would pass; "" when none.
std::string QueueProblem(const cluster::State& state, QueueId queue,
                         const std::vector<int64_t>& request);

// The gang's queue, or one above it, does not exist or is not open.
struct QueueRefusal {
  std::string reason, message;
};
std::optional<QueueRefusal> QueueRefuses(const cluster::State& state, const cluster::Gang& gang);

// Whether the request alone, with nothing else admitted, would pass a limit of the queue or of one
// above it.
bool QueueNeverAdmits(const cluster::State& state, QueueId queue,
                      const std::vector<int64_t>& request);

// The tier in words: "leaf (tier 1)" or "tier-1 domain".
std::string TierWords(const topology::Tree& tree, uint16_t rank);

}  // namespace hopwise::sched
