#include "sim/simulator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "api/decode.h"
#include "base/check.h"
#include "base/quantity.h"
#include "sim/objects.h"
#include "sim/report.h"

namespace hopwise::sim {
namespace {

// Given times are followed up to 2100; what lies beyond is taken for a slip.
constexpr int64_t kLatestFollowed = 4'102'444'800LL * 1'000'000'000LL;

bool MattersToState(const Key& key) {
  const bool core = key.kind == "Node" || key.kind == "Pod" || key.kind == "Namespace";
  return (key.group.empty() && core) || IsPodGroup(key) ||
         (key.kind == "Queue" && key.group == kVolcanoScheduling) ||
         (key.kind == "HyperNode" && key.group == kVolcanoTopology) ||
         (key.kind == "PriorityClass" && key.group == "scheduling.k8s.io");
}

void RemoveFromState(cluster::State& state, const Key& key) {
  if (key.kind == "Node") {
    state.RemoveNode(key.name);
  } else if (key.kind == "Pod") {
    state.RemovePod(key.ns, key.name);
  } else if (key.kind == "PodGroup") {
    state.RemovePodGroup(key.ns, key.name, key.group == kSchedulerPlugins);
  } else if (key.kind == "Queue") {
    state.RemoveQueue(key.name);
  } else if (key.kind == "HyperNode") {
    state.RemoveHyperNode(key.name);
  } else if (key.kind == "PriorityClass") {
    state.RemovePriorityClass(key.name);
  }
}

bool IsWaiting(const sched::GangReport& report) { return report.waiting > 0; }

}  // namespace

bool ApplyToState(cluster::State& state, const Key& key, const Entry& entry,
                  const std::string& scheduler_name) {
  Result<api::Decoded> decoded = api::DecodeObject(Dump(entry.object));
  if (!decoded) {
    return false;
  }
  // Times have whole seconds; within one, the order of creation counts. HyperNodes are left alone:
  // their order must not matter.
  constexpr uint64_t kLastNano = 999'999'999;
  if (key.kind != "HyperNode") {
    std::visit(
        [&](auto& object) {
          object.meta.creation.ns += static_cast<int64_t>(std::min(entry.rank, kLastNano));
        },
        decoded->object);
  }
  if (auto* pod = std::get_if<api::Pod>(&decoded->object);
      pod != nullptr && !scheduler_name.empty()) {
    pod->scheduler_name = scheduler_name;
  }
  state.Apply(decoded->object);
  return true;
}

const Key* PodGroupOf(const Store& store, const cluster::Gang& gang, Key& scratch) {
  if (gang.source != cluster::GangSource::kPodGroup) {
    return nullptr;
  }
  scratch = PodGroupKey(gang.ns, gang.name);
  if (const Json* found = store.FindObject(scratch); found != nullptr && Uid(*found) == gang.uid) {
    return &scratch;
  }
  const Key other{std::string(kSchedulerPlugins), "PodGroup", gang.ns, gang.name};
  if (store.Find(other) != nullptr) {
    scratch = other;
  }
  return store.Find(scratch) == nullptr ? nullptr : &scratch;
}

Simulator::Simulator(SimulatorOptions options) : controllers_(world_) {
  if (options.scheduler_names.empty()) {
    options.scheduler_names = SimulatorOptions().scheduler_names;
  }
  world_.scheduler_names = options.scheduler_names;
  world_.place_foreign = options.place_foreign;
  default_scheduler_ = options.scheduler_names.front();
  cluster::StateOptions state_options;
  state_options.scheduler_names = std::move(options.scheduler_names);
  state_ = std::make_unique<cluster::State>(std::move(state_options));
  scheduler_ = std::make_unique<sched::Scheduler>(*state_, std::move(options.config));
}

Status Simulator::ApplyStep(const Manifest& manifest) {
  ++steps_;
  FollowGivenTimes(manifest);
  world_.MarkDue();
  step_started_ = FormatRfc3339(world_.now);
  ResolveOwners(manifest);
  ApplyObjects(manifest);
  WarnOfMissingClasses(manifest);
  Status status = RunUntilQuiet(false);
  WarnOfQueues();
  return status;
}

// An API server refuses pods of a PriorityClass that it does not know.
void Simulator::WarnOfMissingClasses(const Manifest& manifest) {
  std::map<std::string, std::string> missing;  // class -> the first object that names it
  const auto look = [&](const Json& spec_of, const Json& object) {
    const std::string name = Text(spec_of, {"spec", "priorityClassName"});
    const Key key{"scheduling.k8s.io", "PriorityClass", "", name};
    if (!name.empty() && name.compare(0, 7, "system-") != 0 && world_.store.Find(key) == nullptr) {
      missing.try_emplace(name, Describe(object));
    }
  };
  for (const ManifestObject& item : manifest.objects) {
    look(item.object, item.object);
    for (const TemplateAt& at : TemplatesOf(item.object)) {
      look(*at.pod_template, item.object);
    }
  }
  for (const auto& [name, object] : missing) {
    world_.Warn(fmt::format("{}: there is no PriorityClass {}; priority 0 is taken", object, name));
  }
}

// What the state found odd about queues, each time it is new.
void Simulator::WarnOfQueues() {
  world_.store.Each(kVolcanoScheduling, "Queue", [&](const Key& key, const Entry&) {
    const QueueId id = state_->FindQueue(key.name);
    if (!id.valid()) {
      return;
    }
    for (const std::string& warning : state_->queue(id).warnings) {
      const std::string text = fmt::format("Queue/{}: {}", key.name, warning);
      if (told_queues_.insert(text).second) {
        world_.Warn(text);
      }
    }
  });
}

Status Simulator::Drain() { return RunUntilQuiet(true); }

Status Simulator::EvictPod(const std::string& ns, const std::string& name, std::string_view why) {
  const Key key = PodKey(ns, name);
  const Json* pod = world_.store.FindObject(key);
  if (pod == nullptr) {
    return Fail(ErrorCode::kNotFound, fmt::format("pod {}/{} does not exist", ns, name));
  }
  TellEvicted(*pod, why);
  world_.Delete(key);
  return RunUntilQuiet(false);
}

// Time never runs behind what it is given: objects made from now on are younger than those of a
// dump.
void Simulator::FollowGivenTimes(const Manifest& manifest) {
  for (const ManifestObject& item : manifest.objects) {
    const Result<Time> created = ParseRfc3339(Text(item.object, {"metadata", "creationTimestamp"}));
    if (created && created->ns <= kLatestFollowed) {
      // The next whole second: objects carry no finer times.
      const int64_t second = Seconds(1).ns;
      world_.now.ns = std::max(world_.now.ns, (created->ns + second - 1) / second * second);
    }
  }
}

// Manifests written by hand name owners without a uid, or give no uid to an owner that others know
// by one.
void Simulator::ResolveOwners(const Manifest& manifest) {
  for (const ManifestObject& item : manifest.objects) {
    for (const Json& owner : List(item.object, {"metadata", "ownerReferences"})) {
      Key key{GroupOf(Text(owner, {"apiVersion"})), Text(owner, {"kind"}), item.key.ns,
              Text(owner, {"name"})};
      if (IsClusterScoped(key.group, key.kind)) {
        key.ns.clear();
      }
      if (std::string uid = Text(owner, {"uid"}); !uid.empty()) {
        world_.store.ExpectUid(key, std::move(uid));
      }
    }
  }
}

void Simulator::ApplyObjects(const Manifest& manifest) {
  for (const ManifestObject& item : manifest.objects) {
    if (!item.remove) {
      world_.store.Apply(item.object, world_.now);
    } else if (world_.store.Find(item.key) != nullptr) {
      world_.Delete(item.key, true);
    } else {
      world_.Warn(
          fmt::format("{}: nothing to delete", ToText({item.origin, Describe(item.object), ""})));
    }
  }
  for (const ManifestObject& item : manifest.objects) {
    const Json* object = world_.store.FindObject(item.key);
    if (object == nullptr || List(*object, {"metadata", "ownerReferences"}).empty()) {
      continue;
    }
    Json next = *object;
    bool changed = false;
    for (Json& owner : next["metadata"]["ownerReferences"]) {
      const Key key{GroupOf(Text(owner, {"apiVersion"})), Text(owner, {"kind"}), item.key.ns,
                    Text(owner, {"name"})};
      const Json* found = world_.store.FindObject(key);
      if (owner.is_object() && Text(owner, {"uid"}).empty() && found != nullptr) {
        owner["uid"] = Uid(*found);
        changed = true;
      }
    }
    if (changed) {
      world_.store.Replace(item.key, std::move(next));
    }
  }
}

Status Simulator::RunUntilQuiet(bool drain) {
  decisions_ = 0;
  do {
    if (Status status = Settle(); !status) {
      return status;
    }
  } while ((drain || SomebodyMayBeHelped()) && JumpToNextEnd());
  Status status = TellWaiting();
  WriteQueueStatus();
  return status;
}

Status Simulator::Settle() {
  int64_t idle = 0;
  while (true) {
    if (!controllers_.Settle()) {
      if (world_.visits >= World::kMaxVisits) {
        return Fail(
            ErrorCode::kTooLarge,
            "given up: too many pods come and go one after the other (large StatefulSets or "
            "Jobs with many completions)");
      }
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("the controllers did not come to rest within {} rounds",
                              Controllers::kMaxRounds));
    }
    if (!Feed()) {
      return {};
    }
    WriteTopologyStatus();
    const int64_t moved = CarryOut(scheduler_->Run(world_.now));
    idle = moved > 0 ? 0 : idle + 1;
    if (++decisions_ > kMaxDecisions || idle > kMaxIdleDecisions) {
      return Fail(
          ErrorCode::kTooLarge,
          fmt::format("the cluster does not become quiet: {} decisions, the last {} without "
                      "a bind",
                      decisions_, idle));
    }
  }
}

