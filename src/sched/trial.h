// An overlay over the room of the state: a decision tries placements here and drops them when a
// scope ends.
//
// Classes are the distinct shapes of one gang, numbered 0..class_count()-1. View(k) gives how many
// more pods of class k fit on each node and in each domain of the tree, the trial's own placements
// counted. Nothing in the state changes.
#pragma once

#include <cstdint>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/ids.h"
#include "cluster/state.h"
#include "topology/tree.h"

namespace hopwise::sched {

// Room for one class: fit by node id, sums by domain id of the trial's tree.
struct RoomView {
  const uint16_t* fit = nullptr;
  const int64_t* sums = nullptr;
  uint16_t max_fit = 0;  // at least the largest fit
};

class Trial {
 public:
  // `tree` is an index into state.trees().
  Trial(cluster::State& state, size_t tree, const std::vector<ShapeId>& classes);

  [[nodiscard]] const topology::Tree& tree() const { return *tree_; }
  [[nodiscard]] size_t class_count() const { return classes_.size(); }
  [[nodiscard]] ShapeId shape(size_t k) const { return classes_[k].shape; }
  [[nodiscard]] RoomView View(size_t k) const { return classes_[k].view; }

  // Puts `count` pods of class k on the node. Precondition: they fit.
  void Place(size_t k, NodeId node, int32_t count);

  // Adds what the trial put on the node to `used` (by resource id).
  void AddPlaced(NodeId node, std::vector<int64_t>& used) const;
  [[nodiscard]] bool empty() const { return log_.empty(); }

  // Places made since a mark are undone when the scope ends, unless kept.
  class Scope {
   public:
    explicit Scope(Trial& trial) : trial_(trial), mark_(trial.log_.size()) {}
    ~Scope() {
      if (!kept_) {
        trial_.Rollback(mark_);
      }
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    void Keep() { kept_ = true; }

   private:
    Trial& trial_;
    size_t mark_;
    bool kept_ = false;
  };

 private:
  struct Class {
    ShapeId shape;
    RoomView view;
    const uint16_t* before = nullptr;  // fit by node without the trial
    bool copied = false;
    std::vector<uint16_t> fit;
    std::vector<int64_t> sums;
  };
  struct Step {
    size_t k;
    NodeId node;
    int32_t count;
    int32_t previous;  // the step before this one on the same node, -1 when none
  };

  void Rollback(size_t mark);
  void Refresh(NodeId node);
  void CopyOnWrite(Class& c);
  [[nodiscard]] int64_t FitNow(const Class& c, NodeId node) const;

  cluster::State& state_;
  const topology::Tree* tree_;
  std::vector<Class> classes_;
  std::vector<Step> log_;
  boost::unordered_flat_map<uint32_t, int32_t> last_step_;  // by node; look-up only
};

}  // namespace hopwise::sched
