// Stages 1 and 2, order: which queue goes next, and which gang of it.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/state.h"

namespace hopwise::sched {

// Gangs that are to be decided, handed out one by one: queue by priority, then the least share of
// the cluster per weight, then name; in a queue gangs by priority, then those that hold some
// members and miss others of their minimum, then creation, then order of appearance.
class Agenda {
 public:
  Agenda(const cluster::State& state, const std::vector<GangId>& gangs);

  // The next gang; none when all were handed out. Shares are read afresh each time, so what was
  // just placed counts.
  GangId Next();

 private:
  struct Lane {
    QueueId queue;
    std::vector<GangId> gangs;  // last one goes first
  };
  [[nodiscard]] int64_t Share(const Lane& lane) const;

  const cluster::State& state_;
  std::vector<Lane> lanes_;
  std::vector<int64_t> totals_;  // allocatable of the cluster, by resource
};

}  // namespace hopwise::sched
