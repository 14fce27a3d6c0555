// PodGroups: made for pods that have an owner or a topology wish but no group (Volcano's
// pg-controller), phases, counters, conditions. And the kubelets' part: bound pods run, run times
// end.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/quantity.h"
#include "cluster/pod_group_phase.h"
#include "sim/controllers.h"
#include "sim/objects.h"
#include "topology/forest.h"

namespace hopwise::sim {
namespace {

constexpr std::string_view kScheduler = "hopwise";

// What pg-controller copies of a pod's annotations and labels.
void InheritFromPod(const Json& pod, Json& group) {
  constexpr std::array<std::string_view, 6> kAnnotations = {
      "volcano.sh/preemptable",       "volcano.sh/cooldown-time",       "volcano.sh/revocable-zone",
      "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable", topology::kFabricKey};
  for (const std::string_view key : kAnnotations) {
    if (const std::string value = Annotation(pod, key); !value.empty()) {
      SetAnnotation(group, key, value);
    }
  }
  for (const std::string_view key : {"volcano.sh/preemptable", "volcano.sh/cooldown-time"}) {
    if (const std::string value = Label(pod, key); !value.empty()) {
      SetLabel(group, key, value);
    }
  }
}

int64_t MinMemberOf(const Json& owner) {
  const std::string text = Annotation(owner, kMinMemberKey);
  return IsCount(text) ? std::stoll(text) : 1;
}

// The PodGroup of a pod; `owner` is its controller's object, null when it has none or that is not
// known.
Json GroupForPod(const Json& pod, const Json* owner) {
  const Json* ref = ControllerOf(pod);
  const std::string uid = ref == nullptr ? Uid(pod) : Text(*ref, {"uid"});
  const int64_t min_member = owner == nullptr ? 1 : MinMemberOf(*owner);
  Json group = MakePodGroup(Namespace(pod), "podgroup-" + uid, min_member);
  group["metadata"]["ownerReferences"] = ref == nullptr
                                             ? Json::array({ControllerRef(pod)})
                                             : List(pod, {"metadata", "ownerReferences"});
  const Json* annotations = owner == nullptr ? nullptr : Get(*owner, {"metadata", "annotations"});
  if (annotations != nullptr && annotations->is_object()) {
    for (const auto& [key, value] : annotations->items()) {
      if (key.compare(0, 11, "volcano.sh/") == 0) {
        Set(group, {"metadata", "annotations", key}, value);
      }
    }
  }
  InheritFromPod(pod, group);
  Json& spec = group["spec"];
  const std::string queue = Annotation(pod, kQueueNameKey);
  spec["queue"] = queue.empty() ? "default" : queue;
  if (const std::string priority = Text(pod, {"spec", "priorityClassName"}); !priority.empty()) {
    spec["priorityClassName"] = priority;
  }
  if (Json topology = TopologyOfAnnotations(pod); !topology.is_null()) {
    spec["networkTopology"] = std::move(topology);
  }
  api::ResourceList request = RequestOf(pod);
  for (auto& [resource, amount] : request) {
    amount = SaturatingMul(amount, min_member);
  }
  spec["minResources"] = MinResources(request, min_member);
  return group;
}

bool WantsGroup(const Json& pod) {
  if (NamesItsGroup(pod)) {
    return false;
  }
  if (!HasReadableTier(pod)) {
    return false;  // it waits by itself and says why, rather than run under a wider rule
  }
  const Json* ref = ControllerOf(pod);
  if (ref == nullptr) {
    return !TopologyOfAnnotations(pod).is_null();
  }
  return Text(*ref, {"kind"}) != "DaemonSet" && !Text(*ref, {"uid"}).empty();
}

// Run times count for pods that end: not for those that are always started again.
bool RestartsForEver(const Json& pod) {
  const Json* ref = ControllerOf(pod);
  const std::string owner = ref == nullptr ? "" : Text(*ref, {"kind"});
  return Text(pod, {"spec", "restartPolicy"}) == "Always" || owner == "ReplicaSet" ||
         owner == "StatefulSet" || owner == "LeaderWorkerSet";
}

cluster::MemberCounts CountMembers(World& world, const Key& group) {
  cluster::MemberCounts counts;
  world.store.EachMember(group, [&](const Key&, const Entry& entry) {
    ++world.visits;
    const Standing& pod = StandingOf(entry);
    ++counts.total;
    counts.bound += pod.bound ? 1 : 0;
    counts.running += pod.phase == Standing::Phase::kRunning ? 1 : 0;
    counts.succeeded += pod.phase == Standing::Phase::kSucceeded ? 1 : 0;
    counts.failed += pod.phase == Standing::Phase::kFailed ? 1 : 0;
  });
  return counts;
}

}  // namespace

void MarkRunning(Json& pod, Time now) {
  const std::string time = FormatRfc3339(now);
  Set(pod, {"status", "phase"}, "Running");
  if (Text(pod, {"status", "startTime"}).empty()) {
    Set(pod, {"status", "startTime"}, time);
  }
  for (const char* type : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) {
    SetCondition(pod, type, "True", "", "", now);
  }
}

void Controllers::ReconcilePod(const Key& key) {
  const Json& pod = *world_.store.FindObject(key);
  const std::string node = Text(pod, {"spec", "nodeName"});
  const std::string phase = Text(pod, {"status", "phase"});
  if (phase.empty()) {
    Set(world_.store.Edit(key), {"status", "phase"}, "Pending");
  }
  const bool untold = phase == "Running" && ConditionOf(pod, "PodScheduled") == nullptr;
  if (!node.empty() && (phase.empty() || phase == "Pending" || untold)) {
    if (world_.store.Find({"", "Node", "", node}) == nullptr) {
      world_.waiting_for_node[node].insert(key);
      world_.Warn(fmt::format("{} is bound to node {}, which does not exist", Describe(pod), node));
    } else {
      MarkRunning(world_.store.Edit(key), world_.now);
    }
  }
  if (IsRunning(pod) && Get(pod, {"metadata", "annotations", kRunTimeKey}) != nullptr) {
    if (RestartsForEver(pod)) {
      world_.Warn(fmt::format("{}: {} is ignored, its containers are always started again",
                              Describe(pod), kRunTimeKey));
    } else if (const Result<Duration> run = ParseGoDuration(Annotation(pod, kRunTimeKey)); run) {
      const Result<Time> started = ParseRfc3339(Text(pod, {"status", "startTime"}));
      const int64_t end = SaturatingAdd(started ? started->ns : world_.now.ns, run->ns);
      world_.ends.emplace(std::max(end, world_.now.ns), key, Uid(pod));
    }
  }
  if (!List(pod, {"spec", "schedulingGates"}).empty() && node.empty() &&
      ConditionOf(pod, "PodScheduled") == nullptr) {
    SetCondition(world_.store.Edit(key), "PodScheduled", "False", "SchedulingGated",
                 "Scheduling is blocked due to non-empty scheduling gates", world_.now);
  }
  if (IsFinished(pod) || !world_.IsOurs(pod) || !WantsGroup(pod)) {
    return;
  }
  const Json* ref = ControllerOf(pod);
  const Key* owner = ref == nullptr ? nullptr : world_.store.FindUid(Text(*ref, {"uid"}));
  const Entry* owner_entry = owner == nullptr ? nullptr : world_.store.Find(*owner);
  Json group = GroupForPod(pod, owner_entry == nullptr ? nullptr : &owner_entry->object);
  const std::string name = Name(group);
  const Key group_key = KeyOf(group);
  if (world_.store.Find(group_key) == nullptr) {
    world_.store.Create(
        std::move(group), world_.now,
        owner_entry == nullptr ? world_.store.Find(key)->sequence : owner_entry->sequence);
  }
  Json joined = pod;
  SetAnnotation(joined, kGroupNameKey, name);
  world_.store.Replace(key, std::move(joined));
}

void Controllers::ReconcilePodGroup(const Key& key) {
  const Json& group = *world_.store.FindObject(key);
  const cluster::MemberCounts counts = CountMembers(world_, key);
  const int64_t minimum = Number(group, {"spec", "minMember"}, 0);
  const std::string old_phase = Text(group, {"status", "phase"});
  const World::Admission admission =
      world_.QueueAdmission(Text(group, {"spec", "queue"}, "default"));
  if (admission.open || (!old_phase.empty() && old_phase != "Pending")) {
    if (world_.admitted.insert(Uid(group)).second) {
      world_.MarkChanged({key, false});  // its owner may make pods now
    }
  }
  const bool admitted = world_.admitted.count(Uid(group)) > 0;
  const auto waiting = world_.waiting.find(key);
  const bool waits = waiting != world_.waiting.end();
  const bool ready = counts.HasMinimum(minimum);
  const cluster::PhaseFacts facts = {.minimum = minimum,
                                     .old_phase = old_phase,
                                     .waits = waits,
                                     .admitted = admitted && !(waits && waiting->second.limit),
                                     .scheduler_plugins = key.group == kSchedulerPlugins};
  PatchStatus(key, {{"phase", cluster::PodGroupPhase(counts, facts)},
                    {"running", counts.running},
                    {"succeeded", counts.succeeded},
                    {"failed", counts.failed}});
  Json next = group;
  if (ready) {
    RemoveCondition(next, "Unschedulable");
    if (SetCondition(next, "Scheduled", "True", cluster::kScheduledReason, "", world_.now)) {
      world_.Record(group, "Normal", "Scheduled", cluster::kScheduledReason, kScheduler);
    }
  } else if (waits || (!admission.open && counts.total == 0)) {
    if (!world_.tell_again && ConditionOf(group, "Unschedulable") != nullptr) {
      return;
    }
    const std::string reason = waits ? waiting->second.reason : admission.reason;
    const std::string message =
        waits ? waiting->second.message
              : admission.message + "; no pods are made before it admits the gang";
    RemoveCondition(next, "Scheduled");
    if (SetCondition(next, "Unschedulable", "True", reason, message, world_.now)) {
      world_.Record(group, "Warning", "Unschedulable", message, kScheduler);
    }
  } else {
    RemoveCondition(next, "Unschedulable");
  }
  if (next != group) {
    world_.store.Replace(key, std::move(next));
  }
}

}  // namespace hopwise::sim
