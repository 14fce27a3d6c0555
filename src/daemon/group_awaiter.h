// Pods that will be members of a PodGroup once the PodGroup controller has named it (Hopwise's, or
// Volcano's): those that a ReplicaSet, a StatefulSet or a Job made and that name no gang. Placed at
// once they would be placed one by one, whatever minimum their workload asks for, so they are held
// back for a while. Where no controller names a group in time they are placed by themselves.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/core.h"
#include "base/time.h"

namespace hopwise::daemon {

// The gate by which the state knows a pod that is held; never written to the API server.
inline constexpr const char* kAwaitsGroup = "hopwise.dev/awaits-pod-group";

class GroupAwaiter {
 public:
  // `limit` 0: nobody is held.
  explicit GroupAwaiter(Duration limit) : limit_(limit) {}

  // Puts the gate into a pod whose group is yet to come. `fresh`: it was not known before; who was
  // let go is not held again.
  void Look(api::Pod& pod, bool fresh, Time now);
  void Forget(const std::string& uid);
  // Those that waited long enough, without the gate, as last seen: each once.
  std::vector<api::Pod> Due(Time now);
  [[nodiscard]] Time next_wake() const { return due_.empty() ? Time() : due_.begin()->first; }

 private:
  struct Held {
    api::Pod pod;
    Time until;
  };

  Duration limit_;
  std::map<std::string, Held> held_;            // by uid
  std::set<std::pair<Time, std::string>> due_;  // (until, uid)
};

}  // namespace hopwise::daemon
