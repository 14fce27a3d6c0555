#include "control/discovery.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "topology/forest.h"

namespace hopwise::control {
namespace {

constexpr std::string_view kSuffixDigits = "23456789bcdfghjkmnpqrstvwxyz";
constexpr size_t kSuffixLength = 8;

void Put(api::StringMap& map, std::string_view key, std::string_view value) {
  const auto at = std::ranges::lower_bound(
      map, key, {}, [](const auto& entry) { return std::string_view(entry.first); });
  if (at != map.end() && at->first == key) {
    at->second = value;
  } else {
    map.emplace(at, key, value);
  }
}

bool IsOf(const api::HyperNode& hypernode, std::string_view source) {
  const std::string* label = api::Find(hypernode.meta.labels, kSourceLabel);
  return label != nullptr && *label == source;
}

bool HasAll(const api::StringMap& have, const api::StringMap& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    const std::string* value = api::Find(have, entry.first);
    return value != nullptr && *value == entry.second;
  });
}

// By type and exact name; a member that is told otherwise has no name here.
std::multiset<std::pair<api::MemberType, std::string_view>> NamesOf(
    const std::vector<api::HyperNodeMember>& members) {
  std::multiset<std::pair<api::MemberType, std::string_view>> names;
  for (const api::HyperNodeMember& member : members) {
    const bool exact = member.exact && !member.pattern && !member.labels;
    names.emplace(member.type, exact ? std::string_view(*member.exact) : "");
  }
  return names;
}

// The order of members means nothing.
bool SameMembers(const std::vector<api::HyperNodeMember>& a,
                 const std::vector<api::HyperNodeMember>& b) {
  return NamesOf(a) == NamesOf(b);
}

// Of `next`, those members that `now` has by exact name.
std::vector<api::HyperNodeMember> KeptMembers(const api::HyperNode& now,
                                              const api::HyperNode& next) {
  std::set<std::string_view> have;
  for (const api::HyperNodeMember& member : now.members) {
    if (member.exact) have.insert(*member.exact);
  }
  std::vector<api::HyperNodeMember> kept = next.members;
  std::erase_if(kept, [&](const auto& member) { return !have.contains(*member.exact); });
  return kept;
}

// Members that both have by exact name.
size_t Shared(const api::HyperNode& existing, const std::set<std::string_view>& members) {
  return static_cast<size_t>(std::ranges::count_if(existing.members, [&](const auto& member) {
    return member.exact && members.contains(*member.exact);
  }));
}

class Planner {
 public:
  Planner(std::string_view source, const Discovery& discovery,
          const std::vector<const api::HyperNode*>& existing)
      : source_(source), discovery_(discovery), names_(discovery.domains.size()) {
    for (const api::HyperNode* hypernode : existing) {
      taken_.insert(hypernode->meta.name);
      if (IsOf(*hypernode, source)) {
        owned_.emplace(hypernode->meta.name, hypernode);
      }
    }
    plan_.owned = owned_.size();
  }

  HyperNodePlan Run() {
    NameByIdentity();
    for (size_t d = 0; d < names_.size(); ++d) {
      if (names_[d].empty()) Adopt(d);
    }
    for (size_t d = 0; d < names_.size(); ++d) {
      Write(d);
    }
    Order();
    return std::move(plan_);
  }

 private:
  // Those that bear the name that a domain would be given stand for it, whatever else they are.
  void NameByIdentity() {
    for (size_t d = 0; d < names_.size(); ++d) {
      const Domain& domain = discovery_.domains[d];
      std::string name = domain.prefix + StableSuffix(domain.identity);
      const auto at = owned_.find(name);
      if (at != owned_.end() && !claimed_.contains(name)) {
        claimed_.insert(name);
        names_[d] = std::move(name);
      }
    }
  }

  // Children were named before: of the candidates the one that holds most of its members stands for
  // the domain, then the lesser name.
  void Adopt(size_t d) {
    const Domain& domain = discovery_.domains[d];
    std::set<std::string_view> members(domain.nodes.begin(), domain.nodes.end());
    for (const size_t child : domain.children) {
      members.insert(names_[child]);
    }
    const api::HyperNode* best = nullptr;
    size_t most = 0;
    const bool by_labels = !domain.labels.empty();
    const std::string_view prefix = by_labels ? std::string_view(domain.prefix) : "";
    for (auto at = owned_.lower_bound(prefix); at != owned_.end() && at->first.starts_with(prefix);
         ++at) {
      const api::HyperNode& candidate = *at->second;
      if (claimed_.contains(at->first) || !HasAll(candidate.meta.labels, domain.labels)) {
        continue;
      }
      const size_t shared = Shared(candidate, members);
      if (!by_labels && shared * 2 <= candidate.members.size()) {
        continue;
      }
      if (best == nullptr || shared > most) {
        best = &candidate;
        most = shared;
      }
    }
    names_[d] = best != nullptr ? best->meta.name : FreeName(domain);
    claimed_.insert(names_[d]);
  }

