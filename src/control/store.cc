#include "control/store.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "control/names.h"

namespace hopwise::control {
namespace {

// Takes a key out of an index and the index entry away when it was the last one.
template <class Map>
void Drop(Map& map, const typename Map::key_type& at, const Key& key) {
  const auto found = map.find(at);
  if (found != map.end() && found->second.erase(key) > 0 && found->second.empty()) {
    map.erase(found);
  }
}

template <class Entries>
std::vector<Key> AsVector(const Entries& entries) {
  std::vector<Key> keys;
  keys.reserve(entries.size());
  for (const auto& [key, entry] : entries) {
    keys.push_back(key);
  }
  return keys;
}

// Text maps of the old object that its last manifest did not hold: somebody else wrote them, and
// they stay.
void KeepForeign(const Json& old_object, const Json& applied, std::string_view field, Json& next) {
  const Json* old_map = Get(old_object, {"metadata", field});
  if (old_map == nullptr || !old_map->is_object()) {
    return;
  }
  for (const auto& [key, value] : old_map->items()) {
    if (Get(applied, {field, key}) == nullptr && Get(next, {"metadata", field, key}) == nullptr) {
      Set(next, {"metadata", field, key}, value);
    }
  }
}

Json AppliedOf(const Json& manifest) {
  Json applied = Json::object();
  for (const char* field : {"annotations", "labels"}) {
    if (const Json* map = Get(manifest, {"metadata", field}); map != nullptr) {
      applied[field] = *map;
    }
  }
  return applied;
}

}  // namespace

bool IsClusterScoped(std::string_view group, std::string_view kind) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kKinds = {{
      {"", "Node"},
      {"", "Namespace"},
      {"", "PersistentVolume"},
      {"scheduling.k8s.io", "PriorityClass"},
      {kVolcanoScheduling, "Queue"},
      {kVolcanoTopology, "HyperNode"},
      {"storage.k8s.io", "StorageClass"},
      {"storage.k8s.io", "CSINode"},
      {"storage.k8s.io", "CSIDriver"},
      {"storage.k8s.io", "VolumeAttachment"},
      {"apiextensions.k8s.io", "CustomResourceDefinition"},
      {"rbac.authorization.k8s.io", "ClusterRole"},
      {"rbac.authorization.k8s.io", "ClusterRoleBinding"},
      {"node.k8s.io", "RuntimeClass"},
      {"resource.k8s.io", "DeviceClass"},
      {"resource.k8s.io", "ResourceSlice"},
      {"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"},
      {"admissionregistration.k8s.io", "MutatingWebhookConfiguration"},
      {"nodeinfo.volcano.sh", "Numatopology"},
  }};
  return std::find(kKinds.begin(), kKinds.end(), std::pair(group, kind)) != kKinds.end();
}

std::string GroupOf(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? "" : std::string(api_version.substr(0, slash));
}

Key KeyOf(const Json& object) {
  return {GroupOf(Text(object, {"apiVersion"})), Text(object, {"kind"}), Namespace(object),
          Name(object)};
}

Key PodKey(std::string_view ns, std::string_view name) {
  return {"", "Pod", std::string(ns), std::string(name)};
}
Key PodGroupKey(std::string_view ns, std::string_view name) {
  return {std::string(kVolcanoScheduling), "PodGroup", std::string(ns), std::string(name)};
}

bool IsPodGroup(const Key& key) {
  return key.kind == "PodGroup" &&
         (key.group == kVolcanoScheduling || key.group == kSchedulerPlugins);
}

std::optional<Key> GroupKeyOf(const Json& pod) {
  if (std::string name = Annotation(pod, "scheduling.k8s.io/group-name"); !name.empty()) {
    return PodGroupKey(Namespace(pod), name);
  }
  if (std::string name = Label(pod, "scheduling.x-k8s.io/pod-group"); !name.empty()) {
    return Key{std::string(kSchedulerPlugins), "PodGroup", Namespace(pod), std::move(name)};
  }
  return std::nullopt;
}

