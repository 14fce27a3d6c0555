#include "daemon/topology_controller.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "api/decode.h"
#include "api/encode.h"
#include "api/json.h"
#include "base/ids.h"
#include "base/log.h"
#include "control/hypernode_status.h"
#include "control/label_source.h"
#include "control/ufm_source.h"
#include "topology/forest.h"

namespace hopwise::daemon {
namespace {

using json::Json;
using Verb = ObjectWrite::Verb;

Json MetadataOf(const api::ObjectMeta& meta) {
  Json metadata = {{"name", meta.name}, {"labels", api::Encode(meta.labels)}};
  // What was decided about an object is not written to another of its name, nor to a later version.
  if (!meta.uid.empty()) {
    metadata["uid"] = meta.uid;
  }
  if (!meta.resource_version.empty()) {
    metadata["resourceVersion"] = meta.resource_version;
  }
  return metadata;
}

ObjectWrite ToWrite(const control::HyperNodeWrite& write) {
  using Kind = control::HyperNodeWrite::Kind;
  const api::HyperNode& object = write.object;
  ObjectWrite out;
  out.resource = kube::kHyperNodes;
  out.name = object.meta.name;
  if (write.kind == Kind::kDelete) {
    out.verb = Verb::kDelete;
    out.uid = object.meta.uid;
    out.resource_version = object.meta.resource_version;
    return out;
  }
  out.verb = write.kind == Kind::kCreate ? Verb::kCreate : Verb::kPatch;
  out.uid = object.meta.uid;
  Json body = {{"apiVersion", kube::ApiVersionOf(kube::kHyperNodes)},
               {"kind", "HyperNode"},
               {"metadata", MetadataOf(object.meta)},
               {"spec", api::EncodeSpec(object)}};
  if (out.verb == Verb::kPatch) {
    // An empty list is no valid value, and what a patch does not name stays.
    if (object.members.empty()) {
      body["spec"]["members"] = nullptr;
    }
    if (api::Find(object.meta.labels, topology::kFabricKey) == nullptr) {
      body["metadata"]["labels"][std::string(topology::kFabricKey)] = nullptr;
    }
  }
  out.body = json::Dump(body);
  return out;
}

// What goes at once: updates that lose, updates that gain, and creations and deletions of one tier,
// so that no node is ever in two domains, and no parent names a child that is not there.
std::vector<std::vector<ObjectWrite>> StepsOf(const control::HyperNodePlan& plan) {
  using Kind = control::HyperNodeWrite::Kind;
  // The plan's runs of one kind, in its order.
  std::vector<std::map<int32_t, std::vector<ObjectWrite>>> runs;
  const control::HyperNodeWrite* before = nullptr;
  for (const control::HyperNodeWrite& write : plan.writes) {
    if (before == nullptr || before->kind != write.kind || before->gains != write.gains) {
      runs.emplace_back();
    }
    before = &write;
    const int32_t tier = write.object.tier;
    const int32_t order = write.kind == Kind::kCreate   ? tier
                          : write.kind == Kind::kDelete ? -tier
                                                        : 0;
    runs.back()[order].push_back(ToWrite(write));
  }
  std::vector<std::vector<ObjectWrite>> steps;
  for (auto& run : runs) {
    for (auto& [order, writes] : run) {
      steps.push_back(std::move(writes));
    }
  }
  return steps;
}

ObjectWrite StatusWrite(const control::HyperNodeStatus& status) {
  const api::ObjectMeta& meta = status.object->meta;
  Json conditions = Json::array();
  for (const api::Condition& condition : status.conditions) {
    const bool own = condition.type == control::kReady || condition.type == control::kDiscovered;
    conditions.push_back(api::Encode(condition, own ? meta.generation : 0));
  }
  ObjectWrite write;
  write.verb = Verb::kPatchStatus;
  write.resource = kube::kHyperNodes;
  write.name = meta.name;
  write.uid = meta.uid;
  write.body = json::Dump(
      {{"metadata", {{"uid", meta.uid}}},
       {"status", {{"nodeCount", status.node_count}, {"conditions", std::move(conditions)}}}});
  return write;
}

Tell ConditionEvent(const control::HyperNodeStatus& status) {
  const api::ObjectMeta& meta = status.object->meta;
  return {
      {kube::ApiVersionOf(kube::kHyperNodes), "HyperNode", "", meta.name, meta.uid},
      {.warning = true, .reason = status.ready.reason, .message = status.ready.message, .key = ""}};
}

// What the batch is to write, whatever versions it stands on.
std::string WantedBy(const control::HyperNodePlan& plan) {
  std::string wanted;
  for (const control::HyperNodeWrite& write : plan.writes) {
    wanted += fmt::format("{} {} {};", static_cast<int>(write.kind), write.object.meta.name,
                          json::Dump(api::EncodeSpec(write.object)));
  }
  return wanted;
}

Duration Doubled(Duration pause, int times) {
  const int64_t most = kMostBatchPause.ns;
  return {times >= 16 ? most : std::min(most, pause.ns << times)};
}

struct Source {
  control::SourceSettings settings;
  control::Hold hold{control::HoldOptions{}};
  std::optional<control::Discovery> found;  // nothing yet: nothing is planned
  uint64_t batch = 0;                       // under way, 0: none
  size_t writes = 0;                        // of it
  Time began;
  bool active = true;     // false: not configured any more, its batch still runs
  std::string wanted;     // by the last batch
  int repeats = 0;        // batches before it that wanted the same
  bool conflict = false;  // somebody else wrote what the batch meant to
  Time retry;             // not before, after a failure
  Time held_until;
  control::SourceState state;  // of a source that is asked: whether it answered
  std::string judged;          // why its last answer cannot be used, "" where it can
  std::map<std::string, std::string, std::less<>> told;  // the last words, by reason
  std::vector<std::string> warned;                       // of its discovery
};

// An answer that cannot be used is a failure, too.
control::SourceState StateOf(const Source& source) {
  control::SourceState state = source.state;
  if (state.reason.empty() && !source.judged.empty()) {
    state.reason = "BadAnswer";
    state.message = source.judged;
  }
  return state;
}

}  // namespace

struct TopologyController::Impl {
  explicit Impl(server::Metrics& m) : metrics(m) {}

