// The controllers of group apps: Deployment -> ReplicaSet -> pods, StatefulSet -> pods.
#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/apps.h"
#include "sim/controllers.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

constexpr std::string_view kHash = "pod-template-hash";
// Pods made one after the other cost a round of decisions each; larger sets are made at once.
constexpr int64_t kMaxOrdered = 250;

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// The word after "<owner>-" in a name like <owner>-<word> or <owner>-<word>-<rest>.
std::string WordAfter(const std::string& name, const std::string& owner) {
  if (!StartsWith(name, owner + "-")) {
    return "";
  }
  const std::string rest = name.substr(owner.size() + 1);
  return rest.substr(0, rest.find('-'));
}

// The name of the ReplicaSet that pods left behind by a Deployment speak of: by owner, else by
// their own names.
std::string NameFromPods(const Store& store, const Json& deployment) {
  const std::string name = Name(deployment);
  for (const Key& key : store.Expected(kApps, "ReplicaSet", Namespace(deployment))) {
    if (key.name == name + "-" + WordAfter(key.name, name)) {
      return key.name;
    }
  }
  for (const Key& key : store.Orphans(Namespace(deployment))) {
    const Json& pod = *store.FindObject(key);
    const std::string word = WordAfter(key.name, name);
    if (!word.empty() && key.name.size() > name.size() + word.size() + 2 &&
        SelectorMatches(Get(deployment, {"spec", "selector"}), pod)) {
      return name + "-" + word;
    }
  }
  return "";
}

}  // namespace

Key Controllers::FindReplicaSet(const Key& key) {
  const Json& deployment = *world_.store.FindObject(key);
  std::vector<Key> owned;
  for (const Key& dependent : world_.store.Dependents(Uid(deployment))) {
    if (dependent.kind == "ReplicaSet") {
      owned.push_back(dependent);
    }
  }
  const auto by_sequence = [&](const Key& a, const Key& b) {
    return world_.store.Find(a)->sequence < world_.store.Find(b)->sequence;
  };
  std::sort(owned.begin(), owned.end(), by_sequence);
  for (auto at = owned.rbegin(); at != owned.rend(); ++at) {
    if (HasTemplateOf(*world_.store.FindObject(*at), deployment)) {
      return *at;
    }
  }
  // In a dump the template may have been trimmed by hand: the ReplicaSet in use is the present one.
  if (!SeenBefore(deployment)) {
    for (auto at = owned.rbegin(); at != owned.rend(); ++at) {
      if (Replicas(*world_.store.FindObject(*at), {"spec", "replicas"}, 0) > 0) {
        return *at;
      }
    }
  }
  return {};
}

Key Controllers::MakeReplicaSet(const Key& key) {
  const Entry& entry = *world_.store.Find(key);
  Json made = DeploymentReplicaSet(entry.object);
  if (!SeenBefore(entry.object)) {
    if (const std::string name = NameFromPods(world_.store, entry.object); !name.empty()) {
      made["metadata"]["name"] = name;
      const std::string hash = name.substr(key.name.size() + 1);
      SetLabel(made, kHash, hash);
      Set(made, {"spec", "selector", "matchLabels", kHash}, hash);
      Set(made, {"spec", "template", "metadata", "labels", kHash}, hash);
    }
  }
  Key made_key = KeyOf(made);
  const Json* existing = world_.store.FindObject(made_key);
  if (existing == nullptr) {
    world_.store.Create(std::move(made), world_.now, entry.sequence);
    return made_key;
  }
  if (ControllerOf(*existing) == nullptr) {
    Json adopted = *existing;
    Complete(adopted, made);
    world_.store.Replace(made_key, std::move(adopted));
    return made_key;
  }
  if (IsControlledBy(*existing, entry.object)) {
    return made_key;
  }
  world_.Warn(Describe(entry.object) + " cannot make ReplicaSet " + made_key.name +
              ": it exists and belongs to another object");
  return {};
}

void Controllers::ReconcileDeployment(const Key& key) {
  Key current = FindReplicaSet(key);
  if (current.name.empty()) {
    current = MakeReplicaSet(key);
  }
  const Json& deployment = *world_.store.FindObject(key);
  SpecChanged(deployment);
  const int64_t replicas = Replicas(deployment, {"spec", "replicas"}, 1);
  int64_t bound = 0;
  int64_t present = 0;
  for (const Key& dependent : world_.store.Dependents(Uid(deployment))) {
    if (dependent.kind != "ReplicaSet") {
      continue;
    }
    const Json& rs = *world_.store.FindObject(dependent);
    const int64_t wanted = dependent == current ? replicas : 0;
    present += Number(rs, {"status", "replicas"}, 0);
    bound += Number(rs, {"status", "readyReplicas"}, 0);
    if (Replicas(rs, {"spec", "replicas"}, 1) != wanted) {
      Set(world_.store.Edit(dependent), {"spec", "replicas"}, wanted);
    }
  }
  PatchStatus(key, {{"observedGeneration", Number(deployment, {"metadata", "generation"}, 1)},
                    {"replicas", present},
                    {"updatedReplicas", present},
                    {"readyReplicas", bound},
                    {"availableReplicas", bound},
                    {"unavailableReplicas", std::max<int64_t>(0, replicas - bound)}});
}