bool Simulator::Feed() {
  bool any = false;
  for (const Change& change : controllers_.TakeChanges()) {
    if (MattersToState(change.key) && !IsToldOnly(change.key)) {
      FeedObject(change);
      any = true;
    }
  }
  return any;
}

// The state does not care for conditions: a pod that was only told why it waits need not be judged
// anew.
bool Simulator::IsToldOnly(const Key& key) {
  const auto found = told_.find(key);
  if (found == told_.end()) {
    return false;
  }
  const Json* pod = world_.store.FindObject(key);
  const bool same = pod != nullptr && Text(*pod, {"metadata", "resourceVersion"}) == found->second;
  told_.erase(found);
  return same;
}

void Simulator::FeedObject(const Change& change) {
  const Entry* entry = world_.store.Find(change.key);
  if (entry == nullptr) {
    RemoveFromState(*state_, change.key);
    world_.waiting.erase(change.key);
    return;
  }
  const std::string scheduler = world_.place_foreign ? default_scheduler_ : "";
  if (!ApplyToState(*state_, change.key, *entry, scheduler)) {
    world_.Warn(Describe(entry->object) + " cannot be decoded and is left out");
  }
}

int64_t Simulator::CarryOut(const sched::Plan& plan) {
  int64_t bound = 0;
  for (const sched::GangReport& report : plan.gangs) {
    for (const sched::Bind& bind : report.binds) {
      const cluster::PodRecord& pod = state_->pod(bind.pod);
      const Json* object = world_.store.FindObject(PodKey(pod.ns, pod.name));
      HOPWISE_CHECK(object != nullptr);
      Bind(bind, Text(*object, {"spec", "schedulerName"}, default_scheduler_));
      ++bound;
    }
  }
  for (const sched::GangReport& report : plan.gangs) {
    Report(report);
  }
  ForgetSettled();
  for (const sched::Eviction& eviction : plan.evictions) {
    Evict(eviction);
  }
  return bound + static_cast<int64_t>(plan.evictions.size());
}

