#include "topology/forest.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "topology/assign.h"
#include "topology/claims.h"
#include "topology/link.h"
#include "topology/match.h"
#include "topology/members.h"
#include "topology/nodes.h"
#include "topology/plant.h"

namespace hopwise::topology {
namespace {

// From so many changed HyperNodes with patterns or label selectors on, one indexed pass of every
// node over all selectors is cheaper than a pass over the nodes for each of them.
constexpr size_t kBulkScans = 16;

struct HyperNodeRecord {
  std::string name, tier_name, fabric;
  int32_t tier = 0;
  Time creation;
  MemberSpec members;
  std::vector<Fault> pattern_faults;
  bool is_live = false;
  bool is_dirty = false;  // in Impl::dirty_hypernodes
};

}  // namespace

std::string_view ReasonOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kCycle:
      return "Cycle";
    case FaultKind::kTwoParents:
      return "TwoParents";
    case FaultKind::kOverlap:
      return "Overlap";
    case FaultKind::kTierOrder:
      return "TierOrder";
    case FaultKind::kMissingChild:
      return "MissingChild";
    case FaultKind::kBadPattern:
      return "BadPattern";
    case FaultKind::kBadSelector:
      return "BadSelector";
    case FaultKind::kEmpty:
      return "Empty";
    case FaultKind::kNameClash:
      return "NameClash";
    case FaultKind::kTierNameClash:
      break;
  }
  return "TierNameClash";
}

struct Forest::Impl {
  NodeTable nodes;
  std::vector<HyperNodeRecord> hypernodes;  // by slot
  std::vector<uint32_t> free_slots;         // held by no node, so they may be taken
  std::map<std::string, uint32_t, std::less<>> by_name;
  Matcher matcher;
  ClaimTable claims;

  std::vector<NodeId> dirty_nodes;         // to be matched again, perhaps repeated
  std::vector<char> is_dirty_node;         // by node id
  std::vector<uint32_t> dirty_hypernodes;  // slots whose members changed or which are gone
  bool links_changed = true;
  bool picture_changed = true;
  Links links;
  std::vector<uint32_t> object_of_slot;
  std::vector<uint32_t> slot_of_object;
  std::shared_ptr<const Topology> current;

  uint32_t TakeSlot(const std::string& name);
  void SetMembers(uint32_t slot, MemberSpec members);
  bool IsDirty(NodeId id) const {
    return id.index() < is_dirty_node.size() && is_dirty_node[id.index()] != 0;
  }
  void MarkNode(NodeId id);
  void MarkHyperNode(uint32_t slot);

  void MatchAgain();
  void ReleaseClaims();
  void MatchNodes();
  void MatchHyperNodes();
  void SelectNodes(uint32_t slot, std::span<const NodeId> clean,
                   std::vector<std::pair<NodeId, uint32_t>>& found);
  void AddClaims(std::vector<std::pair<NodeId, uint32_t>>& found);

  void Relink();
  Topology Draw();
  void ReportHyperNodes(const Assignment& assignment, Topology& picture);
};

// --- Changes -------------------------------------------------------------------------------------

uint32_t Forest::Impl::TakeSlot(const std::string& name) {
  if (free_slots.empty()) {
    free_slots.push_back(static_cast<uint32_t>(hypernodes.size()));
    hypernodes.emplace_back();
  }
  const uint32_t slot = free_slots.back();
  free_slots.pop_back();
  hypernodes[slot].name = name;
  hypernodes[slot].is_live = true;
  by_name.emplace(name, slot);
  return slot;
}

void Forest::Impl::SetMembers(uint32_t slot, MemberSpec members) {
  HyperNodeRecord& record = hypernodes[slot];
  matcher.Remove(slot, record.members);
  record.members = std::move(members);
  record.pattern_faults.clear();
  for (const Matcher::PatternError& error : matcher.Add(slot, record.members)) {
    record.pattern_faults.push_back(
        {record.name, FaultKind::kBadPattern, true,
         fmt::format("HyperNode {} is out: its pattern '{}' is no regular expression: {}.",
                     record.name, error.pattern, error.message)});
  }
  MarkHyperNode(slot);
}

void Forest::Impl::MarkNode(NodeId id) {
  if (IsDirty(id)) return;
  if (is_dirty_node.size() <= id.index()) is_dirty_node.resize(id.index() + 1);
  is_dirty_node[id.index()] = 1;
  dirty_nodes.push_back(id);
}

void Forest::Impl::MarkHyperNode(uint32_t slot) {
  links_changed = true;
  picture_changed = true;
  if (std::exchange(hypernodes[slot].is_dirty, true)) return;
  dirty_hypernodes.push_back(slot);
}

// --- Matching ------------------------------------------------------------------------------------

