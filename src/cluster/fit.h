// How many pods of a shape fit on each node and in each domain, kept current from the journals.
//
// A shape is a resource class (requests) times a predicate set (selectors, tolerations, ports).
// fit[node] counts how many more pods of the shape the node takes (0 where a predicate forbids it);
// sums[domain] adds them up over a tree. The first look at a shape sweeps the columns once, later
// ones read only the nodes written to the journal since. Host ports allow one pod of the shape per
// node.
//
// Where the pods around a node matter (terms.h), fit[node] is 0 where one more pod of the shape may
// not go now. What pods of one gang do to each other is not in it, save that one whose
// anti-affinity keeps its own kind away comes once a node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "api/core.h"
#include "base/ids.h"
#include "cluster/columns.h"
#include "cluster/model.h"
#include "cluster/terms.h"
#include "topology/tree.h"

namespace hopwise::cluster {

class State;
struct SpreadCounts;

// What a pod demands of a node besides room. Canonical: equal demands are equal members, so that
// they intern to one PredicateId.
struct PredicateSet {
  std::vector<api::Requirement> selector;       // nodeSelector as In requirements, sorted by key
  std::vector<api::NodeSelectorTerm> affinity;  // required terms, ORed; see has_affinity
  bool has_affinity = false;
  std::vector<api::Toleration> tolerations;  // sorted
  std::vector<api::HostPort> ports;          // sorted
  std::vector<std::vector<api::Requirement>>
      extra;  // selectors of an ACK constraint: each must match
  TermSet terms;

  [[nodiscard]] std::string Key() const;  // equal iff the sets are equal
};

// Why a node is refused, first reason found; kFits when none.
enum class NodeVerdict : uint8_t {
  kFits,
  kGone,
  kNotReady,
  kUnschedulable,
  kTaint,
  kSelector,
  kAffinity,
  kPort,
  kPodAffinity,      // no pod beside it that the pod requires
  kPodAntiAffinity,  // a pod beside it that the pod keeps from
  kKeptAway,         // a pod beside it that keeps from the pod
  kSpread,           // too many alike in its domain, or in no domain
  kAvoided,
  kResources,
};

struct ShapeFit {
  std::vector<uint16_t> fit;               // by node id
  std::vector<std::vector<int64_t>> sums;  // by tree, by domain id; empty for trees not asked for
  uint16_t max_fit = 0;                    // at least the largest fit of any node
};

// Largest count kept per node.
inline constexpr uint16_t kMaxFitPerNode = 65535;

class FitCache {
 public:
  explicit FitCache(const State& state);
  ~FitCache();

  ClassId InternClass(const Request& request);
  PredicateId InternPredicates(const PredicateSet& set);
  ShapeId InternShape(ClassId resource_class, PredicateId predicates);
  [[nodiscard]] const Request& ClassRequest(ClassId c) const { return classes_[c.index()].request; }
  [[nodiscard]] ClassId ShapeClass(ShapeId s) const { return shapes_[s.index()].resource_class; }
  [[nodiscard]] const Request& ShapeRequest(ShapeId s) const { return ClassRequest(ShapeClass(s)); }
  [[nodiscard]] const PredicateSet& ShapePredicates(ShapeId s) const;
  [[nodiscard]] const PredicateSet& Predicates(PredicateId p) const {
    return predicates_[p.index()].set;
  }
  [[nodiscard]] size_t shape_count() const { return shapes_.size(); }

  // Whether the pods around a node matter to the shape now.
  [[nodiscard]] bool Concerned(ShapeId shape) const;
  // The same shape where they do not.
  ShapeId Bare(ShapeId shape);
  // What the shape's spread constraints see now; nullptr without any.
  [[nodiscard]] const SpreadCounts* SpreadOf(ShapeId shape) const;

  // Brings the shape up to date and returns it; good until the next call of a non-const member.
  const ShapeFit& Get(ShapeId shape, const std::vector<const topology::Tree*>& trees,
                      uint64_t topology_version);

  // Sums over trees[tree] of a shape just got by Get with the same arguments; made on first use,
  // then followed.
  const std::vector<int64_t>& Sums(ShapeId shape, const std::vector<const topology::Tree*>& trees,
                                   size_t tree);

  // At least as many as fit on any one node were it empty.
  [[nodiscard]] int64_t MostPerNode(ShapeId shape) const;

  // One node judged afresh, without the cache.
  [[nodiscard]] NodeVerdict Judge(NodeId node, ShapeId shape) const;
  // Fit of one node counted afresh, without the cache.
  [[nodiscard]] int64_t FitAfresh(NodeId node, ShapeId shape) const;
  // Fit on the node were it empty of pods; predicates (but not ports) included.
  [[nodiscard]] int64_t FitEmpty(NodeId node, ShapeId shape) const;

  [[nodiscard]] size_t MemoryBytes() const;
  // Sums over a tree of how many of the shape each node would take were it empty (ports ignored);
  // computed afresh at each call.
  std::vector<int64_t> EmptySums(ShapeId shape, const topology::Tree& tree);

  // Fit vectors held at most; the least recently used goes first. Bytes.
  void set_budget(size_t bytes) { budget_ = bytes; }

 private:
  struct Class {
    Request request;
  };
  struct Predicate {
    PredicateSet set;
    bool trivial = false;        // nothing demanded: only traits of the node count
    std::vector<uint64_t> bits;  // by node id: allowed
    uint64_t seen = 0;           // traits journal position
    bool fresh = false;
    mutable std::unique_ptr<SpreadCounts> spread;  // null until asked for
  };
  struct Shape {
    ClassId resource_class;
    PredicateId predicates;
    std::unique_ptr<ShapeFit> data;  // null when evicted or never asked for
    uint64_t seen = 0;               // room journal position
    uint64_t topology_version = 0;
    uint64_t last_use = 0;
    bool judged = false;      // data is of GetJudged
    uint64_t terms_seen = 0;  // Terms::Version then
  };

  const ShapeFit& GetJudged(ShapeId shape, const std::vector<const topology::Tree*>& trees,
                            uint64_t topology_version);
  [[nodiscard]] const Predicate& PredicatesOf(ShapeId s) const {
    return predicates_[shapes_[s.index()].predicates.index()];
  }
  // Whether the bitmap, as far as it is current, has the node: then no record need be read.
  [[nodiscard]] bool KnownAllowed(NodeId node, const Predicate& p) const;
  void UpdatePredicates(Predicate& p);
  [[nodiscard]] bool Allowed(NodeId node, const PredicateSet& set, NodeVerdict* why) const;
  [[nodiscard]] int64_t MostOf(const Request& request, const PredicateSet& set) const;
  void Recompute(Shape& s);
  void Follow(Shape& s, const std::vector<const topology::Tree*>& trees);
  void SumTree(const ShapeFit& data, const topology::Tree& tree, std::vector<int64_t>& sums) const;
  void Evict(ShapeId keep);

  const State& state_;
  std::vector<Class> classes_;
  std::vector<Predicate> predicates_;
  std::vector<Shape> shapes_;
  StringPool class_keys_, predicate_keys_;
  std::pair<uint64_t, ShapeId> last_shape_;  // interned last: members of a gang come in a row
  boost::unordered_flat_map<uint64_t, ShapeId> shape_of_;  // by class and predicates; look-up only
  uint64_t clock_ = 0;  // counts Get calls, for the eviction order
  size_t budget_ = size_t{512} << 20;
  size_t held_ = 0;
};

}  // namespace hopwise::cluster