  // The n-th try of a name that somebody else has.
  std::string FreeName(const Domain& domain) const {
    for (int n = 0;; ++n) {
      const std::string again = n == 0 ? "" : "#" + std::to_string(n);
      std::string name = domain.prefix + StableSuffix(domain.identity + again);
      if (!taken_.contains(name) && !claimed_.contains(name)) return name;
    }
  }

  [[nodiscard]] std::vector<api::HyperNodeMember> MembersOf(const Domain& domain) const {
    std::vector<api::HyperNodeMember> members;
    members.reserve(domain.nodes.size() + domain.children.size());
    for (const std::string& node : domain.nodes) {
      members.push_back({api::MemberType::kNode, node, {}, {}});
    }
    std::set<std::string> children;
    for (const size_t child : domain.children) {
      children.insert(names_[child]);
    }
    for (const std::string& child : children) {
      members.push_back({api::MemberType::kHyperNode, child, {}, {}});
    }
    return members;
  }

  void Write(size_t d) {
    const Domain& domain = discovery_.domains[d];
    const auto at = owned_.find(names_[d]);
    api::HyperNode next;
    if (at != owned_.end()) {
      next.meta = at->second->meta;
    }
    next.meta.name = names_[d];
    // The fabric is the source's to tell, and may be told no more.
    std::erase_if(next.meta.labels,
                  [](const auto& label) { return label.first == topology::kFabricKey; });
    Put(next.meta.labels, kSourceLabel, source_);
    for (const api::StringMap* labels : {&domain.labels, &domain.marks}) {
      for (const auto& [key, value] : *labels) {
        Put(next.meta.labels, key, value);
      }
    }
    next.tier = domain.tier;
    next.tier_name = domain.tier_name;
    next.members = MembersOf(domain);
    if (at == owned_.end()) {
      creates_.push_back(std::move(next));
      return;
    }
    const api::HyperNode& now = *at->second;
    if (now.tier != next.tier || now.tier_name != next.tier_name ||
        now.meta.labels != next.meta.labels || !SameMembers(now.members, next.members)) {
      std::vector<api::HyperNodeMember> kept = KeptMembers(now, next);
      if (kept.size() == next.members.size()) {
        losers_.push_back(std::move(next));
        return;
      }
      if (kept.size() < now.members.size()) {
        losers_.push_back(next);
        losers_.back().members = std::move(kept);
        next.meta.resource_version.clear();
      }
      gainers_.push_back(std::move(next));
    }
  }

  void Order() {
    using Kind = HyperNodeWrite::Kind;
    const auto add = [&](Kind kind, bool gains, std::vector<api::HyperNode>& objects) {
      for (api::HyperNode& object : objects) {
        plan_.writes.push_back({kind, gains, std::move(object)});
      }
    };
    std::vector<api::HyperNode> gone;
    for (const auto& [name, hypernode] : owned_) {
      // What ends already needs no second word.
      const bool ending = hypernode->meta.deletion.set();
      if (!claimed_.contains(name) && !ending) gone.push_back(*hypernode);
    }
    std::ranges::sort(gone, {}, [](const api::HyperNode& one) {
      return std::pair(-one.tier, std::string_view(one.meta.name));
    });
    plan_.goes = gone.size();
    add(Kind::kUpdate, false, losers_);
    add(Kind::kDelete, false, gone);
    add(Kind::kCreate, false, creates_);
    add(Kind::kUpdate, true, gainers_);
  }

  std::string_view source_;
  const Discovery& discovery_;
  std::vector<std::string> names_;  // by domain
  std::map<std::string, const api::HyperNode*, std::less<>> owned_;
  std::set<std::string, std::less<>> taken_;    // names of all that exist
  std::set<std::string, std::less<>> claimed_;  // names that stand for a domain
  std::vector<api::HyperNode> losers_, creates_, gainers_;
  HyperNodePlan plan_;
};

}  // namespace

std::string StableSuffix(std::string_view text) {
  uint64_t hash = StableHash(text);
  std::string suffix(kSuffixLength, '?');
  for (char& c : suffix) {
    c = kSuffixDigits[hash % kSuffixDigits.size()];
    hash /= kSuffixDigits.size();
  }
  return suffix;
}

HyperNodePlan PlanHyperNodes(std::string_view source, const Discovery& discovery,
                             const std::vector<const api::HyperNode*>& existing) {
  return Planner(source, discovery, existing).Run();
}

}  // namespace hopwise::control
