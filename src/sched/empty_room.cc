#include "sched/empty_room.h"

#include <algorithm>

#include "base/quantity.h"
#include "sched/split_groups.h"

namespace hopwise::sched {
namespace {

// Where more nodes than this must be looked at one by one, a sweep over all is cheaper.
constexpr int64_t kMostNodes = 1024;

}  // namespace

EmptyRoom::EmptyRoom(cluster::State& state, const cluster::Gang& gang, const Demand& demand)
    : state_(state), gang_(gang), demand_(demand) {
  for (const PodId id : demand.placed) {
    const cluster::PodRecord& pod = state.pod(id);
    if (!cluster::HoldsRoom(pod.state) || !pod.node.valid()) {
      continue;
    }
    const auto at =
        std::ranges::lower_bound(own_, pod.node, {}, [](const auto& o) { return o.first; });
    const bool fresh = at == own_.end() || at->first != pod.node;
    auto& [node, amounts] = fresh ? *own_.insert(at, {pod.node, {}}) : *at;
    amounts.resize(state.columns().resource_count(), 0);
    for (const auto& [r, amount] : state.RequestOf(id)) {
      amounts[r.index()] = SaturatingAdd(amounts[r.index()], amount);
    }
  }
}

const std::vector<int64_t>* EmptyRoom::OwnOn(NodeId node) const {
  const auto at = std::ranges::lower_bound(own_, node, {}, [](const auto& o) { return o.first; });
  return at != own_.end() && at->first == node ? &at->second : nullptr;
}

int64_t EmptyRoom::FitNode(NodeId node, size_t k) const {
  int64_t fit = state_.fits().FitEmpty(node, demand_.classes[k]);
  const std::vector<int64_t>* own = fit > 0 ? OwnOn(node) : nullptr;
  if (own != nullptr) {
    for (const auto& [r, amount] : state_.fits().ShapeRequest(demand_.classes[k])) {
      const int64_t free = state_.columns().allocatable(r)[node.index()] - (*own)[r.index()];
      fit = std::min(fit, free < amount ? 0 : free / amount);
    }
  }
  return fit;
}

int64_t EmptyRoom::FitOf(const topology::Tree& tree, DomainId d, size_t k, int64_t most) const {
  const topology::Domain& domain = tree.at(d);
  int64_t fit = 0;
  for (uint32_t at = domain.lo; at < domain.hi && fit < most; ++at) {
    fit += FitNode(tree.order[at], k);
  }
  return std::min(fit, most);
}

int64_t EmptyRoom::Fit(const topology::Tree& tree, DomainId d) const {
  int64_t pods = 0;
  for (size_t k = 0; k < demand_.classes.size(); ++k) {
    pods += FitOf(tree, d, k, demand_.required_counts[k]);
  }
  return pods;
}

EmptyRoom::Sums EmptyRoom::SumsIn(const topology::Tree& tree, DomainId d) const {
  const topology::Domain& domain = tree.at(d);
  Sums sums(demand_.classes.size());
  for (size_t k = 0; k < sums.size(); ++k) {
    sums[k].assign(tree.domains.size(), 0);
    for (uint32_t at = domain.lo; at < domain.hi; ++at) {
      const NodeId node = tree.order[at];
      sums[k][tree.leaf_of[node.index()].index()] += FitNode(node, k);
    }
    for (uint32_t child = domain.end; child-- > d.value + 1;) {
      sums[k][tree.domains[child].parent.index()] += sums[k][child];
    }
  }
  return sums;
}

EmptyRoom::Sums EmptyRoom::SumsOfAll(const topology::Tree& tree) const {
  Sums sums(demand_.classes.size());
  for (size_t k = 0; k < sums.size(); ++k) {
    sums[k] = state_.fits().EmptySums(demand_.classes[k], tree);
    for (const auto& [node, amounts] : own_) {
      const int64_t held = state_.fits().FitEmpty(node, demand_.classes[k]) - FitNode(node, k);
      for (DomainId d = tree.leaf_of[node.index()]; d.valid(); d = tree.at(d).parent) {
        sums[k][d.index()] -= held;
      }
    }
  }
  return sums;
}

// Classes share nodes, so that each may fit alone and not all together.
Lack EmptyRoom::LackOfAmounts(const topology::Tree& tree, DomainId d) const {
  const size_t resources = state_.columns().resource_count();
  std::vector<int64_t> asked(resources, 0);
  for (size_t k = 0; k < demand_.classes.size(); ++k) {
    for (const auto& [r, amount] : state_.fits().ShapeRequest(demand_.classes[k])) {
      asked[r.index()] =
          SaturatingAdd(asked[r.index()], SaturatingMul(amount, demand_.required_counts[k]));
    }
  }
  std::vector<int64_t> there(resources, 0);
  for (uint32_t at = tree.at(d).lo; at < tree.at(d).hi; ++at) {
    const NodeId node = tree.order[at];
    const std::vector<int64_t>* own = OwnOn(node);
    for (size_t r = 0; r < resources; ++r) {
      const int64_t held = own == nullptr ? 0 : (*own)[r];
      const int64_t free = state_.columns().allocatable(ResourceId(r))[node.index()] - held;
      there[r] = SaturatingAdd(there[r], std::max<int64_t>(0, free));
    }
  }
  Lack lack;
  // Pod slots and the like come first in the columns; what people ask such nodes for comes last.
  for (size_t r = 0; r < resources; ++r) {
    if (asked[r] > there[r]) {
      lack = {Lack::Kind::kAmount, nullptr, 0, ResourceId(r), there[r], asked[r]};
    }
  }
  return lack;
}

Lack EmptyRoom::LackBy(const topology::Tree& tree, DomainId d, const Sums& sums) const {
  Lack lack;
  for (size_t k = 0; k < sums.size(); ++k) {
    if (sums[k][d.index()] < demand_.required_counts[k]) {
      lack.kind = Lack::Kind::kPods;
      return lack;
    }
  }
  for (const UniformGroups& u : demand_.required.uniform) {
    const cluster::TopologyRule& rule = gang_.policies[u.policy].rule;
    if (rule.mode != cluster::TopologyRule::Mode::kHard) {
      continue;
    }
    const uint16_t limit = std::min(LimitRank(tree, rule), tree.at(d).rank);
    const RoomView view{nullptr, sums[u.k].data(), 0};
    const int64_t room = limit == 0 ? 0 : GroupRoom(tree, view, d, u.size, limit);
    if (room < static_cast<int64_t>(u.sub_groups.size())) {
      lack = {Lack::Kind::kGroups, &u, room, ResourceId(), 0, 0};
      return lack;
    }
  }
  return demand_.classes.size() > 1 ? LackOfAmounts(tree, d) : lack;
}

Lack EmptyRoom::LackOf(const topology::Tree& tree, DomainId d) const {
  const bool large = tree.at(d).node_count() > kMostNodes;
  return LackBy(tree, d, large ? SumsOfAll(tree) : SumsIn(tree, d));
}

bool EmptyRoom::AnyCanHold(const Scope& scope) const {
  for (const TreeScope& s : scope.trees) {
    const topology::Tree& tree = *state_.trees()[s.tree];
    const Sums sums = SumsOfAll(tree);
    bool found = false;
    ForEachAllowed(tree, s, [&](DomainId d) {
      found = found || LackBy(tree, d, sums).kind == Lack::Kind::kNothing;
    });
    if (found) {
      return true;
    }
  }
  return false;
}

// The most that d could take were all its nodes as large as the largest.
int64_t EmptyRoom::Bound(const topology::Tree& tree, DomainId d) const {
  int64_t pods = 0;
  for (size_t k = 0; k < demand_.classes.size(); ++k) {
    pods +=
        std::min<int64_t>(tree.at(d).node_count() * state_.fits().MostPerNode(demand_.classes[k]),
                          demand_.required_counts[k]);
  }
  return pods;
}

int64_t EmptyRoom::FitBy(DomainId d, const Sums& sums) const {
  int64_t pods = 0;
  for (size_t k = 0; k < sums.size(); ++k) {
    pods += std::min<int64_t>(sums[k][d.index()], demand_.required_counts[k]);
  }
  return pods;
}

// Domains that cannot better the best are passed over.
BestEffortDomain EmptyRoom::Best(const Scope& scope) const {
  BestEffortDomain best;
  for (const TreeScope& s : scope.trees) {
    const topology::Tree& tree = *state_.trees()[s.tree];
    int64_t looked = 0;
    Sums swept;
    ForEachAllowed(tree, s, [&](DomainId d) {
      if (best.domain.valid() && Bound(tree, d) <= best.pods) {
        return;
      }
      looked += tree.at(d).node_count();
      if (looked > kMostNodes && swept.empty()) {
        swept = SumsOfAll(tree);
      }
      const int64_t pods = swept.empty() ? Fit(tree, d) : FitBy(d, swept);
      if (!best.domain.valid() || pods > best.pods) {
        best = {s.tree, d, pods};
      }
    });
  }
  return best;
}

}  // namespace hopwise::sched