const Standing& StandingOf(const Entry& pod) {
  if (pod.standing) {
    return *pod.standing;
  }
  using Phase = Standing::Phase;
  Standing& standing = pod.standing.emplace();
  const std::string phase = Text(pod.object, {"status", "phase"}, "Pending");
  standing.phase = phase == "Pending"     ? Phase::kPending
                   : phase == "Running"   ? Phase::kRunning
                   : phase == "Succeeded" ? Phase::kSucceeded
                   : phase == "Failed"    ? Phase::kFailed
                                          : Phase::kOther;
  standing.bound = !Text(pod.object, {"spec", "nodeName"}).empty() && !standing.finished();
  const std::string index = Annotation(pod.object, kCompletionIndexKey);
  const bool number = !index.empty() && index.size() < 18 &&
                      index.find_first_not_of("0123456789") == std::string::npos;
  standing.index = number ? std::stoll(index) : -1;
  return standing;
}

const Entry* Store::Find(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

const Json* Store::FindObject(const Key& key) const {
  const Entry* entry = Find(key);
  return entry == nullptr ? nullptr : &entry->object;
}

const Key* Store::FindUid(std::string_view uid) const {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : &found->second;
}

void Store::Complete(const Key& key, Json& object, Time now) {
  if (Uid(object).empty()) {
    const auto expected = expected_uids_.find(key);
    const uint64_t nth = incarnations_[key]++;
    Set(object, {"metadata", "uid"},
        nth == 0 && expected != expected_uids_.end() ? expected->second
                                                     : MakeUid(key.kind, key.ns, key.name, nth));
  }
  if (Text(object, {"metadata", "creationTimestamp"}).empty()) {
    Set(object, {"metadata", "creationTimestamp"}, FormatRfc3339(now));
  }
  if (Number(object, {"metadata", "generation"}, 0) == 0 && object.contains("spec")) {
    Set(object, {"metadata", "generation"}, 1);
  }
}

void Store::Stamp(const Key& key, Json& object) {
  Set(object, {"metadata", "resourceVersion"}, std::to_string(++version_));
  changes_[key] = false;
}

void Store::Index(const Key& key, Entry& entry) {
  by_uid_[Uid(entry.object)] = key;
  entry.owner_uids.clear();
  for (const Json& owner : List(entry.object, {"metadata", "ownerReferences"})) {
    if (std::string uid = Text(owner, {"uid"}); !uid.empty()) {
      by_owner_[uid][key] = &entry;
      entry.owner_uids.push_back(std::move(uid));
    }
  }
  entry.group.reset();
  entry.orphan = false;
  entry.controller.clear();
  entry.standing.reset();
  if (key.kind == "Pod" && key.group.empty()) {
    entry.group = GroupKeyOf(entry.object);
    entry.orphan = true;
    for (const Json& owner : List(entry.object, {"metadata", "ownerReferences"})) {
      if (Flag(owner, {"controller"}, false)) {
        entry.orphan = false;
        entry.controller = Text(owner, {"uid"});
      }
    }
  }
  if (entry.group) {
    by_group_[*entry.group][key] = &entry;
  }
  if (entry.orphan) {
    orphans_[key.ns][key] = &entry;
  }
}

void Store::Unindex(const Key& key, const Entry& entry) {
  by_uid_.erase(Uid(entry.object));
  for (const std::string& uid : entry.owner_uids) {
    Drop(by_owner_, uid, key);
  }
  if (entry.group) {
    Drop(by_group_, *entry.group, key);
  }
  if (entry.orphan) {
    Drop(orphans_, key.ns, key);
  }
}

const Entry& Store::Create(Json object, Time now, uint64_t rank) {
  const Key key = KeyOf(object);
  const auto [at, fresh] = entries_.try_emplace(key);
  HOPWISE_CHECK(fresh);
  Entry& entry = at->second;
  entry.object = std::move(object);
  entry.sequence = ++sequence_;
  entry.rank = rank == 0 ? entry.sequence : rank;
  Complete(key, entry.object, now);
  Stamp(key, entry.object);
  Index(key, entry);
  return entry;
}

const Entry& Store::Apply(Json manifest, Time now) {
  const Key key = KeyOf(manifest);
  Json applied = AppliedOf(manifest);
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    Create(std::move(manifest), now);
    Entry& entry = entries_.find(key)->second;
    entry.applied = std::move(applied);
    return entry;
  }
  Entry& entry = found->second;
  const std::string given = Uid(manifest);
  if (given.empty() || given == Uid(entry.object)) {
    for (const char* field : {"uid", "creationTimestamp", "generation", "ownerReferences"}) {
      const Json* old_value = Get(entry.object, {"metadata", field});
      if (old_value != nullptr && Get(manifest, {"metadata", field}) == nullptr) {
        Set(manifest, {"metadata", field}, *old_value);
      }
    }
    KeepForeign(entry.object, entry.applied, "annotations", manifest);
    KeepForeign(entry.object, entry.applied, "labels", manifest);
    if (!manifest.contains("status") && entry.object.contains("status")) {
      manifest["status"] = entry.object["status"];
    }
    const std::string node = Text(entry.object, {"spec", "nodeName"});
    if (key.kind == "Pod" && !node.empty() && Text(manifest, {"spec", "nodeName"}).empty()) {
      Set(manifest, {"spec", "nodeName"}, node);
    }
    if (Get(manifest, {"spec"}) != nullptr && Get(entry.object, {"spec"}) != nullptr &&
        manifest["spec"] != entry.object["spec"]) {
      Set(manifest, {"metadata", "generation"},
          Number(manifest, {"metadata", "generation"}, 0) + 1);
    }
  }
  Unindex(key, entry);
  entry.object = std::move(manifest);
  entry.applied = std::move(applied);
  Complete(key, entry.object, now);
  Stamp(key, entry.object);
  Index(key, entry);
  return entry;
}

