// Queues as people see them: state, PodGroups by phase, what is allocated. And the two queues that
// must exist.
#pragma once

#include <map>
#include <set>
#include <string>

#include "api/batch.h"
#include "base/time.h"
#include "cluster/state.h"
#include "daemon/effects.h"
#include "daemon/pod_groups.h"
#include "kube/errors.h"

namespace hopwise::daemon {

// Counters of a busy queue change with every pod; they are written at most this often.
inline constexpr Duration kQueueInterval = Seconds(1);
inline constexpr Duration kFirstQueuePause = Seconds(1);
inline constexpr Duration kMostQueuePause = Seconds(300);

class QueueStatuses {
 public:
  void Apply(const api::Queue& object);
  void Remove(const std::string& name);
  // Something that counts may have changed.
  void Touch() { touched_ = true; }

  // Writes where something differs, at most once per kQueueInterval.
  void Settle(const cluster::State& state, const PodGroups& groups, Time now, Effects& effects);
  void Written(const std::string& name, const kube::ApiError& error, Time now);
  [[nodiscard]] Time next_wake() const;

  // Asks for the default queue and "root" where they are absent; once per name until it is seen.
  void CreateMissing(const std::string& default_queue, Time now, Effects& effects);
  // A creation failed: it is asked for again after a while.
  void NotCreated(const std::string& name, Time now) { PutOff(name, now); }

 private:
  struct View {
    api::Queue object;
    bool writing = false;
  };
  // What failed for a queue is tried again after a pause, each one twice as long.
  struct Pause {
    Duration length = kFirstQueuePause;
    Time until;
  };
  void PutOff(const std::string& name, Time now);
  [[nodiscard]] bool Waits(const std::string& name, Time now) const;

  std::map<std::string, View> views_;
  std::set<std::string> asked_;
  std::map<std::string, Pause> pauses_;
  bool touched_ = false;
  Time last_;
};

}  // namespace hopwise::daemon
