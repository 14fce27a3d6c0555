// Gangs that hold room which others are leaving: evicted for them, or on their way out anyway.
//
// The members are assumed on their nodes at once, so that nobody else gets in, and bound when the
// last of those who leave is gone. A claim ends without a bind when the gang or a node of it
// changes, when a victim turns out to stay, or when it lasts longer than kLongestClaim; the members
// are pending again then. Nothing of it must survive a restart: whoever starts next finds the pods
// on their way out and claims their room anew (make_room.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/state.h"
#include "sched/make_room.h"
#include "sched/plan.h"

namespace hopwise::sched {

// Longer than any usual terminationGracePeriodSeconds; a pod that takes longer frees its room late.
inline constexpr Duration kLongestClaim = Seconds(600);
// A pod that the API server would not let go (a disruption budget, most often) is not asked again
// for so long.
inline constexpr Duration kSpare = Seconds(60);

class Claims {
 public:
  // Assumes the binds. Precondition: the room was found for the gang as the state now is.
  void Make(cluster::State& state, GangId gang, const Room& room, Time now);
  [[nodiscard]] bool Has(GangId gang) const { return claims_.contains(gang); }
  [[nodiscard]] bool empty() const { return claims_.empty(); }

  struct Settled {
    struct Done {
      GangId gang;
      std::vector<Bind> binds;
      size_t tree = 0;
    };
    std::vector<Done> done;
    std::vector<GangId> dropped;  // to be decided anew
  };
  // Ends the claims that have come to their end.
  Settled Settle(cluster::State& state, Time now);
  // The members are pending again; nothing when there is no claim.
  void Drop(cluster::State& state, GangId gang);
  // All of them; the gangs that had one.
  std::vector<GangId> DropAll(cluster::State& state);
  // When the next one lasts too long; not set when there is none.
  [[nodiscard]] Time next_end() const;

  // The pod will not go: its claim is dropped by the next Settle.
  void Stays(const cluster::State& state, PodId pod, Time now);
  // Pods that are not to be asked again yet.
  [[nodiscard]] std::set<PodId> Spared(const cluster::State& state, Time now);

  // "waits for 2 pods of ml/a, ml/b to go"
  [[nodiscard]] std::string Words(const cluster::State& state, GangId gang) const;

 private:
  struct Leaver {
    PodId pod;
    std::string uid;
  };
  struct Claim {
    uint64_t sequence = 0;  // of the gang
    std::vector<Bind> binds;
    std::vector<std::string> uids;  // of the members, as the binds
    std::vector<Leaver> victims;
    size_t tree = 0;
    Time since;
    bool refused = false;
  };
  enum class Outcome : uint8_t { kWaits, kDone, kDropped };
  [[nodiscard]] static Outcome Judge(const cluster::State& state, GangId gang, const Claim& claim,
                                     Time now);
  static void PutBack(cluster::State& state, const Claim& claim);

  std::map<GangId, Claim> claims_;
  std::map<std::string, Time> spared_;  // by uid of the pod, until when
};

}  // namespace hopwise::sched
