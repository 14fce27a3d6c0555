// Tells the members of waiting gangs why they wait: a PodScheduled condition and an Event each, and
// the words for their PodGroup.
//
// A new reason is told at once, other words for the same reason at most every kRetell. That members
// are missing is told once none has come for kMostGather, or for kMostMaking while there is none at
// all, and kMostMaking after the first look at the latest. A pod that shows the words already, told
// by whoever led before, is not told again.
//
// Each condition is written for the version of the pod that we know, so that one that is late (sent
// by a leader that was stopped, kept by a network that broke) cannot call a bound pod unscheduled.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/core.h"
#include "base/time.h"
#include "cluster/state.h"
#include "daemon/effects.h"
#include "daemon/gatherer.h"
#include "sched/plan.h"

namespace hopwise::daemon {

// While room comes and goes the numbers in a reason change all the time; people read slower.
inline constexpr Duration kRetell = Seconds(10);
// A controller with hundreds of jobs before it takes seconds until it has made the pods of the
// next: until then "3 of 512 members" is no news either, but a write for each pod in its way.
inline constexpr Duration kMostMaking = Seconds(10);
// What we know of a pod that was written for a version gone by is as new as the watch by then.
inline constexpr Duration kCatchUp = Millis(100);

class Waiters {
 public:
  struct Words {
    std::string reason, message;
    bool limit = false;  // its queue has no share left
  };

  // As last decided. Nothing of it waits: its words are dropped.
  void Report(const cluster::State& state, const sched::GangReport& report, Time now,
              Effects& effects);
  void Forget(GangId gang);
  // What was put off and is due. The gangs told now are appended to `told`.
  void Wake(const cluster::State& state, Time now, Effects& effects, std::vector<GangId>& told);
  // When Wake is next of use; not set when nothing is put off.
  [[nodiscard]] Time next_wake() const { return due_.empty() ? Time() : due_.begin()->first; }

  // What the gang was last told; nullptr when nothing (of it) waits or nothing was said yet.
  [[nodiscard]] const Words* WordsOf(GangId gang) const;
  [[nodiscard]] size_t size() const { return gangs_.size(); }
  // Waiting gangs by reason, as last decided.
  [[nodiscard]] std::map<std::string, int64_t> CountByReason() const;
  // By gang "ml/a": how many pods of it wait, as last decided.
  [[nodiscard]] std::map<std::string, int64_t> CountPods(const cluster::State& state) const;

  // A bind failed and is tried again after a pause: the pod shows why (reason SchedulerError) and,
  // as its nominatedNodeName, where its room is held meanwhile.
  void TellBindFailed(const cluster::State& state, PodId id, const std::string& node,
                      const std::string& message, Time now, Effects& effects);

  // The pod holds room on the node that others are leaving; `message` says whom it waits for.
  void TellNominated(const cluster::State& state, PodId id, const std::string& node,
                     const std::string& message, Time now, Effects& effects);

  // Takes note of the condition and the nominated node that a pod shows.
  void SeePod(PodId id, const api::Pod& pod);
  // The server has another version of the pod than the one its words were written for: once that is
  // seen they are written anew.
  void Overtaken(const cluster::State& state, PodId id, Time now);
  void LosePod(PodId id) { shown_.erase(id); }

 private:
  struct Gang {
    uint64_t sequence = 0;  // tells it from a later gang of the same id
    Words latest, told;
    Time due;    // when `latest` is to be told; not set when it was. The same as in due_
    Time since;  // when members were first found missing; not set when they were not, or told of
    Time told_at;
    bool said = false;
    int32_t waiting = 0;  // pods
  };
  struct Shown {
    uint64_t hash = 0;      // of reason and message
    bool is_false = false;  // the condition's status: lastTransitionTime moves only with it
    bool nominated = false;
    std::string version;     // resourceVersion of the pod as last seen
    bool overtaken = false;  // told already, but not written
  };

  void SetDue(GangId id, Gang& gang, Time due);
  void Say(const cluster::State& state, GangId id, Gang& gang, Time now, Effects& effects);
  void TellHeld(const cluster::State& state, PodId id, const std::string& node,
                std::string_view reason, const std::string& message, Time now, Effects& effects);
  // Those of its members that show other words.
  void TellPods(const cluster::State& state, GangId id, const Words& words, Time now,
                Effects& effects);

  std::map<GangId, Gang> gangs_;
  std::set<std::pair<Time, GangId>> due_;
  std::map<PodId, Shown> shown_;
};

}  // namespace hopwise::daemon
