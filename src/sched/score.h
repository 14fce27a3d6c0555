// The documented scores of network-topology-aware, binpack and nodeorder, in integers: one point is
// kPoint.
//
// Formulas: volcano pkg/scheduler/plugins/{network-topology-aware,binpack,nodeorder};
// kube-scheduler noderesources (LeastAllocated, MostAllocated, BalancedAllocation). Shares are kept
// in parts of 10^12, rounded down, and each score is rounded to the nearest kPoint part once, at
// its end: equal inputs give equal scores on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/int128.h"
#include "cluster/columns.h"
#include "sched/config.h"
#include "topology/tree.h"

namespace hopwise::sched {

inline constexpr int64_t kPoint = 1'000'000;

// Sums of allocatable and used amounts per domain of one tree, for the resources that
// network-topology-aware weighs; follows the room journal.
class DomainTotals {
 public:
  // Resources weighed; index i below is an index into weights(). A resource that no node and no
  // request has named yet is left out until one does.
  void Configure(const cluster::Columns& columns, const ResourceWeights& weights);
  // Makes the sums those of the columns for `tree` (a different tree or version starts over). Takes
  // back what Add put. Call it after the requests to be scored were made, which may bring
  // resources.
  void Update(const cluster::Columns& columns, const topology::Tree& tree, uint64_t trees_version);
  // A trial or a decision puts `request` x count on nodes of domain path from `leaf` up to the root
  // (count may be negative to undo). It holds until the next Update.
  void Add(const topology::Tree& tree, DomainId leaf, const cluster::Request& request,
           int64_t count);

  [[nodiscard]] size_t resource_count() const { return resources_.size(); }
  // Stuck at the ends of int64.
  [[nodiscard]] int64_t allocatable(size_t i, DomainId d) const;
  [[nodiscard]] int64_t used(size_t i, DomainId d) const;
  [[nodiscard]] const std::vector<std::pair<ResourceId, int64_t>>& weights() const {
    return resources_;
  }

 private:
  // What one node adds to the sums of its domains.
  struct Part {
    int64_t allocatable = 0, used = 0;
  };
  struct Sum {
    Int128 allocatable = 0, used = 0, added = 0;  // added: by Add
  };

  void Resolve(const cluster::Columns& columns);
  void StartOver(const cluster::Columns& columns, const topology::Tree& tree);
  void Follow(const cluster::Columns& columns, const topology::Tree& tree, NodeId node);
  void DropAdded();

  ResourceWeights names_;                                  // as configured
  std::vector<std::pair<ResourceId, int64_t>> resources_;  // (resource, weight)
  std::vector<std::vector<Sum>> sums_;                     // by i, by domain
  std::vector<std::vector<Part>> parts_;                   // by i, by node: what the sums contain
  bool has_added_ = false;
  const topology::Tree* tree_ = nullptr;  // identity only; null: nothing summed yet
  uint64_t trees_version_ = 0;
  size_t columns_seen_ = 0;  // resource_count of the columns when resources_ was made
  uint64_t seen_ = 0;
};

class Scorer {
 public:
  Scorer(const Config& config, const cluster::Columns& columns);

  // binpack + nodeorder terms of one pod on one node; `extra` (by resource id, may be null or
  // shorter than the columns) is added to the used amounts.
  [[nodiscard]] int64_t NodeScore(NodeId node, const cluster::Request& request,
                                  const std::vector<int64_t>* extra) const;

  // Whether both nodes hold and use the same amounts, so that NodeScore treats them alike.
  [[nodiscard]] bool SameLoad(NodeId a, NodeId b) const;

  // HyperNodeOrder of network-topology-aware: packing of `request` (the sum over all members) on
  // domain d, x100 x weight. 0 when it does not fit into the sums.
  [[nodiscard]] int64_t HyperNodeOrder(const DomainTotals& totals, DomainId d,
                                       const cluster::Request& request) const;
  // What HyperNodeOrder and DistanceScore add where two or more candidates share the maximum:
  // 100·weight·there/all, for `there` of `all` members placed in the candidate's domain.
  [[nodiscard]] int64_t TieBonus(int64_t there, int64_t all) const;

  // A pod without a topology rule: its score on a node is NormalPodScore =
  // Σ over the node's domains of TierTerm(d) + MissingTerm(ranks not on its path) + UnusedTerm.
  // TierTerm = 100·weight·tierWeight(t)·S_t(d)/Σ tierWeight, tierWeight(t) = fading^(t-minTier);
  // t runs over all tier numbers from the lowest in use to the virtual root's, a tier of its own.
  [[nodiscard]] bool scores_normal_pods() const;
  [[nodiscard]] int64_t TierTerm(const topology::Tree& tree, const DomainTotals& totals, DomainId d,
                                 const cluster::Request& request) const;
  // The term of a rank that has no domain on a node's path (S_t = 1).
  [[nodiscard]] int64_t MissingTerm(const topology::Tree& tree, uint16_t rank) const;
  // The terms of the tier numbers between the lowest and the root's that no HyperNode uses
  // (S_t = 1): the same for every node, so choices may leave it out.
  [[nodiscard]] int64_t UnusedTerm(const topology::Tree& tree) const;
  [[nodiscard]] int64_t NormalPodScore(const topology::Tree& tree, const DomainTotals& totals,
                                       NodeId node, const cluster::Request& request) const;

  // Node score of a pod with topology (documented: 100·weight·(maxTier − tier(LCA))/(maxTier −
  // minTier), 100·weight in the very domain), the virtual root counted as a tier; used for late
  // members and by `explain`. allocated: smallest domain of what the (sub)group has; none → 0.
  [[nodiscard]] int64_t DistanceScore(const topology::Tree& tree, DomainId allocated,
                                      NodeId node) const;

 private:
  // The columns of the resources that scores name; they may appear after the Scorer was made.
  struct Ids {
    size_t columns_seen = 0;
    std::vector<int64_t> binpack_weights;  // by resource id; 0: none
    ResourceId cpu, memory, gpu;
  };
  // One resource of one node with the pod on it.
  struct Load {
    int64_t allocatable = 0;
    Int128 used = 0;
  };

  const Ids& CurrentIds() const;
  [[nodiscard]] Load LoadOf(NodeId node, ResourceId r, int64_t requested,
                            const std::vector<int64_t>* extra) const;
  [[nodiscard]] int64_t BinpackScore(NodeId node, const cluster::Request& request,
                                     const std::vector<int64_t>* extra) const;
  [[nodiscard]] int64_t LeastAndMost(NodeId node, const cluster::Request& request,
                                     const std::vector<int64_t>* extra) const;
  [[nodiscard]] int64_t Balanced(NodeId node, const cluster::Request& request,
                                 const std::vector<int64_t>* extra) const;
  [[nodiscard]] Int128 TierShare(const topology::Tree& tree, int64_t tier) const;

  Config config_;
  const cluster::Columns& columns_;
  mutable Ids ids_;
};

}  // namespace hopwise::sched