  struct Node {
    NodeId id;
    api::StringMap labels;
  };

  server::Metrics& metrics;
  std::map<std::string, Node, std::less<>> nodes;
  std::vector<NodeId> free_ids;
  uint32_t next_id = 0;
  std::map<std::string, api::HyperNode, std::less<>> hypernodes;
  topology::Forest forest;
  std::map<std::string, Source, std::less<>> sources;
  std::optional<api::UfmPorts> ports;  // the last good answer
  bool synced = false, leading = false;

  uint64_t last_batch = 0;
  uint64_t status_batch = 0;  // under way, 0: none
  Time status_retry;
  int status_failures = 0;    // one after the other
  bool nodes_changed = true;  // or the configuration, since the sources were last read
  bool ports_changed = false;
  bool ports_fresh = false;  // in this step
  bool changed = false;      // something since the last plan
  Time first_change, last_change;

  void Touch(Time now) {
    if (!std::exchange(changed, true)) {
      first_change = now;
    }
    last_change = now;
  }
  [[nodiscard]] std::vector<const api::HyperNode*> Existing() const {
    std::vector<const api::HyperNode*> existing;
    existing.reserve(hypernodes.size());
    for (const auto& [name, object] : hypernodes) {
      existing.push_back(&object);
    }
    return existing;
  }
  [[nodiscard]] bool writing() const {
    return std::ranges::any_of(sources, [](const auto& entry) { return entry.second.batch != 0; });
  }

