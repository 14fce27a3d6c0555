// Stages 1 and 2, order: which queue goes next, and which gang of it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/state.h"

namespace hopwise::sched {

// A gang's place among those of its queue; less goes first. Good until the gang changes.
struct Turn {
  int32_t priority = 0;
  bool mends = false;  // holds some members and misses others of its minimum
  Time creation;
  uint64_t sequence = 0;
  GangId gang;

  friend bool operator<(const Turn& a, const Turn& b);
};

Turn TurnOf(const cluster::State& state, GangId gang);

// Gangs that are to be decided, handed out one by one: queue by priority, then the least share of
// the cluster per weight, then name; in a queue gangs by priority, then those that hold some
// members and miss others of their minimum, then creation, then order of appearance.
class Agenda {
 public:
  Agenda(const cluster::State& state, const std::vector<GangId>& gangs);

  void Add(GangId gang);
  // The next gang; none when all were handed out. Shares are read afresh each time, so what was
  // just placed counts.
  GangId Next();

 private:
  struct Lane {
    QueueId queue;
    std::set<Turn> turns;
  };
  [[nodiscard]] int64_t Share(const Lane& lane) const;

  const cluster::State& state_;
  std::map<std::string, Lane> lanes_;  // by name of the queue, "" for gangs without one
  std::vector<int64_t> totals_;        // allocatable of the cluster, by resource
};

}  // namespace hopwise::sched
