// The scheduler: changed state in, plan out. Stages of the shared design, one file each:
//   order.h (1, 2)   scope.h (3)   choose.h (4, 5)   place.h with split_*.h and spread.h (6)
//   ranks.h (8)   reasons.h
// and the plan (10) here. demand.h says what a gang still needs, memory.h who sleeps on which
// refusal. Pure and single-threaded: the same events give the same plan. Placed pods are assumed in
// the state before Run returns.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "cluster/state.h"
#include "sched/config.h"
#include "sched/plan.h"

namespace hopwise::sched {

// What the last Run cost, for tests, benchmarks and metrics.
struct Counters {
  uint64_t runs = 0, decisions = 0, from_memory = 0, woken = 0, splits = 0, undecided = 0;
  // Sleepers that JudgeAfresh found room for though nothing had woken them: each one is a fault.
  uint64_t unannounced = 0;
};

class Scheduler {
 public:
  Scheduler(cluster::State& state, Config config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Decides every gang that something changed for, in queue and gang order, until none is left.
  // Reports come for gangs whose verdict or placement was decided in this run, also when it is the
  // same as before. `now` is only used for ages and for the next wake time.
  Plan Run(Time now);

  // Judges one sleeper, the next in turn at each call, as if nothing were remembered. Of use right
  // after a Run, when all changes were taken; the plan holds at most that gang.
  Plan JudgeAfresh();

  // The API server did not let the pod go, though a plan had it evicted: what was to have its room
  // is decided anew, and the pod is left alone for a while.
  void NotEvicted(PodId pod, Time now);
  // The gang holds room that others are leaving, and is not to keep it: its members wait again.
  void DropClaim(GangId gang);
  // The same for all gangs: somebody else decides from now on.
  void DropClaims();
  // When a claim ends that nothing else ends before; not set when there is none.
  [[nodiscard]] Time next_claim_end() const;
  [[nodiscard]] bool HoldsClaim(GangId gang) const;

  // A gang that is held is left out of Run and JudgeAfresh, as if it were not there, until it is
  // released; the next Run decides it then.
  void Hold(GangId gang);
  void Release(GangId gang);

  // Other weights and plugins from now on; the next Run decides every waiting gang again.
  void SetConfig(Config config);

  // Why a gang waits, as last decided; nullptr when it was never decided or nothing of it waits.
  [[nodiscard]] const GangReport* LastReport(GangId gang) const;
  // Where the placed members are now (assumed and bound).
  [[nodiscard]] Location Locate(GangId gang);

  // Gangs that wait with a verdict.
  [[nodiscard]] size_t sleeping() const;
  [[nodiscard]] const Counters& counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopwise::sched
