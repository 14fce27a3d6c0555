#include "topology/tree.h"

#include <algorithm>
#include <span>

namespace hopwise::topology {

DomainId Tree::CommonDomain(DomainId a, DomainId b) const {
  while (!Contains(a, b)) a = at(a).parent;
  return a;
}

std::vector<uint16_t> Tree::RanksNamed(std::string_view tier_name) const {
  std::vector<uint16_t> ranks;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    if (std::ranges::binary_search(names[rank], tier_name)) {
      ranks.push_back(static_cast<uint16_t>(rank));
    }
  }
  return ranks;
}

namespace {

uint32_t FirstOfRun(std::span<const NodeId> nodes) {
  if (nodes.empty()) {
    return Tree::kNoPosition;
  }
  const auto [least, most] = std::ranges::minmax(nodes);
  return most.value - least.value + 1 == nodes.size() ? least.value : Tree::kNoPosition;
}

}  // namespace

void Tree::MakeIndexes() {
  outlines.clear();
  for (const Domain& domain : domains) {
    const uint32_t own = domain.direct - domain.lo;
    outlines.push_back({domain.parent.value, domain.end, own,
                        FirstOfRun(std::span(order).subspan(domain.lo, own)), domain.rank});
  }
  by_rank.assign(size_t{root_rank()} + 1, {});
  most_nodes.assign(size_t{root_rank()} + 1, 0);
  names.assign(size_t{root_rank()} + 1, {});
  for (size_t d = 0; d < domains.size(); ++d) {
    const Domain& domain = domains[d];
    by_rank[domain.rank].emplace_back(d);
    most_nodes[domain.rank] = std::max(most_nodes[domain.rank], domain.node_count());
    // Most neighbours share their name.
    std::vector<std::string>& known = names[domain.rank];
    if (!domain.tier_name.empty() && (known.empty() || known.back() != domain.tier_name)) {
      known.push_back(domain.tier_name);
    }
  }
  for (std::vector<std::string>& known : names) {
    std::ranges::sort(known);
    known.erase(std::ranges::unique(known).begin(), known.end());
  }
}

}  // namespace hopwise::topology
