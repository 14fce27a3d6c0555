// Gangs that hold room and are not complete: how long they have been so.
//
// A gang that never reached its minimum and is not completed within the deadline must give its
// members back, so that no half gang holds room for ever. One that ran is never touched: it waits
// beside its members for the missing ones.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cluster/state.h"

namespace hopwise::daemon {

class HalfBound {
 public:
  explicit HalfBound(Duration deadline) : deadline_(deadline) {}

  // Starts the gang's clock, lets it run, or ends it, as the state now is.
  void Look(const cluster::State& state, GangId gang, Time now);
  // Gangs whose time is up; their clocks start anew.
  std::vector<GangId> Due(const cluster::State& state, Time now);
  [[nodiscard]] Time next_wake() const { return due_.empty() ? Time() : due_.begin()->first; }
  [[nodiscard]] Duration deadline() const { return deadline_; }
  [[nodiscard]] size_t size() const { return since_.size(); }

 private:
  struct Clock {
    uint64_t sequence = 0;  // of the gang
    Time start;
  };
  void Start(GangId gang, const Clock& clock);
  void End(GangId gang);

  Duration deadline_;
  std::map<GangId, Clock> since_;
  std::set<std::pair<Time, GangId>> due_;  // (start + deadline, gang) of each
};

}  // namespace hopwise::daemon
