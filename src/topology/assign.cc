#include "topology/assign.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "topology/contest.h"

namespace hopwise::topology {
namespace {

class Assigner {
 public:
  Assigner(const Links& links, const NodeView& view) : links_(links), view_(view) {
    result_.owner.resize(links.fabrics.size());
    for (const LinkObject& object : links.objects) result_.out.push_back(object.out ? 1 : 0);
  }

  Assignment Run() {
    PlaceAll();
    if (contested_.empty()) return std::move(result_);
    Settle();
    PlaceAll();
    HOPWISE_CHECK(contested_.empty());
    return std::move(result_);
  }

 private:
  // Of two objects that hold one node in one fabric, the later in this order is the smaller one.
  uint32_t DepthFirst(uint32_t object) const { return links_.declared.place[object]; }

  void PlaceAll() {
    for (std::vector<uint32_t>& owner : result_.owner) owner.assign(view_.nodes.size(), kNoObject);
    for (uint32_t i = 0; i < view_.nodes.size(); ++i) {
      const std::span<const uint32_t> slots = view_.claims->Of(view_.nodes[i]);
      if (slots.size() == 1) {
        PlaceSingle(i, view_.object_of_slot[slots.front()]);
      } else if (!slots.empty()) {
        PlaceMany(i, slots);
      }
    }
  }

  void PlaceSingle(uint32_t i, uint32_t object) {
    uint32_t& owner = result_.owner[links_.objects[object].fabric][i];
    owner = result_.out[object] != 0 ? SoundAncestor(object) : object;
  }

  void PlaceMany(uint32_t i, std::span<const uint32_t> slots) {
    sound_.clear();
    for (const uint32_t slot : slots) {
      const uint32_t object = view_.object_of_slot[slot];
      if (result_.out[object] == 0) sound_.push_back(object);
    }
    std::sort(sound_.begin(), sound_.end(),
              [&](uint32_t a, uint32_t b) { return DepthFirst(a) < DepthFirst(b); });
    // Fabrics follow each other in depth-first order, so each is one run here.
    for (size_t begin = 0, end = 0; begin < sound_.size(); begin = end) {
      const uint32_t fabric = links_.objects[sound_[begin]].fabric;
      bool is_chain = true;
      for (end = begin + 1; end < sound_.size(); ++end) {
        if (links_.objects[sound_[end]].fabric != fabric) break;
        is_chain = is_chain && links_.declared.Contains(sound_[end - 1], sound_[end]);
      }
      result_.owner[fabric][i] = sound_[end - 1];
      if (!is_chain) Contest(i, begin, end);
    }
    for (const uint32_t slot : slots) Fall(i, view_.object_of_slot[slot]);
  }

  void Contest(uint32_t i, size_t begin, size_t end) {
    contested_.push_back(i);
    items_.emplace_back(sound_.begin() + static_cast<std::ptrdiff_t>(begin),
                        sound_.begin() + static_cast<std::ptrdiff_t>(end));
  }

  // Lets node `i`, when no sound object of the fabric holds it, fall to the ancestor of `object`,
  // which is out. Of several such ancestors the one of the lowest tier, then of the least name.
  void Fall(uint32_t i, uint32_t object) {
    if (result_.out[object] == 0) return;
    uint32_t& owner = result_.owner[links_.objects[object].fabric][i];
    const bool is_claimed = std::any_of(sound_.begin(), sound_.end(), [&](uint32_t s) {
      return links_.objects[s].fabric == links_.objects[object].fabric;
    });
    if (is_claimed) return;
    const uint32_t ancestor = SoundAncestor(object);
    if (ancestor == kNoObject) return;
    const auto key = [&](uint32_t o) { return std::pair(links_.objects[o].tier, o); };
    if (owner == kNoObject || key(ancestor) < key(owner)) owner = ancestor;
  }

  uint32_t SoundAncestor(uint32_t object) const {
    do {
      object = links_.objects[object].parent;
    } while (object != kNoObject && result_.out[object] != 0);
    return object;
  }

  // Takes out the losers of all contested nodes.
  void Settle() {
    std::vector<Claimant> claimants;
    for (const LinkObject& object : links_.objects) {
      claimants.push_back({object.name, object.creation, {}});
      if (object.parent != kNoObject) claimants.back().parents.push_back(object.parent);
    }
    const auto nested = [&](uint32_t a, uint32_t b) {
      return links_.declared.Contains(a, b) || links_.declared.Contains(b, a);
    };
    for (const Loss& loss : Decide(claimants, items_, nested)) {
      result_.out[loss.loser] = 1;
      result_.faults.push_back(
          {claimants[loss.loser].name, FaultKind::kOverlap, true, Describe(loss, claimants)});
    }
    contested_.clear();
    items_.clear();
  }

  std::string Describe(const Loss& loss, const std::vector<Claimant>& claimants) const {
    const NodeId node = view_.nodes[contested_[loss.item]];
    std::string others;
    if (loss.items == 2) {
      others = " One more of its nodes is taken, too.";
    } else if (loss.items > 2) {
      others = fmt::format(" {} more of its nodes are taken, too.", loss.items - 1);
    }
    return fmt::format(
        "HyperNode {} is out: node {} is also held by HyperNode {}, which stands because it {}.{}",
        claimants[loss.loser].name, view_.names[node.index()], claimants[loss.winner].name,
        TextOf(loss.merit), others);
  }

  const Links& links_;
  const NodeView& view_;
  Assignment result_;
  std::vector<uint32_t> sound_;               // scratch of PlaceMany
  std::vector<uint32_t> contested_;           // places of nodes, ascending
  std::vector<std::vector<uint32_t>> items_;  // their claimants
};

}  // namespace

Assignment AssignNodes(const Links& links, const NodeView& view) {
  return Assigner(links, view).Run();
}

}  // namespace hopwise::topology
