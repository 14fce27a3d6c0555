// PodGroups: made for pods that have none, phases, counters, conditions. And the kubelets' part:
// bound pods run, run times end.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/quantity.h"
#include "cluster/pod_group_phase.h"
#include "control/pod_group_controller.h"
#include "sim/controllers.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

constexpr std::string_view kScheduler = "hopwise";

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
  const Json* ref = ControllerOf(pod);
  const Key* owner = ref == nullptr ? nullptr : world_.store.FindUid(Text(*ref, {"uid"}));
  // As old as what it is for.
  const uint64_t rank = world_.store.Find(owner == nullptr ? key : *owner)->sequence;
  CarryOut(control::ReconcilePod(PodGroups(), key), key, rank);
}

PodGroupView Controllers::PodGroups() const {
  return {world_.store, [this](const Json& pod) { return world_.IsOurs(pod); }};
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
