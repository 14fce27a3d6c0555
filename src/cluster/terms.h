// What pods ask of the pods around them: who matches whom, and how many there are in each domain of
// a node label.
//
// A matcher is a set of terms (namespaces and a selector each) that a pod must match together. Pods
// that stand on a node are counted by matcher and node and summed by the values of a topology key;
// a pod that comes, goes or is relabelled, a node that is, and a namespace change single counts.
// The pods are read through once when a matcher is first asked for, and never for a decision.
// Matchers that nobody uses any more are kept for a while (kMostIdle), then forgotten; their ids
// are never given out again.
//
// The other direction, pods on nodes that keep others away, is counted by carriers: pods that have
// the term, by node and value.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "api/pod_terms.h"
#include "base/ids.h"
#include "base/string_pool.h"
#include "cluster/model.h"

namespace hopwise::cluster {

class State;

inline constexpr uint32_t kNoTerm = 0xffffffffU;

// A selector with its keys and values as ids of the state's strings.
struct PackedRequirement {
  StringId key;
  api::Operator op = api::Operator::kIn;
  std::vector<StringId> values;  // sorted
};
bool MatchesPacked(const std::vector<PackedRequirement>& requirements, const PackedLabels& labels);

// One hard spread constraint of a pod.
struct SpreadTerm {
  uint32_t matcher = kNoTerm, key = kNoTerm;
  int32_t max_skew = 1, min_domains = 1;
  bool honor_affinity = true, honor_taints = false;

  friend auto operator<=>(const SpreadTerm&, const SpreadTerm&) = default;
};

// What a pod requires of the pods around it, and what of theirs it matches. Equal sets are judged
// alike.
struct TermSet {
  uint32_t affinity = kNoTerm;                      // all its affinity terms together
  std::vector<uint32_t> affinity_keys;              // sorted
  std::vector<std::pair<uint32_t, uint32_t>> anti;  // (matcher, key), sorted
  std::vector<SpreadTerm> spread;
  std::vector<uint32_t> matches;  // of all matchers in use, sorted

  // Whether it requires anything itself.
  [[nodiscard]] bool Asks() const {
    return affinity != kNoTerm || !anti.empty() || !spread.empty();
  }
  [[nodiscard]] bool MatchesOf(uint32_t matcher) const;
  void AppendKey(std::string& key) const;
};

class Terms {
 public:
  // Idle matchers kept.
  static constexpr size_t kMostIdle = 256;

  // Sums of a count by the values of one topology key.
  struct Sums {
    uint32_t key = kNoTerm;
    std::vector<int64_t> by_value;  // may be shorter than the key has values
    int64_t total = 0;

    [[nodiscard]] int64_t Of(uint32_t value) const {
      return value < by_value.size() ? by_value[value] : 0;
    }
  };
  using NodeCounts =
      boost::unordered_flat_map<uint32_t, int32_t>;  // by node; sums and look-up only

  Terms(const State& state, StringPool& strings) : state_(state), strings_(strings) {}

  // --- what the state tells
  // Takes over the uses of the labels.
  void SetNamespace(const std::string& name, const PackedLabels& labels);
  void RemoveNamespace(std::string_view name);
  // The node's labels changed; nullptr: it is gone, and its pods do not count any more.
  void NodeChanged(NodeId node, const PackedLabels* labels);
  // A pod stands on a node that exists, or no longer does. Between the two its record must not
  // change in namespace, labels, termination or terms.
  void Enter(const PodRecord& pod) { Count(pod, 1); }
  void Leave(const PodRecord& pod) { Count(pod, -1); }

  // What the pod requires, without `matches`: of one that is placed, or not ours, only what keeps
  // others away.
  // As an id for the pod's record, 0 for nothing; Release gives its use back.
  uint32_t InternId(std::string_view ns, const api::PodTerms& terms, bool placing);
  void Release(uint32_t id);
  [[nodiscard]] const TermSet& Get(uint32_t id) const { return sets_[id].set; }
  // The matchers in use that match a pod.
  [[nodiscard]] std::vector<uint32_t> MatchesOf(const PodRecord& pod) const;
  // Grows when a pod's matches may be others than before.
  [[nodiscard]] uint64_t epoch() const { return epoch_; }

  // --- what decisions read
  [[nodiscard]] size_t value_count(uint32_t key) const { return keys_[key].nodes.size(); }
  // By node id, kNoTerm where the node lacks the label; may be shorter than there are nodes.
  [[nodiscard]] const std::vector<uint32_t>& values(uint32_t key) const {
    return keys_[key].value_of;
  }
  [[nodiscard]] uint32_t ValueOf(uint32_t key, NodeId node) const {
    const auto& values = keys_[key].value_of;
    return node.index() < values.size() ? values[node.index()] : kNoTerm;
  }
  [[nodiscard]] const std::string& KeyName(uint32_t key) const { return keys_[key].text; }
  // Pods on nodes that match, by the values of a key; counted from now on if they were not.
  // nullptr for a matcher that is no longer in use.
  const Sums* MatchedBy(uint32_t matcher, uint32_t key) const;
  const NodeCounts* MatchedOn(uint32_t matcher) const;
  // Pods on nodes that have the anti-affinity term, by its key's values; nullptr when nobody may.
  struct Keeper {
    uint32_t matcher = kNoTerm;
    const Sums* carriers = nullptr;
  };
  // The terms on nodes that keep away who matches `matches`.
  [[nodiscard]] std::vector<Keeper> Keepers(const std::vector<uint32_t>& matches) const;
  // Whether the set needs any judgement.
  [[nodiscard]] bool Concerns(const TermSet& set) const;
  // Changes whenever a count that the set's judgement reads does.
  [[nodiscard]] uint64_t Version(const TermSet& set) const;
  [[nodiscard]] uint64_t MatcherVersion(uint32_t matcher) const;
  // An empty selector of a spread constraint, which matches every pod and counts none.
  [[nodiscard]] bool CountsNobody(uint32_t matcher) const {
    return Find(matcher) != nullptr && Find(matcher)->spread && Find(matcher)->empty;
  }