const Entry& Store::Put(Json object, Json& before) {
  const Key key = KeyOf(object);
  const auto [at, fresh] = entries_.try_emplace(key);
  Entry& entry = at->second;
  if (fresh) {
    entry.sequence = ++sequence_;
    entry.rank = entry.sequence;
  } else {
    Unindex(key, entry);
  }
  before = std::exchange(entry.object, std::move(object));
  Index(key, entry);
  return entry;
}

Json& Store::Edit(const Key& key) {
  const auto found = entries_.find(key);
  HOPWISE_CHECK(found != entries_.end());
  Stamp(key, found->second.object);
  found->second.standing.reset();
  return found->second.object;
}

void Store::Replace(const Key& key, Json next) {
  const auto found = entries_.find(key);
  HOPWISE_CHECK(found != entries_.end());
  Unindex(key, found->second);
  found->second.object = std::move(next);
  Stamp(key, found->second.object);
  Index(key, found->second);
}

void Store::Erase(const Key& key) {
  const auto found = entries_.find(key);
  HOPWISE_CHECK(found != entries_.end());
  Unindex(key, found->second);
  entries_.erase(found);
  changes_[key] = true;
}

std::vector<Key> Store::Dependents(std::string_view uid) const {
  const auto found = by_owner_.find(uid);
  return found == by_owner_.end() ? std::vector<Key>() : AsVector(found->second);
}

std::vector<Key> Store::Orphans(std::string_view ns) const {
  const auto found = orphans_.find(ns);
  return found == orphans_.end() ? std::vector<Key>() : AsVector(found->second);
}

std::vector<Key> Store::Expected(std::string_view group, std::string_view kind,
                                 std::string_view ns) const {
  std::vector<Key> found;
  const Key first{std::string(group), std::string(kind), std::string(ns), ""};
  for (auto at = expected_uids_.lower_bound(first); at != expected_uids_.end(); ++at) {
    const Key& key = at->first;
    if (key.group != group || key.kind != kind || key.ns != ns) {
      break;
    }
    if (entries_.count(key) == 0) {
      found.push_back(key);
    }
  }
  return found;
}

void Store::Each(std::string_view group, std::string_view kind,
                 const std::function<void(const Key&, const Entry&)>& visit) const {
  const Key first{std::string(group), std::string(kind), "", ""};
  for (auto at = entries_.lower_bound(first); at != entries_.end(); ++at) {
    if (at->first.group != group || at->first.kind != kind) {
      return;
    }
    visit(at->first, at->second);
  }
}

void Store::EachObject(const std::function<void(const Key&, const Entry&)>& visit) const {
  for (const auto& [key, entry] : entries_) {
    visit(key, entry);
  }
}

std::vector<Change> Store::TakeChanges() {
  std::vector<Change> taken;
  taken.reserve(changes_.size());
  for (const auto& [key, deleted] : changes_) {
    taken.push_back({key, deleted});
  }
  changes_.clear();
  return taken;
}

}  // namespace hopwise::control
