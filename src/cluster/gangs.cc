#include "cluster/gangs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace hopwise::cluster {
namespace {

void AppendText(std::string& out, std::string_view text) {
  out.append(std::to_string(text.size())).append(":").append(text);
}

void AppendRule(std::string& out, const TopologyRule& rule) {
  out.append(std::to_string(static_cast<int>(rule.mode))).append(" ");
  out.append(rule.highest_tier ? std::to_string(*rule.highest_tier) : "-").append(" ");
  AppendText(out, rule.highest_tier_name);
  AppendText(out, rule.fabric);
  for (const std::string& key : rule.label_keys) AppendText(out, key);
  out.append(";");
}

// Equal iff the declarations are.
std::string KeyOfDeclaration(const Declaration& declaration) {
  std::string key = std::to_string(declaration.min_member) + ";";
  AppendRule(key, declaration.rule);
  AppendRule(key, declaration.nodes);
  AppendText(key, declaration.queue);
  AppendText(key, declaration.waits_for);
  for (const std::string& warning : declaration.warnings) AppendText(key, warning);
  return key;
}

bool Same(const api::Requirement& a, const api::Requirement& b) {
  return std::tie(a.key, a.op, a.values) == std::tie(b.key, b.op, b.values);
}

bool Same(const std::optional<api::NetworkTopology>& a,
          const std::optional<api::NetworkTopology>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return std::tie(a->mode, a->highest_tier, a->highest_tier_name) ==
         std::tie(b->mode, b->highest_tier, b->highest_tier_name);
}

bool Same(const std::optional<api::LabelSelector>& a, const std::optional<api::LabelSelector>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return std::equal(a->requirements.begin(), a->requirements.end(), b->requirements.begin(),
                    b->requirements.end(), [](const auto& x, const auto& y) { return Same(x, y); });
}

bool Same(const api::SubGroupPolicy& a, const api::SubGroupPolicy& b) {
  return std::tie(a.name, a.sub_group_size, a.min_sub_groups, a.match_label_keys) ==
             std::tie(b.name, b.sub_group_size, b.min_sub_groups, b.match_label_keys) &&
         Same(a.topology, b.topology) && Same(a.selector, b.selector);
}

bool SamePolicies(const std::vector<api::SubGroupPolicy>& a,
                  const std::vector<api::SubGroupPolicy>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return Same(x, y); });
}

bool SameSpec(const api::PodGroup& a, const api::PodGroup& b) {
  return std::tie(a.meta.uid, a.meta.creation, a.meta.annotations, a.min_member, a.min_task_member,
                  a.queue, a.priority_class, a.min_resources) ==
             std::tie(b.meta.uid, b.meta.creation, b.meta.annotations, b.min_member,
                      b.min_task_member, b.queue, b.priority_class, b.min_resources) &&
         Same(a.topology, b.topology) && SamePolicies(a.sub_groups, b.sub_groups);
}

// What the state needs of the object, and nothing that changes with every status.
api::PodGroup Strip(const api::PodGroup& object) {
  api::PodGroup kept = object;
  kept.meta = {};
  kept.meta.uid = object.meta.uid;
  kept.meta.creation = object.meta.creation;
  if (const std::string* fabric = api::Find(object.meta.annotations, kFabric)) {
    kept.meta.annotations.emplace_back(kFabric, *fabric);
  }
  if (SaysNotPreemptable(object.meta)) {
    kept.meta.annotations.emplace_back(kPreemptable, "false");
  }
  kept.phase.clear();
  kept.conditions.clear();
  return kept;
}

bool IsRanPhase(std::string_view phase) {
  return phase == "Running" || phase == "Unknown" || phase == "Completed";
}

}  // namespace

TopologyRule GangBuilder::RuleOf(const std::optional<api::NetworkTopology>& topology,
                                 std::string_view fabric) {
  TopologyRule rule;
  rule.fabric = std::string(fabric);
  if (!topology) return rule;
  rule.mode = topology->mode == api::TopologyMode::kSoft ? TopologyRule::Mode::kSoft
                                                         : TopologyRule::Mode::kHard;
  rule.highest_tier = topology->highest_tier;
  if (!rule.highest_tier) rule.highest_tier_name = topology->highest_tier_name;
  return rule;
}