void Simulator::Evict(const sched::Eviction& eviction) {
  const cluster::PodRecord& record = state_->pod(eviction.pod);
  const Key key = PodKey(record.ns, record.name);
  const Json* pod = world_.store.FindObject(key);
  HOPWISE_CHECK(pod != nullptr);
  TellEvicted(*pod, eviction.why);
  world_.Delete(key);
}

void Simulator::TellEvicted(const Json& pod, std::string_view why) {
  world_.Record(pod, "Warning", "Evict", fmt::format("Pod is evicted, because of {}", why),
                default_scheduler_);
}

// Gangs of which nothing waits any more get no report of their own.
void Simulator::ForgetSettled() {
  for (const Key& key : std::exchange(world_.touched_groups, {})) {
    if (world_.waiting.count(key) == 0) {
      continue;
    }
    const GangId id = state_->FindGang(key.ns, key.name);
    if (!id.valid() ||
        (scheduler_->LastReport(id) == nullptr && state_->gang(id).invalid.empty())) {
      world_.waiting.erase(key);
      world_.MarkDirty(key);
    }
  }
}

void Simulator::Bind(const sched::Bind& bind, const std::string& scheduler) {
  const cluster::PodRecord& record = state_->pod(bind.pod);
  const std::string& node = state_->node(bind.node).name;
  const Key key = PodKey(record.ns, record.name);
  Json& pod = world_.store.Edit(key);
  Set(pod, {"spec", "nodeName"}, node);
  MarkRunning(pod, world_.now);
  world_.Record(pod, "Normal", "Scheduled",
                fmt::format("Successfully assigned {}/{} to {}", key.ns, key.name, node),
                scheduler);
}

