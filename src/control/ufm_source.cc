#include "control/ufm_source.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace hopwise::control {
namespace {

// Switches and nodes by dense numbers: `to[s]` and `hosts[s]` are indexed by switch, `cables[n]` by
// node.
struct Graph {
  std::vector<std::string> guids;                // of switches, sorted
  std::vector<std::set<size_t>> to;              // switches next to it
  std::vector<std::set<size_t>> hosts;           // nodes next to it
  std::vector<std::map<size_t, size_t>> cables;  // of a node: cables to each switch
  std::vector<size_t> down;                      // of a node: its ports that are down
};

constexpr size_t kNone = static_cast<size_t>(-1);

std::string_view ShortName(std::string_view name) { return name.substr(0, name.find('.')); }

// Nodes by the names that a machine may go by: the node's own, and its first part where that tells
// it from all others.
class NodeNames {
 public:
  explicit NodeNames(const std::vector<std::string_view>& nodes) {
    for (size_t n = 0; n < nodes.size(); ++n) {
      full_[nodes[n]] = n;
      const auto [at, first] = short_.try_emplace(ShortName(nodes[n]), n);
      if (!first) at->second = kNone;
    }
  }
  [[nodiscard]] size_t Find(std::string_view machine) const {
    if (const auto at = full_.find(machine); at != full_.end()) return at->second;
    const auto at = short_.find(ShortName(machine));
    return at == short_.end() ? kNone : at->second;
  }