TopologyRule GangBuilder::RuleOf(const api::PodGroup& object) {
  const std::string* fabric = api::Find(object.meta.annotations, kFabric);
  return RuleOf(object.topology, fabric != nullptr ? std::string_view(*fabric) : "");
}

uint32_t GangBuilder::Intern(const Declaration& declaration) {
  static const Declaration kNothing;
  if (declaration == kNothing) return 0;
  const auto next = static_cast<uint32_t>(impl_.declarations.size());
  const auto [at, fresh] = impl_.declaration_ids.emplace(KeyOfDeclaration(declaration), next);
  if (fresh) impl_.declarations.push_back(declaration);
  return at->second;
}

std::string GangBuilder::KeyOf(GangKind kind, std::string_view ns, std::string_view name) {
  // A namespace holds no slash, so that this is unambiguous.
  std::string key(1, static_cast<char>('0' + static_cast<int>(kind)));
  key.append(ns).append("/").append(name);
  return key;
}

GangId GangBuilder::Find(GangKind kind, std::string_view ns, std::string_view name) const {
  const auto found = impl_.gang_index.find(KeyOf(kind, ns, name));
  return found == impl_.gang_index.end() ? GangId() : found->second;
}

GangId GangBuilder::New(GangKind kind, std::string_view ns, std::string_view name) {
  GangId id;
  if (impl_.free_gangs.empty()) {
    id = GangId(state_.gangs_.size());
    state_.gangs_.emplace_back();
    impl_.details.emplace_back();
    impl_.queue_slot.emplace_back();
  } else {
    id = impl_.free_gangs.back();
    impl_.free_gangs.pop_back();
  }
  Gang& gang = At(id);
  gang.alive = true;
  gang.ns = std::string(ns);
  gang.name = std::string(name);
  gang.sequence = impl_.next_sequence++;
  gang.scheduler_plugins = kind == GangKind::kSchedulerPlugins;
  if (kind == GangKind::kLone) {
    gang.source = GangSource::kLonePod;
  } else {
    gang.source = kind == GangKind::kLabels ? GangSource::kLabels : GangSource::kPodGroup;
    impl_.details[id.index()] = std::make_unique<GangDetails>();
    impl_.details[id.index()]->kind = kind;
  }
  impl_.changed_gangs.Mark(id);
  return id;
}

GangId GangBuilder::Ensure(GangKind kind, std::string_view ns, std::string_view name) {
  std::string key = KeyOf(kind, ns, name);
  const auto found = impl_.gang_index.find(key);
  if (found != impl_.gang_index.end()) return found->second;
  const GangId id = New(kind, ns, name);
  impl_.gang_index.emplace(std::move(key), id);
  return id;
}

GangId GangBuilder::Target(const PodFacts& facts, const PodRecord& next, GangId now) {
  // Whoever's scheduler it has, a member that got a node is where the rest of its gang wants to be.
  const bool placed = HoldsRoom(next.state) || next.state == PodState::kFinished;
  if (!placed && (!next.ours || next.terminating)) return {};
  if (facts.kind != GangKind::kLone) return Ensure(facts.kind, next.ns, facts.group);
  if (!next.ours) return {};
  const bool alone = now.valid() && At(now).source == GangSource::kLonePod;
  return alone ? now : New(GangKind::kLone, next.ns, next.name);
}

bool GangBuilder::Before(PodId a, PodId b) const {
  const PodRecord& x = state_.pod(a);
  const PodRecord& y = state_.pod(b);
  return std::tie(x.creation, x.index, x.name) < std::tie(y.creation, y.index, y.name);
}

void GangBuilder::InsertSorted(std::vector<PodId>& pods, PodId id) const {
  const auto before = [this](PodId a, PodId b) { return Before(a, b); };
  pods.insert(std::lower_bound(pods.begin(), pods.end(), id, before), id);
}

