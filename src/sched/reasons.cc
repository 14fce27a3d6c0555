#include "sched/reasons.h"

#include <algorithm>
#include <map>
#include <optional>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/quantity.h"
#include "sched/split_groups.h"

namespace hopwise::sched {
namespace {

using cluster::NodeVerdict;

// Nodes of the best domain that are looked at for what is short and who holds it: a bound on the
// cost of an answer.
constexpr uint32_t kMostNodes = 1024;
constexpr size_t kMostHolders = 3;
constexpr size_t kMostEqual =
    32;  // domains that tie for the best, looked at for one that could come free

std::string Plural(int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

// Whether what nodes hold now counts.
enum class Room : uint8_t { kNow, kWhenEmpty };

// What keeps more pods out of a domain.
struct Shortage {
  ResourceId resource;  // none: room is there, the nodes are refused
  int64_t amount = 0;
  std::map<NodeVerdict, int64_t> verdicts;
  // Gangs that hold most of the resource here, and how much; and how many hold any.
  std::vector<std::pair<std::string, int64_t>> holders;
  size_t holder_count = 0;
  int32_t port = 0;  // not 0: each node takes only one pod, because of this host port
};

std::string VerdictWords(NodeVerdict verdict) {
  switch (verdict) {
    case NodeVerdict::kNotReady:
      return "not ready";
    case NodeVerdict::kUnschedulable:
      return "cordoned";
    case NodeVerdict::kTaint:
      return "tainted";
    case NodeVerdict::kSelector:
      return "outside the node selector";
    case NodeVerdict::kAffinity:
      return "outside the node affinity";
    case NodeVerdict::kPort:
      return "with the host port taken";
    case NodeVerdict::kFits:
    case NodeVerdict::kGone:
    case NodeVerdict::kResources:
      break;
  }
  return "full";
}

// How people know what a pod belongs to.
std::string NameHolder(const cluster::State& state, const cluster::PodRecord& pod) {
  // A vcjob's PodGroup carries its uid in the name; people know the job.
  const StringId job = state.strings().Find("volcano.sh/job-name");
  for (const auto& [label, value] : pod.labels) {
    if (job.valid() && label == job) {
      return pod.ns + "/" + state.Text(value);
    }
  }
  if (pod.gang.valid() && state.gang(pod.gang).alive &&
      state.gang(pod.gang).source != cluster::GangSource::kLonePod) {
    return pod.ns + "/" + state.gang(pod.gang).name;
  }
  return pod.ns + "/" + pod.name;
}

// The pods on the nodes. On a large cluster all of this lies far apart and cold: it is called for
// before it is looked at, so that the waits overlap.
std::vector<PodId> PodsOf(const cluster::State& state, const std::vector<NodeId>& nodes) {
  for (const NodeId node : nodes) {
    __builtin_prefetch(state.PodsOn(node).data());
  }
  std::vector<PodId> pods;
  for (const NodeId node : nodes) {
    const std::vector<PodId>& here = state.PodsOn(node);
    pods.insert(pods.end(), here.begin(), here.end());
  }
  for (const PodId id : pods) {
    __builtin_prefetch(&state.pod(id).resource_class);
  }
  return pods;
}

// Who holds most of the resource, those further ahead in the fabric first among equals. A full
// domain may hold thousands of pods: little of each is read, and few are put into words.
void FindHolders(const cluster::State& state, const std::vector<NodeId>& nodes,
                 Shortage& shortage) {
  struct Holder {
    PodId pod;  // the first one
    int64_t amount = 0;
  };
  const std::vector<PodId> pods = PodsOf(state, nodes);
  std::vector<Holder> held;
  boost::unordered_flat_map<uint64_t, size_t> index;  // by gang, or pod without one; look-up only
  for (const PodId id : pods) {
    const cluster::PodRecord& pod = state.pod(id);
    const cluster::Request& request = state.fits().ClassRequest(pod.resource_class);
    const int64_t amount = cluster::AmountOf(request, shortage.resource);
    if (amount > 0) {
      const uint64_t key = pod.gang.valid() ? uint64_t{pod.gang.value} << 32U : id.value;
      const auto [at, fresh] = index.try_emplace(key, held.size());
      if (fresh) {
        held.push_back({id, 0});
      }
      held[at->second].amount += amount;
    }
  }
  shortage.holder_count = held.size();
  for (size_t i = 0; i < std::min(kMostHolders, held.size()); ++i) {
    const auto rest = held.begin() + static_cast<std::ptrdiff_t>(i);
    const auto most = std::ranges::max_element(rest, held.end(), {}, &Holder::amount);
    shortage.holders.emplace_back(NameHolder(state, state.pod(most->pod)), most->amount);
    std::rotate(rest, most, most + 1);
  }
}

// The resource that allows the fewest pods over the domain's nodes, among those this class asks
// for.
Shortage FindShortage(const cluster::State& state, const topology::Tree& tree, DomainId d,
                      ShapeId shape, int64_t missing, Room room) {
  const topology::Domain& domain = tree.at(d);
  const cluster::Columns& columns = state.columns();
  const cluster::Request& request = state.fits().ShapeRequest(shape);
  Shortage shortage;
  std::vector<int64_t> fits(request.size(), 0);
  std::vector<NodeId> nodes;
  for (uint32_t at = domain.lo; at < domain.hi; ++at) {
    if (at - domain.lo >= kMostNodes) {
      break;
    }
    const NodeId node = tree.order[at];
    const NodeVerdict verdict = state.fits().Judge(node, shape);
    if (verdict != NodeVerdict::kFits && verdict != NodeVerdict::kResources) {
      ++shortage.verdicts[verdict];
      continue;
    }
    nodes.push_back(node);
    for (size_t i = 0; i < request.size(); ++i) {
      const auto& [r, amount] = request[i];
      const int64_t free =
          (room == Room::kNow ? columns.free(r) : columns.allocatable(r))[node.index()];
      fits[i] = SaturatingAdd(fits[i], free < amount ? 0 : free / amount);
    }
  }
  // Resources other than pod slots, cpu and memory speak first when they tie: they are why people
  // ask for such nodes.
  size_t worst = request.size();
  for (size_t i = request.size(); i-- > 0;) {
    if (worst == request.size() || fits[i] < fits[worst]) {
      worst = i;
    }
  }
  const auto& ports = state.fits().ShapePredicates(shape).ports;
  if (!ports.empty() && fits[worst] >= static_cast<int64_t>(nodes.size())) {
    shortage.port = ports.front().port;
    return shortage;
  }
  if (!nodes.empty()) {
    shortage.resource = request[worst].first;
    shortage.amount = SaturatingMul(missing, request[worst].second);
    if (room == Room::kNow) {
      FindHolders(state, nodes, shortage);
    }
  }
  return shortage;
}

std::string ShortageWords(const cluster::State& state, const Shortage& shortage) {
  std::string text;
  if (shortage.resource.valid()) {
    const std::string& name = state.columns().ResourceName(shortage.resource);
    text += "; short of " + name + " by " + FormatQuantity(name, shortage.amount);
    for (size_t i = 0; i < shortage.holders.size(); ++i) {
      text += (i == 0 ? "; held by " : ", ") + shortage.holders[i].first + " (" +
              FormatQuantity(name, shortage.holders[i].second) + ")";
    }
    if (shortage.holder_count > shortage.holders.size()) {
      text += " and " + std::to_string(shortage.holder_count - shortage.holders.size()) + " more";
    }
  }
  if (shortage.port != 0) {
    text += "; each node takes one because of host port " + std::to_string(shortage.port);
  }
  for (const auto& [verdict, count] : shortage.verdicts) {
    text += "; " + Plural(count, "node") + " " + VerdictWords(verdict);
  }
  return text;
}

int64_t Total(const std::vector<int32_t>& counts) {
  int64_t sum = 0;
  for (const int32_t c : counts) {
    sum += c;
  }
  return sum;
}

// Required pods that each domain would take were it empty, by domain.
std::vector<int64_t> EmptyRoom(cluster::State& state, const topology::Tree& tree,
                               const Demand& demand) {
  std::vector<int64_t> pods(tree.domains.size(), 0);
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    const std::vector<int64_t> sums = state.fits().EmptySums(demand.classes[k], tree);
    for (size_t d = 0; d < sums.size(); ++d) {
      pods[d] += std::min<int64_t>(sums[d], demand.required_counts[k]);
    }
  }
  return pods;
}

// The domain as people know it.
std::string DomainWords(const topology::Tree& tree, DomainId d) {
  return tree.at(d).parent.valid() ? tree.at(d).name : "the cluster";
}

// "needs 16 pods in one leaf (tier 1)"
std::string AskWords(cluster::State& state, const cluster::Gang& gang, const Demand& demand,
                     const Scope& scope) {
  std::string words = "needs " + Plural(Total(demand.required_counts), "pod");
  if (!demand.placed.empty()) {
    words = "needs " + Plural(Total(demand.required_counts), "more pod") + " beside the " +
            std::to_string(demand.placed.size()) + " placed";
  }
  if (scope.kind == Scope::Kind::kRuled) {
    const topology::Tree& tree = *state.trees()[scope.trees.front().tree];
    if (scope.trees.front().limit < tree.root_rank()) {
      words += " in one " + TierWords(tree, scope.trees.front().limit);
    }
    for (const UniformGroups& u : demand.required.uniform) {
      const uint16_t limit = LimitRank(tree, gang.policies[u.policy].rule);
      if (gang.policies[u.policy].rule.mode == cluster::TopologyRule::Mode::kHard && limit > 0) {
        words += ", as " + Plural(static_cast<int64_t>(u.sub_groups.size()), "group") + " of " +
                 std::to_string(u.size) + " in one " + TierWords(tree, limit) + " each";
      }
    }
  }
  return words;
}

// Pods of class k that d would take were it empty, up to what is required.
int64_t FitEmptyOf(const cluster::State& state, const topology::Tree& tree, DomainId d,
                   const Demand& demand, size_t k) {
  const topology::Domain& domain = tree.at(d);
  const int64_t wanted = demand.required_counts[k];
  int64_t fit = 0;
  for (uint32_t at = domain.lo; at < domain.hi && fit < wanted; ++at) {
    fit += state.fits().FitEmpty(tree.order[at], demand.classes[k]);
  }
  return std::min(fit, wanted);
}

int64_t FitEmpty(const cluster::State& state, const topology::Tree& tree, DomainId d,
                 const Demand& demand) {
  int64_t pods = 0;
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    pods += FitEmptyOf(state, tree, d, demand, k);
  }
  return pods;
}

// The most that d could take were all its nodes as large as the largest.
int64_t EmptyBound(const cluster::State& state, const topology::Tree& tree, DomainId d,
                   const Demand& demand) {
  int64_t pods = 0;
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    pods += std::min<int64_t>(tree.at(d).node_count() * state.fits().MostPerNode(demand.classes[k]),
                              demand.required_counts[k]);
  }
  return pods;
}

