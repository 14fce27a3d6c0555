#include "sched/victims.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "base/quantity.h"
#include "cluster/pod_facts.h"

namespace hopwise::sched {
namespace {

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string_view FirstOf(const std::vector<std::string>& names, std::string_view a,
                         std::string_view b) {
  return Has(names, a) ? a : Has(names, b) ? b : std::string_view();
}

// Members that hold room and stay.
std::vector<PodId> Holders(const cluster::State& state, const cluster::Gang& gang) {
  std::vector<PodId> holders;
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    if (cluster::HoldsRoom(pod.state) && !pod.terminating) {
      holders.push_back(id);
    }
  }
  return holders;
}

int64_t CountDone(const cluster::State& state, const cluster::Gang& gang) {
  return std::ranges::count_if(gang.pods, [&](PodId id) { return state.pod(id).succeeded; });
}

// What a gang holds beyond its minimums.
struct Spare {
  Spare(const cluster::State& s, const cluster::Gang& gang, const std::vector<PodId>& holders);
  // Takes them off where no minimum needs them.
  bool Take(const std::vector<PodId>& pods);

  const cluster::State& state;
  int64_t members = 0;
  std::map<StringId, int64_t> by_role;            // of roles with a minimum
  std::vector<int64_t> by_policy;                 // whole sub-groups
  std::map<uint32_t, std::vector<PodId>> groups;  // holders by sub-group
  std::vector<PodId> loose;                       // of none, in the order in which they may go
};

Spare::Spare(const cluster::State& s, const cluster::Gang& gang, const std::vector<PodId>& holders)
    : state(s),
      members(static_cast<int64_t>(holders.size()) + CountDone(s, gang) - gang.min_member) {
  for (const auto& [role, minimum] : gang.min_per_role) {
    by_role[role] = -minimum;
  }
  for (const cluster::SubGroupPolicy& policy : gang.policies) {
    by_policy.push_back(-policy.min_groups);
  }
  for (const PodId pod : holders) {
    const cluster::PodRecord& record = state.pod(pod);
    if (const auto at = by_role.find(record.role); at != by_role.end()) {
      ++at->second;
    }
    if (record.sub_group == cluster::PodRecord::kNoSubGroup) {
      loose.push_back(pod);
    } else {
      groups[record.sub_group].push_back(pod);
    }
  }
  for (const auto& [group, pods] : groups) {
    ++by_policy[gang.sub_groups[group].policy];
  }
  std::ranges::sort(loose, {}, [&](PodId pod) {
    const cluster::PodRecord& record = state.pod(pod);
    return std::tuple(record.priority, -record.start.ns, -record.index, pod);
  });
}

bool Spare::Take(const std::vector<PodId>& pods) {
  std::map<StringId, int64_t> roles;
  for (const PodId pod : pods) {
    ++roles[state.pod(pod).role];
  }
  const bool needed = std::ranges::any_of(roles, [&](const auto& pair) {
    const auto at = by_role.find(pair.first);
    return at != by_role.end() && at->second < pair.second;
  });
  if (needed || members < static_cast<int64_t>(pods.size())) {
    return false;
  }
  for (const auto& [role, count] : roles) {
    if (const auto at = by_role.find(role); at != by_role.end()) {
      at->second -= count;
    }
  }
  members -= static_cast<int64_t>(pods.size());
  return true;
}

}  // namespace

EvictActions EvictActionsOf(const Config& config) {
  return {FirstOf(config.actions, "preempt", "gangpreempt"),
          FirstOf(config.actions, "reclaim", "gangreclaim")};
}

bool Cheaper(const cluster::State& state, const Unit& a, const Unit& b) {
  const auto rank = [&](const Unit& unit) {
    const cluster::Gang& gang = state.gang(unit.gang);
    return std::tuple(unit.breaks, unit.priority, std::bit_width(static_cast<uint64_t>(unit.work)),
                      unit.pods.size(), -gang.creation.ns, -static_cast<int64_t>(gang.sequence),
                      unit.pods.front());
  };
  return rank(a) < rank(b);
}