  [[nodiscard]] size_t matcher_count() const { return matcher_ids_.size(); }
  // Counts everything afresh and compares; "" when all agrees. For tests.
  [[nodiscard]] std::string Audit() const;

 private:
  struct Scope {
    std::vector<std::string> names;  // sorted
    bool selects = false;
    std::vector<PackedRequirement> selector;  // on a namespace's labels
  };
  struct Part {
    Scope scope;
    std::vector<PackedRequirement> selector;
    bool nothing = false;  // no selector: no pod matches
  };
  struct Carried {
    Sums sums;
    NodeCounts on;
  };
  struct Matcher {
    std::string text;  // what it was interned by
    std::vector<Part> parts;
    bool spread = false;  // passes over pods on their way out; an empty selector counts none
    bool empty = false;   // the selector of a spread constraint is empty
    bool by_namespace = false;
    uint32_t uses = 0;
    uint64_t idle_since = 0;
    uint64_t version = 0;
    bool counted = false;
    NodeCounts on;
    std::deque<Sums> sums;  // a deque: readers hold on to one while another is made
    std::vector<Carried> carried;
  };
  struct Key {
    StringId name;
    std::string text;
    std::vector<uint32_t> value_of;                       // by node
    std::vector<uint32_t> nodes;                          // by value: how many have it
    std::vector<StringId> ids;                            // by value
    boost::unordered_flat_map<uint32_t, uint32_t> index;  // value by string id; look-up only
    std::vector<uint32_t> free;
  };
  struct Set {
    TermSet set;
    uint32_t uses = 0;
  };

  uint32_t InternKey(std::string_view name);
  TermSet Intern(std::string_view ns, const api::PodTerms& terms, bool placing);
  uint32_t InternMatcher(std::string_view ns, const std::vector<const api::PodAffinityTerm*>& terms,
                         bool spread);
  [[nodiscard]] Part Compile(std::string_view ns, const api::PodAffinityTerm& term);
  [[nodiscard]] std::vector<PackedRequirement> Compile(const api::LabelSelector& selector);
  void ReleaseStrings(const std::vector<PackedRequirement>& requirements);
  void UseMatcher(uint32_t id);
  void ReleaseMatcher(uint32_t id);
  void Destroy(uint32_t id);
  void SetIndexed(uint32_t id, bool indexed);
  void ReleaseUses(const TermSet& set);

  [[nodiscard]] bool InScope(const Scope& scope, std::string_view ns) const;
  [[nodiscard]] bool MatchesRecord(const Matcher& matcher, const PodRecord& pod) const;
  template <class Visit>
  void ForEachMatch(const PodRecord& pod, Visit visit) const;
  void Count(const PodRecord& pod, int32_t by);
  void CountCarried(const PodRecord& pod, NodeId node, int32_t by);
  void AddTo(Sums& sums, NodeId node, int64_t by) const;
  void CountAfresh(Matcher& matcher) const;
  void ReplaceNamespace(const std::string& name, const PackedLabels* labels);
  [[nodiscard]] std::string AuditCounts(const Matcher& matcher) const;
  [[nodiscard]] std::string AuditCarriers(uint32_t id, const Matcher& matcher) const;
  void SetValue(Key& key, NodeId node, StringId label);
  void MoveCounts(uint32_t key, NodeId node, int64_t by);
  [[nodiscard]] const Matcher* Find(uint32_t id) const {
    return id < matchers_.size() ? matchers_[id].get() : nullptr;
  }

  const State& state_;
  StringPool& strings_;
  std::map<std::string, PackedLabels, std::less<>> namespaces_;
  std::vector<Key> keys_;
  std::map<std::string, uint32_t, std::less<>> key_ids_;
  // Counting is begun by who reads, which changes nothing that can be seen.
  mutable std::vector<std::unique_ptr<Matcher>> matchers_;  // null: forgotten
  std::map<std::string, uint32_t, std::less<>> matcher_ids_;
  // Matchers by one label value that each of their pods has; those without in general_.
  boost::unordered_flat_map<uint64_t, std::vector<uint32_t>> by_label_;
  std::vector<uint32_t> general_;
  std::vector<Set> sets_ = {Set{}};
  std::map<std::string, uint32_t, std::less<>> set_ids_;
  std::vector<uint32_t> free_sets_;
  std::map<uint64_t, uint32_t> idle_;  // matchers nobody uses, by since when
  uint64_t epoch_ = 0, clock_ = 0;
};

}  // namespace hopwise::cluster