void Controllers::AdoptOrphans(const Key& key, int64_t missing) {
  const Json& rs = *world_.store.FindObject(key);
  const Json* selector = Get(rs, {"spec", "selector"});
  Json loose = selector == nullptr ? Json() : *selector;
  // A Deployment's pods are known by their name too, so that one written by hand may lack the hash.
  const Json* ref = ControllerOf(rs);
  const bool of_deployment = ref != nullptr && Text(*ref, {"kind"}) == "Deployment";
  if (of_deployment) {
    Unset(loose, {"matchLabels", kHash});
  }
  const std::string prefix = of_deployment ? Text(*ref, {"name"}) + "-" : "";
  if (loose.empty() || (loose.size() == 1 && loose.begin()->empty())) {
    return;  // selects everything: not a claim on anybody's pods
  }
  for (const Key& orphan : world_.store.Orphans(key.ns)) {
    const Json& pod = *world_.store.FindObject(orphan);
    const std::string hash = Label(pod, kHash);
    const bool other_set = of_deployment && !hash.empty() &&
                           hash != Text(rs, {"spec", "selector", "matchLabels", kHash});
    if (missing > 0 && StartsWith(orphan.name, prefix) && !other_set && !IsFinished(pod) &&
        SelectorMatches(&loose, pod)) {
      Json adopted = pod;
      Complete(adopted, MakePod(Get(rs, {"spec", "template"}), key.ns, orphan.name, rs));
      world_.store.Replace(orphan, std::move(adopted));
      --missing;
    }
  }
}

void Controllers::DeleteSurplus(const std::vector<Key>& active, int64_t surplus) {
  // As ReplicaSets do: those without a node first, then the youngest.
  std::vector<std::tuple<bool, uint64_t, Key>> order;
  for (const Key& key : active) {
    const Entry& entry = *world_.store.Find(key);
    order.emplace_back(!IsBound(entry.object), entry.sequence, key);
  }
  std::sort(order.begin(), order.end());
  for (; surplus > 0 && !order.empty(); --surplus) {
    world_.Delete(std::get<Key>(order.back()));
    order.pop_back();
  }
}

void Controllers::ReconcileReplicaSet(const Key& key) {
  const Json& rs = *world_.store.FindObject(key);
  const auto active_pods = [&] {
    std::vector<Key> pods = PodsOf(rs);
    pods.erase(
        std::remove_if(pods.begin(), pods.end(),
                       [&](const Key& pod) { return IsFinished(*world_.store.FindObject(pod)); }),
        pods.end());
    return pods;
  };
  const int64_t wanted = Replicas(rs, {"spec", "replicas"}, 1);
  std::vector<Key> active = active_pods();
  int64_t missing = wanted - static_cast<int64_t>(active.size());
  if (missing > 0) {
    AdoptOrphans(key, missing);
    active = active_pods();
    missing = wanted - static_cast<int64_t>(active.size());
  }
  if (missing < 0) {
    DeleteSurplus(active, -missing);
  }
  const int64_t room = kMaxPodsMade - world_.pods_made();
  for (int64_t i = 0; i < std::min(missing, room + 1); ++i) {
    MakeGenerated(key, -1);
  }
  active = active_pods();
  const int64_t ready = std::count_if(active.begin(), active.end(), [&](const Key& pod) {
    return IsRunning(*world_.store.FindObject(pod));
  });
  PatchStatus(key, {{"observedGeneration", Number(rs, {"metadata", "generation"}, 1)},
                    {"replicas", active.size()},
                    {"fullyLabeledReplicas", active.size()},
                    {"readyReplicas", ready},
                    {"availableReplicas", ready}});
  CarryOut(ReconcileOwner(PodGroups(), key), key, 0);
}

void Controllers::ReconcileStatefulSet(const Key& key) {
  const Json& set = *world_.store.FindObject(key);
  const int64_t start = Replicas(set, {"spec", "ordinals", "start"}, 0);
  const int64_t replicas = Replicas(set, {"spec", "replicas"}, 1);
  const bool ordered = Text(set, {"spec", "podManagementPolicy"}) != "Parallel";
  if (ordered && replicas > kMaxOrdered) {
    world_.Warn(Describe(set) + ": its pods are made all at once, being more than " +
                std::to_string(kMaxOrdered));
  }
  const bool parallel = !ordered || replicas > kMaxOrdered;
  std::vector<std::string> names;
  bool previous_runs = true;
  for (int64_t i = start; i < start + replicas; ++i) {
    std::string name = key.name + "-" + std::to_string(i);
    if (parallel || previous_runs) {
      if (!HasOwnPod(set, key.ns, name)) {
        EnsurePod(set, StatefulSetPod(set, i));
      }
      const Json* pod = world_.store.FindObject(PodKey(key.ns, name));
      if (pod != nullptr && IsFinished(*pod) && IsControlledBy(*pod, set)) {
        world_.Delete(PodKey(key.ns, name));  // the next round makes it again
        pod = nullptr;
      }
      previous_runs = pod != nullptr && IsRunning(*pod);
    }
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  int64_t present = 0;
  int64_t ready = 0;
  for (const Key& pod : PodsOf(set)) {
    if (!std::binary_search(names.begin(), names.end(), pod.name)) {
      world_.Delete(pod);
      continue;
    }
    ++present;
    ready += IsRunning(*world_.store.FindObject(pod)) ? 1 : 0;
  }
  PatchStatus(key, {{"observedGeneration", Number(set, {"metadata", "generation"}, 1)},
                    {"replicas", present},
                    {"currentReplicas", present},
                    {"updatedReplicas", present},
                    {"readyReplicas", ready},
                    {"availableReplicas", ready},
                    {"currentRevision", StatefulSetRevision(set)},
                    {"updateRevision", StatefulSetRevision(set)}});
  CarryOut(ReconcileOwner(PodGroups(), key), key, 0);
}

}  // namespace hopwise::sim
