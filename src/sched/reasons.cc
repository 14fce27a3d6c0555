#include "sched/reasons.h"

#include <algorithm>
#include <map>
#include <optional>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/quantity.h"
#include "sched/empty_room.h"
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
  // Of what not even an empty node has enough of for one pod: what the pod asks for, and the most
  // that a node has. Else 0.
  int64_t each = 0, largest = 0;
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
    case NodeVerdict::kAvoided:
      return "refused such a pod lately";
    case NodeVerdict::kPort:
      return "with the host port taken";
    case NodeVerdict::kPodAffinity:
      return "without the pods it must stand beside";
    case NodeVerdict::kPodAntiAffinity:
      return "beside pods it keeps away from";
    case NodeVerdict::kKeptAway:
      return "beside pods that keep it away";
    case NodeVerdict::kSpread:
      return "against its topology spread";
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

// Who but the gang that asks holds most of the resource, those further ahead in the fabric first
// among equals. A full domain may hold thousands of pods: little of each is read, and few are put
// into words.
void FindHolders(const cluster::State& state, const std::vector<NodeId>& nodes, GangId asks,
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
    if (amount > 0 && !(pod.gang.valid() && pod.gang == asks)) {
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
                      ShapeId shape, int64_t missing, Room room, GangId asks) {
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
    if (room == Room::kWhenEmpty && fits[worst] == 0) {
      const auto& there = columns.allocatable(request[worst].first);
      shortage.each = request[worst].second;
      for (const NodeId node : nodes) {
        shortage.largest = std::max(shortage.largest, there[node.index()]);
      }
    }
    if (room == Room::kNow) {
      FindHolders(state, nodes, asks, shortage);
    }
  }
  return shortage;
}