// The domain that would take most required pods on the empty cluster, the first of several. Domains
// that cannot better the best are passed over; where many must be looked at, one sweep over all
// nodes is cheaper.
BestEffortDomain FindBestEmpty(cluster::State& state, const Demand& demand, const Scope& scope) {
  BestEffortDomain best;
  for (const TreeScope& s : scope.trees) {
    const topology::Tree& tree = *state.trees()[s.tree];
    int64_t looked = 0;
    std::vector<int64_t> swept;
    ForEachAllowed(tree, s, [&](DomainId d) {
      if (best.domain.valid() && EmptyBound(state, tree, d, demand) <= best.pods) {
        return;
      }
      looked += tree.at(d).node_count();
      if (looked > int64_t{kMostNodes} && swept.empty()) {
        swept = EmptyRoom(state, tree, demand);
      }
      const int64_t pods = swept.empty() ? FitEmpty(state, tree, d, demand) : swept[d.index()];
      if (!best.domain.valid() || pods > best.pods) {
        best = {s.tree, d, pods};
      }
    });
  }
  return best;
}

// Whether the domain could take all required pods were it empty: what is missing there can come
// free.
bool CanComeFree(const cluster::State& state, const topology::Tree& tree, DomainId d,
                 const Demand& demand) {
  return FitEmpty(state, tree, d, demand) >= Total(demand.required_counts);
}

