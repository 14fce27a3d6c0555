#include "cluster/term_judge.h"

#include <algorithm>
#include <limits>

#include "cluster/node_match.h"
#include "cluster/state.h"

namespace hopwise::cluster {
namespace {

const std::vector<int64_t> kNothing;

bool HasAllKeys(const Terms& terms, const TermSet& set, NodeId node) {
  return std::ranges::all_of(
      set.spread, [&](const SpreadTerm& term) { return terms.ValueOf(term.key, node) != kNoTerm; });
}

bool IsEligible(const State& state, const PredicateSet& set, const SpreadTerm& term, NodeId node) {
  const NodeRecord& record = state.node(node);
  return record.alive && HasAllKeys(state.terms(), set.terms, node) &&
         (!term.honor_affinity || MatchesNodeAffinity(state, record, set)) &&
         (!term.honor_taints || ToleratesAll(set.tolerations, record.taints));
}

}  // namespace

void SpreadCounts::Update(const State& state, const PredicateSet& set) {
  const Journal& journal = state.columns().traits_journal();
  const Journal::Tail tail = journal.Since(fresh ? seen : 0);
  const Terms& terms = state.terms();
  const size_t nodes = state.node_slots();
  const bool all = !fresh || !tail.complete;
  const bool moved = all || !tail.nodes.empty();
  constraints.resize(set.terms.spread.size());
  for (size_t c = 0; c < constraints.size(); ++c) {
    Constraint& constraint = constraints[c];
    const SpreadTerm& term = set.terms.spread[c];
    constraint.eligible.resize(nodes, 0);
    const auto judge = [&](NodeId node) {
      constraint.eligible[node.index()] = IsEligible(state, set, term, node) ? 1 : 0;
    };
    if (all) {
      for (size_t n = 0; n < nodes; ++n) judge(NodeId(n));
    } else {
      std::ranges::for_each(tail.nodes, judge);
    }
    const uint64_t version = terms.MatcherVersion(term.matcher);
    if (!moved && constraint.version == version) continue;
    constraint.version = version;
    const size_t values = terms.value_count(term.key);
    constraint.nodes.assign(values, 0);
    constraint.by_value.assign(values, 0);
    constraint.domains = 0;
    for (size_t n = 0; n < nodes; ++n) {
      if (constraint.eligible[n] == 0) continue;
      constraint.domains += constraint.nodes[terms.ValueOf(term.key, NodeId(n))]++ == 0 ? 1 : 0;
    }
    const Terms::NodeCounts* on = terms.MatchedOn(term.matcher);
    if (on == nullptr) continue;
    for (const auto& [node, count] : *on) {
      if (constraint.eligible[node] == 0) continue;
      constraint.by_value[terms.ValueOf(term.key, NodeId(node))] += count;
    }
  }
  fresh = true;
  seen = journal.end();
}

int64_t TermJudge::Counter::Of(uint32_t value) const {
  const std::vector<int64_t>& counts = own.empty() ? *base : own;
  return value < counts.size() ? counts[value] : 0;
}

void TermJudge::Counter::Add(uint32_t value, size_t values, int64_t by) {
  if (own.empty()) {
    own = *base;
    own.resize(std::max(values, own.size()), 0);
  }
  own[value] += by;
  total += by;
}

TermJudge::TermJudge(const State& state, const std::vector<ShapeId>& classes)
    : state_(state), terms_(state.terms()) {
  for (const ShapeId shape : classes) {
    AddClass(state.fits().ShapePredicates(shape), state.fits().SpreadOf(shape));
  }
  Connect();
}

size_t TermJudge::CounterOf(Kind kind, uint32_t matcher, uint32_t key) {
  const auto [at, fresh] =
      counter_ids_.try_emplace(std::tuple(kind, matcher, key), counters_.size());
  if (fresh) {
    Counter counter;
    counter.key = key;
    counter.base = &kNothing;
    counters_.push_back(std::move(counter));
  }
  return at->second;
}

void TermJudge::AddClass(const PredicateSet& predicates, const SpreadCounts* counts) {
  Class next;
  next.set = predicates.terms;
  const TermSet& set = next.set;
  for (const uint32_t key : set.affinity_keys) {
    next.affinity.push_back(CounterOf(Kind::kMatched, set.affinity, key));
    next.keys.push_back(key);
  }
  next.matches_itself = set.affinity != kNoTerm && set.MatchesOf(set.affinity);
  for (const auto& [matcher, key] : set.anti) {
    next.anti.push_back(CounterOf(Kind::kMatched, matcher, key));
    CounterOf(Kind::kCarried, matcher, key);
    next.keys.push_back(key);
    if (set.MatchesOf(matcher)) next.alone_by.push_back(key);
  }
  for (const Terms::Keeper& keeper : terms_.Keepers(set.matches)) {
    CounterOf(Kind::kCarried, keeper.matcher, keeper.carriers->key);
  }
  for (size_t c = 0; c < set.spread.size(); ++c) {
    Spread spread;
    spread.term = set.spread[c];
    spread.seen = &counts->constraints[c];
    spread.self = set.MatchesOf(spread.term.matcher);
    spread.counter = counters_.size();
    counters_.emplace_back();
    counters_.back().key = spread.term.key;
    counters_.back().base = &spread.seen->by_value;
    next.spread.push_back(spread);
    next.keys.push_back(set.spread[c].key);
  }
  classes_.push_back(std::move(next));
}

// All counters are known: who reads and who raises which.
void TermJudge::Connect() {
  for (const auto& [id, index] : counter_ids_) {
    const auto& [kind, matcher, key] = id;
    Counter& counter = counters_[index];
    const Terms::Sums* sums = nullptr;
    if (kind == Kind::kMatched) {
      sums = terms_.MatchedBy(matcher, key);
    } else {
      for (const Terms::Keeper& keeper : terms_.Keepers({matcher})) {
        if (keeper.carriers->key == key) sums = keeper.carriers;
      }
    }
    if (sums != nullptr) {
      counter.base = &sums->by_value;
      counter.total = sums->total;
    }
    for (Class& c : classes_) {
      const bool matches = c.set.MatchesOf(matcher);
      const bool carries = std::ranges::binary_search(c.set.anti, std::pair(matcher, key));
      if (kind == Kind::kMatched ? matches : carries) c.raises.push_back(index);
      if (kind == Kind::kCarried && matches) {
        c.keepers.push_back(index);
        c.keys.push_back(key);
      }
    }
  }
  for (Class& c : classes_) {
    std::ranges::sort(c.keys);
    c.keys.erase(std::ranges::unique(c.keys).begin(), c.keys.end());
    for (size_t k = 0; k < classes_.size(); ++k) {
      for (size_t s = 0; s < classes_[k].spread.size(); ++s) {
        const uint32_t matcher = classes_[k].spread[s].term.matcher;
        if (c.set.MatchesOf(matcher) && !terms_.CountsNobody(matcher)) {
          c.raises_spread.emplace_back(k, s);
        }
      }
    }
  }
}

NodeVerdict TermJudge::Judge(size_t k, NodeId node) {
  Class& c = classes_[k];
  bool company = true;
  int64_t anywhere = 0;
  for (const size_t index : c.affinity) {
    const Counter& counter = counters_[index];
    const uint32_t value = terms_.ValueOf(counter.key, node);
    if (value == kNoTerm) return NodeVerdict::kPodAffinity;
    company = company && counter.Of(value) > 0;
    anywhere += counter.total;
  }
  // The first of a group that keeps together may go anywhere.
  if (!company && (anywhere > 0 || !c.matches_itself)) return NodeVerdict::kPodAffinity;
  const auto occupied = [&](size_t index) {
    const uint32_t value = terms_.ValueOf(counters_[index].key, node);
    return value != kNoTerm && counters_[index].Of(value) > 0;
  };
  if (std::ranges::any_of(c.anti, occupied)) return NodeVerdict::kPodAntiAffinity;
  if (std::ranges::any_of(c.keepers, occupied)) return NodeVerdict::kKeptAway;
  for (Spread& spread : c.spread) {
    const uint32_t value = terms_.ValueOf(spread.term.key, node);
    if (value == kNoTerm) return NodeVerdict::kSpread;
    const int64_t here = counters_[spread.counter].Of(value) + (spread.self ? 1 : 0);
    if (here - LeastOf(spread) > spread.term.max_skew) return NodeVerdict::kSpread;
  }
  return NodeVerdict::kFits;
}

// The fewest matching pods in any domain; 0 where there are too few domains.
int64_t TermJudge::LeastOf(Spread& spread) const {
  if (!spread.stale) return spread.least;
  spread.stale = false;
  spread.least = 0;
  if (spread.seen->domains < std::max(1, spread.term.min_domains)) return 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  const Counter& counter = counters_[spread.counter];
  for (uint32_t value = 0; value < spread.seen->nodes.size(); ++value) {
    if (spread.seen->nodes[value] > 0) least = std::min(least, counter.Of(value));
  }
  spread.least = least;
  return least;
}

bool TermJudge::OnePerNode(size_t k, NodeId node) const {
  return std::ranges::any_of(classes_[k].alone_by,
                             [&](uint32_t key) { return terms_.ValueOf(key, node) != kNoTerm; });
}

void TermJudge::Apply(size_t k, NodeId node, int64_t by) {
  const auto add = [&](size_t index) {
    Counter& counter = counters_[index];
    const uint32_t value = terms_.ValueOf(counter.key, node);
    if (value != kNoTerm) counter.Add(value, terms_.value_count(counter.key), by);
  };
  std::ranges::for_each(classes_[k].raises, add);
  for (const auto& [of, s] : classes_[k].raises_spread) {
    Spread& spread = classes_[of].spread[s];
    if (spread.seen->eligible[node.index()] == 0) continue;
    add(spread.counter);
    spread.stale = true;
  }
}

void TermJudge::Place(size_t k, NodeId node) {
  Apply(k, node, 1);
  log_.emplace_back(k, node);
}

void TermJudge::Rollback(size_t mark) {
  while (log_.size() > mark) {
    const auto [k, node] = log_.back();
    log_.pop_back();
    Apply(k, node, -1);
  }
}

}  // namespace hopwise::cluster
