// The controllers that the virtual cluster shares with `hopwise controller`: they say what to
// write, and here it is written.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "control/commands.h"
#include "control/job_controller.h"
#include "control/queue_controller.h"
#include "sim/controllers.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

// Nobody logs in to the pods of a simulation.
SshKeys NoKeys() { return {"(made by the controller)", "(made by the controller)"}; }

}  // namespace

// Pods of a dump, or written by hand, may lack what says whose they are.
void Controllers::AdoptVcPods(const Json& job) {
  const std::string group = VcPodGroupName(job);
  for (const VcTask& task : VcTasks(job)) {
    for (int64_t i = 0; i < task.replicas; ++i) {
      const Key key = PodKey(Namespace(job), VcPodName(job, task, i));
      const Json* pod = world_.store.FindObject(key);
      if (pod != nullptr && ControllerOf(*pod) == nullptr) {
        EnsurePod(job, VcPod(job, task, i, group));
      }
    }
  }
}

void Controllers::ReconcileVcJob(const Key& key) {
  const Entry& entry = *world_.store.Find(key);
  AdoptVcPods(entry.object);
  const auto admitted = [&](const Json& group) {
    const std::string phase = Text(group, {"status", "phase"});
    return (!phase.empty() && phase != "Pending") || world_.admitted.count(Uid(group)) > 0;
  };
  const JobView view = {
      .store = world_.store,
      .job = key,
      .now = world_.now,
      .commands = CommandsFor(world_.store, key),
      .priority_of = [&](const std::string& name) { return world_.PriorityOf(name); },
      .admitted = admitted,
      .keys = [] { return std::optional(NoKeys()); },
      .most_pods = kMaxPodsMade + 1};
  CarryOut(ReconcileJob(view, world_.jobs[Uid(entry.object)]), key, entry.sequence);
}

void Controllers::ReconcileQueue(const Key& key) {
  CarryOut(control::ReconcileQueue({world_.store, key, CommandsFor(world_.store, key)}), key, 0);
}

void Controllers::CarryOut(const Outcome& outcome, const Key& asked, uint64_t rank) {
  for (const std::vector<Write>& step : outcome.steps) {
    for (const Write& write : step) {
      Carry(write, rank);
    }
  }
  for (const Happening& event : outcome.events) {
    const Json* about = world_.store.FindObject(event.about);
    if (about != nullptr) {
      world_.Record(*about, event.warning ? "Warning" : "Normal", event.reason, event.message,
                    "hopwise-controller");
      if (event.warning && event.reason == "FailedCreate") {
        world_.Warn(fmt::format("{}: {}", Describe(*about), event.message));
      }
    }
  }
  if (outcome.again.set()) {
    world_.timers.emplace(outcome.again.ns, asked);
  }
}

void Controllers::Carry(const Write& write, uint64_t rank) {
  using Verb = Write::Verb;
  const Json* present = world_.store.FindObject(write.key);
  if (write.verb == Verb::kCreate) {
    if (present == nullptr && write.key.kind == "Pod" && write.key.group.empty()) {
      world_.MakePodObject(write.body);
    } else if (present == nullptr) {
      world_.store.Create(write.body, world_.now, rank);
    }
    return;
  }
  if (present == nullptr) {
    return;
  }
  if (write.verb == Verb::kDelete) {
    world_.Delete(write.key);
  } else if (write.verb == Verb::kPatchStatus) {
    Json& status = Member(world_.store.Edit(write.key), "status");
    status.merge_patch(write.body["status"]);
  } else {
    Json next = *present;
    Json patch = write.body;
    Unset(patch, {"metadata", "uid"});
    Unset(patch, {"metadata", "resourceVersion"});
    next.merge_patch(patch);
    world_.store.Replace(write.key, std::move(next));
  }
}

}  // namespace hopwise::sim