// Of the domains that take as many pods now as `best`, the first that can come free; none when the
// first few cannot.
std::optional<BestEffortDomain> RoomiestOfEqual(cluster::State& state, const Demand& demand,
                                                const Scope& scope, const BestEffortDomain& best) {
  const Trial trial(state, best.tree, demand.classes);
  const topology::Tree& tree = trial.tree();
  std::optional<BestEffortDomain> found;
  size_t looked = 0;
  for (const TreeScope& s : scope.trees) {
    if (s.tree != best.tree) {
      continue;
    }
    ForEachAllowed(tree, s, [&](DomainId d) {
      if (found || d < best.domain || looked >= kMostEqual ||
          FitBySums(trial, d, demand.required_counts) != best.pods) {
        return;
      }
      ++looked;
      if (CanComeFree(state, tree, d, demand)) {
        found = {best.tree, d, best.pods};
      }
    });
  }
  return found;
}

// A scope that spans the cluster, for gangs without a rule.
Scope WholeCluster(cluster::State& state) {
  Scope scope;
  TreeScope tree;
  tree.limit = state.trees()[0]->root_rank();
  tree.anchors.Finish();
  scope.trees.push_back(std::move(tree));
  return scope;
}

size_t ScarcestClass(cluster::State& state, const BestEffortDomain& best, const Demand& demand) {
  const Trial trial(state, best.tree, demand.classes);
  size_t scarcest = 0;
  int64_t most = -1;
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    const int64_t missing = demand.required_counts[k] - trial.View(k).sums[best.domain.index()];
    if (missing > most) {
      most = missing;
      scarcest = k;
    }
  }
  return scarcest;
}

