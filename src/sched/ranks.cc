#include "sched/ranks.h"

#include <algorithm>

#include <boost/unordered/unordered_flat_set.hpp>

#include "base/check.h"

namespace hopwise::sched {
namespace {

class Assigner {
 public:
  Assigner(cluster::State& state, GangId gang, const Demand& demand, const topology::Tree& tree)
      : state_(state), gang_(state.gang(gang)), demand_(demand), tree_(tree) {}

  std::vector<Bind> Run(const Placement& placement) {
    for (const PlacedSet& set : placement.sets) {
      Assign(set);
    }
    return std::move(binds_);
  }

 private:
  // Members the set may be made of, in member order. Surplus sets draw on one pool several times.
  [[nodiscard]] std::vector<PodId> Pool(const PlacedSet& set) const {
    const Batch& batch = set.required ? demand_.required : demand_.optional;
    if (set.sub_group == kLoose) {
      return batch.loose;
    }
    for (const SingleGroup& group : batch.singles) {
      if (group.sub_group == set.sub_group) {
        return group.pods;
      }
    }
    return gang_.sub_groups[set.sub_group].pods;
  }

  [[nodiscard]] bool Free(PodId id) const {
    const cluster::PodRecord& pod = state_.pod(id);
    return pod.state == cluster::PodState::kPending && pod.ours && !pod.terminating &&
           pod.blocker.empty() && !taken_.contains(id.value);
  }

  void Assign(const PlacedSet& set) {
    const std::vector<PodId> pool = Pool(set);
    for (size_t k = 0; k < demand_.classes.size(); ++k) {
      std::vector<NodeId> nodes;
      for (const Slot& slot : set.slots) {
        if (slot.k == k) {
          nodes.insert(nodes.end(), static_cast<size_t>(slot.count), slot.node);
        }
      }
      if (nodes.empty()) {
        continue;
      }
      std::vector<PodId> pods;
      for (const PodId id : pool) {
        if (pods.size() < nodes.size() && state_.ShapeOf(id) == demand_.classes[k] && Free(id)) {
          pods.push_back(id);
        }
      }
      HOPWISE_CHECK(pods.size() == nodes.size());
      Lay(pods, nodes);
    }
  }

  void Lay(std::vector<PodId>& pods, std::vector<NodeId>& nodes) {
    std::ranges::sort(nodes, {}, [&](NodeId n) { return tree_.position[n.index()]; });
    // A pod without an index keeps its place among its fellows: sorted last, in member order.
    std::vector<size_t> order(pods.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::ranges::sort(order, [&](size_t a, size_t b) {
      const uint32_t ia =
          static_cast<uint32_t>(state_.pod(pods[a]).index);  // -1 becomes the largest
      const uint32_t ib = static_cast<uint32_t>(state_.pod(pods[b]).index);
      return ia != ib ? ia < ib : a < b;
    });
    for (size_t i = 0; i < order.size(); ++i) {
      binds_.push_back({pods[order[i]], nodes[i]});
      taken_.insert(pods[order[i]].value);
    }
  }

  cluster::State& state_;
  const cluster::Gang& gang_;
  const Demand& demand_;
  const topology::Tree& tree_;
  boost::unordered_flat_set<uint32_t> taken_;  // look-up only
  std::vector<Bind> binds_;
};

}  // namespace

std::vector<Bind> AssignMembers(cluster::State& state, GangId gang, const Demand& demand,
                                const Placement& placement, const topology::Tree& tree) {
  return Assigner(state, gang, demand, tree).Run(placement);
}

}  // namespace hopwise::sched