void Taken::Add(const cluster::State& state, const Unit& unit) {
  for (QueueId q = state.gang(unit.gang).queue; q.valid(); q = state.queue(q).parent) {
    std::vector<int64_t>& amounts = amounts_[q];
    amounts.resize(state.columns().resource_count(), 0);
    for (const PodId pod : unit.pods) {
      for (const auto& [r, amount] : state.RequestOf(pod)) {
        amounts[r.index()] = SaturatingAdd(amounts[r.index()], amount);
      }
    }
  }
}

int64_t Taken::Of(QueueId queue, ResourceId r) const {
  const auto at = amounts_.find(queue);
  return at == amounts_.end() || r.index() >= at->second.size() ? 0 : at->second[r.index()];
}

Victims::Victims(const cluster::State& state, const Config& config, GangId claimer,
                 const std::vector<int64_t>& request, const std::set<PodId>& spared, Time now)
    : state_(state),
      claimer_(state.gang(claimer)),
      claimer_id_(claimer),
      request_(request),
      spared_(spared),
      now_(now) {
  const EvictActions actions = EvictActionsOf(config);
  const bool yields =
      std::ranges::any_of(claimer_.pods, [&](PodId id) { return state_.pod(id).yields; });
  preempts_ = !actions.preempt.empty() && !yields;
  reclaims_ = !actions.reclaim.empty() && Has(config.plugins, "capacity") && !yields &&
              claimer_.queue.valid() && Deserves(claimer_.queue);
  const EvictArguments standard;
  const EvictArguments& own = actions.preempt == "gangpreempt" ? config.gang_preempt : standard;
  const EvictArguments& others = actions.reclaim == "gangreclaim" ? config.gang_reclaim : standard;
  breaks_own_ = own.whole_gangs;
  breaks_others_ = others.whole_gangs;
  max_domains_ = static_cast<size_t>(
      std::max(preempts_ ? own.max_domains : 0, reclaims_ ? others.max_domains : 0));
}

// The preemptive vote of Volcano's plugin capacity, stricter in one point: what is asked must stay
// within the deserved share in every resource that one is set for, not just in one, or two queues
// that deserve different resources could take the same pods from each other for ever.
bool Victims::Deserves(QueueId queue) const {
  const cluster::Queue& q = state_.queue(queue);
  bool any = false;
  for (size_t r = 0; r < request_.size(); ++r) {
    const int64_t deserved = r < q.deserved.size() ? q.deserved[r] : -1;
    if (request_[r] > 0 && deserved >= 0) {
      any = true;
      if (SaturatingAdd(q.AllocatedOf(ResourceId(r)), request_[r]) > deserved) {
        return false;
      }
    }
  }
  return any && q.open;
}

bool Victims::MayAsk(GangId gang) const {
  if (!gang.valid() || gang == claimer_id_) {
    return false;
  }
  const cluster::Gang& other = state_.gang(gang);
  if (!other.queue.valid()) {
    return false;
  }
  const api::PodGroup* object = state_.PodGroupOf(gang);
  if (object != nullptr && cluster::SaysNotPreemptable(object->meta)) {
    return false;
  }
  if (other.queue == claimer_.queue) {
    return preempts_ && other.priority < claimer_.priority;
  }
  return reclaims_ && state_.queue(other.queue).reclaimable.value_or(true);
}

bool Victims::MayEvict(PodId id) const {
  const cluster::PodRecord& pod = state_.pod(id);
  return pod.state == cluster::PodState::kBound && !pod.terminating && pod.evictable &&
         !spared_.contains(id) && MayAsk(pod.gang);
}