  void ObserveNode(std::string_view name, const api::StringMap* labels, Time now);
  void ObserveHyperNode(api::HyperNode&& object, bool deleted, Time now);
  void Forget(Source& source);
  void ReadLabels();
  void ReadPorts(ControllerEffects& effects);
  void TellWarnings(const std::string& name, Source& source, ControllerEffects& effects);
  void PlanSource(const std::string& name, Source& source, Time now, ControllerEffects& effects);
  void Say(const std::string& name, Source& source, bool warning, std::string_view reason,
           const std::string& message, ControllerEffects& effects);
  void PlanStatus(Time now, ControllerEffects& effects);
};

TopologyController::TopologyController(server::Metrics& metrics)
    : impl_(std::make_unique<Impl>(metrics)) {}

TopologyController::~TopologyController() = default;

// --- what happens

void TopologyController::Observe(const kube::Resource& resource, kube::WatchEvent&& event,
                                 Time now) {
  const bool deleted = event.type == kube::WatchEvent::Type::kDeleted;
  const api::ObjectMeta& meta = api::MetaOf(event.decoded.object);
  if (resource == kube::kNodes) {
    impl_->ObserveNode(meta.name, deleted ? nullptr : &meta.labels, now);
  } else if (resource == kube::kHyperNodes) {
    api::HyperNode object;
    if (deleted) {
      object.meta = meta;
    } else {
      object = std::get<api::HyperNode>(std::move(event.decoded.object));
    }
    impl_->ObserveHyperNode(std::move(object), deleted, now);
  }
}

// `labels`: nullptr when the node is gone.
void TopologyController::Impl::ObserveNode(std::string_view name, const api::StringMap* labels,
                                           Time now) {
  const auto at = nodes.find(name);
  if (labels == nullptr) {
    if (at == nodes.end()) {
      return;
    }
    forest.RemoveNode(at->second.id);
    free_ids.push_back(at->second.id);
    nodes.erase(at);
  } else if (at == nodes.end()) {
    NodeId id(next_id);
    if (free_ids.empty()) {
      ++next_id;
    } else {
      id = free_ids.back();
      free_ids.pop_back();
    }
    forest.UpsertNode(id, name, *labels);
    nodes.emplace(name, Node{id, *labels});
  } else if (at->second.labels != *labels) {
    at->second.labels = *labels;
    forest.UpsertNode(at->second.id, name, *labels);
  } else {
    return;  // a heartbeat
  }
  nodes_changed = true;
  Touch(now);
}

void TopologyController::Impl::ObserveHyperNode(api::HyperNode&& object, bool deleted, Time now) {
  const std::string name = object.meta.name;
  const auto at = hypernodes.find(name);
  const bool same = at != hypernodes.end() && at->second.meta.uid == object.meta.uid;
  if (deleted) {
    if (!same) {
      return;
    }
    hypernodes.erase(at);
    forest.RemoveHyperNode(name);
  } else if (same &&
             kube::IsOlder(object.meta.resource_version, at->second.meta.resource_version)) {
    return;  // what the server answered to a write of ours is newer
  } else {
    forest.UpsertHyperNode(object);
    hypernodes[name] = std::move(object);
  }
  Touch(now);
}

void TopologyController::SetConfig(const control::ControllerConfig& config, Time now) {
  std::map<std::string, Source, std::less<>> next;
  for (const control::SourceSettings& settings : config.sources) {
    if (!settings.enabled) {
      continue;
    }
    Source source;
    if (const auto at = impl_->sources.find(settings.source); at != impl_->sources.end()) {
      source = std::move(at->second);
      if (source.settings.ufm.endpoint != settings.ufm.endpoint || !source.active) {
        impl_->Forget(source);
      }
      impl_->sources.erase(at);
    }
    source.settings = settings;
    source.active = true;
    source.hold = control::Hold(settings.hold);
    source.told.clear();
    next.emplace(settings.source, std::move(source));
  }
  for (auto& [name, source] : impl_->sources) {
    impl_->Forget(source);
    for (const char* gauge : {"hopwise_discovered_domains", "hopwise_discovery_warnings",
                              "hopwise_discovery_held", "hopwise_discovery_failing"}) {
      impl_->metrics.Drop(gauge, {{"source", name}});
    }
    if (source.batch != 0) {
      source.active = false;
      next.emplace(name, std::move(source));
    }
  }
  impl_->sources = std::move(next);
  impl_->nodes_changed = true;
  impl_->Touch(now);
}

// What an asked source said is of another time, or of another place.
void TopologyController::Impl::Forget(Source& source) {
  if (source.settings.source == control::kUfmSource) {
    ports.reset();
    source.found.reset();
    source.state = {};
    source.judged.clear();
  }
}

void TopologyController::FoundPorts(Result<api::UfmPorts>&& ports, const UfmFailure& failure,
                                    Time now) {
  const auto at = impl_->sources.find(control::kUfmSource);
  if (at == impl_->sources.end() || !at->second.active || !impl_->leading) {
    return;
  }
  impl_->metrics.Count("hopwise_discovery_requests_total", 1,
                       {{"source", at->first}, {"result", ports ? "ok" : failure.reason}});
  at->second.state = {at->first, failure.reason, failure.message};
  if (ports) {
    impl_->ports = std::move(*ports);
    impl_->ports_changed = true;
  }
  impl_->Touch(now);
}

void TopologyController::SetSynced(bool synced, Time now) {
  impl_->synced = synced;
  impl_->Touch(now);
}

// What a batch that is under way still does is seen by the watch. What was asked before another one
// led is too old to go by.
void TopologyController::SetLeading(bool leading, Time now) {
  impl_->leading = leading;
  impl_->metrics.Set("hopwise_leader", leading ? 1 : 0);
  for (auto& [name, source] : impl_->sources) {
    impl_->Forget(source);
  }
  impl_->nodes_changed = true;
  impl_->Touch(now);
}

void TopologyController::Wrote(WriteResult&& result, Time now) {
  if (result.error.failure == kube::Failure::kConflict) {
    for (auto& [name, source] : impl_->sources) {
      source.conflict = source.conflict || source.batch != 0;
    }
  }
  const bool absent = result.error.failure == kube::Failure::kNotFound;
  if (!result.error.ok()) {
    Log(LogLevel::kWarning, "hypernode_write_failed", {{"error", result.error.message}});
  }
  if (!result.error.ok() && !absent) {
    if (!result.error.retriable() && result.error.failure != kube::Failure::kConflict) {
      impl_->metrics.Count("hopwise_controller_write_failures_total", 1,
                           {{"resource", kube::ResourceName(result.write.resource)}});
    }
    return;
  }
  if (result.object.empty()) {
    api::HyperNode gone;
    gone.meta.name = result.write.name;
    gone.meta.uid = result.write.uid;
    impl_->ObserveHyperNode(std::move(gone), true, now);
  } else if (Result<api::Decoded> decoded = api::DecodeObject(result.object);
             decoded && std::holds_alternative<api::HyperNode>(decoded->object)) {
    impl_->ObserveHyperNode(std::get<api::HyperNode>(std::move(decoded->object)), false, now);
  }
}

void TopologyController::Ended(uint64_t batch, bool ok, Time now) {
  if (batch == impl_->status_batch) {
    impl_->status_batch = 0;
    impl_->status_failures = ok ? 0 : impl_->status_failures + 1;
    impl_->status_retry = ok ? Time() : now + Doubled(kConflictPause, impl_->status_failures - 1);
  }
  for (auto& [name, source] : impl_->sources) {
    if (source.batch == batch) {
      source.batch = 0;
      Log(LogLevel::kInfo, "hypernodes_written",
          {{"source", name},
           {"writes", std::to_string(source.writes)},
           {"whole", ok ? "true" : "false"},
           {"took_ms", std::to_string((now - source.began).ns / Millis(1).ns)}});
      const bool conflict = std::exchange(source.conflict, false);
      const Duration pause = ok ? Millis(500) : conflict ? kConflictPause : kBatchPause;
      source.retry = ok && source.repeats == 0 ? Time() : now + Doubled(pause, source.repeats);
    }
  }
  std::erase_if(impl_->sources,
                [](const auto& entry) { return !entry.second.active && entry.second.batch == 0; });
  impl_->Touch(now);
}

// --- what follows

void TopologyController::Impl::ReadLabels() {
  const auto at = sources.find(control::kLabelSource);
  if (at == sources.end() || !at->second.active || !nodes_changed) {
    return;
  }
  std::vector<control::LabelledNode> views;
  views.reserve(nodes.size());
  for (const auto& [name, node] : nodes) {
    views.push_back({name, &node.labels});
  }
  at->second.found = control::DiscoverByLabels(at->second.settings.types, views);
}

// The cables as last told, for the nodes that there are now.
void TopologyController::Impl::ReadPorts(ControllerEffects& effects) {
  const auto at = sources.find(control::kUfmSource);
  if (at == sources.end() || !at->second.active) {
    return;
  }
  Source& source = at->second;
  if (ports && (nodes_changed || ports_changed)) {
    std::vector<std::string_view> names;
    names.reserve(nodes.size());
    for (const auto& [name, node] : nodes) {
      names.push_back(name);
    }
    Result<control::Discovery> found = control::DiscoverByUfm(
        *ports, names, Existing(), source.settings.hold.most_deleted_percent);
    source.judged = found ? "" : found.error().message;
    if (found) {
      source.found = std::move(*found);
    } else if (ports_changed) {
      effects.ports_refused = true;
      metrics.Count("hopwise_discovery_requests_total", 1,
                    {{"source", at->first}, {"result", "BadAnswer"}});
    }
  }
  ports_fresh = std::exchange(ports_changed, false);
  const control::SourceState state = StateOf(source);
  metrics.Set("hopwise_discovery_failing", state.reason.empty() ? 0 : 1, {{"source", at->first}});
  if (state.reason.empty()) {
    source.told.erase("DiscoveryFailed");
  } else {
    Say(at->first, source, true, "DiscoveryFailed",
        fmt::format("{}: {}; what was found before is kept", state.reason, state.message), effects);
  }
}

// Each thing once, until something else is said.
void TopologyController::Impl::Say(const std::string& name, Source& source, bool warning,
                                   std::string_view reason, const std::string& message,
                                   ControllerEffects& effects) {
  std::string& before = source.told[std::string(reason)];
  if (std::exchange(before, message) == message) {
    return;
  }
  Log(warning ? LogLevel::kWarning : LogLevel::kInfo, "discovery",
      {{"source", name}, {"reason", reason}, {"message", message}});
  effects.events.push_back({{},
                            {.warning = warning,
                             .reason = std::string(reason),
                             .message = fmt::format("source {}: {}", name, message),
                             .key = ""}});
}

// Those that were not there before; of many the first and how many there are.
void TopologyController::Impl::TellWarnings(const std::string& name, Source& source,
                                            ControllerEffects& effects) {
  std::vector<std::string> fresh;
  std::ranges::set_difference(source.found->warnings, source.warned, std::back_inserter(fresh));
  source.warned = source.found->warnings;
  const bool many = fresh.size() > kMostWarnings;
  for (const std::string& warning : fresh) {
    Log(LogLevel::kWarning, "discovery_warning", {{"source", name}, {"warning", warning}});
    if (!many) {
      Say(name, source, true, "DiscoveryWarning", warning, effects);
    }
  }
  if (many) {
    Say(name, source, true, "DiscoveryWarning",
        fmt::format("{} warnings, all in the log; the first: {}", fresh.size(), fresh.front()),
        effects);
  }
}

void TopologyController::Impl::PlanSource(const std::string& name, Source& source, Time now,
                                          ControllerEffects& effects) {
  const bool waits = source.retry.set() && now < source.retry;
  if (!source.active || !source.found || source.batch != 0 || waits) {
    return;
  }
  source.retry = Time();
  metrics.Set("hopwise_discovered_domains", static_cast<double>(source.found->domains.size()),
              {{"source", name}});
  metrics.Set("hopwise_discovery_warnings", static_cast<double>(source.found->warnings.size()),
              {{"source", name}});
  TellWarnings(name, source, effects);
  const control::HyperNodePlan plan = control::PlanHyperNodes(name, *source.found, Existing());
  if (plan.goes > 0 && !StateOf(source).reason.empty()) {
    return;  // nothing is deleted on the word of one who does not answer any more
  }
  const control::Hold::Verdict verdict = source.hold.Judge(plan, now, source.settings.confirm);
  metrics.Set("hopwise_discovery_held", verdict.held ? 1 : 0, {{"source", name}});
  source.held_until = verdict.until;
  if (verdict.held) {
    // Believed is what is said again, not what was said once.
    effects.ports_refused = effects.ports_refused || (name == control::kUfmSource && ports_fresh);
    Say(name, source, true, "DiscoveryHeld", verdict.why, effects);
    return;
  }
  source.told.erase("DiscoveryHeld");
  if (plan.writes.empty()) {
    source.repeats = 0;
    source.wanted.clear();
    return;
  }
  std::string wanted = WantedBy(plan);
  source.repeats = wanted == source.wanted ? source.repeats + 1 : 0;
  source.wanted = std::move(wanted);
  source.batch = ++last_batch;
  source.writes = plan.writes.size();
  source.began = now;
  effects.batches.push_back({source.batch, StepsOf(plan)});
  Log(LogLevel::kInfo, "hypernodes_planned",
      {{"source", name},
       {"domains", std::to_string(source.found->domains.size())},
       {"writes", std::to_string(plan.writes.size())}});
}

// Not while HyperNodes are being written: each would be counted while it is half made.
void TopologyController::Impl::PlanStatus(Time now, ControllerEffects& effects) {
  if (status_batch != 0 || writing() || (status_retry.set() && now < status_retry)) {
    return;
  }
  status_retry = Time();
  const std::vector<const api::HyperNode*> existing = Existing();
  std::vector<control::SourceState> states;
  for (const auto& [name, source] : sources) {
    if (source.active && !source.state.source.empty()) {
      states.push_back(StateOf(source));
    }
  }
  std::vector<ObjectWrite> writes;
  double broken = 0;
  for (const topology::Fault& fault : forest.Snapshot()->faults) {
    broken += fault.isolates ? 1 : 0;
  }
  metrics.Set("hopwise_hypernodes_broken", broken);
  for (const control::HyperNodeStatus& status :
       control::PlanStatuses(*forest.Snapshot(), existing, states, now)) {
    writes.push_back(StatusWrite(status));
    if (status.ready.status != "True" || status.ready.reason != control::kReady) {
      effects.events.push_back(ConditionEvent(status));
    }
  }
  if (!writes.empty()) {
    status_batch = ++last_batch;
    effects.batches.push_back({status_batch, {}});
    effects.batches.back().steps.push_back(std::move(writes));
  }
}

ControllerEffects TopologyController::Step(Time now) {
  ControllerEffects effects;
  const Time wake = next_wake();
  if (!wake.set() || now < wake) {
    return effects;
  }
  impl_->changed = false;
  impl_->ReadLabels();
  impl_->ReadPorts(effects);
  impl_->nodes_changed = false;
  for (auto& [name, source] : impl_->sources) {
    impl_->PlanSource(name, source, now, effects);
  }
  impl_->PlanStatus(now, effects);
  return effects;
}

Time TopologyController::next_wake() const {
  const Impl& impl = *impl_;
  if (!impl.synced || !impl.leading) {
    return {};
  }
  Time next = impl.changed
                  ? std::min(impl.first_change + kMostPlanQuiet, impl.last_change + kPlanQuiet)
                  : Time();
  const auto consider = [&](Time when) {
    if (when.set() && (!next.set() || when < next)) {
      next = when;
    }
  };
  for (const auto& [name, source] : impl.sources) {
    if (source.batch == 0) {
      consider(source.retry);
      consider(source.held_until);
    }
  }
  if (impl.status_batch == 0 && !impl.writing()) {
    consider(impl.status_retry);
  }
  return next;
}

}  // namespace hopwise::daemon
