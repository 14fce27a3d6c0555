// The fields of Gang that follow from its members and its PodGroup together.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "cluster/gangs.h"

namespace hopwise::cluster {
namespace {

// One rule out of several sources. A hard rule never lapses: what cannot be held together is a
// conflict, and the gang waits until it is mended.
struct RuleMerge {
  TopologyRule rule;
  std::string conflict;
  std::vector<std::string> warnings;
};

// Whether `a` forbids more, or comes first among equals: so that which rule a conflict shows does
// not depend on who came first.
bool Stricter(const TopologyRule& a, const TopologyRule& b) {
  constexpr int32_t kNoTier = std::numeric_limits<int32_t>::max();
  const int32_t tier_a = a.highest_tier.value_or(kNoTier);
  const int32_t tier_b = b.highest_tier.value_or(kNoTier);
  return std::tie(b.mode, tier_a, a.highest_tier_name, a.fabric, a.label_keys) <
         std::tie(a.mode, tier_b, b.highest_tier_name, b.fabric, b.label_keys);
}

// The one rule that several declarations of a kind agree on.
void Agree(const TopologyRule& next, TopologyRule& all, RuleMerge& merge) {
  if (next.mode == TopologyRule::Mode::kNone || all == next) return;
  const bool first = all.mode == TopologyRule::Mode::kNone;
  if (!first) merge.conflict = "its pods ask for different topologies";
  if (first || Stricter(next, all)) all = next;
}

// `hypernodes` and `labels` may both be set; a gang is held by one of them.
void Choose(const TopologyRule& hypernodes, const TopologyRule& labels, RuleMerge& merge) {
  constexpr auto kNone = TopologyRule::Mode::kNone;
  constexpr auto kHard = TopologyRule::Mode::kHard;
  const bool both = hypernodes.mode != kNone && labels.mode != kNone;
  merge.rule = hypernodes;
  if (both && hypernodes.mode == kHard && labels.mode == kHard) {
    merge.conflict =
        "asks for a domain of HyperNodes and, by alibabacloud.com/topology-aware-constraint, for "
        "one of node labels, both hard";
  } else if (labels.mode != kNone && (!both || labels.mode == kHard)) {
    merge.rule = labels;
  }
  if (both && merge.conflict.empty()) {
    merge.warnings.emplace_back(
        "asks for a domain of HyperNodes and for one of node labels: " +
        std::string(labels.mode == kHard ? "the node labels count" : "the HyperNodes count"));
  }
}

void AppendUnique(std::vector<std::string>& all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

std::vector<std::string> SpecWarnings(const api::PodGroup& object) {
  std::vector<std::string> warnings;
  const auto two_limits = [](const std::optional<api::NetworkTopology>& topology) {
    return topology && topology->highest_tier && !topology->highest_tier_name.empty();
  };
  const std::string both =
      ": highestTierAllowed and highestTierName exclude each other; the number counts";
  if (two_limits(object.topology)) warnings.push_back("spec.networkTopology" + both);
  for (const api::SubGroupPolicy& policy : object.sub_groups) {
    const std::string where = "spec.subGroupPolicy " + policy.name;
    if (two_limits(policy.topology)) warnings.push_back(where + ".networkTopology" + both);
    if (policy.match_label_keys.empty()) {
      warnings.push_back(where + ": without matchLabelKeys it forms no sub-group");
    }
  }
  return warnings;
}

RuleMerge MergeRules(const GangDetails& details, const std::vector<Declaration>& declarations) {
  RuleMerge merge;
  TopologyRule from_pods, labels;
  for (const auto& [id, count] : details.declarations.items()) {
    Agree(declarations[id].rule, from_pods, merge);
    Agree(declarations[id].nodes, labels, merge);
  }
  TopologyRule own;
  if (details.object != nullptr) own = GangBuilder::RuleOf(*details.object);
  if (own.mode == TopologyRule::Mode::kNone && from_pods.mode != TopologyRule::Mode::kNone) {
    if (from_pods.fabric.empty()) from_pods.fabric = own.fabric;
    own = std::move(from_pods);
  }
  Choose(own, labels, merge);
  return merge;
}

}  // namespace

void GangBuilder::Refresh(GangId id) {
  Gang& gang = At(id);
  const GangDetails* details = DetailsOf(id);
  if (details == nullptr) {
    RefreshLone(gang);
  } else {
    RefreshGroup(gang, *details);
  }
  SettleQueue(id);
}

void GangBuilder::RefreshLone(Gang& gang) {
  if (gang.pods.empty()) return;
  const PodRecord& pod = state_.pod(gang.pods.front());
  const Declaration& declaration = DeclarationOf(pod);
  gang.uid = pod.uid;
  gang.priority = pod.priority;
  gang.creation = pod.creation;
  gang.queue_name = declaration.queue.empty() ? state_.options_.default_queue : declaration.queue;
  gang.ran = gang.ran || pod.state == PodState::kBound;
  RuleMerge merge;
  Choose(declaration.rule, declaration.nodes, merge);
  gang.rule = std::move(merge.rule);
  gang.warnings.clear();
  AppendUnique(gang.warnings, declaration.warnings);
  AppendUnique(gang.warnings, merge.warnings);
  gang.invalid.clear();
  gang.invalid_reason.clear();
  if (!declaration.waits_for.empty()) {
    gang.invalid = "waits for its PodGroup, which a controller makes: the pod declares " +
                   declaration.waits_for;
    gang.invalid_reason = "PodGroupNotFound";
  } else if (!merge.conflict.empty()) {
    gang.invalid = merge.conflict;
    gang.invalid_reason = "InvalidTopology";
  } else if (!IsValidMember(pod)) {
    gang.invalid = "has 0 of 1 members";
    gang.invalid_reason = "NotEnoughTasks";
  }
}

void GangBuilder::RefreshGroup(Gang& gang, const GangDetails& details) {
  const api::PodGroup* object = details.object.get();
  gang.creation = {};
  if (object != nullptr) gang.creation = object->meta.creation;
  if (!gang.creation.set() && !gang.pods.empty()) {
    gang.creation = state_.pod(gang.pods.front()).creation;
  }
  gang.warnings.clear();
  if (object != nullptr) AppendUnique(gang.warnings, SpecWarnings(*object));
  for (const auto& [id, count] : details.declarations.items()) {
    const std::vector<std::string>& warnings = impl_.declarations[id].warnings;
    if (!warnings.empty()) AppendUnique(gang.warnings, warnings);
  }
  gang.min_member = GroupMinimum(details);
  gang.priority = GroupPriority(details);
  gang.queue_name = GroupQueue(gang, details);
  RuleMerge merge = MergeRules(details, impl_.declarations);
  gang.rule = std::move(merge.rule);
  if (!merge.warnings.empty()) AppendUnique(gang.warnings, merge.warnings);
  // Without its PodGroup the minimum of a gang is not known.
  const bool known = object != nullptr || details.kind == GangKind::kLabels;
  if (known && details.bound > 0 && details.bound + details.succeeded >= gang.min_member) {
    gang.ran = true;
  }
  RefreshInvalid(gang, details, merge.conflict);
}

int32_t GangBuilder::GroupMinimum(const GangDetails& details) const {
  if (details.object != nullptr) return std::max(details.object->min_member, 0);
  if (details.kind != GangKind::kLabels || details.declarations.items().empty()) return 1;
  int32_t minimum = 0;
  for (const auto& [id, count] : details.declarations.items()) {
    minimum = std::max(minimum, impl_.declarations[id].min_member);
  }
  return minimum;
}

int32_t GangBuilder::GroupPriority(const GangDetails& details) const {
  if (details.object != nullptr) {
    const auto found = impl_.priority_classes.find(details.object->priority_class);
    if (found != impl_.priority_classes.end()) return found->second.value;
  }
  const auto& priorities = details.priorities.items();
  return priorities.empty() ? 0 : priorities.back().first;
}

std::string GangBuilder::GroupQueue(Gang& gang, const GangDetails& details) const {
  const std::string& standard = state_.options_.default_queue;
  if (details.object != nullptr && details.kind == GangKind::kVolcano) {
    return details.object->queue.empty() ? standard : details.object->queue;
  }
  std::vector<std::string> names;
  for (const auto& [id, count] : details.declarations.items()) {
    const std::string& name = impl_.declarations[id].queue;
    if (!name.empty()) AppendUnique(names, {name});
  }
  if (names.empty()) return standard;
  if (names.size() == 1) return names.front();
  for (const PodId pod : gang.pods) {
    const std::string& name = DeclarationOf(state_.pod(pod)).queue;
    if (name.empty()) continue;
    AppendUnique(gang.warnings, {"its pods name different queues; " + name + " counts"});
    return name;
  }
  return standard;
}

void GangBuilder::RefreshInvalid(Gang& gang, const GangDetails& details,
                                 const std::string& conflict) {
  gang.invalid.clear();
  gang.invalid_reason.clear();
  if (details.object == nullptr && details.kind != GangKind::kLabels) {
    gang.invalid = "PodGroup " + gang.ns + "/" + gang.name + " not found";
    gang.invalid_reason = "PodGroupNotFound";
    return;
  }
  if (!conflict.empty()) {
    gang.invalid = conflict;
    gang.invalid_reason = "InvalidTopology";
    return;
  }
  if (details.valid < gang.min_member) {
    gang.invalid = "has " + std::to_string(details.valid) + " of " +
                   std::to_string(gang.min_member) + " members";
    gang.invalid_reason = "NotEnoughTasks";
    return;
  }
  gang.invalid = MissingRole(gang, details);
  if (gang.invalid.empty()) gang.invalid = MissingSubGroups(gang);
  if (!gang.invalid.empty()) gang.invalid_reason = "NotEnoughPodsOfTask";
}

std::string GangBuilder::MissingRole(const Gang& gang, const GangDetails& details) const {
  if (!gang.roles_enforced) return "";
  for (const auto& [role, minimum] : gang.min_per_role) {
    const int32_t count = details.roles.Count(role);
    if (count >= minimum) continue;
    return "task " + state_.Text(role) + " has " + std::to_string(count) + " of " +
           std::to_string(minimum) + " members";
  }
  return "";
}

std::string GangBuilder::MissingSubGroups(const Gang& gang) {
  for (size_t p = 0; p < gang.policies.size(); ++p) {
    const SubGroupPolicy& policy = gang.policies[p];
    if (policy.min_groups <= 0) continue;
    const auto complete = std::count_if(
        gang.sub_groups.begin(), gang.sub_groups.end(),
        [&](const SubGroup& group) { return group.policy == p && group.valid >= policy.size; });
    if (complete >= policy.min_groups) continue;
    return "sub-group policy " + policy.name + " has " + std::to_string(complete) + " of " +
           std::to_string(policy.min_groups) + " groups of " + std::to_string(policy.size) +
           " members";
  }
  return "";
}

// Follows queue_name: what the members hold moves along.
void GangBuilder::SettleQueue(GangId id) {
  Gang& gang = At(id);
  QueueId& slot = impl_.queue_slot[id.index()];
  if (slot.valid() && state_.queues_.at(slot).name == gang.queue_name) return;
  const QueueId target = state_.queues_.Slot(gang.queue_name);
  for (const PodId pod : gang.pods) {
    if (!state_.pod(pod).charged) continue;
    state_.queues_.Discharge(slot, state_.RequestOf(pod));
    state_.queues_.Charge(target, state_.RequestOf(pod));
  }
  slot = target;
  gang.queue = state_.queues_.at(target).alive ? target : QueueId();
  impl_.changed_gangs.Mark(id);
}

}  // namespace hopwise::cluster
