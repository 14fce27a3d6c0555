#include "control/label_source.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "topology/forest.h"

namespace hopwise::control {
namespace {

// Of a node or a domain: the values from the bottom up, as far as they go.
using Chain = std::vector<std::string>;

// Lower-case letters, digits and "-", begun and ended by none of these: what may stand in a name.
std::string Clean(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const char lower = upper ? static_cast<char>(c - 'A' + 'a') : c;
    const bool kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (kept) {
      clean += lower;
    } else if (!clean.empty() && clean.back() != '-') {
      clean += '-';
    }
  }
  while (!clean.empty() && clean.back() == '-') clean.pop_back();
  return clean;
}

// The labels that are tiers, from the bottom up.
std::vector<std::string> TiersOf(const LabelType& type) {
  std::vector<std::string> tiers(type.labels.rbegin(), type.labels.rend());
  if (!tiers.empty() && tiers.front() == kHostnameLabel) tiers.erase(tiers.begin());
  return tiers;
}

Chain ChainOf(const std::vector<std::string>& tiers, const api::StringMap& labels) {
  Chain chain;
  for (const std::string& key : tiers) {
    const std::string* value = api::Find(labels, key);
    if (value == nullptr || value->empty()) break;
    chain.push_back(*value);
  }
  return chain;
}

bool Begins(const Chain& chain, const Chain& other) {
  return chain.size() <= other.size() && std::equal(chain.begin(), chain.end(), other.begin());
}

class TypeDiscovery {
 public:
  TypeDiscovery(const LabelType& type, bool primary, Discovery& into)
      : tiers_(TiersOf(type)),
        type_(Clean(type.name)),
        fabric_(primary ? "" : type_),
        into_(into) {}

  void Run(const std::vector<LabelledNode>& nodes) {
    std::map<Chain, std::vector<std::string>> members;
    for (const LabelledNode& node : nodes) {
      Chain chain = ChainOf(tiers_, *node.labels);
      if (!chain.empty()) members[std::move(chain)].emplace_back(node.name);
    }
    Level level = Settle(0, members, &Domain::nodes, "nodes");
    for (size_t tier = 1; tier < tiers_.size(); ++tier) {
      std::map<Chain, std::vector<size_t>> children;
      for (const auto& [chain, domain] : level) {
        if (chain.size() > 1) {
          children[Chain(chain.begin() + 1, chain.end())].push_back(domain);
        }
      }
      level = Settle(tier, children, &Domain::children, "domains");
    }
  }

 private:
  using Level = std::map<Chain, size_t>;  // the domains of one tier: where they stand

  // Makes the domains of a tier: one for each chain, those that end early within those that go on.
  template <class Member>
  Level Settle(size_t tier, const std::map<Chain, std::vector<Member>>& members,
               std::vector<Member> Domain::* field, std::string_view what) {
    std::map<Chain, std::vector<Member>> complete;
    for (const auto& [chain, some] : members) {
      const Chain* longer = Complete(chain, members);
      if (longer == nullptr) {
        into_.warnings.push_back(fmt::format(
            "{} {} of {} \"{}\" tell no {}, and this {} lies in several: they get a domain of "
            "their own",
            some.size(), what, tiers_[tier], chain.front(), tiers_[tier + chain.size()],
            tiers_[tier]));
      }
      std::vector<Member>& all = complete[longer == nullptr ? chain : *longer];
      all.insert(all.end(), some.begin(), some.end());
    }
    Level level;
    for (auto& [chain, all] : complete) {
      std::ranges::sort(all);
      level.emplace(chain, Add(tier, chain));
      into_.domains.back().*field = std::move(all);
    }
    return level;
  }

  // The longest chain that goes on from where this one ends, this one where there is none, nullptr
  // where they part.
  template <class Members>
  static const Chain* Complete(const Chain& chain, const Members& members) {
    // In order, what a chain begins follows it at once.
    const Chain* longest = &chain;
    for (auto at = members.upper_bound(chain); at != members.end() && Begins(chain, at->first);
         ++at) {
      if (!Begins(*longest, at->first)) return nullptr;
      longest = &at->first;
    }
    return longest;
  }

  size_t Add(size_t tier, const Chain& chain) {
    Domain domain;
    domain.prefix = fmt::format("hypernode-{}-tier{}-", type_, tier + 1);
    domain.identity = type_;
    for (const std::string& value : chain) {
      domain.identity += '/' + value;  // no label value has one
    }
    domain.tier = static_cast<int32_t>(tier) + 1;
    domain.tier_name = tiers_[tier];
    domain.labels = {{tiers_[tier], chain.front()}};
    if (!fabric_.empty()) domain.marks = {{std::string(topology::kFabricKey), fabric_}};
    into_.domains.push_back(std::move(domain));
    return into_.domains.size() - 1;
  }

  std::vector<std::string> tiers_;
  std::string type_;
  std::string fabric_;  // "": the primary one
  Discovery& into_;
};

}  // namespace

std::string CheckLabelTypes(const std::vector<LabelType>& types) {
  if (types.empty()) return "networkTopologyTypes names no type";
  std::set<std::string> names;
  for (const LabelType& type : types) {
    const std::string name = Clean(type.name);
    if (name.empty()) {
      return fmt::format("networkTopologyTypes: \"{}\" has no letter or digit to be named by",
                         type.name);
    }
    if (type.name.size() > kLongestTypeName) {
      return fmt::format("networkTopologyTypes.{}: the name has {} characters, at most {} go",
                         type.name, type.name.size(), kLongestTypeName);
    }
    if (!names.insert(name).second) {
      return fmt::format("networkTopologyTypes.{}: another type is named {} too", type.name, name);
    }
    std::set<std::string_view> keys;
    for (const std::string& key : type.labels) {
      if (key.empty()) {
        return fmt::format("networkTopologyTypes.{}: an entry without nodeLabel", type.name);
      }
      if (!keys.insert(key).second) {
        return fmt::format("networkTopologyTypes.{}: nodeLabel {} stands twice", type.name, key);
      }
    }
    if (TiersOf(type).empty()) {
      return fmt::format("networkTopologyTypes.{}: no node label above {}", type.name,
                         kHostnameLabel);
    }
    const auto host = std::ranges::find(type.labels, kHostnameLabel);
    if (host != type.labels.end() && host + 1 != type.labels.end()) {
      return fmt::format("networkTopologyTypes.{}: {} is the node itself and must stand last",
                         type.name, kHostnameLabel);
    }
  }
  return "";
}

Discovery DiscoverByLabels(const std::vector<LabelType>& types,
                           const std::vector<LabelledNode>& nodes) {
  Discovery discovery;
  for (const LabelType& type : types) {
    TypeDiscovery(type, &type == &types.front(), discovery).Run(nodes);
  }
  std::ranges::sort(discovery.warnings);
  return discovery;
}

}  // namespace hopwise::control
