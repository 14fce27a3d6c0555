#include "topology/tree.h"

#include <algorithm>

namespace hopwise::topology {

DomainId Tree::CommonDomain(DomainId a, DomainId b) const {
  while (!Contains(a, b)) a = at(a).parent;
  return a;
}

std::vector<uint16_t> Tree::RanksNamed(std::string_view tier_name) const {
  std::vector<uint16_t> ranks;
  if (tier_name.empty()) return ranks;
  for (const Domain& domain : domains) {
    if (domain.tier_name == tier_name) ranks.push_back(domain.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace hopwise::topology