void Simulator::Report(const sched::GangReport& report) {
  const cluster::Gang& gang = state_->gang(report.gang);
  const bool hopeless =
      report.rest == sched::Verdict::kNever || report.rest == sched::Verdict::kInvalid;
  if (IsWaiting(report) && !hopeless) {
    hopeful_.insert(report.gang);
  } else {
    hopeful_.erase(report.gang);
  }
  Key scratch;
  const Key* key = PodGroupOf(world_.store, gang, scratch);
  if (key != nullptr) {
    UpdateWaiting(*key, gang, report);
  }
  const Json* about = key == nullptr ? nullptr : world_.store.FindObject(*key);
  if (about == nullptr && !gang.pods.empty()) {
    const cluster::PodRecord& first = state_->pod(gang.pods.front());
    about = world_.store.FindObject(PodKey(first.ns, first.name));
  }
  for (const std::string& warning : report.warnings) {
    if (about != nullptr) {
      world_.Record(*about, "Warning", "TopologyRule", warning, default_scheduler_);
    }
  }
  const bool tellable = IsWaiting(report) && !report.message.empty();
  if (tellable && untold_.insert(report.gang).second) {
    TellPods(gang, report, false);
  }
}

void Simulator::UpdateWaiting(const Key& key, const cluster::Gang& gang,
                              const sched::GangReport& report) {
  if (!IsWaiting(report) && gang.invalid.empty()) {
    if (world_.waiting.erase(key) > 0) {
      world_.MarkDirty(key);
    }
    return;
  }
  World::Waiting next = {report.verdict == sched::Verdict::kQueueLimit,
                         report.reason.empty() ? "NotEnoughResources" : report.reason,
                         report.message};
  const auto [at, fresh] = world_.waiting.try_emplace(key);
  if (fresh || at->second.limit != next.limit) {
    world_.MarkDirty(key);
  }
  at->second = std::move(next);
}