void Forest::Impl::MatchAgain() {
  if (!dirty_hypernodes.empty()) {
    ReleaseClaims();
    MatchHyperNodes();
  }
  MatchNodes();
}

// Takes the changed HyperNodes out of all nodes' sets, in one pass, and frees the slots of those
// that are gone.
void Forest::Impl::ReleaseClaims() {
  const bool any_held = std::any_of(dirty_hypernodes.begin(), dirty_hypernodes.end(),
                                    [&](uint32_t slot) { return claims.NodeCount(slot) > 0; });
  if (any_held) {
    std::vector<uint32_t> kept;
    for (const NodeId node : nodes.Sorted()) {
      const std::span<const uint32_t> slots = claims.Of(node);
      kept.clear();
      std::copy_if(slots.begin(), slots.end(), std::back_inserter(kept),
                   [&](uint32_t slot) { return !hypernodes[slot].is_dirty; });
      if (kept.size() < slots.size()) claims.Set(node, kept);
    }
  }
  std::erase_if(dirty_hypernodes, [&](uint32_t slot) {
    if (hypernodes[slot].is_live) return false;
    hypernodes[slot] = {};
    free_slots.push_back(slot);
    return true;
  });
}

void Forest::Impl::MatchHyperNodes() {
  const auto scans =
      std::count_if(dirty_hypernodes.begin(), dirty_hypernodes.end(),
                    [&](uint32_t slot) { return hypernodes[slot].members.needs_scan(); });
  if (static_cast<size_t>(scans) >= kBulkScans) {
    for (const NodeId node : nodes.Sorted()) MarkNode(node);
  }
  std::vector<NodeId> clean;  // the others are matched anyway
  const std::span<const NodeId> all = nodes.Sorted();
  std::copy_if(all.begin(), all.end(), std::back_inserter(clean),
               [&](NodeId node) { return !IsDirty(node); });
  std::vector<std::pair<NodeId, uint32_t>> found;
  for (const uint32_t slot : dirty_hypernodes) {
    hypernodes[slot].is_dirty = false;
    if (!clean.empty()) SelectNodes(slot, clean, found);
  }
  dirty_hypernodes.clear();
  AddClaims(found);
}

// Appends those of the clean nodes that the HyperNode selects, some perhaps twice.
void Forest::Impl::SelectNodes(uint32_t slot, std::span<const NodeId> clean,
                               std::vector<std::pair<NodeId, uint32_t>>& found) {
  const MemberSpec& members = hypernodes[slot].members;
  for (const std::string& name : members.node_names) {
    const NodeId node = nodes.Find(name);
    if (node.valid() && !IsDirty(node)) found.emplace_back(node, slot);
  }
  if (!members.needs_scan()) return;
  for (const NodeId node : clean) {
    if (matcher.Scans(members, nodes.NameOf(node), nodes.LabelsOf(node))) {
      found.emplace_back(node, slot);
    }
  }
}

void Forest::Impl::AddClaims(std::vector<std::pair<NodeId, uint32_t>>& found) {
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < found.size();) {
    const NodeId node = found[i].first;
    const std::span<const uint32_t> held = claims.Of(node);
    slots.assign(held.begin(), held.end());
    for (; i < found.size() && found[i].first == node; ++i) slots.push_back(found[i].second);
    std::sort(slots.begin(), slots.end());
    claims.Set(node, slots);
  }
}

void Forest::Impl::MatchNodes() {
  matcher.Prepare(dirty_nodes.size());
  std::vector<uint32_t> slots;
  for (const NodeId node : dirty_nodes) {
    is_dirty_node[node.index()] = 0;
    slots.clear();
    if (nodes.IsLive(node)) matcher.Match(nodes.NameOf(node), nodes.LabelsOf(node), slots);
    if (claims.Set(node, slots)) picture_changed = true;
  }
  dirty_nodes.clear();
}

// --- The picture ---------------------------------------------------------------------------------

void Forest::Impl::Relink() {
  std::vector<LinkInput> inputs;
  slot_of_object.clear();
  object_of_slot.assign(hypernodes.size(), kNoObject);
  for (const auto& [name, slot] : by_name) {
    const HyperNodeRecord& record = hypernodes[slot];
    object_of_slot[slot] = static_cast<uint32_t>(slot_of_object.size());
    slot_of_object.push_back(slot);
    inputs.push_back({name, record.tier_name, record.fabric, record.tier, record.creation,
                      &record.members.children, !record.pattern_faults.empty()});
  }
  links = LinkHyperNodes(inputs);
  for (const auto& [name, slot] : by_name) {
    for (const auto* faults :
         {&hypernodes[slot].members.faults, &hypernodes[slot].pattern_faults}) {
      links.faults.insert(links.faults.end(), faults->begin(), faults->end());
    }
  }
  links_changed = false;
}