// What the queue holds above its deserved share, in a resource that the claimer asks for, and what
// it is guaranteed stays.
bool Victims::MayGive(const Unit& unit, const Taken& taken) const {
  if (!unit.reclaimed) {
    return true;
  }
  const QueueId id = state_.gang(unit.gang).queue;
  const cluster::Queue& queue = state_.queue(id);
  bool above = false;
  Taken after = taken;
  after.Add(state_, unit);
  for (size_t i = 0; i < state_.columns().resource_count(); ++i) {
    const ResourceId r(i);
    const int64_t allocated = queue.AllocatedOf(r);
    const int64_t guarantee = i < queue.guarantee.size() ? queue.guarantee[i] : 0;
    if (after.Of(id, r) > taken.Of(id, r) && allocated - after.Of(id, r) < guarantee) {
      return false;
    }
    const int64_t deserved = i < queue.deserved.size() ? queue.deserved[i] : -1;
    const bool asked = i < request_.size() && request_[i] > 0 && r != state_.columns().pods();
    above = above || (asked && deserved >= 0 && allocated - taken.Of(id, r) > deserved);
  }
  return above;
}

int64_t Victims::WorkOf(PodId id) const {
  const cluster::PodRecord& pod = state_.pod(id);
  int64_t accelerators = 0;
  for (const auto& [r, amount] : state_.RequestOf(id)) {
    // Extended resources have a domain in their names.
    const bool extended = state_.columns().ResourceName(r).find('/') != std::string::npos;
    accelerators = SaturatingAdd(accelerators, extended ? amount : 0);
  }
  const int64_t seconds = std::max<int64_t>(0, (now_ - pod.start).ns / Seconds(1).ns);
  return SaturatingMul(std::max<int64_t>(accelerators, 1), seconds);
}

Unit Victims::MakeUnit(GangId gang, std::vector<PodId> pods, bool breaks) const {
  Unit unit;
  unit.gang = gang;
  unit.breaks = breaks;
  unit.priority = state_.gang(gang).priority;
  unit.reclaimed = state_.gang(gang).queue != claimer_.queue;
  for (const PodId pod : pods) {
    unit.work = SaturatingAdd(unit.work, WorkOf(pod));
  }
  unit.pods = std::move(pods);
  return unit;
}

void Victims::Split(GangId id, const std::set<NodeId>& nodes, std::vector<Unit>& out) const {
  const cluster::Gang& gang = state_.gang(id);
  const std::vector<PodId> holders = Holders(state_, gang);
  Spare spare(state_, gang, holders);
  const auto here = [&](PodId pod) { return nodes.contains(state_.pod(pod).node); };
  const auto may_go = [&](const std::vector<PodId>& pods) {
    return std::ranges::all_of(pods, [&](PodId pod) { return MayEvict(pod); });
  };
  for (auto at = spare.groups.rbegin(); at != spare.groups.rend(); ++at) {
    int64_t& left = spare.by_policy[gang.sub_groups[at->first].policy];
    if (left > 0 && std::ranges::any_of(at->second, here) && may_go(at->second) &&
        spare.Take(at->second)) {
      out.push_back(MakeUnit(id, at->second, false));
      --left;
    }
  }
  for (const PodId pod : spare.loose) {
    if (here(pod) && may_go({pod}) && spare.Take({pod})) {
      out.push_back(MakeUnit(id, {pod}, false));
    }
  }
  const bool breaks = gang.queue == claimer_.queue ? breaks_own_ : breaks_others_;
  if (breaks && may_go(holders)) {
    out.push_back(MakeUnit(id, holders, true));
  }
}

std::vector<Unit> Victims::On(const std::vector<NodeId>& nodes) const {
  std::set<GangId> gangs;
  for (const NodeId node : nodes) {
    for (const PodId pod : state_.PodsOn(node)) {
      if (MayEvict(pod)) {
        gangs.insert(state_.pod(pod).gang);
      }
    }
  }
  const std::set<NodeId> set(nodes.begin(), nodes.end());
  std::vector<Unit> units;
  for (const GangId gang : gangs) {
    Split(gang, set, units);
  }
  std::ranges::sort(units, [&](const Unit& a, const Unit& b) { return Cheaper(state_, a, b); });
  return units;
}

}  // namespace hopwise::sched
