// Whether the pods around a node let a pod go there: inter-pod affinity and anti-affinity, both
// ways, and hard topology spread, as kube-scheduler's InterPodAffinity and PodTopologySpread do.
//
// A judge is made for some shapes, the classes, and reads the counts of Terms; pods that it is told
// of on top count as if they stood there. Placing one pod after the other, each where the judge
// allows it, is a legal order of binding them.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "cluster/fit.h"
#include "cluster/terms.h"

namespace hopwise::cluster {

class State;

// The domains that the spread constraints of one predicate set see: nodes that have all their keys
// and pass their policies, and the matching pods there.
struct SpreadCounts {
  struct Constraint {
    std::vector<uint8_t> eligible;  // by node
    std::vector<int32_t> nodes;     // eligible ones, by value
    std::vector<int64_t> by_value;  // matching pods on eligible nodes
    int64_t domains = 0;            // values with an eligible node
    uint64_t version = 0;           // of the matcher, when counted
  };
  std::vector<Constraint> constraints;  // as TermSet::spread
  uint64_t seen = 0;                    // traits journal position
  bool fresh = false;

  void Update(const State& state, const PredicateSet& set);
};

class TermJudge {
 public:
  TermJudge(const State& state, const std::vector<ShapeId>& classes);

  // kFits, kPodAffinity, kPodAntiAffinity, kKeptAway or kSpread.
  [[nodiscard]] NodeVerdict Judge(size_t k, NodeId node);
  // Most pods of class k that the node takes, were it up to its anti-affinity to itself.
  [[nodiscard]] bool OnePerNode(size_t k, NodeId node) const;

  void Place(size_t k, NodeId node);
  [[nodiscard]] size_t mark() const { return log_.size(); }
  // Takes back what was placed since the mark.
  void Rollback(size_t mark);

  // The topology keys that class k looks at, sorted.
  [[nodiscard]] const std::vector<uint32_t>& KeysOf(size_t k) const { return classes_[k].keys; }
  // Whether class k must stand beside pods that it could be itself.
  [[nodiscard]] const std::vector<uint32_t>& AffinityKeysOf(size_t k) const {
    return classes_[k].set.affinity_keys;
  }
  [[nodiscard]] bool Attracted(size_t k) const { return !classes_[k].affinity.empty(); }

 private:
  struct Counter {
    uint32_t key = kNoTerm;
    const std::vector<int64_t>* base = nullptr;
    std::vector<int64_t> own;  // instead of base, once anything was placed
    int64_t total = 0;

    [[nodiscard]] int64_t Of(uint32_t value) const;
    void Add(uint32_t value, size_t values, int64_t by);
  };
  struct Spread {
    size_t counter = 0;
    const SpreadCounts::Constraint* seen = nullptr;
    SpreadTerm term;
    bool self = false;
    bool stale = true;
    int64_t least = 0;
  };
  struct Class {
    TermSet set;
    std::vector<uint32_t> keys;
    std::vector<size_t> affinity, anti, keepers;  // counters
    bool matches_itself = false;                  // all its own affinity terms
    std::vector<Spread> spread;
    std::vector<size_t> raises;  // counters that a pod of the class raises wherever it stands
    // The same where the constraint of (class, index) sees the node.
    std::vector<std::pair<size_t, size_t>> raises_spread;
    std::vector<uint32_t> alone_by;  // keys of its anti-affinity to itself
  };
  enum class Kind : uint8_t { kMatched, kCarried };

  size_t CounterOf(Kind kind, uint32_t matcher, uint32_t key);
  void AddClass(const PredicateSet& set, const SpreadCounts* counts);
  void Connect();
  void Apply(size_t k, NodeId node, int64_t by);
  [[nodiscard]] int64_t LeastOf(Spread& spread) const;

  const State& state_;
  const Terms& terms_;
  std::map<std::tuple<Kind, uint32_t, uint32_t>, size_t> counter_ids_;
  std::vector<Counter> counters_;
  std::vector<Class> classes_;
  std::vector<std::pair<size_t, NodeId>> log_;
};

}  // namespace hopwise::cluster