Topology Forest::Impl::Draw() {
  const NodeView view = {nodes.Sorted(), nodes.names(), &claims, object_of_slot};
  const Assignment assignment = AssignNodes(links, view);
  const Skeleton sound = SoundSkeleton(links, assignment.out);
  Topology picture;
  picture.faults = links.faults;
  picture.faults.insert(picture.faults.end(), assignment.faults.begin(), assignment.faults.end());
  for (uint32_t fabric = 0; fabric < links.fabrics.size(); ++fabric) {
    picture.trees.push_back(PlantFabric(links, sound, assignment, fabric, view.nodes, nodes.ids()));
    WarnOfEmpty(picture.trees.back(), picture.faults);
    WarnOfTierNames(picture.trees.back(), picture.faults);
  }
  ReportHyperNodes(assignment, picture);
  std::sort(picture.faults.begin(), picture.faults.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.object, a.kind, a.message) < std::tie(b.object, b.kind, b.message);
  });
  return picture;
}

void Forest::Impl::ReportHyperNodes(const Assignment& assignment, Topology& picture) {
  for (uint32_t o = 0; o < links.objects.size(); ++o) {
    const LinkObject& object = links.objects[o];
    const int64_t held = claims.NodeCount(slot_of_object[o]);
    picture.hypernodes.push_back({object.name, held + object.child_count, assignment.out[o] == 0});
    if (!nodes.Find(object.name).valid()) continue;
    picture.faults.push_back(
        {object.name, FaultKind::kNameClash, false,
         fmt::format("HyperNode {} has the name of a node; members are told apart by their type.",
                     object.name)});
  }
}

// --- Forest --------------------------------------------------------------------------------------

Forest::Forest() : impl_(std::make_unique<Impl>()) {}
Forest::~Forest() = default;
Forest::Forest(Forest&&) noexcept = default;
Forest& Forest::operator=(Forest&&) noexcept = default;

void Forest::UpsertHyperNode(const api::HyperNode& hypernode) {
  const auto it = impl_->by_name.find(hypernode.meta.name);
  const bool is_new = it == impl_->by_name.end();
  const uint32_t slot = is_new ? impl_->TakeSlot(hypernode.meta.name) : it->second;
  HyperNodeRecord& record = impl_->hypernodes[slot];
  std::string fabric = FabricOf(hypernode.meta);
  if (is_new || record.tier != hypernode.tier || record.tier_name != hypernode.tier_name ||
      record.creation != hypernode.meta.creation || record.fabric != fabric) {
    record.tier = hypernode.tier;
    record.tier_name = hypernode.tier_name;
    record.creation = hypernode.meta.creation;
    record.fabric = std::move(fabric);
    impl_->links_changed = true;
    impl_->picture_changed = true;
  }
  MemberSpec members = ReadMembers(hypernode);
  if (!(record.members == members)) impl_->SetMembers(slot, std::move(members));
}

void Forest::RemoveHyperNode(std::string_view name) {
  const auto it = impl_->by_name.find(name);
  if (it == impl_->by_name.end()) return;
  const uint32_t slot = it->second;
  impl_->by_name.erase(it);
  impl_->SetMembers(slot, {});
  impl_->hypernodes[slot].is_live = false;
}

void Forest::UpsertNode(NodeId id, std::string_view name, const api::StringMap& labels) {
  switch (impl_->nodes.Upsert(id, name, labels)) {
    case NodeTable::Change::kNone:
      return;
    case NodeTable::Change::kIdentity:
      impl_->picture_changed = true;
      break;
    case NodeTable::Change::kLabels:
      break;
  }
  impl_->MarkNode(id);
}

void Forest::RemoveNode(NodeId id) {
  if (!impl_->nodes.Remove(id)) return;
  impl_->picture_changed = true;
  impl_->MarkNode(id);
}

std::shared_ptr<const Topology> Forest::Snapshot() {
  impl_->MatchAgain();
  if (!impl_->picture_changed) return impl_->current;
  if (impl_->links_changed) impl_->Relink();
  impl_->picture_changed = false;
  Topology picture = impl_->Draw();
  const Topology* current = impl_->current.get();
  if (current != nullptr && current->trees == picture.trees && current->faults == picture.faults &&
      current->hypernodes == picture.hypernodes) {
    return impl_->current;
  }
  picture.version = current == nullptr ? 1 : current->version + 1;
  impl_->current = std::make_shared<const Topology>(std::move(picture));
  return impl_->current;
}

Tree Forest::LabelTree(const std::vector<std::string>& keys) const {
  return PlantLabels(impl_->nodes.Sorted(), impl_->nodes, keys);
}

}  // namespace hopwise::topology