// Adds or takes away what the member's present record contributes to the sums.
void GangBuilder::Count(PodId id, int32_t times) {
  const PodRecord& pod = PodAt(id);
  GangDetails* details = DetailsOf(pod.gang);
  if (details == nullptr) return;
  details->declarations.Add(pod.declaration, times);
  details->priorities.Add(pod.priority, times);
  if (pod.state == PodState::kBound && !pod.terminating) details->bound += times;
  if (pod.succeeded) details->succeeded += times;
  if (!IsValidMember(pod)) return;
  details->valid += times;
  if (pod.role.valid()) details->roles.Add(pod.role, times);
  if (pod.sub_group != PodRecord::kNoSubGroup) {
    At(pod.gang).sub_groups[pod.sub_group].valid += times;
  }
}

void GangBuilder::Join(PodId id, GangId gang) {
  PodRecord& pod = PodAt(id);
  pod.gang = gang;
  pod.sub_group = PodRecord::kNoSubGroup;
  if (!gang.valid()) return;
  InsertSorted(At(gang).pods, id);
  EnterSubGroup(id, gang);
  Count(id, 1);
  impl_.changed_gangs.Mark(gang);
}

void GangBuilder::Leave(PodId id) {
  PodRecord& pod = PodAt(id);
  const GangId gang = pod.gang;
  if (!gang.valid()) return;
  Count(id, -1);
  LeaveSubGroup(id, gang);
  std::vector<PodId>& pods = At(gang).pods;
  const auto before = [this](PodId a, PodId b) { return Before(a, b); };
  const auto at = std::lower_bound(pods.begin(), pods.end(), id, before);
  HOPWISE_CHECK(at != pods.end() && *at == id);
  pods.erase(at);
  pod.gang = GangId();
  impl_.changed_gangs.Mark(gang);
}

bool GangBuilder::SameSeat(const PodRecord& now, const PodRecord& next) {
  return now.creation == next.creation && now.index == next.index && now.labels == next.labels;
}

void GangBuilder::Replace(PodId id, PodRecord next) {
  PodRecord& pod = PodAt(id);
  next.gang = pod.gang;
  next.sub_group = pod.sub_group;
  // What the scheduler did itself and now sees confirmed is no news to it.
  const bool confirmed =
      pod.state == PodState::kAssumed && next.state == PodState::kBound && pod.host == next.host;
  const bool news =
      (pod.state != next.state && !confirmed) ||
      std::tie(pod.terminating, pod.resource_class, pod.predicates, pod.blocker, pod.priority,
               pod.declaration, pod.role, pod.host) !=
          std::tie(next.terminating, next.resource_class, next.predicates, next.blocker,
                   next.priority, next.declaration, next.role, next.host);
  if (pod.gang.valid()) Count(id, -1);
  const GangId gang = pod.gang;
  pod = std::move(next);
  if (gang.valid()) Count(id, 1);
  if (gang.valid() && news) impl_.changed_gangs.Mark(gang);
}

void GangBuilder::FreeIfUnused(GangId id) {
  Gang& gang = At(id);
  const GangDetails* details = DetailsOf(id);
  if (!gang.alive || !gang.pods.empty() || (details != nullptr && details->object != nullptr)) {
    return;
  }
  if (details != nullptr) impl_.gang_index.erase(KeyOf(details->kind, gang.ns, gang.name));
  impl_.changed_gangs.Mark(id);
  gang = Gang();
  impl_.details[id.index()].reset();
  impl_.queue_slot[id.index()] = QueueId();
  impl_.free_gangs.push_back(id);
}

void GangBuilder::Charge(PodId id) {
  PodRecord& pod = PodAt(id);
  HOPWISE_CHECK(!pod.charged && pod.gang.valid());
  state_.queues_.Charge(impl_.queue_slot[pod.gang.index()], state_.RequestOf(id));
  pod.charged = true;
}

void GangBuilder::Discharge(PodId id) {
  PodRecord& pod = PodAt(id);
  HOPWISE_CHECK(pod.charged && pod.gang.valid());
  state_.queues_.Discharge(impl_.queue_slot[pod.gang.index()], state_.RequestOf(id));
  pod.charged = false;
}

