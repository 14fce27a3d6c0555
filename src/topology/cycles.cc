#include "topology/cycles.h"

#include <algorithm>
#include <cstddef>

namespace hopwise::topology {
namespace {

constexpr uint32_t kUnseen = 0xffffffffU;

// Tarjan's algorithm (SIAM J. Computing 1, 1972), with a stack of its own because the depth of a
// user's graph knows no bound.
class Tarjan {
 public:
  explicit Tarjan(const std::vector<std::vector<uint32_t>>& edges)
      : edges_(edges),
        seen_(edges.size(), kUnseen),
        low_(edges.size(), 0),
        open_(edges.size(), 0),
        component_(edges.size(), kUnseen),
        sizes_() {}

  // Component of each vertex; sizes() by component.
  const std::vector<uint32_t>& Run() {
    for (uint32_t v = 0; v < edges_.size(); ++v) {
      if (seen_[v] == kUnseen) Visit(v);
    }
    return component_;
  }
  const std::vector<uint32_t>& sizes() const { return sizes_; }

 private:
  struct Frame {
    uint32_t vertex = 0;
    size_t next_edge = 0;
  };

  void Enter(uint32_t v) {
    seen_[v] = low_[v] = next_number_++;
    open_[v] = 1;
    stack_.push_back(v);
    frames_.push_back({v, 0});
  }

  void Visit(uint32_t root) {
    Enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const uint32_t v = frame.vertex;
      if (frame.next_edge < edges_[v].size()) {
        const uint32_t w = edges_[v][frame.next_edge++];
        if (seen_[w] == kUnseen) {
          Enter(w);
        } else if (open_[w] != 0) {
          low_[v] = std::min(low_[v], seen_[w]);
        }
        continue;
      }
      frames_.pop_back();
      if (low_[v] == seen_[v]) Close(v);
      if (!frames_.empty()) {
        uint32_t& above = low_[frames_.back().vertex];
        above = std::min(above, low_[v]);
      }
    }
  }

  // `v` is the first vertex of its component: what lies above it on the stack is the rest.
  void Close(uint32_t v) {
    const auto id = static_cast<uint32_t>(sizes_.size());
    sizes_.push_back(0);
    uint32_t w = 0;
    do {
      w = stack_.back();
      stack_.pop_back();
      open_[w] = 0;
      component_[w] = id;
      ++sizes_[id];
    } while (w != v);
  }

  const std::vector<std::vector<uint32_t>>& edges_;
  std::vector<uint32_t> seen_;  // in which order vertices were entered
  std::vector<uint32_t> low_;   // the earliest open vertex that can be reached
  std::vector<char> open_;      // on stack_
  std::vector<uint32_t> component_;
  std::vector<uint32_t> sizes_;
  std::vector<uint32_t> stack_;
  std::vector<Frame> frames_;
  uint32_t next_number_ = 0;
};

}  // namespace

std::vector<uint32_t> FindCycles(const std::vector<std::vector<uint32_t>>& edges) {
  Tarjan tarjan(edges);
  const std::vector<uint32_t>& component = tarjan.Run();
  std::vector<uint32_t> group_of(tarjan.sizes().size(), kInNoCycle);
  std::vector<uint32_t> groups(edges.size(), kInNoCycle);
  uint32_t next = 0;
  for (uint32_t v = 0; v < edges.size(); ++v) {
    const bool names_itself = std::find(edges[v].begin(), edges[v].end(), v) != edges[v].end();
    if (!names_itself && tarjan.sizes()[component[v]] == 1) continue;
    uint32_t& group = group_of[component[v]];
    if (group == kInNoCycle) group = next++;
    groups[v] = group;
  }
  return groups;
}

}  // namespace hopwise::topology
