// Objects by kind and name, with uids, versions and owners: the simulator's API server, with a log
// of what changed, and the daemon's picture of a real one.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "control/json.h"

namespace hopwise::control {

struct Key {
  std::string group, kind, ns, name;  // group "" is core; ns "" for what has no namespace
  friend auto operator<=>(const Key&, const Key&) = default;
};
// Whether objects of the kind live outside namespaces.
bool IsClusterScoped(std::string_view group, std::string_view kind);
std::string GroupOf(std::string_view api_version);
Key KeyOf(const Json& object);

// Groups.
inline constexpr std::string_view kVolcanoBatch = "batch.volcano.sh";
inline constexpr std::string_view kVolcanoScheduling = "scheduling.volcano.sh";
inline constexpr std::string_view kVolcanoTopology = "topology.volcano.sh";
inline constexpr std::string_view kSchedulerPlugins = "scheduling.x-k8s.io";
inline constexpr std::string_view kApps = "apps";
inline constexpr std::string_view kBatch = "batch";
inline constexpr std::string_view kLws = "leaderworkerset.x-k8s.io";

Key PodKey(std::string_view ns, std::string_view name);
Key PodGroupKey(std::string_view ns, std::string_view name);
// Kinds of other projects share these names: the group counts.
bool IsPodGroup(const Key& key);
// The PodGroup a pod names by annotation (Volcano's) or by label (scheduling.x-k8s.io's), whether
// or not it exists.
std::optional<Key> GroupKeyOf(const Json& pod);

inline constexpr std::string_view kCompletionIndexKey = "batch.kubernetes.io/job-completion-index";

// What controllers count of a pod, read once for each version of it: a Job of many completions
// looks at all its pods each time one ends.
struct Standing {
  enum class Phase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kOther };
  Phase phase = Phase::kPending;
  bool bound = false;  // has a node and has not finished
  int64_t index = -1;  // completion index

  [[nodiscard]] bool finished() const {
    return phase == Phase::kSucceeded || phase == Phase::kFailed;
  }
};

struct Entry {
  Json object;
  uint64_t sequence = 0;  // order of creation
  uint64_t rank = 0;  // the sequence that counts when ages are equal: the owner's for a PodGroup
  Json applied;       // {"annotations": …, "labels": …} as the user last applied them
  std::vector<std::string> owner_uids;       // as indexed
  std::optional<Key> group;                  // pods: the PodGroup they name, as indexed
  bool orphan = false;                       // a pod without controller, as indexed
  std::string controller;                    // uid of a pod's controller, as indexed
  mutable std::optional<Standing> standing;  // see StandingOf
};
const Standing& StandingOf(const Entry& pod);

struct Change {
  Key key;
  bool deleted = false;
};

class Store {
 public:
  [[nodiscard]] const Entry* Find(const Key& key) const;
  [[nodiscard]] const Json* FindObject(const Key& key) const;
  // nullptr when no living object has this uid.
  [[nodiscard]] const Key* FindUid(std::string_view uid) const;
  [[nodiscard]] size_t size() const { return entries_.size(); }

  // Adds an object, filling in uid, creationTimestamp, generation and resourceVersion where they
  // are missing. Precondition: absent.
  const Entry& Create(Json object, Time now, uint64_t rank = 0);
  // A user's manifest: creates, or replaces as a server-side apply would (uid, creation, status,
  // nodeName and what others wrote into labels and annotations stay unless the manifest says
  // otherwise). A manifest with another uid stands for a new object.
  const Entry& Apply(Json manifest, Time now);
  // The object as another server has it, with its version; nothing is filled in, nor logged as a
  // change. `before` becomes what stood there, null when nothing did.
  const Entry& Put(Json object, Json& before);
  // For a change in place of anything but owners and group, which are indexed. Precondition:
  // present.
  Json& Edit(const Key& key);
  // Replaces a present object by a changed copy of it.
  void Replace(const Key& key, Json next);
  // Forgets the object; its dependents are the caller's business.
  void Erase(const Key& key);

  // Uids for objects about to come that others already name as their owner.
  void ExpectUid(const Key& key, std::string uid) { expected_uids_[key] = std::move(uid); }

  // Objects that name this uid as an owner.
  [[nodiscard]] std::vector<Key> Dependents(std::string_view uid) const;
  // The same without copies: visit(const Key&, const Entry&). Nothing may change meanwhile.
  template <class Visit>
  void EachDependent(std::string_view uid, Visit visit) const {
    if (const auto found = by_owner_.find(uid); found != by_owner_.end()) {
      for (const auto& [key, entry] : found->second) {
        visit(key, *entry);
      }
    }
  }
  // Pods that name this PodGroup, by name; visit as above.
  template <class Visit>
  void EachMember(const Key& pod_group, Visit visit) const {
    if (const auto found = by_group_.find(pod_group); found != by_group_.end()) {
      for (const auto& [key, entry] : found->second) {
        visit(key, *entry);
      }
    }
  }
  // Pods of the namespace without a controller, by name.
  [[nodiscard]] std::vector<Key> Orphans(std::string_view ns) const;
  // Owners of a kind in a namespace that were announced by ExpectUid and do not exist.
  [[nodiscard]] std::vector<Key> Expected(std::string_view group, std::string_view kind,
                                          std::string_view ns) const;
  // All objects of a kind, by namespace and name.
  void Each(std::string_view group, std::string_view kind,
            const std::function<void(const Key&, const Entry&)>& visit) const;
  void EachObject(const std::function<void(const Key&, const Entry&)>& visit) const;

  // What changed since the last call, one entry per object, in the order of keys.
  std::vector<Change> TakeChanges();

 private:
  void Index(const Key& key, Entry& entry);
  void Unindex(const Key& key, const Entry& entry);
  void Complete(const Key& key, Json& object, Time now);
  void Stamp(const Key& key, Json& object);

  std::map<Key, Entry> entries_;
  std::map<std::string, Key, std::less<>> by_uid_;
  using Entries = std::map<Key, const Entry*>;
  std::map<std::string, Entries, std::less<>> by_owner_;
  std::map<Key, Entries> by_group_;
  std::map<std::string, Entries, std::less<>> orphans_;  // by namespace
  std::map<Key, uint64_t> incarnations_;
  std::map<Key, std::string> expected_uids_;
  std::map<Key, bool> changes_;  // value: deleted
  uint64_t sequence_ = 0;
  uint64_t version_ = 0;
};

}  // namespace hopwise::control