// The class of which most pods are missing were d empty.
size_t ScarcestEmpty(const cluster::State& state, const topology::Tree& tree, DomainId d,
                     const Demand& demand) {
  size_t scarcest = 0;
  int64_t most = -1;
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    const int64_t missing = demand.required_counts[k] - FitEmptyOf(state, tree, d, demand, k);
    if (missing > most) {
      most = missing;
      scarcest = k;
    }
  }
  return scarcest;
}

// `empty`: the domain that would take most on the empty cluster, less than is asked for.
Refusal NeverFits(cluster::State& state, const Demand& demand, const BestEffortDomain& empty,
                  const std::string& ask) {
  Refusal refusal;
  refusal.verdict = Verdict::kNever;
  refusal.reason = "NeverFits";
  if (!empty.domain.valid() || state.trees()[empty.tree]->at(empty.domain).node_count() == 0) {
    refusal.message = ask + ", but no node is there";
    return refusal;
  }
  const topology::Tree& tree = *state.trees()[empty.tree];
  const ShapeId scarce = demand.classes[ScarcestEmpty(state, tree, empty.domain, demand)];
  const int64_t missing = Total(demand.required_counts) - empty.pods;
  const Shortage shortage =
      FindShortage(state, tree, empty.domain, scarce, missing, Room::kWhenEmpty);
  refusal.message = ask + ", which never fits: the largest, " + DomainWords(tree, empty.domain) +
                    ", takes " + std::to_string(empty.pods) + " even when empty" +
                    ShortageWords(state, shortage);
  return refusal;
}

}  // namespace

std::string TierWords(const topology::Tree& tree, uint16_t rank) {
  if (rank == 0 || rank > tree.tiers.size()) {
    return "cluster";
  }
  const std::string number = std::to_string(tree.tiers[rank - 1U]);
  const std::string& name = tree.tier_names[rank - 1U];
  return name.empty() ? "tier-" + number + " domain" : name + " (tier " + number + ")";
}

std::string QueueProblem(const cluster::State& state, QueueId queue,
                         const std::vector<int64_t>& request) {
  for (QueueId q = queue; q.valid(); q = state.queue(q).parent) {
    const cluster::Queue& record = state.queue(q);
    for (size_t r = 0; r < request.size(); ++r) {
      const ResourceId resource(r);
      const int64_t limit = record.CapabilityOf(resource);
      const int64_t used = record.AllocatedOf(resource);
      if (request[r] > 0 && limit >= 0 && SaturatingAdd(used, request[r]) > limit) {
        const std::string& name = state.columns().ResourceName(resource);
        const std::string verb =
            request[r] > limit ? " can never admit it: " : " has no share left: ";
        return "queue " + record.name + verb + name + " limit " + FormatQuantity(name, limit) +
               ", used " + FormatQuantity(name, used) + ", asked " +
               FormatQuantity(name, request[r]);
      }
    }
  }
  return "";
}

