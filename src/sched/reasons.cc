#include "sched/reasons.h"

#include <algorithm>
#include <map>

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

// What keeps more pods out of a domain.
struct Shortage {
  ResourceId resource;  // none: room is there, the nodes are refused
  int64_t amount = 0;
  std::map<NodeVerdict, int64_t> verdicts;
  std::vector<std::pair<std::string, int64_t>>
      holders;       // gang, amount of the resource it holds here
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

std::string GangName(const cluster::State& state, const cluster::PodRecord& pod) {
  // A vcjob's PodGroup carries its uid in the name; people know the job.
  const StringId key = state.strings().Find("volcano.sh/job-name");
  for (const auto& [label, value] : pod.labels) {
    if (key.valid() && label == key) {
      return pod.ns + "/" + state.Text(value);
    }
  }
  if (pod.gang.valid() && state.gang(pod.gang).alive &&
      state.gang(pod.gang).source != cluster::GangSource::kLonePod) {
    return pod.ns + "/" + state.gang(pod.gang).name;
  }
  return pod.ns + "/" + pod.name;
}

void FindHolders(const cluster::State& state, const std::vector<NodeId>& nodes,
                 Shortage& shortage) {
  std::map<std::string, int64_t> held;
  for (const NodeId node : nodes) {
    for (const PodId id : state.PodsOn(node)) {
      const cluster::PodRecord& pod = state.pod(id);
      for (const auto& [r, amount] : state.fits().ClassRequest(pod.resource_class)) {
        if (r == shortage.resource) {
          held[GangName(state, pod)] += amount;
        }
      }
    }
  }
  shortage.holders.assign(held.begin(), held.end());
  std::ranges::sort(shortage.holders, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
}

// The resource that allows the fewest pods over the domain's nodes, among those this class asks
// for.
Shortage FindShortage(const cluster::State& state, const topology::Tree& tree, DomainId d,
                      ShapeId shape, int64_t missing) {
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
          SaturatingSub(columns.allocatable(r)[node.index()], columns.used(r)[node.index()]);
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
    FindHolders(state, nodes, shortage);
  }
  return shortage;
}

std::string ShortageWords(const cluster::State& state, const Shortage& shortage, bool holders) {
  std::string text;
  if (shortage.resource.valid()) {
    const std::string& name = state.columns().ResourceName(shortage.resource);
    text += "; short of " + name + " by " + FormatQuantity(name, shortage.amount);
    for (size_t i = 0; holders && i < std::min(kMostHolders, shortage.holders.size()); ++i) {
      text += (i == 0 ? "; held by " : ", ") + shortage.holders[i].first + " (" +
              FormatQuantity(name, shortage.holders[i].second) + ")";
    }
    if (holders && shortage.holders.size() > kMostHolders) {
      text += " and " + std::to_string(shortage.holders.size() - kMostHolders) + " more";
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

// The domain as people know it.
std::string DomainWords(const topology::Tree& tree, DomainId d) {
  return tree.at(d).parent.valid() ? tree.at(d).name : "the cluster";
}

struct Ask {
  std::string words;  // "needs 16 pods in one leaf (tier 1)"
  bool hard = false;
};

Ask AskWords(cluster::State& state, const cluster::Gang& gang, const Demand& demand,
             const Scope& scope) {
  Ask ask;
  ask.words = "needs " + Plural(Total(demand.required_counts), "pod");
  if (!demand.placed.empty()) {
    ask.words = "needs " + Plural(Total(demand.required_counts), "more pod") + " beside the " +
                std::to_string(demand.placed.size()) + " placed";
  }
  if (scope.kind == Scope::Kind::kRuled) {
    const topology::Tree& tree = *state.trees()[scope.trees.front().tree];
    ask.hard = scope.trees.front().limit < tree.root_rank();
    if (ask.hard) {
      ask.words += " in one " + TierWords(tree, scope.trees.front().limit);
    }
    for (const UniformGroups& u : demand.required.uniform) {
      const uint16_t limit = LimitRank(tree, gang.policies[u.policy].rule);
      if (gang.policies[u.policy].rule.mode == cluster::TopologyRule::Mode::kHard && limit > 0) {
        ask.words += ", as " + Plural(static_cast<int64_t>(u.sub_groups.size()), "group") + " of " +
                     std::to_string(u.size) + " in one " + TierWords(tree, limit) + " each";
      }
    }
  }
  return ask;
}

// Pods of each class that d would take were it empty of pods, capped at `enough`.
int64_t FitEmpty(const cluster::State& state, const topology::Tree& tree, DomainId d,
                 const Demand& demand) {
  const topology::Domain& domain = tree.at(d);
  int64_t pods = 0;
  for (size_t k = 0; k < demand.classes.size(); ++k) {
    int64_t fit = 0;
    for (uint32_t at = domain.lo; at < domain.hi && fit < demand.required_counts[k]; ++at) {
      fit += state.fits().FitEmpty(tree.order[at], demand.classes[k]);
    }
    pods += std::min<int64_t>(fit, demand.required_counts[k]);
  }
  return pods;
}

// The domain that would take most required pods on the empty cluster.
BestEffortDomain FindBestEmpty(cluster::State& state, const Demand& demand, const Scope& scope) {
  BestEffortDomain best;
  for (const TreeScope& tree_scope : scope.trees) {
    const topology::Tree& tree = *state.trees()[tree_scope.tree];
    std::vector<int64_t> pods(tree.domains.size(), 0);
    for (size_t k = 0; k < demand.classes.size(); ++k) {
      const std::vector<int64_t> sums = state.fits().EmptySums(demand.classes[k], tree);
      for (size_t d = 0; d < sums.size(); ++d) {
        pods[d] += std::min<int64_t>(sums[d], demand.required_counts[k]);
      }
    }
    for (uint32_t d = 0; d < tree.domains.size(); ++d) {
      const bool allowed = tree.domains[d].rank <= tree_scope.limit &&
                           (!tree_scope.anchors.common().valid() ||
                            tree.Contains(DomainId(d), tree_scope.anchors.common()));
      if (allowed && (!best.domain.valid() || pods[d] > best.pods)) {
        best = {tree_scope.tree, DomainId(d), pods[d]};
      }
    }
  }
  return best;
}

// Of the domains that take as many pods now as `best`, the first that could take all were it empty:
// what is missing there can come free.
BestEffortDomain RoomiestOfEqual(cluster::State& state, const Demand& demand, const Scope& scope,
                                 BestEffortDomain best) {
  const int64_t wanted = Total(demand.required_counts);
  if (!best.domain.valid() || best.pods >= wanted) {
    return best;
  }
  const Trial trial(state, best.tree, demand.classes);
  const topology::Tree& tree = trial.tree();
  size_t looked = 0;
  for (const TreeScope& s : scope.trees) {
    for (uint32_t d = best.domain.value;
         s.tree == best.tree && d < tree.domains.size() && looked < kMostEqual; ++d) {
      const bool equal =
          tree.domains[d].rank <= s.limit &&
          FitBySums(trial, DomainId(d), demand.required_counts) == best.pods &&
          (!s.anchors.common().valid() || tree.Contains(DomainId(d), s.anchors.common()));
      looked += equal ? 1U : 0U;
      if (equal && FitEmpty(state, tree, DomainId(d), demand) >= wanted) {
        return {best.tree, DomainId(d), best.pods};
      }
    }
  }
  return best;
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

Refusal ExplainNoFit(cluster::State& state, GangId id, const Demand& demand, const Scope& given,
                     bool undecided) {
  const cluster::Gang& gang = state.gang(id);
  const Scope scope = given.kind == Scope::Kind::kRuled ? given : WholeCluster(state);
  const Ask ask = AskWords(state, gang, demand, given);
  const int64_t wanted = Total(demand.required_counts);
  const BestEffortDomain best =
      RoomiestOfEqual(state, demand, scope, FindBest(state, demand, scope));
  Refusal refusal;
  refusal.reason = "NotEnoughResources";
  if (!best.domain.valid()) {
    refusal.message = ask.words + ", but no node is there";
    refusal.verdict = Verdict::kNever;
    refusal.reason = "NeverFits";
    return refusal;
  }
  const topology::Tree& tree = *state.trees()[best.tree];
  const size_t scarce = ScarcestClass(state, best, demand);
  const bool by_shape = best.pods >= wanted;  // sums suffice: the pieces do not go in
  if (!by_shape && FitEmpty(state, tree, best.domain, demand) < wanted) {
    const BestEffortDomain empty = FindBestEmpty(state, demand, scope);
    if (empty.pods < wanted) {
      const topology::Tree& where = *state.trees()[empty.tree];
      refusal.verdict = Verdict::kNever;
      refusal.reason = "NeverFits";
      const Shortage shortage =
          FindShortage(state, where, empty.domain, demand.classes[scarce], wanted - empty.pods);
      refusal.message = ask.words + ", which never fits: the largest, " +
                        DomainWords(where, empty.domain) + ", takes " + std::to_string(empty.pods) +
                        " even when empty" + ShortageWords(state, shortage, false);
      return refusal;
    }
  }
  refusal.message = ask.words + ": best is " + DomainWords(tree, best.domain) + " with room for " +
                    std::to_string(best.pods);
  if (by_shape) {
    refusal.message += " by count, but not in the shape asked for";
    refusal.verdict = undecided ? Verdict::kUndecided : Verdict::kNotNow;
    return refusal;
  }
  const Shortage shortage =
      FindShortage(state, tree, best.domain, demand.classes[scarce], wanted - best.pods);
  refusal.message += ShortageWords(state, shortage, true);
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
        ShortageWords(
            state, FindShortage(state, tree, best.domain, demand.classes[scarce], missing), true);
  }
  return refusal;
}

}  // namespace hopwise::sched
