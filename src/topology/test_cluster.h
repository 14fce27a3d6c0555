// Short ways to say what a test's cluster looks like, and what came out of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/batch.h"
#include "base/ids.h"
#include "topology/forest.h"

namespace hopwise::topology::testing {

inline api::HyperNodeMember Exact(std::string name) {
  api::HyperNodeMember member;
  member.exact = std::move(name);
  return member;
}
inline api::HyperNodeMember Pattern(std::string pattern) {
  api::HyperNodeMember member;
  member.pattern = std::move(pattern);
  return member;
}
// Selects the nodes that carry all the labels; none selects every node.
inline api::HyperNodeMember Labels(const api::StringMap& labels) {
  api::HyperNodeMember member;
  member.labels.emplace();
  for (const auto& [key, value] : labels) {
    member.labels->requirements.push_back({key, api::Operator::kIn, {value}});
  }
  return member;
}
inline api::HyperNodeMember Child(std::string name) {
  api::HyperNodeMember member = Exact(std::move(name));
  member.type = api::MemberType::kHyperNode;
  return member;
}

// Of {"n1", "n2"} a HyperNode with these nodes, of {"/leaf-1"} one with that child.
inline api::HyperNode Hyper(std::string name, int32_t tier,
                            const std::vector<std::string>& members) {
  api::HyperNode hypernode;
  hypernode.meta.name = std::move(name);
  hypernode.tier = tier;
  for (const std::string& member : members) {
    const bool is_child = member.starts_with('/');
    hypernode.members.push_back(is_child ? Child(member.substr(1)) : Exact(member));
  }
  return hypernode;
}
inline api::HyperNode With(api::HyperNode hypernode, std::vector<api::HyperNodeMember> members) {
  for (api::HyperNodeMember& member : members) hypernode.members.push_back(std::move(member));
  return hypernode;
}
inline api::HyperNode Named(api::HyperNode hypernode, std::string tier_name) {
  hypernode.tier_name = std::move(tier_name);
  return hypernode;
}
inline api::HyperNode Born(api::HyperNode hypernode, int64_t second) {
  hypernode.meta.creation = {second * 1'000'000'000};
  return hypernode;
}
inline api::HyperNode InFabric(api::HyperNode hypernode, std::string fabric) {
  hypernode.meta.labels = {{std::string(kFabricKey), std::move(fabric)}};
  return hypernode;
}

// A forest fed by name; hands out node ids in the order of first use.
class Cluster {
 public:
  Cluster& Nodes(const std::vector<std::string>& names) {
    for (const std::string& name : names) Node(name, {});
    return *this;
  }
  Cluster& Node(const std::string& name, const api::StringMap& labels) {
    const auto next = NodeId(ids_.size());
    const NodeId id = ids_.try_emplace(name, next).first->second;
    forest_.UpsertNode(id, name, labels);
    names_[id] = name;
    return *this;
  }
  Cluster& DropNode(const std::string& name) {
    forest_.RemoveNode(ids_.at(name));
    return *this;
  }
  Cluster& Add(const api::HyperNode& hypernode) {
    forest_.UpsertHyperNode(hypernode);
    return *this;
  }
  Cluster& Drop(std::string_view hypernode) {
    forest_.RemoveHyperNode(hypernode);
    return *this;
  }

  Forest& forest() { return forest_; }
  std::shared_ptr<const Topology> Look() { return forest_.Snapshot(); }
  [[nodiscard]] NodeId IdOf(const std::string& name) const { return ids_.at(name); }
  [[nodiscard]] std::string NameOf(NodeId id) const { return names_.at(id); }

  // "leaf-1(a b) [x]": children in brackets behind the direct nodes, roots behind each other.
  std::string Draw(const Tree& tree) const { return DrawUnder(tree, 0); }
  std::string Draw(size_t fabric = 0) { return Draw(Look()->trees.at(fabric)); }

  // "twice:Overlap leaf-a:Empty?": a question mark for warnings, sorted as the faults are.
  std::string Faults() {
    std::string text;
    for (const Fault& fault : Look()->faults) {
      if (!text.empty()) text += ' ';
      text += fault.object + ":" + std::string(ReasonOf(fault.kind)) + (fault.isolates ? "" : "?");
    }
    return text;
  }
  // All messages on the object, one a line.
  std::string Messages(std::string_view object) {
    std::string text;
    for (const Fault& fault : Look()->faults) {
      if (fault.object == object) text += fault.message + "\n";
    }
    return text;
  }
  int64_t NodeCount(std::string_view name) {
    for (const HyperNodeState& state : Look()->hypernodes) {
      if (state.name == name) return state.node_count;
    }
    return -1;
  }

 private:
  std::string DrawUnder(const Tree& tree, size_t d) const {
    const Domain& domain = tree.domains[d];
    std::string text;
    for (uint32_t at = domain.lo; at < domain.direct; ++at) {
      text += (text.empty() ? "" : " ") + NameOf(tree.order[at]);
    }
    for (size_t child = d + 1; child < domain.end; child = tree.domains[child].end) {
      text +=
          (text.empty() ? "" : " ") + tree.domains[child].name + "(" + DrawUnder(tree, child) + ")";
    }
    return text;
  }

  Forest forest_;
  std::map<std::string, NodeId> ids_;
  std::map<NodeId, std::string> names_;
};

}  // namespace hopwise::topology::testing