std::string ShortageWords(const cluster::State& state, const Shortage& shortage) {
  std::string text;
  if (shortage.each > 0) {
    const std::string& name = state.columns().ResourceName(shortage.resource);
    text += "; no node has " + FormatQuantity(name, shortage.each) + " of " + name +
            ", the most that one has is " + FormatQuantity(name, shortage.largest);
  } else if (shortage.resource.valid()) {
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

// Of the domains that take as many pods now as `best`, the first that could hold all; none when the
// first few could not.
std::optional<BestEffortDomain> RoomiestOfEqual(cluster::State& state, const Demand& demand,
                                                const Scope& scope, const EmptyRoom& empty,
                                                const BestEffortDomain& best) {
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
      if (empty.LackOf(tree, d).kind == Lack::Kind::kNothing) {
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

// The class of which most pods are missing were everybody else gone.
size_t ScarcestEmpty(const EmptyRoom& empty, const topology::Tree& tree, DomainId d,
                     const Demand& demand) {
  size_t scarcest = 0;
  int64_t most = -1;
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    const int64_t wanted = demand.required_counts[k];
    const int64_t missing = wanted - empty.FitOf(tree, d, k, wanted);
    if (missing > most) {
      most = missing;
      scarcest = k;
    }
  }
  return scarcest;
}

Refusal NeverFits(cluster::State& state, const Demand& demand, const Scope& scope,
                  const EmptyRoom& empty, const std::string& ask) {
  Refusal refusal;
  refusal.verdict = Verdict::kNever;
  refusal.reason = "NeverFits";
  const BestEffortDomain best = empty.Best(scope);
  if (!best.domain.valid() || state.trees()[best.tree]->at(best.domain).node_count() == 0) {
    refusal.message = ask + ", but no node is there";
    return refusal;
  }
  const topology::Tree& tree = *state.trees()[best.tree];
  const std::string when = empty.holds_some() ? " with everybody else gone" : " when empty";
  refusal.message = ask + ", which never fits: the largest, " + DomainWords(tree, best.domain);
  const int64_t missing = Total(demand.required_counts) - best.pods;
  const Lack lack = empty.LackOf(tree, best.domain);
  if (missing > 0 || lack.kind == Lack::Kind::kPods || lack.kind == Lack::Kind::kNothing) {
    const ShapeId scarce = demand.classes[ScarcestEmpty(empty, tree, best.domain, demand)];
    refusal.message += ", takes " + std::to_string(best.pods) + " even" + when +
                       ShortageWords(state, FindShortage(state, tree, best.domain, scarce, missing,
                                                         Room::kWhenEmpty, GangId()));
  } else if (lack.kind == Lack::Kind::kGroups) {
    refusal.message += ", completes " + std::to_string(lack.room) + " of the " +
                       Plural(static_cast<int64_t>(lack.groups->sub_groups.size()), "group") +
                       " of " + std::to_string(lack.groups->size) + " even" + when;
  } else {
    const std::string& name = state.columns().ResourceName(lack.resource);
    refusal.message += ", has " + FormatQuantity(name, lack.there) + " of " + name + " even" +
                       when + ", and " + FormatQuantity(name, lack.asked) + " are asked for";
  }
  return refusal;
}

// Sums suffice, but sub-groups do not come together: how many do, and what the next one misses.
std::string GroupShortage(cluster::State& state, GangId id, const Demand& demand,
                          const BestEffortDomain& best) {
  const Trial trial(state, best.tree, demand.classes);
  const topology::Tree& tree = trial.tree();
  for (const UniformGroups& u : demand.required.uniform) {
    const cluster::TopologyRule& rule = state.gang(id).policies[u.policy].rule;
    const uint16_t limit = std::min(LimitRank(tree, rule), tree.at(best.domain).rank);
    const RoomView view = trial.View(u.k);
    const int64_t room = limit == 0 ? 0 : GroupRoom(tree, view, best.domain, u.size, limit);
    const auto groups = static_cast<int64_t>(u.sub_groups.size());
    if (rule.mode != cluster::TopologyRule::Mode::kHard || room >= groups) {
      continue;
    }
    DomainId next;
    for (uint32_t d = best.domain.value; d < tree.at(best.domain).end; ++d) {
      const bool nearer =
          tree.domains[d].rank == limit &&
          (!next.valid() || view.sums[d] % u.size > view.sums[next.index()] % u.size);
      next = nearer ? DomainId(d) : next;
    }
    std::string text = " by count, which completes " + std::to_string(room) + " of the " +
                       Plural(groups, "group") + " of " + std::to_string(u.size);
    if (next.valid()) {
      const int64_t have = view.sums[next.index()] % u.size;
      text += "; the next would be in " + DomainWords(tree, next) + " with room for " +
              std::to_string(have) +
              ShortageWords(state, FindShortage(state, tree, next, demand.classes[u.k],
                                                u.size - have, Room::kNow, id));
    }
    return text;
  }
  return " by count, but not in the shape asked for";
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

std::optional<QueueRefusal> QueueRefuses(const cluster::State& state, const cluster::Gang& gang) {
  std::string name = gang.queue_name;
  QueueId id = gang.queue;
  // A circle of parents is cut by the state, so the walk ends at root.
  while (true) {
    const std::string above =
        name == gang.queue_name ? "" : ", above queue " + gang.queue_name + ",";
    if (!id.valid()) {
      return QueueRefusal{"QueueNotFound", "queue " + name + above + " not found"};
    }
    const cluster::Queue& queue = state.queue(id);
    if (!queue.open) {
      return QueueRefusal{"QueueClosed", "queue " + name + above + " is not open"};
    }
    const bool missing = !queue.parent_name.empty() && !state.FindQueue(queue.parent_name).valid();
    name = missing ? queue.parent_name : queue.parent.valid() ? state.queue(queue.parent).name : "";
    id = missing ? QueueId() : queue.parent;
    if (name.empty()) {
      return std::nullopt;
    }
  }
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
  const EmptyRoom empty(state, state.gang(id), demand);
  return NeverFits(state, demand, scope, empty, AskWords(state, state.gang(id), demand, given));
}

Refusal ExplainNoFit(cluster::State& state, GangId id, const Demand& demand, const Scope& given,
                     bool undecided) {
  const cluster::Gang& gang = state.gang(id);
  const Scope scope = given.kind == Scope::Kind::kRuled ? given : WholeCluster(state);
  const std::string ask = AskWords(state, gang, demand, given);
  const int64_t wanted = Total(demand.required_counts);
  const EmptyRoom empty(state, gang, demand);
  BestEffortDomain best = FindBest(state, demand, scope);
  if (!best.domain.valid()) {
    return NeverFits(state, demand, scope, empty, ask);
  }
  if (const auto roomiest = RoomiestOfEqual(state, demand, scope, empty, best)) {
    best = *roomiest;
  } else if (!empty.AnyCanHold(scope)) {
    return NeverFits(state, demand, scope, empty, ask);
  }
  const topology::Tree& tree = *state.trees()[best.tree];
  Refusal refusal;
  refusal.reason = "NotEnoughResources";
  refusal.message = ask + ": best is " + DomainWords(tree, best.domain) + " with room for " +
                    std::to_string(best.pods);
  if (best.pods >= wanted) {
    refusal.message += GroupShortage(state, id, demand, best);
    refusal.verdict = undecided ? Verdict::kUndecided : Verdict::kNotNow;
    return refusal;
  }
  const Shortage shortage =
      FindShortage(state, tree, best.domain, demand.classes[ScarcestClass(state, best, demand)],
                   wanted - best.pods, Room::kNow, id);
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
                    Plural(demand.waiting, "more pod");
  Demand surplus = demand;
  surplus.required_counts = demand.all_counts;
  const BestEffortDomain best = FindBest(state, surplus, scope);
  if (!best.domain.valid()) {
    refusal.message += demand.waiting == 1 ? " waits" : " wait";
    return refusal;
  }
  const topology::Tree& tree = *state.trees()[best.tree];
  const EmptyRoom empty(state, gang, surplus);
  if (empty.Best(scope).pods == 0) {
    refusal.verdict = Verdict::kNever;
    refusal.message += " can never follow: " + DomainWords(tree, best.domain) +
                       " has no room for any, even with everybody else gone";
    return refusal;
  }
  const size_t scarce = ScarcestClass(state, best, surplus);
  const int64_t missing = std::max<int64_t>(1, Total(demand.all_counts) - best.pods);
  refusal.message +=
      (demand.waiting == 1 ? " waits" : " wait") + std::string(" for room in ") +
      DomainWords(tree, best.domain) +
      ShortageWords(state, FindShortage(state, tree, best.domain, demand.classes[scarce], missing,
                                        Room::kNow, id));
  return refusal;
}

}  // namespace hopwise::sched
