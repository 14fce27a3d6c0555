// Pods of the state: from object to record, and what follows when a record changes.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"
#include "cluster/gangs.h"
#include "cluster/pod_facts.h"
#include "cluster/state.h"
#include "cluster/state_impl.h"

namespace hopwise::cluster {
namespace {

// More of anything than a node has; so that sums over all pods of a node stay within int64.
constexpr int64_t kMostAmount = int64_t{1} << 53;

// Manifests have no uids: only two different ones make two pods.
bool SameUid(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b;
}

api::ResourceList Bounded(api::ResourceList list) {
  for (auto& [name, amount] : list) amount = std::min(amount, kMostAmount);
  return list;
}

// Such a pod fits no node, though nodes that claim as much are counted no higher either.
std::string BeyondCounting(const api::ResourceList& request) {
  for (const auto& [name, amount] : request) {
    if (amount > kMostAmount) {
      return "asks for " + FormatQuantity(name, amount) + " of " + name +
             ", more than is counted of anything";
    }
  }
  return "";
}

// State of a pod without a node.
PodState WaitingState(const PodRecord& pod, bool gated) {
  if (!pod.ours || pod.terminating) return PodState::kForeign;
  return gated ? PodState::kGated : PodState::kPending;
}

bool IsUnplaced(PodState state) {
  return state == PodState::kPending || state == PodState::kGated || state == PodState::kAssumed;
}

PodState StateOf(const api::Pod& pod, const PodRecord& next, const PodRecord& now) {
  if (pod.phase == api::PodPhase::kSucceeded || pod.phase == api::PodPhase::kFailed) {
    return PodState::kFinished;
  }
  if (!pod.node_name.empty()) return PodState::kBound;
  // The object does not show our decision yet.
  if (now.state == PodState::kAssumed) return PodState::kAssumed;
  return WaitingState(next, !pod.scheduling_gates.empty());
}

}  // namespace

PodId State::FindPod(std::string_view ns, std::string_view name) const {
  const auto found = impl_->pod_index.find(PodKey{ns, name});
  return found == impl_->pod_index.end() ? PodId() : *found;
}

PodId State::NewPod(const api::Pod& pod) {
  PodId id;
  if (impl_->free_pods.empty()) {
    id = PodId(pods_.size());
    pods_.emplace_back();
  } else {
    id = impl_->free_pods.back();
    impl_->free_pods.pop_back();
  }
  PodRecord& record = pods_[id.index()];
  record.alive = true;
  record.ns = pod.meta.ns;
  record.name = pod.meta.name;
  record.sequence = impl_->next_sequence++;
  impl_->pod_index.insert(id);
  return id;
}

void State::ApplyPod(const api::Pod& pod) {
  PodId id = FindPod(pod.meta.ns, pod.meta.name);
  if (id.valid() && !SameUid(pods_[id.index()].uid, pod.meta.uid)) {
    ErasePod(id);
    id = PodId();
  }
  if (!id.valid()) id = NewPod(pod);
  const PodRecord& now = pods_[id.index()];
  PodFacts facts = ReadPodFacts(pod);
  PodRecord next = ReadPod(pod, now);
  GangBuilder gangs(*this);
  next.declaration = gangs.Intern(facts.declaration);
  // Of use only while the pod may still be placed; most pods of a cluster are not.
  if (IsUnplaced(next.state)) {
    next.blocker = std::move(facts.blocker);
    if (next.blocker.empty()) next.blocker = BeyondCounting(pod.request);
  }
  next.has_ports = !pod.host_ports.empty();
  const bool placing = next.ours && IsUnplaced(next.state);
  if (placing || HoldsRoom(next.state)) {
    next.terms = terms_->InternId(next.ns, pod.terms, placing);
  }
  if (next.ours || next.has_ports) {
    next.predicates = ReadPredicates(pod, next, std::move(facts.extra));
    next.terms_epoch = terms_->epoch();
  }
  const bool same_shape =
      next.resource_class == now.resource_class && next.predicates == now.predicates;
  next.shape = same_shape ? now.shape : ShapeId();
  if (next.state == PodState::kBound) next.host = NodeSlot(pod.node_name);
  if (next.state == PodState::kAssumed) next.host = now.host;
  const GangId target = gangs.Target(facts, next, now.gang);
  const PackedLabels old_labels = now.labels;
  const uint32_t old_terms = now.terms;
  Update(id, std::move(next), target);
  Release(old_labels);
  terms_->Release(old_terms);
}

// All that follows from the object itself; seat, host, shape and what annotations ask are left out.
PodRecord State::ReadPod(const api::Pod& pod, const PodRecord& now) {
  PodRecord next;
  next.alive = true;
  next.ns = pod.meta.ns;
  next.name = pod.meta.name;
  next.uid = pod.meta.uid.empty() ? now.uid : pod.meta.uid;
  next.sequence = now.sequence;
  next.creation = pod.meta.creation;
  next.best_effort = pod.best_effort;
  next.ours = std::find(options_.scheduler_names.begin(), options_.scheduler_names.end(),
                        pod.scheduler_name) != options_.scheduler_names.end();
  next.terminating = pod.meta.deletion.set();
  next.owned = api::ControllerOf(pod.meta) != nullptr;
  next.succeeded = pod.phase == api::PodPhase::kSucceeded;
  next.running = pod.phase == api::PodPhase::kRunning;
  next.state = StateOf(pod, next, now);
  next.index = ReadIndex(pod.meta);
  next.start = pod.start.set() ? pod.start : pod.meta.creation;
  next.evictable = next.ours && MayBeEvicted(pod);
  next.yields = pod.preemption_policy == "Never";
  next.labels = Pack(pod.meta.labels);
  if (const std::string* role = ReadRole(pod.meta)) next.role = strings_.Intern(*role);
  if (!pod.priority_class.empty()) next.priority_class = strings_.Intern(pod.priority_class);
  next.has_priority = pod.priority.has_value();
  next.priority = pod.priority.value_or(0);
  next.priority = GangBuilder(*this).PriorityOf(next);
  next.resource_class = fits_->InternClass(columns_.MakeRequest(Bounded(pod.request)));
  return next;
}

// Of a pod that is to be placed: what it requires of the pods around it, and which terms it
// matches.
TermSet State::TermsOf(const PodRecord& pod) const {
  if (!pod.ours || !IsUnplaced(pod.state)) return {};
  TermSet set = terms_->Get(pod.terms);
  set.matches = terms_->MatchesOf(pod);
  return set;
}

PredicateId State::ReadPredicates(const api::Pod& pod, const PodRecord& next,
                                  std::vector<std::vector<api::Requirement>> extra) {
  PredicateSet set;
  for (const auto& [key, value] : pod.node_selector) {
    set.selector.push_back({key, api::Operator::kIn, {value}});
  }
  set.has_affinity = pod.required_node_affinity.has_value();
  if (set.has_affinity) set.affinity = *pod.required_node_affinity;
  set.tolerations = pod.tolerations;
  std::sort(set.tolerations.begin(), set.tolerations.end(), [](const auto& a, const auto& b) {
    return std::tie(a.key, a.value, a.effect, a.exists) <
           std::tie(b.key, b.value, b.effect, b.exists);
  });
  set.ports = pod.host_ports;
  std::sort(set.ports.begin(), set.ports.end(), [](const auto& a, const auto& b) {
    return std::tie(a.port, a.protocol, a.ip) < std::tie(b.port, b.protocol, b.ip);
  });
  set.extra = std::move(extra);
  set.terms = TermsOf(next);
  return fits_->InternPredicates(set);
}

ShapeId State::ShapeOf(PodId id) {
  PodRecord& pod = pods_[id.index()];
  HOPWISE_CHECK(pod.alive);
  if (pod.terms_epoch != terms_->epoch() && pod.predicates.valid()) {
    pod.terms_epoch = terms_->epoch();
    PredicateSet set = fits_->Predicates(pod.predicates);
    set.terms = TermsOf(pod);
    const PredicateId next = fits_->InternPredicates(set);
    if (next != pod.predicates) pod.shape = ShapeId();
    pod.predicates = next;
  }
  if (!pod.shape.valid()) {
    if (!pod.predicates.valid()) pod.predicates = fits_->InternPredicates({});
    pod.shape = fits_->InternShape(pod.resource_class, pod.predicates);
  }
  return pod.shape;
}

std::vector<api::HostPort> State::PortsOf(PodId id) {
  return fits_->ShapePredicates(ShapeOf(id)).ports;
}

void State::EnterNode(PodId id) {
  PodRecord& pod = pods_[id.index()];
  const NodeId host = pod.host;
  NodeRecord& node = nodes_[host.index()];
  pods_on_[host.index()].push_back(id);
  ++node.pods;
  if (pod.has_ports) {
    for (api::HostPort& port : PortsOf(id)) node.ports.emplace_back(id, std::move(port));
  }
  pod.node = node.alive ? host : NodeId();
  if (!node.alive) return;
  columns_.Use(host, RequestOf(id));
  terms_->Enter(pod);
  if (pod.has_ports) columns_.TraitsChanged(host);
}

void State::LeaveNode(PodId id) {
  PodRecord& pod = pods_[id.index()];
  const NodeId host = pod.host;
  NodeRecord& node = nodes_[host.index()];
  std::vector<PodId>& pods = pods_on_[host.index()];
  const auto at = std::find(pods.begin(), pods.end(), id);
  HOPWISE_CHECK(at != pods.end());
  *at = pods.back();
  pods.pop_back();
  --node.pods;
  if (pod.has_ports) {
    std::erase_if(node.ports, [id](const auto& taken) { return taken.first == id; });
  }
  if (pod.node.valid()) terms_->Leave(pod);
  pod.node = NodeId();
  if (!node.alive) return;
  columns_.Release(host, RequestOf(id));
  if (pod.has_ports) columns_.TraitsChanged(host);
  impl_->roomier.Mark(host);
}

// Replaces the record and moves what hangs on it: room on the node, share of the queue, place in
// the gang. Each of the three is touched only when it changes, so that a mere status update costs
// nothing.
void State::Update(PodId id, PodRecord next, GangId target) {
  PodRecord& now = pods_[id.index()];
  const bool held = HoldsRoom(now.state);
  const bool holds = HoldsRoom(next.state);
  const bool other_size = now.resource_class != next.resource_class;
  const bool other_ports =
      now.has_ports != next.has_ports || (now.has_ports && now.predicates != next.predicates);
  const bool moves = held != holds || now.host != next.host || other_size || other_ports;
  const NodeId old_host = now.host;
  const GangId old_gang = now.gang;
  GangBuilder gangs(*this);

  const bool counts_otherwise =
      !moves && holds && now.node.valid() &&
      (now.labels != next.labels || now.terminating != next.terminating || now.terms != next.terms);

  if (held && moves) LeaveNode(id);
  if (counts_otherwise) terms_->Leave(now);
  if (now.charged && (!holds || other_size || old_gang != target)) gangs.Discharge(id);
  next.charged = now.charged;
  next.node = now.node;
  if (old_gang == target && GangBuilder::SameSeat(now, next)) {
    gangs.Replace(id, std::move(next));
  } else {
    gangs.Leave(id);
    now = std::move(next);
    gangs.Join(id, target);
  }
  if (holds && moves) EnterNode(id);
  if (counts_otherwise) terms_->Enter(now);
  if (old_gang.valid() && old_gang != target) gangs.Refresh(old_gang);
  if (target.valid()) gangs.Refresh(target);
  if (holds && target.valid() && !now.charged) gangs.Charge(id);
  if (old_gang.valid()) gangs.FreeIfUnused(old_gang);
  if (old_host != now.host) FreeNodeSlotIfUnused(old_host);
  queues_.Cover(columns_.resource_count());
}

void State::ErasePod(PodId id) {
  PodRecord gone;
  gone.ns = pods_[id.index()].ns;
  gone.name = pods_[id.index()].name;
  impl_->pod_index.erase(id);
  const PackedLabels labels = pods_[id.index()].labels;
  const uint32_t terms = pods_[id.index()].terms;
  Update(id, std::move(gone), GangId());
  Release(labels);
  terms_->Release(terms);
  pods_[id.index()] = PodRecord();
  impl_->free_pods.push_back(id);
}

void State::RemovePod(std::string_view ns, std::string_view name) {
  const PodId id = FindPod(ns, name);
  if (id.valid()) ErasePod(id);
}

// The hot path of a decision: what Update does, for the one change that moves nothing but room and
// share. Seat, shape and validity of the member stay as they are.
void State::Assume(PodId id, NodeId node) {
  PodRecord& record = pods_[id.index()];
  HOPWISE_CHECK(record.alive && record.state == PodState::kPending);
  HOPWISE_CHECK(nodes_[node.index()].alive);
  record.state = PodState::kAssumed;
  record.host = node;
  EnterNode(id);
  if (record.gang.valid()) {
    GangBuilder(*this).Charge(id);
    impl_->changed_gangs.Mark(record.gang);
  }
}

void State::Lift(PodId id) {
  PodRecord& pod = pods_[id.index()];
  NodeRecord& node = nodes_[pod.host.index()];
  HOPWISE_CHECK(HoldsRoom(pod.state));
  if (pod.charged) queues_.Discharge(impl_->queue_slot[pod.gang.index()], RequestOf(id));
  if (pod.has_ports) {
    std::erase_if(node.ports, [id](const auto& taken) { return taken.first == id; });
  }
  if (!node.alive) return;
  columns_.Release(pod.host, RequestOf(id));
  if (pod.has_ports) columns_.TraitsChanged(pod.host);
}

void State::PutBack(PodId id) {
  const PodRecord& pod = pods_[id.index()];
  NodeRecord& node = nodes_[pod.host.index()];
  if (pod.charged) queues_.Charge(impl_->queue_slot[pod.gang.index()], RequestOf(id));
  if (pod.has_ports) {
    for (api::HostPort& port : PortsOf(id)) node.ports.emplace_back(id, std::move(port));
  }
  if (!node.alive) return;
  columns_.Use(pod.host, RequestOf(id));
  if (pod.has_ports) columns_.TraitsChanged(pod.host);
}

void State::Forget(PodId id) {
  HOPWISE_CHECK(pod(id).alive && pod(id).state == PodState::kAssumed);
  PodRecord next = pod(id);
  next.state = WaitingState(next, false);
  next.host = NodeId();
  const GangId gang = next.state == PodState::kPending ? pod(id).gang : GangId();
  Update(id, std::move(next), gang);
}

}  // namespace hopwise::cluster