void Simulator::TellPods(const cluster::Gang& gang, const sched::GangReport& report, bool again) {
  if (report.message.empty()) {
    return;
  }
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& record = state_->pod(id);
    if (record.state != cluster::PodState::kPending) {
      continue;
    }
    const Key key = PodKey(record.ns, record.name);
    const Json* pod = world_.store.FindObject(key);
    const Json* told = pod == nullptr ? nullptr : ConditionOf(*pod, "PodScheduled");
    if (pod == nullptr ||
        (!again && told != nullptr && Text(*told, {"reason"}) == "Unschedulable")) {
      continue;
    }
    Json next = *pod;
    if (SetCondition(next, "PodScheduled", "False", "Unschedulable", report.message, world_.now)) {
      world_.Record(*pod, "Warning", "FailedScheduling", report.message,
                    Text(*pod, {"spec", "schedulerName"}, default_scheduler_));
      world_.store.Replace(key, std::move(next));
      told_[key] = Text(*world_.store.FindObject(key), {"metadata", "resourceVersion"});
    }
  }
}

// The reasons as they stand at the end of a step.
Status Simulator::TellWaiting() {
  for (const GangId id : std::exchange(untold_, {})) {
    const sched::GangReport* report = scheduler_->LastReport(id);
    if (state_->gang(id).alive && report != nullptr) {
      TellPods(state_->gang(id), *report, true);
    }
  }
  for (const auto& [key, waiting] : world_.waiting) {
    world_.MarkDirty(key);
  }
  world_.tell_again = true;
  Status status = Settle();
  world_.tell_again = false;
  return status;
}

bool Simulator::SomebodyMayBeHelped() {
  while (!world_.ends.empty() && !hopeful_.empty()) {
    const GangId id = *hopeful_.begin();
    if (state_->gang(id).alive && scheduler_->LastReport(id) != nullptr) {
      return true;
    }
    hopeful_.erase(hopeful_.begin());
  }
  return false;
}

bool Simulator::JumpToNextEnd() {
  while (!world_.ends.empty()) {
    const int64_t when = std::get<0>(*world_.ends.begin());
    bool ended = false;
    while (!world_.ends.empty() && std::get<0>(*world_.ends.begin()) == when) {
      const auto [time, key, uid] = *world_.ends.begin();
      world_.ends.erase(world_.ends.begin());
      const Json* pod = world_.store.FindObject(key);
      if (pod == nullptr || Uid(*pod) != uid || !IsRunning(*pod)) {
        continue;  // deleted or replaced meanwhile
      }
      world_.now.ns = std::max(world_.now.ns, time);
      world_.MarkDue();
      Json& edited = world_.store.Edit(key);
      Set(edited, {"status", "phase"}, "Succeeded");
      for (const char* type : {"ContainersReady", "Ready"}) {
        SetCondition(edited, type, "False", "PodCompleted", "", world_.now);
      }
      ended = true;
    }
    if (ended) {
      return true;
    }
  }
  return false;
}

