#include "sched/scheduler.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/quantity.h"
#include "sched/choose.h"
#include "sched/claims.h"
#include "sched/demand.h"
#include "sched/make_room.h"
#include "sched/memory.h"
#include "sched/order.h"
#include "sched/ranks.h"
#include "sched/reasons.h"
#include "sched/scope.h"
#include "sched/score.h"
#include "sched/spread.h"
#include "sched/victims.h"

namespace hopwise::sched {

using cluster::TopologyRule;

struct Scheduler::Impl {
  Impl(cluster::State& s, Config c) : state(s), config(std::move(c)) {
    scorer.emplace(config, state.columns());
  }

  Plan Run();
  Plan JudgeAfresh();
  void SettleClaims(std::vector<GangId>& awake, Plan& plan);
  void AskAgain(const std::vector<GangId>& changed, std::vector<GangId>& awake);
  void Evict(GangId id, const Demand& demand, const Scope& scope, GangReport& report);
  void TellEvictions(GangId id, const Room& room);
  void Collect(std::vector<GangId>& awake);
  void DecideFully(GangId id, Plan& plan);
  GangReport Decide(GangId id);
  bool Refuse(GangReport& report, const Demand& demand);
  void TrimToShare(GangId id, Demand& demand) const;
  GangReport Search(GangId id, const Demand& demand, Scope& scope, GangReport report);
  void Commit(GangId id, const Demand& demand, const Choice& choice, GangReport& report);
  void Sleep(GangId id, const Demand& demand, const Scope& scope, const Refusal& refusal,
             GangReport& report);
  void FitTotals();
  [[nodiscard]] size_t TreeOf(GangId id) const;
  Location LocateIn(const std::vector<PodId>& members, size_t preferred);