bool QueueNeverAdmits(const cluster::State& state, QueueId queue,
                      const std::vector<int64_t>& request) {
  for (QueueId q = queue; q.valid(); q = state.queue(q).parent) {
    for (size_t r = 0; r < request.size(); ++r) {
      const int64_t limit = state.queue(q).CapabilityOf(ResourceId(r));
      if (limit >= 0 && request[r] > limit) {
        return true;
      }
    }
  }
  return false;
}

Refusal ExplainNever(cluster::State& state, GangId id, const Demand& demand, const Scope& given) {
  const Scope scope = given.kind == Scope::Kind::kRuled ? given : WholeCluster(state);
  return NeverFits(state, demand, FindBestEmpty(state, demand, scope),
                   AskWords(state, state.gang(id), demand, given));
}

Refusal ExplainNoFit(cluster::State& state, GangId id, const Demand& demand, const Scope& given,
                     bool undecided) {
  const cluster::Gang& gang = state.gang(id);
  const Scope scope = given.kind == Scope::Kind::kRuled ? given : WholeCluster(state);
  const std::string ask = AskWords(state, gang, demand, given);
  const int64_t wanted = Total(demand.required_counts);
  BestEffortDomain best = FindBest(state, demand, scope);
  if (!best.domain.valid()) {
    return NeverFits(state, demand, best, ask);
  }
  const bool by_shape = best.pods >= wanted;  // sums suffice: the pieces do not go in
  if (!by_shape) {
    if (const auto roomiest = RoomiestOfEqual(state, demand, scope, best)) {
      best = *roomiest;
    } else if (const BestEffortDomain empty = FindBestEmpty(state, demand, scope);
               empty.pods < wanted) {
      return NeverFits(state, demand, empty, ask);
    }
  }
  const topology::Tree& tree = *state.trees()[best.tree];
  Refusal refusal;
  refusal.reason = "NotEnoughResources";
  refusal.message = ask + ": best is " + DomainWords(tree, best.domain) + " with room for " +
                    std::to_string(best.pods);
  if (by_shape) {
    refusal.message += " by count, but not in the shape asked for";
    refusal.verdict = undecided ? Verdict::kUndecided : Verdict::kNotNow;
    return refusal;
  }
  const Shortage shortage =
      FindShortage(state, tree, best.domain, demand.classes[ScarcestClass(state, best, demand)],
                   wanted - best.pods, Room::kNow);
  refusal.message += ShortageWords(state, shortage);
  return refusal;
}

Refusal ExplainSurplus(cluster::State& state, GangId id, const Demand& demand, const Scope& given) {
  const cluster::Gang& gang = state.gang(id);
  const Scope scope = given.kind == Scope::Kind::kRuled ? given : WholeCluster(state);
  Refusal refusal;
  refusal.reason = "NotEnoughResources";
  refusal.message = "has its minimum (" + std::to_string(demand.placed.size()) + " placed, " +
                    std::to_string(std::max(1, gang.min_member)) + " needed); " +
                    Plural(demand.waiting, "more pod") + " wait" + (demand.waiting == 1 ? "s" : "");
  Demand surplus = demand;
  surplus.required_counts = demand.all_counts;
  const BestEffortDomain best = FindBest(state, surplus, scope);
  if (best.domain.valid()) {
    const topology::Tree& tree = *state.trees()[best.tree];
    const size_t scarce = ScarcestClass(state, best, surplus);
    const int64_t missing = std::max<int64_t>(1, Total(demand.all_counts) - best.pods);
    refusal.message +=
        " for room in " + DomainWords(tree, best.domain) +
        ShortageWords(state, FindShortage(state, tree, best.domain, demand.classes[scarce], missing,
                                          Room::kNow));
  }
  return refusal;
}

}  // namespace hopwise::sched
