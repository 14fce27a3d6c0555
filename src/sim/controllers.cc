#include "sim/controllers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/apps.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

bool TermMatches(const Json& term, const Json& object) {
  const std::string key = Text(term, {"key"});
  const Json* have = Get(object, {"metadata", "labels", key});
  const Json& values = List(term, {"values"});
  const bool listed =
      have != nullptr && std::find(values.begin(), values.end(), *have) != values.end();
  const std::string op = Text(term, {"operator"});
  return (op == "In" && listed) || (op == "NotIn" && !listed) ||
         (op == "Exists" && have != nullptr) || (op == "DoesNotExist" && have == nullptr);
}

}  // namespace

bool IsFinished(const Json& pod) {
  const std::string phase = Text(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}
bool IsRunning(const Json& pod) { return Text(pod, {"status", "phase"}) == "Running"; }
bool IsBound(const Json& pod) {
  return !Text(pod, {"spec", "nodeName"}).empty() && !IsFinished(pod);
}

bool SelectorMatches(const Json* selector, const Json& object) {
  if (selector == nullptr || !selector->is_object()) {
    return false;
  }
  if (const Json* labels = Get(*selector, {"matchLabels"});
      labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->items()) {
      const Json* have = Get(object, {"metadata", "labels", key});
      if (have == nullptr || *have != value) {
        return false;
      }
    }
  }
  const Json& terms = List(*selector, {"matchExpressions"});
  return std::all_of(terms.begin(), terms.end(),
                     [&](const Json& term) { return TermMatches(term, object); });
}

bool Controllers::Settle() {
  for (int round = 0; round < kMaxRounds && world_.visits < World::kMaxVisits; ++round) {
    for (const Change& change : world_.store.TakeChanges()) {
      changes_[change.key] = change.deleted;
      world_.MarkChanged(change);
    }
    const std::vector<Key> dirty = world_.TakeDirty();
    if (dirty.empty()) {
      return true;
    }
    for (const Key& key : dirty) {
      if (world_.store.Find(key) != nullptr) {
        Reconcile(key);
      }
    }
  }
  return false;
}

std::vector<Change> Controllers::TakeChanges() {
  std::vector<Change> taken;
  taken.reserve(changes_.size());
  for (const auto& [key, deleted] : changes_) {
    taken.push_back({key, deleted});
  }
  changes_.clear();
  return taken;
}

void Controllers::Reconcile(const Key& key) {
  if (key.kind == "Pod" && key.group.empty()) {
    ReconcilePod(key);
  } else if (IsPodGroup(key)) {
    ReconcilePodGroup(key);
  } else if (key.kind == "Job" && key.group == kVolcanoBatch) {
    ReconcileVcJob(key);
  } else if (key.kind == "Queue" && key.group == kVolcanoScheduling) {
    ReconcileQueue(key);
  } else if (key.kind == "Job" && key.group == kBatch) {
    ReconcileBatchJob(key);
  } else if (key.kind == "Deployment" && key.group == kApps) {
    ReconcileDeployment(key);
  } else if (key.kind == "ReplicaSet" && key.group == kApps) {
    ReconcileReplicaSet(key);
  } else if (key.kind == "StatefulSet" && key.group == kApps) {
    ReconcileStatefulSet(key);
  } else if (key.kind == "LeaderWorkerSet" && key.group == kLws) {
    ReconcileLws(key);
  }
}

bool Controllers::HasOwnPod(const Json& owner, const std::string& ns,
                            const std::string& name) const {
  const Json* pod = world_.store.FindObject(PodKey(ns, name));
  return pod != nullptr && IsControlledBy(*pod, owner);
}

bool Controllers::EnsurePod(const Json& owner, const Json& expansion) {
  const Key key = PodKey(Namespace(expansion), Name(expansion));
  const Json* existing = world_.store.FindObject(key);
  if (existing == nullptr) {
    return world_.MakePodObject(expansion);
  }
  if (const Json* ref = ControllerOf(*existing);
      ref != nullptr && !IsControlledBy(*existing, owner)) {
    // The StatefulSets between a LeaderWorkerSet and its pods are not expanded; a dump's pods are
    // owned by them.
    constexpr std::string_view kSet = "leaderworkerset.sigs.k8s.io/name";
    if (Text(owner, {"kind"}) == "LeaderWorkerSet" && Label(*existing, kSet) == Name(owner)) {
      return true;
    }
    world_.Warn(fmt::format("{} cannot make pod {}: it exists and belongs to {} {}",
                            Describe(owner), key.name, Text(*ref, {"kind"}), Text(*ref, {"name"})));
    return false;
  }
  Json adopted = *existing;
  if (Complete(adopted, expansion)) {
    world_.store.Replace(key, std::move(adopted));
  }
  return true;
}

// In visits: a key is copied and its object looked up.
constexpr int64_t kCostOfACopy = 20;

std::vector<Key> Controllers::PodsOf(const Json& owner) {
  std::vector<Key> pods;
  for (const Key& key : world_.store.Dependents(Uid(owner))) {
    world_.visits += kCostOfACopy;
    if (key.kind == "Pod" && IsControlledBy(*world_.store.FindObject(key), owner)) {
      pods.push_back(key);
    }
  }
  return pods;
}

void Controllers::PatchStatus(const Key& key, const Json& patch) {
  const Json* object = world_.store.FindObject(key);
  const auto same = [&](const std::string& field, const Json& value) {
    const Json* have = Get(*object, {"status", field});
    return have != nullptr ? *have == value : value.is_null();
  };
  const bool all_same =
      std::all_of(patch.items().begin(), patch.items().end(),
                  [&](const auto& item) { return same(item.key(), item.value()); });
  if (all_same) {
    return;
  }
  Json& status = Member(world_.store.Edit(key), "status");
  for (const auto& [field, value] : patch.items()) {
    if (value.is_null()) {
      status.erase(field);
    } else {
      status[field] = value;
    }
  }
}

bool Controllers::SeenBefore(const Json& object) const { return specs_.count(Uid(object)) > 0; }

bool Controllers::SpecChanged(const Json& object) {
  const Json* spec = Get(object, {"spec"});
  const uint64_t hash = HashOf({spec == nullptr ? "" : Dump(*spec)});
  const auto [at, first] = specs_.try_emplace(Uid(object), hash);
  const bool changed = !first && at->second != hash;
  at->second = hash;
  return changed;
}

void Controllers::MakeGenerated(const Key& owner_key, int64_t index) {
  const Json& owner = *world_.store.FindObject(owner_key);
  uint64_t& salt = salts_[Uid(owner)];
  // Names are taken at most by the pods there are, so a free one comes.
  while (true) {
    Json pod = owner_key.kind == "ReplicaSet" ? ReplicaSetPod(owner, salt++)
                                              : BatchJobPod(owner, index, salt++);
    if (world_.store.Find(PodKey(owner_key.ns, Name(pod))) == nullptr) {
      world_.MakePodObject(std::move(pod));
      return;
    }
  }
}

}  // namespace hopwise::sim
