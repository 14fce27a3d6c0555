// Holds a gang back while its members are still being made, so that one with a minimum below its
// size gets a place for all of them, and not for the first few that came.
//
// Nobody says how many will come. A gang is taken for complete once nothing came for four times the
// mean gap between those that did, within kLeastQuiet and kMostQuiet, and kMostGather after the
// first at the latest. Replacements and surplus of a gang that has a place are not held.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cluster/state.h"

namespace hopwise::daemon {

// A client makes pods 1 to 15 ms apart (kubectl is the slowest); a busy one pauses for longer.
inline constexpr Duration kLeastQuiet = Millis(10);
inline constexpr Duration kFirstQuiet = Millis(25);  // after one member: no gap is known yet
inline constexpr Duration kMostQuiet = Millis(250);
inline constexpr int64_t kQuietGaps = 4;
inline constexpr Duration kMostGather = Seconds(2);

class Gatherer {
 public:
  // A pending member came. Whether its gang is to be held from now on, until it is Due.
  bool Came(const cluster::State& state, GangId gang, Time now);
  // Those that need not be held any longer.
  std::vector<GangId> Due(Time now);
  [[nodiscard]] Time next_wake() const { return due_.empty() ? Time() : due_.begin()->first; }

 private:
  struct Arrivals {
    uint64_t sequence = 0;  // of the gang
    Time first, last, due;
    int64_t count = 0;
  };
  std::map<GangId, Arrivals> gangs_;
  std::set<std::pair<Time, GangId>> due_;
};

}  // namespace hopwise::daemon