void GangBuilder::ApplyPodGroup(const api::PodGroup& object) {
  const GangKind kind = object.scheduler_plugins ? GangKind::kSchedulerPlugins : GangKind::kVolcano;
  const GangId id = Ensure(kind, object.meta.ns, object.meta.name);
  GangDetails& details = *DetailsOf(id);
  Gang& gang = At(id);
  api::PodGroup kept = Strip(object);
  const bool same = details.object != nullptr && SameSpec(*details.object, kept);
  if (!same || gang.phase != object.phase) impl_.changed_gangs.Mark(id);
  // A group made anew under the old name has not run yet, whatever its predecessor did.
  if (details.object != nullptr && details.object->meta.uid != kept.meta.uid) gang.ran = false;
  gang.phase = object.phase;
  gang.ran = gang.ran || IsRanPhase(gang.phase);
  if (!same) AdoptSpec(id, kept);
  Refresh(id);
}

// Takes over what depends on the PodGroup alone. `object` is stripped.
void GangBuilder::AdoptSpec(GangId id, const api::PodGroup& object) {
  Gang& gang = At(id);
  GangDetails& details = *DetailsOf(id);
  const bool regroup =
      details.object == nullptr || !SamePolicies(details.object->sub_groups, object.sub_groups);
  details.object = std::make_unique<api::PodGroup>(object);
  gang.has_object = true;
  gang.uid = object.meta.uid;
  const std::string fabric = RuleOf(object).fabric;
  gang.min_per_role.clear();
  int64_t sum = 0;
  for (const auto& [role, minimum] : object.min_task_member) {
    gang.min_per_role.emplace_back(state_.strings_.Intern(role), minimum);
    sum += minimum;
  }
  gang.roles_enforced = !gang.min_per_role.empty() && object.min_member >= sum;
  gang.policies.clear();
  for (const api::SubGroupPolicy& policy : object.sub_groups) {
    gang.policies.push_back({policy.name, RuleOf(policy.topology, fabric), policy.sub_group_size,
                             policy.min_sub_groups});
  }
  if (regroup) RebuildSubGroups(id);
}

void GangBuilder::RemovePodGroup(std::string_view ns, std::string_view name,
                                 bool scheduler_plugins) {
  const GangId id =
      Find(scheduler_plugins ? GangKind::kSchedulerPlugins : GangKind::kVolcano, ns, name);
  if (!id.valid() || DetailsOf(id)->object == nullptr) return;
  Gang& gang = At(id);
  DetailsOf(id)->object.reset();
  gang.has_object = false;
  // One made anew under the name has not run, unless its pods stayed.
  gang.ran = gang.ran && DetailsOf(id)->bound > 0;
  gang.uid.clear();
  gang.phase.clear();
  gang.min_per_role.clear();
  gang.roles_enforced = false;
  gang.policies.clear();
  RebuildSubGroups(id);
  impl_.changed_gangs.Mark(id);
  Refresh(id);
  FreeIfUnused(id);
}

void GangBuilder::QueueChanged(QueueId queue) {
  const QueueId seen = state_.queues_.at(queue).alive ? queue : QueueId();
  for (size_t g = 0; g < impl_.queue_slot.size(); ++g) {
    if (impl_.queue_slot[g] != queue || state_.gangs_[g].queue == seen) continue;
    state_.gangs_[g].queue = seen;
    impl_.changed_gangs.Mark(GangId(g));
  }
}

int32_t GangBuilder::PriorityOf(const PodRecord& pod) const {
  if (pod.has_priority) return pod.priority;
  if (!pod.priority_class.valid()) return impl_.default_priority;
  const auto found = impl_.priority_classes.find(state_.Text(pod.priority_class));
  return found != impl_.priority_classes.end() ? found->second.value : impl_.default_priority;
}

void GangBuilder::PrioritiesChanged() {
  for (size_t p = 0; p < state_.pods_.size(); ++p) {
    PodRecord& pod = state_.pods_[p];
    const int32_t priority = PriorityOf(pod);
    if (!pod.alive || priority == pod.priority) continue;
    if (pod.gang.valid()) Count(PodId(p), -1);
    pod.priority = priority;
    if (pod.gang.valid()) Count(PodId(p), 1);
    if (pod.gang.valid()) impl_.changed_gangs.Mark(pod.gang);
  }
  for (size_t g = 0; g < state_.gangs_.size(); ++g) {
    if (!state_.gangs_[g].alive) continue;
    const int32_t before = state_.gangs_[g].priority;
    Refresh(GangId(g));
    if (state_.gangs_[g].priority != before) impl_.changed_gangs.Mark(GangId(g));
  }
}

}  // namespace hopwise::cluster