  cluster::State& state;
  Config config;
  std::optional<Scorer> scorer;
  std::vector<DomainTotals> totals;  // by tree
  Memory memory;
  std::map<GangId, GangReport> waiting;  // last report of gangs of which something waits
  // Tree that a gang was placed in, when not the primary one; the sequence tells it from a later
  // gang of the same id.
  std::map<GangId, std::pair<size_t, uint64_t>> tree_of;
  uint64_t trees_version = 0;
  bool started = false;
  bool afresh = false;  // refusals of the past do not count
  GangId last_afresh;   // judged last by JudgeAfresh
  Claims claims;
  std::set<GangId> unhelped;        // wait, and nobody could be evicted for them
  std::vector<Eviction> evictions;  // of the run at hand
  Time now;                         // of the run at hand
  std::set<GangId> held;
  std::set<GangId> put_off;  // to be decided, were they not held
  Counters counters;
};

namespace {

std::vector<int64_t> Amounts(cluster::State& state, const Demand& demand,
                             const std::vector<int32_t>& counts) {
  std::vector<int64_t> amounts(state.columns().resource_count(), 0);
  for (size_t k = 0; k < counts.size(); ++k) {
    for (const auto& [r, amount] : state.fits().ShapeRequest(demand.classes[k])) {
      amounts[r.index()] = SaturatingAdd(amounts[r.index()], SaturatingMul(amount, counts[k]));
    }
  }
  return amounts;
}

}  // namespace

// Who must be decided: what changed, and sleepers that a change may help.
void Scheduler::Impl::Collect(std::vector<GangId>& awake) {
  const cluster::Changes changes = state.TakeChanges();
  const uint64_t version = state.trees_version();
  for (const GangId id : changes.gangs) {
    memory.Forget(id);
    if (!state.gang(id).alive) {
      waiting.erase(id);
      tree_of.erase(id);
      unhelped.erase(id);
    }
  }
  if (!started || version != trees_version || changes.topology) {
    memory.WakeAll(awake);
    memory.ForgetAll();
    totals.clear();
    trees_version = version;
    started = true;
  } else {
    memory.WakeQueue(state, changes.queues, awake);
    memory.Wake(state, changes.roomier, awake);
  }
  AskAgain(changes.gangs, awake);
  counters.woken += awake.size();
  awake.insert(awake.end(), changes.gangs.begin(), changes.gangs.end());
  awake.insert(awake.end(), put_off.begin(), put_off.end());
  put_off.clear();
  std::ranges::sort(awake);
  awake.erase(std::ranges::unique(awake).begin(), awake.end());
  std::erase_if(awake, [&](GangId id) { return !state.gang(id).alive; });
  std::ranges::copy_if(awake, std::inserter(put_off, put_off.end()),
                       [&](GangId id) { return held.contains(id); });
  std::erase_if(awake, [&](GangId id) { return held.contains(id); });
}

void Scheduler::Impl::FitTotals() {
  while (totals.size() < state.trees().size()) {
    totals.emplace_back();
    totals.back().Configure(state.columns(), config.network_topology_aware.resources);
  }
}

Plan Scheduler::Impl::Run() {
  Plan plan;
  ++counters.runs;
  std::vector<GangId> awake;
  Collect(awake);
  SettleClaims(awake, plan);
  Agenda agenda(state, awake);
  for (GangId id = agenda.Next(); id.valid(); id = agenda.Next()) {
    if (!memory.LeftAsleep(state, id) && !claims.Has(id)) {
      DecideFully(id, plan);
    }
    if (const GangId next = memory.Next(id); next.valid()) {
      ++counters.woken;
      agenda.Add(next);
    }
  }
  // Our own placements mark gangs as changed; they were just decided.
  std::vector<GangId> echo = state.TakeChanges().gangs;
  plan.evictions = std::exchange(evictions, {});
  return plan;
}

// What was held is bound, or given back and decided anew.
void Scheduler::Impl::SettleClaims(std::vector<GangId>& awake, Plan& plan) {
  Claims::Settled settled = claims.Settle(state, now);
  for (Claims::Settled::Done& done : settled.done) {
    GangReport report;
    report.gang = done.gang;
    report.verdict = Verdict::kPlaced;
    report.rest = Verdict::kNothingToDo;
    report.binds = std::move(done.binds);
    const Demand demand = BuildDemand(state, done.gang);
    report.placed = static_cast<int32_t>(demand.placed.size());
    report.waiting = demand.waiting;
    if (done.tree != 0) {
      tree_of[done.gang] = {done.tree, state.gang(done.gang).sequence};
    }
    report.location = LocateIn(demand.placed, TreeOf(done.gang));
    waiting.erase(done.gang);
    plan.gangs.push_back(std::move(report));
    awake.push_back(done.gang);  // its surplus
  }
  awake.insert(awake.end(), settled.dropped.begin(), settled.dropped.end());
  std::ranges::sort(awake);
  awake.erase(std::ranges::unique(awake).begin(), awake.end());
  std::erase_if(awake, [&](GangId id) { return !state.gang(id).alive || held.contains(id); });
}

// Those for whom nobody could be evicted are judged again when somebody changed who may be.
void Scheduler::Impl::AskAgain(const std::vector<GangId>& changed, std::vector<GangId>& awake) {
  if (unhelped.empty()) {
    return;
  }
  const bool reclaims = !EvictActionsOf(config).reclaim.empty();
  const auto helps = [&](GangId waits) {
    const cluster::Gang& claimer = state.gang(waits);
    return std::ranges::any_of(changed, [&](GangId id) {
      const cluster::Gang& other = state.gang(id);
      const bool holds =
          other.alive && id != waits && std::ranges::any_of(other.pods, [&](PodId pod) {
            return cluster::HoldsRoom(state.pod(pod).state);
          });
      return holds && (other.queue == claimer.queue ? other.priority < claimer.priority : reclaims);
    });
  };
  for (const GangId id : unhelped) {
    if (helps(id)) {
      memory.Forget(id);
      awake.push_back(id);
    }
  }
}

// Preempt or reclaim, for a gang that does not fit as things are.
void Scheduler::Impl::Evict(GangId id, const Demand& demand, const Scope& scope,
                            GangReport& report) {
  unhelped.erase(id);
  const bool required = Total(demand.required_counts) > 0;
  const bool hopeless = report.verdict != Verdict::kNotNow &&
                        report.verdict != Verdict::kUndecided &&
                        report.verdict != Verdict::kQueueLimit;
  if (!EvictActionsOf(config).any() || !required || hopeless ||
      scope.kind == Scope::Kind::kUnknown || afresh) {
    return;
  }
  FitTotals();
  Tools tools{*scorer, totals};
  const std::vector<int64_t> request = Amounts(state, demand, demand.required_counts);
  const std::set<PodId> spared = claims.Spared(state, now);
  const Victims victims(state, config, id, request, spared, now);
  const Room room = MakeRoom(state, id, demand, scope, request, victims, tools);
  if (!room.found) {
    unhelped.insert(id);
    return;
  }
  memory.Forget(id);
  TellEvictions(id, room);
  claims.Make(state, id, room, now);
  report.verdict = Verdict::kNotNow;
  report.reason = "MakingRoom";
  report.message = claims.Words(state, id);
  report.nominated = room.binds;
}

void Scheduler::Impl::TellEvictions(GangId id, const Room& room) {
  const EvictActions actions = EvictActionsOf(config);
  const cluster::Gang& gang = state.gang(id);
  const std::string who = gang.ns + "/" + gang.name + " (queue " + gang.queue_name + ", priority " +
                          std::to_string(gang.priority) + ") needs its room";
  std::set<PodId> told;
  for (const Unit& unit : room.units) {
    const std::string_view action = unit.reclaimed ? actions.reclaim : actions.preempt;
    for (const PodId pod : unit.pods) {
      if (told.insert(pod).second) {
        evictions.push_back({pod, id, action, std::string(action) + ": " + who});
      }
    }
  }
}

Plan Scheduler::Impl::JudgeAfresh() {
  Plan plan;
  auto at = last_afresh.valid() ? waiting.upper_bound(last_afresh) : waiting.begin();
  at = at == waiting.end() ? waiting.begin() : at;
  if (at == waiting.end()) {
    return plan;
  }
  last_afresh = at->first;
  if (held.contains(last_afresh) || claims.Has(last_afresh)) {
    return plan;
  }
  const bool placed_before = at->second.verdict == Verdict::kPlaced;
  afresh = true;
  DecideFully(last_afresh, plan);
  afresh = false;
  const bool placed = !plan.gangs.empty() && !plan.gangs.front().binds.empty();
  counters.unannounced += placed && !placed_before ? 1 : 0;
  const std::vector<GangId> echo = state.TakeChanges().gangs;
  return plan;
}

// The minimum first, then, as a decision of its own, what is left of the surplus.
void Scheduler::Impl::DecideFully(GangId id, Plan& plan) {
  GangReport report = Decide(id);
  if (report.verdict == Verdict::kPlaced && report.waiting > 0) {
    const GangReport rest = Decide(id);
    report.rest = rest.verdict;
    report.binds.insert(report.binds.end(), rest.binds.begin(), rest.binds.end());
    report.placed = rest.placed;
    report.waiting = rest.waiting;
    report.reason = rest.reason;
    report.message = rest.message;
    report.location = rest.location;
  }
  if (report.verdict != Verdict::kPlaced) {
    report.rest = report.verdict;
  }
  if (report.verdict == Verdict::kNothingToDo && report.warnings.empty()) {
    waiting.erase(id);
    return;
  }
  if (report.waiting > 0) {
    waiting.insert_or_assign(id, report);
  } else {
    waiting.erase(id);
  }
  plan.gangs.push_back(std::move(report));
}

// What needs no search: nothing waits, or it cannot be judged as written. True: the report is
// final.
bool Scheduler::Impl::Refuse(GangReport& report, const Demand& demand) {
  const cluster::Gang& gang = state.gang(report.gang);
  report.verdict = Verdict::kInvalid;
  if (demand.waiting == 0 && gang.invalid.empty()) {
    report.verdict = Verdict::kNothingToDo;
  } else if (std::optional<QueueRefusal> refusal = QueueRefuses(state, gang)) {
    report.reason = refusal->reason;
    report.message = std::move(refusal->message);
  } else if (!gang.invalid.empty() && !demand.by_pod) {
    report.reason = gang.invalid_reason;
    report.message = gang.invalid;
  } else if (!demand.blocked.empty()) {
    report.reason = demand.gated     ? "SchedulingGated"
                    : demand.too_few ? "NotEnoughTasks"
                                     : "Unevaluated";
    report.message = demand.blocked;
  } else if (demand.classes.empty()) {
    report.reason = "Unevaluated";
    report.message = "its waiting members cannot be judged";
  } else {
    return false;
  }
  if (report.verdict == Verdict::kInvalid) {
    memory.RememberQueue(report.gang);
  }
  return true;
}

// Surplus beyond the queue's share stays out; the minimum was judged before.
void Scheduler::Impl::TrimToShare(GangId id, Demand& demand) const {
  const QueueId queue = state.gang(id).queue;
  if (QueueProblem(state, queue, Amounts(state, demand, demand.all_counts)).empty()) {
    return;
  }
  Batch kept;
  std::vector<int32_t> counts = demand.required_counts;
  for (const PodId pod : demand.optional.loose) {
    const size_t k = demand.ClassOf(state.ShapeOf(pod));
    ++counts[k];
    if (QueueProblem(state, queue, Amounts(state, demand, counts)).empty()) {
      kept.loose.push_back(pod);
    } else {
      --counts[k];
    }
  }
  for (const UniformGroups& u : demand.optional.uniform) {
    UniformGroups fewer = u;
    fewer.sub_groups.clear();
    for (const uint32_t g : u.sub_groups) {
      counts[u.k] += u.size;
      if (!QueueProblem(state, queue, Amounts(state, demand, counts)).empty()) {
        counts[u.k] -= u.size;
        break;
      }
      fewer.sub_groups.push_back(g);
    }
    if (!fewer.sub_groups.empty()) {
      kept.uniform.push_back(std::move(fewer));
    }
  }
  demand.optional = std::move(kept);
  demand.all_counts = std::move(counts);
}

GangReport Scheduler::Impl::Decide(GangId id) {
  GangReport report;
  report.gang = id;
  memory.Forget(id);
  Demand demand = BuildDemand(state, id);
  report.placed = static_cast<int32_t>(demand.placed.size());
  report.waiting = demand.waiting;
  report.location = LocateIn(demand.placed, TreeOf(id));
  report.warnings = state.gang(id).warnings;
  if (Refuse(report, demand)) {
    return report;
  }
  ++counters.decisions;
  std::string over =
      QueueProblem(state, state.gang(id).queue, Amounts(state, demand, demand.required_counts));
  if (!over.empty()) {
    const bool never = QueueNeverAdmits(state, state.gang(id).queue,
                                        Amounts(state, demand, demand.required_counts));
    report.verdict = never ? Verdict::kNever : Verdict::kQueueLimit;
    report.reason = never ? "NeverFits" : "QueueOverLimit";
    report.message = std::move(over);
    memory.RememberQueue(id);
    Evict(id, demand, GangScope(state, id, demand.placed), report);
    return report;
  }
  const std::vector<int32_t> asked = demand.all_counts;
  TrimToShare(id, demand);
  Scope scope = GangScope(state, id, demand.placed);
  report.warnings.insert(report.warnings.end(), scope.warnings.begin(), scope.warnings.end());
  if (scope.kind == Scope::Kind::kUnknown) {
    report.verdict = Verdict::kInvalid;
    report.reason = "TopologyUnknown";
    report.message = scope.problem;
    memory.RememberQueue(id);
    return report;
  }
  const bool trimmed = asked != demand.all_counts;
  report = Search(id, demand, scope, std::move(report));
  Evict(id, demand, scope, report);
  if (trimmed && report.binds.empty() && report.nominated.empty()) {
    report.message = QueueProblem(state, state.gang(id).queue, Amounts(state, demand, asked));
    report.reason = "QueueOverLimit";
    memory.RememberQueueToo(id);
  }
  return report;
}

GangReport Scheduler::Impl::Search(GangId id, const Demand& demand, Scope& scope,
                                   GangReport report) {
  FitTotals();
  Tools tools{*scorer, totals};
  const bool surplus_only =
      demand.required_counts == std::vector<int32_t>(demand.classes.size(), 0);
  const std::optional<Question> question =
      surplus_only ? std::nullopt : AskedBy(state, id, demand, scope);
  if (question) {
    bool exact = false;
    const Refusal* const known = afresh ? nullptr : memory.Recall(*question, exact);
    if (known != nullptr) {
      ++counters.from_memory;
      const Refusal refusal = exact ? *known : ExplainNoFit(state, id, demand, scope, false);
      Sleep(id, demand, scope, refusal, report);
      return report;
    }
  }
  if (!surplus_only && NeverByCounts(state, demand, scope)) {
    Sleep(id, demand, scope, ExplainNever(state, id, demand, scope), report);
    return report;
  }
  ++counters.splits;
  Choice choice;
  if (scope.kind == Scope::Kind::kFree) {
    choice = SpreadByScore(state, id, demand, tools);
  } else {
    choice = surplus_only ? ChooseSurplus(state, id, demand, scope, tools)
                          : ChooseDomain(state, id, demand, scope, tools);
  }
  if (choice.found) {
    Commit(id, demand, choice, report);
    return report;
  }
  counters.undecided += choice.undecided ? 1 : 0;
  const Refusal refusal = surplus_only ? ExplainSurplus(state, id, demand, scope)
                                       : ExplainNoFit(state, id, demand, scope, choice.undecided);
  Sleep(id, demand, scope, refusal, report);
  return report;
}

void Scheduler::Impl::Commit(GangId id, const Demand& demand, const Choice& choice,
                             GangReport& report) {
  report.verdict = Verdict::kPlaced;
  report.binds = AssignMembers(state, id, demand, choice.placement, *state.trees()[choice.tree]);
  for (const Bind& bind : report.binds) {
    state.Assume(bind.pod, bind.node);
  }
  report.placed += static_cast<int32_t>(report.binds.size());
  report.waiting -= static_cast<int32_t>(report.binds.size());
  if (choice.tree != 0) {
    tree_of[id] = {choice.tree, state.gang(id).sequence};
  }
  report.location = LocateIn(state.gang(id).pods, choice.tree);
}

void Scheduler::Impl::Sleep(GangId id, const Demand& demand, const Scope& scope,
                            const Refusal& refusal, GangReport& report) {
  report.verdict = refusal.verdict;
  report.reason = refusal.reason;
  report.message = refusal.message;
  const bool surplus_only =
      demand.required_counts == std::vector<int32_t>(demand.classes.size(), 0);
  const std::optional<Question> question =
      surplus_only ? std::nullopt : AskedBy(state, id, demand, scope);
  if (question) {
    memory.Remember(state, *question, id, refusal);
  } else {
    memory.RememberAlone(id, demand.classes);
  }
}

size_t Scheduler::Impl::TreeOf(GangId id) const {
  const auto at = tree_of.find(id);
  return at != tree_of.end() && at->second.second == state.gang(id).sequence ? at->second.first : 0;
}

// The smallest domain that holds those of `members` that are placed.
Location Scheduler::Impl::LocateIn(const std::vector<PodId>& members, size_t preferred) {
  Location location;
  const auto& trees = state.trees();
  location.tree = preferred < trees.size() ? preferred : 0;
  const topology::Tree& tree = *trees[location.tree];
  DomainId common;
  for (const PodId pod : members) {
    const cluster::PodRecord& record = state.pod(pod);
    if (cluster::HoldsRoom(record.state) && record.node.valid()) {
      const DomainId leaf = tree.leaf_of[record.node.index()];
      common = common.valid() ? tree.CommonDomain(common, leaf) : leaf;
    }
  }
  if (common.valid()) {
    const topology::Domain& domain = tree.at(common);
    location.known = true;
    location.domain = common;
    location.tier = domain.tier;
    location.tier_name = domain.tier_name;
    location.domain_name = domain.parent.valid() ? domain.name : "";
  }
  return location;
}

Scheduler::Scheduler(cluster::State& state, Config config)
    : impl_(std::make_unique<Impl>(state, std::move(config))) {}
Scheduler::~Scheduler() = default;

Plan Scheduler::Run(Time now) {
  impl_->now = now;
  return impl_->Run();
}

Plan Scheduler::JudgeAfresh() { return impl_->JudgeAfresh(); }

void Scheduler::SetConfig(Config config) {
  impl_->config = std::move(config);
  impl_->scorer.emplace(impl_->config, impl_->state.columns());
  impl_->started = false;  // the next Run wakes everybody
}

void Scheduler::NotEvicted(PodId pod, Time now) { impl_->claims.Stays(impl_->state, pod, now); }

void Scheduler::DropClaim(GangId gang) {
  impl_->claims.Drop(impl_->state, gang);
  impl_->put_off.insert(gang);
}

void Scheduler::DropClaims() {
  for (const GangId gang : impl_->claims.DropAll(impl_->state)) {
    impl_->put_off.insert(gang);
  }
}

Time Scheduler::next_claim_end() const { return impl_->claims.next_end(); }

bool Scheduler::HoldsClaim(GangId gang) const { return impl_->claims.Has(gang); }

void Scheduler::Hold(GangId gang) { impl_->held.insert(gang); }

void Scheduler::Release(GangId gang) { impl_->held.erase(gang); }

const GangReport* Scheduler::LastReport(GangId gang) const {
  const auto at = impl_->waiting.find(gang);
  return at == impl_->waiting.end() ? nullptr : &at->second;
}

Location Scheduler::Locate(GangId gang) {
  return impl_->LocateIn(impl_->state.gang(gang).pods, impl_->TreeOf(gang));
}

size_t Scheduler::sleeping() const { return impl_->memory.sleeping(); }
const Counters& Scheduler::counters() const { return impl_->counters; }

}  // namespace hopwise::sched
