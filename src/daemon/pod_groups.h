// PodGroups as people see them: phase, counters, conditions, and where the gang lies. Compares what
// should stand there with what does and makes one patch per PodGroup at a time.
//
// Phases, conditions and reasons are Volcano's (docs/reference/status.md); annotations are ours:
// hopwise.dev/placed-tier, …/placed-domain, …/predicted-distance.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "api/batch.h"
#include "base/time.h"
#include "cluster/state.h"
#include "daemon/effects.h"
#include "daemon/waiters.h"
#include "kube/errors.h"
#include "sched/plan.h"

namespace hopwise::daemon {

inline constexpr std::string_view kPlacedTier = "hopwise.dev/placed-tier";
inline constexpr std::string_view kPlacedDomain = "hopwise.dev/placed-domain";
// Links between the two members farthest apart: 0 within a node, 2 within a leaf, and two more for
// each tier above.
inline constexpr std::string_view kPredictedDistance = "hopwise.dev/predicted-distance";

// A write that the server accepted and that no watch has shown is tried again after this.
inline constexpr Duration kWriteSeen = Seconds(30);
// A write that conflicted is tried again after this, should no newer version come first.
inline constexpr Duration kConflictRetry = Seconds(1);

// What should stand on a PodGroup.
struct GroupStatus {
  std::string phase;
  int32_t running = 0, succeeded = 0, failed = 0;
  std::vector<api::Condition> conditions;
  std::string tier, domain, distance;  // "" where no member is placed

  friend bool operator==(const GroupStatus&, const GroupStatus&);
};

// As Events about it name it.
kube::ObjectReference ReferenceTo(const api::PodGroup& object);

// `shown` is the object as it stands. `words` are what its members are told, nullptr when nothing
// waits; `run` names the decision in transitionIDs.
GroupStatus StatusOf(cluster::State& state, GangId gang, const api::PodGroup& shown,
                     const sched::Location& location, const Waiters::Words* words, Time now,
                     const std::string& run);

class PodGroups {
 public:
  using Locate = std::function<sched::Location(GangId)>;

  void Apply(const api::PodGroup& object);
  void Remove(bool scheduler_plugins, const std::string& ns, const std::string& name);
  void Touch(GangId gang) { touched_.insert(gang); }

  // Looks at the touched gangs and writes where something differs.
  void Settle(cluster::State& state, const Waiters& waiters, const Locate& locate, Time now,
              const std::string& run, Effects& effects);
  // A patch of ours ended.
  void Written(bool scheduler_plugins, const std::string& ns, const std::string& name,
               const kube::ApiError& error, Time now);
  [[nodiscard]] Time next_wake() const {
    return retries_.empty() ? Time() : retries_.begin()->first;
  }

  // The PodGroup of a gang; nullptr for gangs without one.
  [[nodiscard]] const api::PodGroup* ShownOf(const cluster::Gang& gang) const;
  // PodGroups by queue and phase.
  [[nodiscard]] std::map<std::string, std::map<std::string, int32_t>> CountPhases() const;

 private:
  using Key = std::tuple<bool, std::string, std::string>;  // scheduling.x-k8s.io's, ns, name
  struct View {
    api::PodGroup object;  // as last seen
    bool writing = false;
    bool wanting = false;  // something differs, to be written when the write under way has ended
    GroupStatus written;   // by the write under way, or the last one
    bool seen = false;     // `written` was shown before the answer to it came
    Time written_at;       // set: accepted by the server, and nothing newer was seen yet
  };

  static Key KeyOf(const cluster::Gang& gang);
  void Look(cluster::State& state, GangId id, const Waiters& waiters, const Locate& locate,
            Time now, const std::string& run, Effects& effects);

  std::map<Key, View> views_;
  std::set<GangId> touched_;
  std::set<std::pair<Time, Key>> retries_;
};

}  // namespace hopwise::daemon
