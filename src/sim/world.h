// What the controllers, the kubelets and the scheduler of the virtual cluster share: objects, time,
// events.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "control/job_controller.h"
#include "sim/objects.h"

namespace hopwise::sim {

// Pods that controllers may make in one run, so that a Job of a billion completions ends with a
// word instead of without memory.
inline constexpr int64_t kMaxPodsMade = 300'000;

class World {
 public:
  // 2026-01-01T00:00:00Z, where virtual time starts.
  static constexpr Time kEpoch{1'767'225'600LL * 1'000'000'000LL};

  Store store;
  Time now = kEpoch;
  std::vector<std::string> scheduler_names;
  bool place_foreign = false;

  // Whether the pod is ours to place.
  [[nodiscard]] bool IsOurs(const Json& pod) const;

  // Objects to reconcile, oldest first.
  void MarkDirty(const Key& key);
  // What must be looked at again because `key` changed.
  void MarkChanged(const Change& change);
  // Those whose time has come.
  void MarkDue();
  std::vector<Key> TakeDirty();
  [[nodiscard]] bool HasDirty() const { return !dirty_.empty(); }

  // Makes a pod that a controller wants; false once kMaxPodsMade is reached.
  bool MakePodObject(Json pod);
  [[nodiscard]] int64_t pods_made() const { return pods_made_; }

  // Deletes an object and what it owns. Pods marked `recreate` come back Pending, unless a user
  // deleted them.
  void Delete(const Key& key, bool by_user = false);

  // An Event about an object; the same again counts up.
  void Record(const Json& about, std::string_view type, std::string_view reason,
              std::string_view message, std::string_view component);
  // For the person at the keyboard, each text once.
  void Warn(std::string text);
  std::vector<std::string> TakeWarnings();

  // Value of a PriorityClass, 0 when there is none.
  [[nodiscard]] int64_t PriorityOf(const std::string& priority_class) const;
  // Whether the queue may admit gangs; otherwise why not, as (reason, sentence).
  struct Admission {
    bool open = true;
    std::string reason, message;
  };
  [[nodiscard]] Admission QueueAdmission(const std::string& queue) const;

  // Ends of run times: (when, pod, its uid).
  std::set<std::tuple<int64_t, Key, std::string>> ends;
  // When time alone changes what a controller wants: (when, what it was asked about).
  std::set<std::pair<int64_t, Key>> timers;
  // What the job controller remembers, by uid.
  std::map<std::string, JobMemory> jobs;
  // PodGroups whose pods may be made: once admitted, always admitted. By uid.
  std::set<std::string> admitted;
  // Pods bound to nodes that do not exist, by node.
  std::map<std::string, std::set<Key>> waiting_for_node;
  // Why the scheduler lets a PodGroup wait, by PodGroup; no entry when nothing of it waits.
  struct Waiting {
    bool limit = false;  // its queue has no share left
    std::string reason, message;
  };
  std::map<Key, Waiting> waiting;
  // Whether a changed reason is written to PodGroups that show one already. While time runs on, a
  // gang's reason changes with every pod that ends somewhere; only the first one and the one at the
  // end of a step are told.
  bool tell_again = false;
  // PodGroups that changed, or whose pods did, since the scheduler last ran.
  std::set<Key> touched_groups;
  // Pods that controllers looked at. Work that grows with its square (a Job of many thousand
  // completions one after the other) is given up rather than waited for.
  int64_t visits = 0;
  static constexpr int64_t kMaxVisits = 1'000'000'000;

 private:
  void MarkOwner(const Json& object);
  void DeletePodsOn(const std::string& node);
  void Recreate(const Json& pod);

  std::set<Key> dirty_;
  std::set<std::string> warned_;
  std::vector<std::string> warnings_;
  int64_t pods_made_ = 0;
};

}  // namespace hopwise::sim
