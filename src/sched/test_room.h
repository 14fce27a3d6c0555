// A tree and the room on it, written as one line, without a state behind it: for tests of splits.
//
// "spine@2(leaf-a@1(a:8 b:4) c:8) d:2" is HyperNode spine of tier 2 over leaf-a of tier 1 with the
// nodes a and b, then node c of spine itself; d lies outside. The number is what the node has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sched/cells.h"
#include "sched/trial.h"
#include "topology/tree.h"

namespace hopwise::sched::testing {

struct Piece {
  std::string name;
  int32_t tier = 0;    // 0: a node
  int64_t amount = 0;  // of a node
  std::vector<Piece> parts;
};

// The pieces of a picture, up to its end or a closing bracket.
inline std::vector<Piece> ReadPicture(std::string_view& text) {
  std::vector<Piece> pieces;
  while (!text.empty()) {
    if (text.front() == ' ' || text.front() == ')') {
      const bool closes = text.front() == ')';
      text.remove_prefix(1);
      if (closes) {
        break;
      }
      continue;
    }
    Piece& piece = pieces.emplace_back();
    const size_t mark = text.find_first_of(":@");
    piece.name = std::string(text.substr(0, mark));
    const bool node = text[mark] == ':';
    text.remove_prefix(mark + 1);
    int64_t number = 0;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1)) {
      number = number * 10 + (text.front() - '0');
    }
    if (node) {
      piece.amount = number;
    } else {
      piece.tier = static_cast<int32_t>(number);
      text.remove_prefix(1);
      piece.parts = ReadPicture(text);
    }
  }
  return pieces;
}

// A tree with the room for one class on its nodes, without a state behind it.
class Room {
 public:
  explicit Room(std::string_view picture) {
    const std::vector<Piece> pieces = ReadPicture(picture);
    CollectTiers(pieces);
    std::ranges::sort(tree.tiers);
    tree.tiers.erase(std::ranges::unique(tree.tiers).begin(), tree.tiers.end());
    tree.tier_names.resize(tree.tiers.size());
    Add("", tree.root_rank(), DomainId(), pieces);
    tree.position.resize(tree.order.size());
    for (uint32_t at = 0; at < tree.order.size(); ++at) {
      tree.position[tree.order[at].index()] = at;
    }
    tree.MakeIndexes();
    SumUp();
  }

  [[nodiscard]] RoomView View() const {
    return {fit.data(), sums.data(), *std::ranges::max_element(fit)};
  }
  [[nodiscard]] NodeId Node(const std::string& name) const { return nodes_.at(name); }
  [[nodiscard]] DomainId Domain(const std::string& name) const {
    return DomainId(static_cast<size_t>(
        std::ranges::find(tree.domains, name, &topology::Domain::name) - tree.domains.begin()));
  }
  [[nodiscard]] const std::string& Name(NodeId id) const { return names_[id.index()]; }
  void SumUp() {
    sums.assign(tree.domains.size(), 0);
    for (size_t n = 0; n < fit.size(); ++n) {
      for (DomainId d = tree.leaf_of[n]; d.valid(); d = tree.at(d).parent) {
        sums[d.index()] += fit[n];
      }
    }
  }

  topology::Tree tree;
  std::vector<uint16_t> fit;
  std::vector<int64_t> sums;

 private:
  void CollectTiers(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      if (piece.tier > 0) {
        tree.tiers.push_back(piece.tier);
        CollectTiers(piece.parts);
      }
    }
  }
  void Add(const std::string& name, uint16_t rank, DomainId parent,
           const std::vector<Piece>& parts) {
    const DomainId id(tree.domains.size());
    tree.domains.push_back({name, "", 0, rank, parent, 0, 0, 0, 0});
    tree.domains.back().tier = rank == tree.root_rank() ? 0 : tree.tiers[size_t{rank} - 1];
    tree.domains[id.index()].lo = static_cast<uint32_t>(tree.order.size());
    for (const Piece& part : parts) {
      if (part.tier == 0) {
        const NodeId node(fit.size());
        nodes_[part.name] = node;
        names_.push_back(part.name);
        fit.push_back(static_cast<uint16_t>(part.amount));
        tree.order.push_back(node);
        tree.leaf_of.push_back(id);
      }
    }
    tree.domains[id.index()].direct = static_cast<uint32_t>(tree.order.size());
    for (const Piece& part : parts) {
      if (part.tier > 0) {
        const auto at = std::ranges::find(tree.tiers, part.tier) - tree.tiers.begin();
        Add(part.name, static_cast<uint16_t>(at + 1), id, part.parts);
      }
    }
    tree.domains[id.index()].end = static_cast<uint32_t>(tree.domains.size());
    tree.domains[id.index()].hi = static_cast<uint32_t>(tree.order.size());
  }

  std::map<std::string, NodeId> nodes_;
  std::vector<std::string> names_;
};

inline Anchors AnchorsOn(const Room& room, const std::vector<std::string>& nodes) {
  Anchors anchors;
  for (const std::string& node : nodes) {
    anchors.Add(room.tree, room.Node(node));
  }
  anchors.Finish();
  return anchors;
}

}  // namespace hopwise::sched::testing