 private:
  std::map<std::string_view, size_t> full_, short_;
};

size_t IndexOf(const std::vector<std::string>& sorted, const std::string& guid) {
  return static_cast<size_t>(std::ranges::lower_bound(sorted, guid) - sorted.begin());
}

Graph GraphOf(const api::UfmPorts& ports, const std::vector<std::string_view>& nodes) {
  const NodeNames names(nodes);
  std::set<std::string> guids;
  for (const api::UfmPort& port : ports.ports) {
    if (port.is_switch) guids.insert(port.guid);
    if (port.peer_is_switch) guids.insert(port.peer_guid);
  }
  Graph graph;
  graph.guids.assign(guids.begin(), guids.end());
  graph.to.resize(guids.size());
  graph.hosts.resize(guids.size());
  graph.cables.resize(nodes.size());
  graph.down.resize(nodes.size());
  // A cable is told at both of its ends.
  std::set<std::pair<std::string, std::string>> seen;
  for (const api::UfmPort& port : ports.ports) {
    const size_t own_node = port.is_switch ? kNone : names.Find(port.system_name);
    if (own_node != kNone && !port.up) ++graph.down[own_node];
    if (port.peer_guid.empty()) continue;
    std::string here = port.guid + '_' + port.number;
    std::string there = port.peer_guid + '_' + port.peer_number;
    if (there < here) std::swap(here, there);
    if (!seen.emplace(std::move(here), std::move(there)).second) continue;
    if (port.is_switch && port.peer_is_switch) {
      const size_t a = IndexOf(graph.guids, port.guid);
      const size_t b = IndexOf(graph.guids, port.peer_guid);
      graph.to[a].insert(b);
      graph.to[b].insert(a);
      continue;
    }
    const size_t node = port.is_switch ? names.Find(port.peer_name) : own_node;
    const bool to_switch = port.is_switch || port.peer_is_switch;
    if (node == kNone || !to_switch) continue;
    const size_t leaf = IndexOf(graph.guids, port.is_switch ? port.guid : port.peer_guid);
    graph.hosts[leaf].insert(node);
    ++graph.cables[node][leaf];
  }
  return graph;
}

// Distance from the nodes, 1 for a leaf; 0: no node can be reached.
std::vector<size_t> LevelsOf(const Graph& graph) {
  std::vector<size_t> levels(graph.guids.size(), 0);
  std::vector<size_t> queue;
  for (size_t s = 0; s < graph.guids.size(); ++s) {
    if (!graph.hosts[s].empty()) {
      levels[s] = 1;
      queue.push_back(s);
    }
  }
  for (size_t at = 0; at < queue.size(); ++at) {
    for (const size_t next : graph.to[queue[at]]) {
      if (levels[next] == 0) {
        levels[next] = levels[queue[at]] + 1;
        queue.push_back(next);
      }
    }
  }
  return levels;
}

// Disjoint sets; each goes by its least member.
class Sets {
 public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  size_t Find(size_t one) {
    while (parent_[one] != one) {
      parent_[one] = parent_[parent_[one]];
      one = parent_[one];
    }
    return one;
  }
  void Join(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

// Joins those that share more than half of what the lesser of the two has. `what[i]`: sets of
// numbers below `range`, indexed by who is joined.
Sets JoinByMost(const std::vector<std::set<size_t>>& what, size_t range) {
  std::vector<std::vector<size_t>> holders(range);
  for (size_t i = 0; i < what.size(); ++i) {
    for (const size_t one : what[i]) holders[one].push_back(i);
  }
  Sets sets(what.size());
  std::vector<size_t> shared(what.size());  // with i
  for (size_t i = 0; i < what.size(); ++i) {
    std::ranges::fill(shared, 0);
    for (const size_t one : what[i]) {
      for (const size_t j : holders[one]) ++shared[j];
    }
    for (size_t j = 0; j < i; ++j) {
      if (shared[j] * 2 > std::min(what[i].size(), what[j].size())) sets.Join(i, j);
    }
  }
  return sets;
}

// One domain on the way up.
struct Part {
  size_t domain = 0;          // in the discovery
  size_t leaf = 0;            // the least of its leaf switches
  std::set<size_t> switches;  // all below and in it, and what is shared with others
};

class UfmDiscovery {
 public:
  UfmDiscovery(const Graph& graph, const std::vector<std::string_view>& nodes,
               const std::vector<const api::HyperNode*>& existing)
      : graph_(graph), nodes_(nodes), existing_(existing), levels_(LevelsOf(graph)) {}

  Discovery Run() {
    MakeUnits();
    KeepSilent();
    const size_t top = levels_.empty() ? 0 : *std::ranges::max_element(levels_);
    for (size_t level = 2; level <= top; ++level) {
      Climb([&](size_t s) { return levels_[s] == level; });
    }
    JoinTrees();
    PlaceSilentUnits();
    std::ranges::sort(out_.warnings);
    return std::move(out_);
  }

 private:
  size_t Add(size_t leaf) {
    Domain domain;
    domain.tier = tier_;
    domain.prefix = fmt::format("hypernode-ufm-tier{}-", tier_);
    domain.tier_name = fmt::format("ufm-tier{}", tier_);
    domain.identity = fmt::format("{}/{}", tier_, graph_.guids[leaf]);
    out_.domains.push_back(std::move(domain));
    return out_.domains.size() - 1;
  }

  // Leaves that are rails of each other, and their nodes.
  void MakeUnits() {
    Sets sets = JoinByMost(graph_.hosts, nodes_.size());
    std::map<size_t, std::vector<size_t>> nodes;  // by the set's number
    for (size_t n = 0; n < nodes_.size(); ++n) {
      std::map<size_t, size_t> cables;  // likewise
      for (const auto& [leaf, count] : graph_.cables[n]) cables[sets.Find(leaf)] += count;
      if (cables.empty()) continue;
      nodes[Most(cables)].push_back(n);
      if (cables.size() > 1) {
        out_.warnings.push_back(fmt::format(
            "node {} is cabled to {} units; it counts for the one with most of its cables",
            nodes_[n], cables.size()));
      }
      if (graph_.down[n] > 0) {
        out_.warnings.push_back(
            fmt::format("node {}: {} of its ports are down", nodes_[n], graph_.down[n]));
      }
    }
    // A set without nodes lost its last one to another unit, and is none.
    for (const auto& [number, members] : nodes) {
      parts_.push_back({Add(number), number, {}});  // a set goes by its least member
      for (const size_t n : members) Put(n, parts_.back().domain);
    }
    for (size_t s = 0; s < graph_.guids.size(); ++s) {
      const auto part = std::ranges::find(parts_, sets.Find(s), &Part::leaf);
      if (levels_[s] == 1 && part != parts_.end()) part->switches.insert(s);
    }
  }

  // The key with the greatest count, the least one of several.
  static size_t Most(const std::map<size_t, size_t>& counts) {
    return std::ranges::max_element(counts, {}, &std::pair<const size_t, size_t>::second)->first;
  }

  void Put(size_t node, size_t domain) {
    std::vector<std::string>& members = out_.domains[domain].nodes;
    const std::string name(nodes_[node]);
    members.insert(std::ranges::lower_bound(members, name), name);
    unit_of_[nodes_[node]] = domain;
  }

  // Nodes that no cable tells of stay with those that they were with.
  void KeepSilent() {
    for (const api::HyperNode* hypernode : existing_) {
      std::map<size_t, size_t> shared;  // members by unit
      std::vector<size_t> silent;
      for (const api::HyperNodeMember& member : hypernode->members) {
        if (member.type != api::MemberType::kNode || !member.exact) continue;
        if (const auto at = unit_of_.find(*member.exact); at != unit_of_.end()) {
          ++shared[at->second];
        } else if (const auto node = std::ranges::lower_bound(nodes_, *member.exact);
                   node != nodes_.end() && *node == *member.exact) {
          silent.push_back(static_cast<size_t>(node - nodes_.begin()));
        }
      }
      if (shared.empty() && !silent.empty()) shared[KeepUnit(*hypernode)] = 1;
      for (const size_t node : silent) {
        out_.warnings.push_back(
            fmt::format("node {}: UFM tells no cable of it; it stays where it was", nodes_[node]));
        Put(node, Most(shared));
      }
    }
  }

  // A unit of which nothing is told any more: a domain of its own, beside those it was beside.
  size_t KeepUnit(const api::HyperNode& hypernode) {
    Domain domain;
    domain.tier = tier_;
    domain.prefix = fmt::format("hypernode-ufm-tier{}-", tier_);
    domain.tier_name = fmt::format("ufm-tier{}", tier_);
    domain.identity = "silent/" + hypernode.meta.name;
    out_.domains.push_back(std::move(domain));
    silent_units_.emplace_back(out_.domains.size() - 1, NodesBeside(hypernode.meta.name));
    return out_.domains.size() - 1;
  }

  // Nodes of all HyperNodes that had the same parent.
  std::set<std::string> NodesBeside(const std::string& name) const {
    const auto holds = [](const api::HyperNode& one, const std::string& member) {
      return std::ranges::any_of(one.members, [&](const auto& each) {
        return each.type == api::MemberType::kHyperNode && each.exact && *each.exact == member;
      });
    };
    std::set<std::string> nodes;
    for (const api::HyperNode* parent : existing_) {
      if (!holds(*parent, name)) continue;
      for (const api::HyperNode* child : existing_) {
        if (!holds(*parent, child->meta.name)) continue;
        for (const auto& each : child->members) {
          if (each.type == api::MemberType::kNode && each.exact) nodes.insert(*each.exact);
        }
      }
    }
    return nodes;
  }

  // Under the domain of the second tier that has most of those that they were beside.
  void PlaceSilentUnits() {
    for (const auto& [unit, beside] : silent_units_) {
      size_t best = 0;
      size_t most = 0;
      for (size_t d = 0; d < out_.domains.size(); ++d) {
        if (out_.domains[d].tier != 2) continue;
        size_t shared = 0;
        for (const size_t child : out_.domains[d].children) {
          shared += static_cast<size_t>(std::ranges::count_if(
              out_.domains[child].nodes, [&](const auto& node) { return beside.contains(node); }));
        }
        if (shared > most) {
          best = d;
          most = shared;
        }
      }
      if (most > 0) out_.domains[best].children.push_back(unit);
    }
  }

  // The next tier: parts that share most of the switches of `next` beside them.
  template <class Next>
  void Climb(Next next) {
    std::vector<std::set<size_t>> above(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      for (const size_t s : parts_[p].switches) {
        for (const size_t to : graph_.to[s]) {
          if (next(to)) above[p].insert(to);
        }
      }
    }
    Sets sets = JoinByMost(above, graph_.guids.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      parts_[p].switches.insert(above[p].begin(), above[p].end());
    }
    Lift(sets);
  }

  // What is connected and was not joined yet.
  void JoinTrees() {
    Sets connected(graph_.guids.size());
    for (size_t s = 0; s < graph_.guids.size(); ++s) {
      for (const size_t to : graph_.to[s]) connected.Join(s, to);
    }
    std::map<size_t, size_t> first;  // part by connected set
    Sets sets(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      const size_t number = connected.Find(*parts_[p].switches.begin());
      sets.Join(p, first.try_emplace(number, p).first->second);
    }
    Lift(sets);
  }

  // Makes a tier of the sets, unless it would join nothing.
  void Lift(Sets& sets) {
    std::map<size_t, std::vector<size_t>> groups;
    for (size_t p = 0; p < parts_.size(); ++p) groups[sets.Find(p)].push_back(p);
    if (groups.size() == parts_.size()) return;
    ++tier_;
    std::vector<Part> next;
    for (const auto& [number, members] : groups) {
      Part part;
      part.leaf = parts_[members.front()].leaf;
      std::vector<size_t> children;
      for (const size_t p : members) {
        part.leaf = std::min(part.leaf, parts_[p].leaf);
        part.switches.insert(parts_[p].switches.begin(), parts_[p].switches.end());
        children.push_back(parts_[p].domain);
      }
      part.domain = Add(part.leaf);
      out_.domains.back().children = std::move(children);
      next.push_back(std::move(part));
    }
    parts_ = std::move(next);
  }

  const Graph& graph_;
  const std::vector<std::string_view>& nodes_;
  const std::vector<const api::HyperNode*>& existing_;
  std::vector<size_t> levels_;  // by switch
  std::vector<Part> parts_;     // of the tier that was made last
  std::map<std::string_view, size_t> unit_of_;
  // Domains that are kept, with the nodes of those that they were beside.
  std::vector<std::pair<size_t, std::set<std::string>>> silent_units_;
  int32_t tier_ = 1;
  Discovery out_;
};

// Node members of the source's HyperNodes that are nodes of the cluster.
std::set<std::string_view> KnownNodes(const std::vector<const api::HyperNode*>& own,
                                      const std::vector<std::string_view>& nodes) {
  std::set<std::string_view> known;
  for (const api::HyperNode* hypernode : own) {
    for (const api::HyperNodeMember& member : hypernode->members) {
      if (member.type == api::MemberType::kNode && member.exact &&
          std::ranges::binary_search(nodes, std::string_view(*member.exact))) {
        known.insert(*member.exact);
      }
    }
  }
  return known;
}

}  // namespace

Result<Discovery> DiscoverByUfm(const api::UfmPorts& ports,
                                const std::vector<std::string_view>& nodes,
                                const std::vector<const api::HyperNode*>& existing,
                                int most_lost_percent) {
  std::vector<const api::HyperNode*> own;
  for (const api::HyperNode* hypernode : existing) {
    const std::string* source = api::Find(hypernode->meta.labels, kSourceLabel);
    if (source != nullptr && *source == kUfmSource) own.push_back(hypernode);
  }
  const Graph graph = GraphOf(ports, nodes);
  const std::set<std::string_view> known = KnownNodes(own, nodes);
  size_t seen = 0;
  size_t lost = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const bool silent = graph.cables[n].empty();
    seen += static_cast<size_t>(!silent);
    lost += static_cast<size_t>(silent && known.contains(nodes[n]));
  }
  if (seen == 0 && !nodes.empty()) {
    return Invalid(fmt::format("none of its {} ports is cabled to one of the {} nodes",
                               ports.ports.size(), nodes.size()));
  }
  if (lost * 100 > known.size() * static_cast<size_t>(most_lost_percent)) {
    return Invalid(
        fmt::format("{} of {} nodes have vanished from the answer, more than {} % at once", lost,
                    known.size(), most_lost_percent));
  }
  Discovery out = UfmDiscovery(graph, nodes, own).Run();
  if (ports.unusable > 0) {
    out.warnings.push_back(fmt::format("{} ports have no guid or no system name", ports.unusable));
    std::ranges::sort(out.warnings);
  }
  return out;
}

}  // namespace hopwise::control
