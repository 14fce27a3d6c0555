#include "sched/quality.h"

#include <algorithm>

namespace hopwise::sched {
namespace {

template <class T>
std::strong_ordering CompareAll(const std::vector<T>& a, const std::vector<T>& b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

std::strong_ordering Compare(const Quality& a, const Quality& b) {
  if (const auto c = CompareAll(a.group_ranks, b.group_ranks); c != 0) {
    return c;
  }
  if (const auto c = a.gang_rank <=> b.gang_rank; c != 0) {
    return c;
  }
  if (const auto c = b.members <=> a.members; c != 0) {
    return c;
  }
  if (const auto c = CompareAll(a.cells, b.cells); c != 0) {
    return c;
  }
  if (const auto c = CompareAll(a.damage, b.damage); c != 0) {
    return c;
  }
  return b.score <=> a.score;
}

Meter::Meter(const topology::Tree& tree, const RoomView& before, const Anchors& anchors)
    : tree_(tree), before_(before), anchors_(anchors), ranks_(size_t{tree.root_rank()} + 1) {
  for (int64_t room = before.sums[0]; room > 0; room /= 2) {
    ++sizes_;
  }
}

// Domains on the paths of `nodes`, each once.
std::vector<uint32_t> Meter::Touched(const std::vector<NodeId>& nodes) const {
  std::vector<uint32_t> touched;
  for (const NodeId node : nodes) {
    for (DomainId d = tree_.leaf_of[node.index()]; d.valid(); d = tree_.at(d).parent) {
      touched.push_back(d.value);
    }
  }
  std::ranges::sort(touched);
  touched.erase(std::ranges::unique(touched).begin(), touched.end());
  return touched;
}

std::vector<int32_t> Meter::Cells(const std::vector<NodeId>& nodes) const {
  std::vector<int32_t> by_rank(ranks_, 0);
  for (const uint32_t id : Touched(nodes)) {
    const DomainId d(id);
    const topology::Domain& domain = tree_.at(d);
    if (domain.parent.valid() && !anchors_.Holds(d)) {
      for (uint16_t rank = domain.rank; rank < tree_.at(domain.parent).rank; ++rank) {
        ++by_rank[rank];
      }
    }
  }
  for (const NodeId node : nodes) {
    if (!anchors_.Holds(node)) {
      for (uint16_t rank = 0; rank < tree_.at(tree_.leaf_of[node.index()]).rank; ++rank) {
        ++by_rank[rank];
      }
    }
  }
  by_rank.pop_back();  // the root is one cell whatever is chosen
  std::ranges::reverse(by_rank);
  return by_rank;
}

void Meter::AddDamage(int64_t before, int64_t after, uint16_t low, uint16_t high,
                      std::vector<int64_t>& out) const {
  for (size_t i = 0; i < sizes_; ++i) {
    const int64_t size = int64_t{1} << (sizes_ - 1 - i);
    const int64_t lost = before / size - after / size;
    if (lost != 0) {
      for (uint16_t rank = low; rank < high; ++rank) {
        out[i * ranks_ + (ranks_ - 1 - rank)] += lost;
      }
    }
  }
  for (uint16_t rank = low; low > 0 && rank < high; ++rank) {
    out[sizes_ * ranks_ + (ranks_ - 1 - rank)] += std::min(after, kMostLeft);
  }
}

std::vector<int64_t> Meter::Damage(const std::vector<NodeId>& nodes, const RoomView& after) const {
  std::vector<int64_t> out((sizes_ + 1) * ranks_, 0);
  for (const uint32_t id : Touched(nodes)) {
    const topology::Domain& domain = tree_.domains[id];
    const uint16_t above =
        domain.parent.valid() ? tree_.at(domain.parent).rank : static_cast<uint16_t>(ranks_);
    AddDamage(before_.sums[id], after.sums[id], domain.rank, above, out);
  }
  for (const NodeId node : nodes) {
    AddDamage(before_.fit[node.index()], after.fit[node.index()], 0,
              tree_.at(tree_.leaf_of[node.index()]).rank, out);
  }
  return out;
}

std::vector<int64_t> Meter::Damage(const std::vector<NodeCount>& taken) const {
  std::vector<int64_t> out((sizes_ + 1) * ranks_, 0);
  std::vector<std::pair<uint32_t, int64_t>> by_domain;
  for (const NodeCount& n : taken) {
    const int64_t fit = before_.fit[n.node.index()];
    AddDamage(fit, fit - n.count, 0, tree_.at(tree_.leaf_of[n.node.index()]).rank, out);
    for (DomainId d = tree_.leaf_of[n.node.index()]; d.valid(); d = tree_.at(d).parent) {
      by_domain.emplace_back(d.value, n.count);
    }
  }
  std::ranges::sort(by_domain);
  for (size_t i = 0; i < by_domain.size();) {
    const uint32_t d = by_domain[i].first;
    int64_t pods = 0;
    for (; i < by_domain.size() && by_domain[i].first == d; ++i) {
      pods += by_domain[i].second;
    }
    const topology::Domain& domain = tree_.domains[d];
    const uint16_t above =
        domain.parent.valid() ? tree_.at(domain.parent).rank : static_cast<uint16_t>(ranks_);
    AddDamage(before_.sums[d], before_.sums[d] - pods, domain.rank, above, out);
  }
  return out;
}

std::vector<int64_t> Meter::DamageAbove(DomainId d, int64_t pods) const {
  std::vector<int64_t> out((sizes_ + 1) * ranks_, 0);
  for (; d.valid(); d = tree_.at(d).parent) {
    const topology::Domain& domain = tree_.at(d);
    const uint16_t above =
        domain.parent.valid() ? tree_.at(domain.parent).rank : static_cast<uint16_t>(ranks_);
    AddDamage(before_.sums[d.index()], before_.sums[d.index()] - pods, domain.rank, above, out);
  }
  return out;
}

}  // namespace hopwise::sched