void Simulator::WriteTopologyStatus() {
  const topology::Topology& topology = state_->topology();
  if (topology_seen_ && topology.version == topology_version_) {
    return;
  }
  topology_seen_ = true;
  topology_version_ = topology.version;
  if (!topology.faults.empty() && topology.faults != told_faults_) {
    world_.Warn(FaultSummary(topology));
  }
  told_faults_ = topology.faults;
  std::map<std::string, std::vector<const topology::Fault*>> faults;
  for (const topology::Fault& fault : topology.faults) {
    faults[fault.object].push_back(&fault);
  }
  for (const topology::HyperNodeState& hypernode : topology.hypernodes) {
    const Key key{std::string(kVolcanoTopology), "HyperNode", "", hypernode.name};
    const Json* object = world_.store.FindObject(key);
    if (object == nullptr) {
      continue;
    }
    std::string reason = "InTopology";
    std::string message;
    for (const topology::Fault* fault : faults[hypernode.name]) {
      // The fault that takes the object out names the condition.
      if (message.empty() || fault->isolates) {
        reason = std::string(topology::ReasonOf(fault->kind));
      }
      message += (message.empty() ? "" : "; ") + fault->message;
    }
    Json next = *object;
    Set(next, {"status", "nodeCount"}, hypernode.node_count);
    const bool changed = SetCondition(next, "Ready", hypernode.in_tree ? "True" : "False", reason,
                                      message, world_.now);
    if (changed) {
      for (const topology::Fault* fault : faults[hypernode.name]) {
        world_.Record(*object, "Warning", topology::ReasonOf(fault->kind), fault->message,
                      default_scheduler_);
      }
    }
    if (next != *object) {
      world_.store.Replace(key, std::move(next));
    }
  }
}

void Simulator::WriteQueueStatus() {
  std::map<std::string, std::map<std::string, int64_t>> groups;  // queue -> phase -> count
  world_.store.Each(kVolcanoScheduling, "PodGroup", [&](const Key&, const Entry& entry) {
    const std::string phase = Text(entry.object, {"status", "phase"}, "Pending");
    ++groups[Text(entry.object, {"spec", "queue"}, "default")][phase];
  });
  std::vector<Key> queues;
  world_.store.Each(kVolcanoScheduling, "Queue",
                    [&](const Key& key, const Entry&) { queues.push_back(key); });
  for (const Key& key : queues) {
    const Json* object = world_.store.FindObject(key);
    Json status = {{"state", Text(*object, {"status", "state"}, "Open")}};
    for (const auto& [field, phase] :
         {std::pair("pending", "Pending"), std::pair("running", "Running"),
          std::pair("inqueue", "Inqueue"), std::pair("completed", "Completed"),
          std::pair("unknown", "Unknown")}) {
      status[field] = groups[key.name][phase];
    }
    Json allocated = Json::object();
    if (const QueueId id = state_->FindQueue(key.name); id.valid()) {
      const std::vector<int64_t>& amounts = state_->queue(id).allocated;
      for (size_t r = 0; r < amounts.size(); ++r) {
        if (amounts[r] != 0) {
          const std::string& name = state_->columns().ResourceName(ResourceId(r));
          allocated[name] = FormatQuantity(name, amounts[r]);
        }
      }
    }
    status["allocated"] = std::move(allocated);
    Json next = *object;
    for (const auto& [field, value] : status.items()) {
      Set(next, {"status", field}, value);
    }
    if (next != *object) {
      world_.store.Replace(key, std::move(next));
    }
  }
}

std::string Simulator::Snapshot() const {
  std::vector<const Entry*> order;
  world_.store.EachObject([&](const Key&, const Entry& entry) { order.push_back(&entry); });
  // Kind before group: a reader looks for "Pod", not for the core group.
  std::vector<
      std::pair<std::tuple<std::string, std::string, std::string, std::string>, const Entry*>>
      sorted;
  sorted.reserve(order.size());
  for (const Entry* entry : order) {
    const Key key = KeyOf(entry->object);
    sorted.push_back({{key.kind, key.ns, key.name, key.group}, entry});
  }
  std::sort(sorted.begin(), sorted.end());
  // Written item by item, so that the whole list is never held as a tree.
  std::string text = "{\"apiVersion\":\"v1\",\"items\":[";
  for (size_t i = 0; i < sorted.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + Dump(sorted[i].second->object);
  }
  const Json meta = {{"annotations", {{"hopwise.dev/step-started", step_started_}}}};
  return text + "\n],\"kind\":\"List\",\"metadata\":" + Dump(meta) + "}\n";
}

}  // namespace hopwise::sim
