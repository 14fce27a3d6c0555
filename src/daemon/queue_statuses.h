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

class QueueStatuses {
 public:
  void Apply(const api::Queue& object);
  void Remove(const std::string& name);
  // Something that counts may have changed.
  void Touch() { touched_ = true; }

  // Writes where something differs, at most once per kQueueInterval.
  void Settle(const cluster::State& state, const PodGroups& groups, Time now, Effects& effects);
  void Written(const std::string& name, const kube::ApiError& error);
  [[nodiscard]] Time next_wake() const { return touched_ ? last_ + kQueueInterval : Time(); }

  // Asks for the default queue and "root" where they are absent; once per name until it is seen.
  void CreateMissing(const std::string& default_queue, Effects& effects);
  // A creation failed: it may be asked for again.
  void NotCreated(const std::string& name) { asked_.erase(name); }

 private:
  struct View {
    api::Queue object;
    bool writing = false;
  };
  std::map<std::string, View> views_;
  std::set<std::string> asked_;
  bool touched_ = false;
  Time last_;
};

}  // namespace hopwise::daemon
