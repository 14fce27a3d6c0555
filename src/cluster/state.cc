#include "cluster/state.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "cluster/gangs.h"
#include "cluster/state_impl.h"

namespace hopwise::cluster {
namespace {

bool SameTaints(const std::vector<api::Taint>& a, const std::vector<api::Taint>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.key == y.key && x.value == y.value && x.effect == y.effect;
  });
}

// The system's own classes need no object.
const std::map<std::string, PriorityValue, std::less<>>& BuiltInClasses() {
  static const std::map<std::string, PriorityValue, std::less<>> kClasses = {
      {"system-cluster-critical", {2'000'000'000, false}},
      {"system-node-critical", {2'000'001'000, false}}};
  return kClasses;
}

// Of several global defaults the lowest counts, as in Kubernetes.
int32_t DefaultPriority(const std::map<std::string, PriorityValue, std::less<>>& classes) {
  std::optional<int32_t> lowest;
  for (const auto& [name, priority] : classes) {
    if (priority.global_default) lowest = std::min(lowest.value_or(priority.value), priority.value);
  }
  return lowest.value_or(0);
}

}  // namespace

State::State(StateOptions options)
    : options_(std::move(options)),
      terms_(std::make_unique<Terms>(*this, strings_)),
      fits_(std::make_unique<FitCache>(*this)),
      queues_(options_.default_queue),
      impl_(std::make_unique<Impl>(nodes_, pods_)) {
  impl_->priority_classes = BuiltInClasses();
  impl_->reported_topology = topology().version;
}

State::~State() = default;

void State::Apply(const api::Object& object) {
  if (const auto* pod = std::get_if<api::Pod>(&object)) {
    ApplyPod(*pod);
  } else if (const auto* node = std::get_if<api::Node>(&object)) {
    ApplyNode(*node);
  } else if (const auto* group = std::get_if<api::PodGroup>(&object)) {
    GangBuilder(*this).ApplyPodGroup(*group);
  } else if (const auto* queue = std::get_if<api::Queue>(&object)) {
    QueueChanged(queues_.Apply(*queue, columns_));
  } else if (const auto* hypernode = std::get_if<api::HyperNode>(&object)) {
    impl_->forest.UpsertHyperNode(*hypernode);
    impl_->forest_stale = true;
  } else if (const auto* priority = std::get_if<api::PriorityClass>(&object)) {
    SetPriorityClass(priority->meta.name, PriorityValue{priority->value, priority->global_default});
  } else if (const auto* ns = std::get_if<api::Namespace>(&object)) {
    terms_->SetNamespace(ns->meta.name, Pack(ns->meta.labels));
  }
}

// --- nodes

NodeId State::FindNodeSlot(std::string_view name) const {
  const auto found = impl_->node_index.find(name);
  return found == impl_->node_index.end() ? NodeId() : *found;
}

NodeId State::FindNode(std::string_view name) const {
  const NodeId id = FindNodeSlot(name);
  return id.valid() && node(id).alive ? id : NodeId();
}

NodeId State::NodeSlot(std::string_view name) {
  const NodeId known = FindNodeSlot(name);
  if (known.valid()) return known;
  NodeId id;
  if (impl_->free_nodes.empty()) {
    id = NodeId(nodes_.size());
    nodes_.emplace_back();
    pods_on_.emplace_back();
    columns_.Resize(nodes_.size());
  } else {
    id = impl_->free_nodes.back();
    impl_->free_nodes.pop_back();
  }
  nodes_[id.index()].name = std::string(name);
  impl_->node_index.insert(id);
  return id;
}

void State::FreeNodeSlotIfUnused(NodeId slot) {
  if (!slot.valid()) return;
  NodeRecord& record = nodes_[slot.index()];
  if (record.name.empty() || record.alive || !pods_on_[slot.index()].empty()) return;
  impl_->node_index.erase(slot);
  record = NodeRecord();
  std::vector<PodId>().swap(pods_on_[slot.index()]);
  impl_->free_nodes.push_back(slot);
}

void State::ApplyNode(const api::Node& node) {
  const NodeId id = NodeSlot(node.meta.name);
  const bool born = !nodes_[id.index()].alive;
  if (born) Revive(id);
  bool labels_changed = born;
  const bool traits_changed = SetTraits(nodes_[id.index()], node, &labels_changed) || born;
  if (labels_changed) {
    impl_->forest.UpsertNode(id, node.meta.name, node.meta.labels);
    impl_->forest_stale = true;
    ++impl_->labels_epoch;
    terms_->NodeChanged(id, &nodes_[id.index()].labels);
  }
  if (born) {
    for (const PodId pod : pods_on_[id.index()]) terms_->Enter(pods_[pod.index()]);
  }
  if (traits_changed) {
    columns_.TraitsChanged(id);
    impl_->roomier.Mark(id);
  }
  SetRoom(id, node.allocatable);
}

// The pods that are bound to the node count on it from now on.
void State::Revive(NodeId id) {
  nodes_[id.index()].alive = true;
  for (const PodId pod : pods_on_[id.index()]) {
    columns_.Use(id, RequestOf(pod));
    PodRecord& record = pods_[pod.index()];
    record.node = id;
    if (record.gang.valid()) impl_->changed_gangs.Mark(record.gang);
  }
}

// Whether anything a predicate may look at changed.
bool State::SetTraits(NodeRecord& record, const api::Node& node, bool* labels_changed) {
  std::vector<api::Taint> taints;
  for (const api::Taint& taint : node.taints) {
    if (taint.effect == "NoSchedule" || taint.effect == "NoExecute") taints.push_back(taint);
  }
  PackedLabels labels = Pack(node.meta.labels);
  const bool ready = api::IsReady(node);
  const bool relabelled = labels != record.labels;
  const bool changed = relabelled || ready != record.ready ||
                       node.unschedulable != record.unschedulable ||
                       !SameTaints(taints, record.taints);
  *labels_changed = *labels_changed || relabelled;
  std::swap(record.labels, labels);
  Release(labels);
  if (!changed) return false;
  record.taints = std::move(taints);
  record.unschedulable = node.unschedulable;
  record.ready = ready;
  return true;
}

void State::SetRoom(NodeId id, const api::ResourceList& amounts) {
  bool differs = false, more = false;
  for (const auto& [name, amount] : amounts) {
    const bool unknown = !columns_.FindResource(name).valid();
    if (unknown && amount > 0) differs = more = true;
  }
  for (size_t r = 0; r < columns_.resource_count(); ++r) {
    const ResourceId resource(r);
    const int64_t now = columns_.allocatable(resource)[id.index()];
    const int64_t next =
        std::max<int64_t>(api::AmountOf(amounts, columns_.ResourceName(resource)), 0);
    differs = differs || next != now;
    more = more || next > now;
  }
  if (!differs) return;
  columns_.SetAllocatable(id, amounts);
  queues_.Cover(columns_.resource_count());
  if (more) impl_->roomier.Mark(id);
}

void State::SetAvoided(NodeId node, ClassId resource_class, bool avoided) {
  const bool changed = avoided ? avoided_.emplace(node, resource_class).second
                               : avoided_.erase({node, resource_class}) > 0;
  if (!changed) return;
  columns_.TraitsChanged(node);
  if (!avoided) impl_->roomier.Mark(node);
}

void State::RemoveNode(std::string_view name) {
  const NodeId id = FindNode(name);
  if (!id.valid()) return;
  for (const PodId pod : pods_on_[id.index()]) {
    columns_.Release(id, RequestOf(pod));
    PodRecord& record = pods_[pod.index()];
    terms_->Leave(record);
    record.node = NodeId();
    if (record.gang.valid()) impl_->changed_gangs.Mark(record.gang);
  }
  columns_.SetAllocatable(id, {});
  columns_.TraitsChanged(id);
  NodeRecord& record = nodes_[id.index()];
  terms_->NodeChanged(id, nullptr);
  record.alive = false;
  record.unschedulable = false;
  record.ready = true;
  Release(std::exchange(record.labels, {}));
  record.taints = {};
  impl_->forest.RemoveNode(id);
  impl_->forest_stale = true;
  ++impl_->labels_epoch;
  FreeNodeSlotIfUnused(id);
}

// --- PodGroups, queues, HyperNodes, PriorityClasses

void State::RemovePodGroup(std::string_view ns, std::string_view name, bool scheduler_plugins) {
  GangBuilder(*this).RemovePodGroup(ns, name, scheduler_plugins);
}

GangId State::FindGang(std::string_view ns, std::string_view name) const {
  for (const GangKind kind : {GangKind::kVolcano, GangKind::kSchedulerPlugins, GangKind::kLabels}) {
    const auto found = impl_->gang_index.find(GangBuilder::KeyOf(kind, ns, name));
    if (found != impl_->gang_index.end()) return found->second;
  }
  return {};
}

const api::PodGroup* State::PodGroupOf(GangId id) const {
  const std::unique_ptr<GangDetails>& details = impl_->details[id.index()];
  return details != nullptr ? details->object.get() : nullptr;
}

void State::RemoveQueue(std::string_view name) { QueueChanged(queues_.Remove(name)); }

void State::QueueChanged(QueueId id) {
  if (id.valid()) GangBuilder(*this).QueueChanged(id);
}

void State::RemoveHyperNode(std::string_view name) {
  impl_->forest.RemoveHyperNode(name);
  impl_->forest_stale = true;
}

void State::SetPriorityClass(std::string_view name, std::optional<PriorityValue> value) {
  auto& classes = impl_->priority_classes;
  if (!value) {
    const auto built_in = BuiltInClasses().find(name);
    if (built_in != BuiltInClasses().end()) value = built_in->second;
  }
  const auto found = classes.find(name);
  if (!value) {
    if (found == classes.end()) return;
    classes.erase(found);
  } else if (found == classes.end()) {
    classes.emplace(name, *value);
  } else if (found->second == *value) {
    return;
  } else {
    found->second = *value;
  }
  impl_->default_priority = DefaultPriority(classes);
  GangBuilder(*this).PrioritiesChanged();
}

void State::RemovePriorityClass(std::string_view name) { SetPriorityClass(name, std::nullopt); }

void State::RemoveNamespace(std::string_view name) { terms_->RemoveNamespace(name); }

Changes State::TakeChanges() {
  Changes changes;
  changes.roomier = impl_->roomier.Take();
  std::erase_if(changes.roomier, [this](NodeId id) { return !node(id).alive; });
  changes.gangs = impl_->changed_gangs.Take();
  changes.queues = queues_.TakeChanged();
  const uint64_t version = topology().version;
  changes.topology = std::exchange(impl_->reported_topology, version) != version;
  return changes;
}

PackedLabels State::Pack(const api::StringMap& labels) {
  PackedLabels packed;
  packed.reserve(labels.size());
  for (const auto& [key, value] : labels) {
    packed.emplace_back(strings_.Intern(key), strings_.Intern(value));
  }
  std::sort(packed.begin(), packed.end());
  return packed;
}

void State::Release(const PackedLabels& labels) {
  for (const auto& [key, value] : labels) {
    strings_.Release(key);
    strings_.Release(value);
  }
}

}  // namespace hopwise::cluster
