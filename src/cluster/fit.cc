#include "cluster/fit.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "api/meta.h"
#include "base/check.h"
#include "base/int128.h"
#include "base/quantity.h"
#include "cluster/node_match.h"
#include "cluster/state.h"
#include "cluster/term_judge.h"

namespace hopwise::cluster {
namespace {

// Up to this many pods per node the fit is counted by comparisons, which vectorise; above it by
// multiplication.
constexpr int64_t kCompareUpTo = 4;
// A shape that missed more than this share of the nodes is swept afresh rather than mended.
constexpr size_t kFollowShare = 4;

void AppendNumber(std::string& out, int64_t value) {
  char buffer[24];
  const auto done = std::to_chars(buffer, buffer + sizeof(buffer), value);
  out.append(buffer, done.ptr);
  out.push_back('\x1f');
}

void AppendText(std::string& out, std::string_view text) {
  AppendNumber(out, static_cast<int64_t>(text.size()));
  out.append(text);
}

void AppendRequirement(std::string& out, const api::Requirement& requirement) {
  AppendText(out, requirement.key);
  AppendNumber(out, static_cast<int64_t>(requirement.op));
  AppendNumber(out, static_cast<int64_t>(requirement.values.size()));
  for (const std::string& value : requirement.values) {
    AppendText(out, value);
  }
}

void AppendRequirements(std::string& out, const std::vector<api::Requirement>& requirements) {
  AppendNumber(out, static_cast<int64_t>(requirements.size()));
  for (const api::Requirement& requirement : requirements) {
    AppendRequirement(out, requirement);
  }
}

bool PortsClash(const api::HostPort& a, const api::HostPort& b) {
  const bool any = a.ip.empty() || b.ip.empty() || a.ip == "0.0.0.0" || b.ip == "0.0.0.0";
  return a.port == b.port && a.protocol == b.protocol && (any || a.ip == b.ip);
}

// The sweeps are compiled a second time for machines with wide vectors; which one runs is settled
// when the program is loaded. Sanitizers instrument code that runs too early for them then.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOPWISE_SANITIZED
#endif
#endif
#if defined(__x86_64__) && defined(__linux__) && !defined(HOPWISE_SANITIZED)
#define HOPWISE_WIDE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define HOPWISE_WIDE_CLONES
#endif

// counts[i] = min(counts[i], floor(free[i] / amount)), 0 where free is negative, for one block.
// `most` bounds every quotient.
HOPWISE_WIDE_CLONES
void NarrowByCompare(const int64_t* free, int64_t amount, int64_t most, uint16_t* counts,
                     size_t n) {
  // A count above the quotient is lowered step by step; where most nodes fit none or all, as whole
  // nodes do, one step is all there is.
  for (int64_t k = most; k >= 1; --k) {
    const int64_t needed = k * amount;
    const auto below = static_cast<uint16_t>(k - 1);
    for (size_t i = 0; i < n; ++i) {
      const uint16_t bound = free[i] >= needed ? uint16_t{0xffff} : below;
      counts[i] = counts[i] < bound ? counts[i] : bound;
    }
  }
}

// Division by a fixed amount: multiply with floor(2^64 / amount), which is at most one too low, and
// mend.
HOPWISE_WIDE_CLONES
void NarrowByDivision(const int64_t* free, int64_t amount, uint16_t* counts, size_t n) {
  const auto divisor = static_cast<uint64_t>(amount);
  const auto inverse = static_cast<uint64_t>((Uint128{1} << 64) / (divisor == 1 ? 2 : divisor));
  for (size_t i = 0; i < n; ++i) {
    const uint64_t room = free[i] > 0 ? static_cast<uint64_t>(free[i]) : 0;
    uint64_t fits = divisor == 1 ? room : static_cast<uint64_t>((Uint128{room} * inverse) >> 64);
    fits += divisor != 1 && room - fits * divisor >= divisor ? 1U : 0U;
    counts[i] = std::min<uint16_t>(counts[i],
                                   static_cast<uint16_t>(std::min<uint64_t>(fits, kMaxFitPerNode)));
  }
}

// Whether some resource is too scarce everywhere in the zone.
bool NoneFits(const Columns& columns, const Request& request, size_t zone) {
  return std::ranges::any_of(request, [&](const auto& part) {
    return columns.free_extent(part.first, zone).most < part.second;
  });
}

}  // namespace

FitCache::FitCache(const State& state) : state_(state) {}
FitCache::~FitCache() = default;

std::string PredicateSet::Key() const {
  std::string key;
  AppendRequirements(key, selector);
  AppendNumber(key, has_affinity ? 1 : 0);
  AppendNumber(key, static_cast<int64_t>(affinity.size()));
  for (const api::NodeSelectorTerm& term : affinity) {
    AppendRequirements(key, term.expressions);
    AppendRequirements(key, term.fields);
  }
  AppendNumber(key, static_cast<int64_t>(tolerations.size()));
  for (const api::Toleration& t : tolerations) {
    AppendText(key, t.key);
    AppendText(key, t.value);
    AppendText(key, t.effect);
    AppendNumber(key, t.exists ? 1 : 0);
  }
  AppendNumber(key, static_cast<int64_t>(ports.size()));
  for (const api::HostPort& p : ports) {
    AppendText(key, p.ip);
    AppendText(key, p.protocol);
    AppendNumber(key, p.port);
  }
  for (const auto& requirements : extra) {
    AppendRequirements(key, requirements);
  }
  key.push_back('t');
  terms.AppendKey(key);
  return key;
}

ClassId FitCache::InternClass(const Request& request) {
  std::string key;
  for (const auto& [r, amount] : request) {
    AppendNumber(key, r.value);
    AppendNumber(key, amount);
  }
  const StringId id = class_keys_.Intern(key);
  if (id.index() == classes_.size()) {
    classes_.push_back({request});
  }
  return ClassId(id.value);
}

PredicateId FitCache::InternPredicates(const PredicateSet& set) {
  const StringId id = predicate_keys_.Intern(set.Key());
  if (id.index() == predicates_.size()) {
    Predicate p;
    p.set = set;
    p.trivial = set.selector.empty() && !set.has_affinity && set.ports.empty() && set.extra.empty();
    predicates_.push_back(std::move(p));
  }
  return PredicateId(id.value);
}

ShapeId FitCache::InternShape(ClassId resource_class, PredicateId predicates) {
  const uint64_t key = uint64_t{resource_class.value} << 32U | predicates.value;
  if (last_shape_.second.valid() && last_shape_.first == key) {
    return last_shape_.second;
  }
  const auto [at, fresh] = shape_of_.try_emplace(key, shapes_.size());
  if (fresh) {
    Shape shape;
    shape.resource_class = resource_class;
    shape.predicates = predicates;
    shapes_.push_back(std::move(shape));
  }
  last_shape_ = *at;
  return at->second;
}

const PredicateSet& FitCache::ShapePredicates(ShapeId s) const { return PredicatesOf(s).set; }

namespace {

bool ToleratesCordon(const std::vector<api::Toleration>& tolerations) {
  const api::Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  return std::ranges::any_of(tolerations,
                             [&](const api::Toleration& t) { return api::Tolerates(t, cordon); });
}

NodeVerdict JudgeTraits(const State& state, const NodeRecord& node, const PredicateSet& set) {
  if (!node.alive) {
    return NodeVerdict::kGone;
  }
  if (!node.ready) {
    return NodeVerdict::kNotReady;
  }
  if (node.unschedulable && !ToleratesCordon(set.tolerations)) {
    return NodeVerdict::kUnschedulable;
  }
  if (!node.taints.empty() && !ToleratesAll(set.tolerations, node.taints)) {
    return NodeVerdict::kTaint;
  }
  if (!MatchesAll(state, node, set.selector)) {
    return NodeVerdict::kSelector;
  }
  if (set.has_affinity && !MatchesAny(state, node, set.affinity)) {
    return NodeVerdict::kAffinity;
  }
  for (const auto& requirements : set.extra) {
    if (!MatchesAll(state, node, requirements)) {
      return NodeVerdict::kAffinity;
    }
  }
  return NodeVerdict::kFits;
}

bool PortsFree(const NodeRecord& node, const PredicateSet& set) {
  return std::ranges::none_of(set.ports, [&](const api::HostPort& wanted) {
    return std::ranges::any_of(node.ports,
                               [&](const auto& taken) { return PortsClash(wanted, taken.second); });
  });
}

}  // namespace

bool FitCache::Allowed(NodeId node, const PredicateSet& set, NodeVerdict* why) const {
  const NodeRecord& record = state_.node(node);
  NodeVerdict verdict = JudgeTraits(state_, record, set);
  if (verdict == NodeVerdict::kFits && !set.ports.empty() && !PortsFree(record, set)) {
    verdict = NodeVerdict::kPort;
  }
  if (why != nullptr) {
    *why = verdict;
  }
  return verdict == NodeVerdict::kFits;
}

bool FitCache::KnownAllowed(NodeId node, const Predicate& p) const {
  return p.fresh && p.seen == state_.columns().traits_journal().end() &&
         node.index() / 64 < p.bits.size() &&
         ((p.bits[node.index() / 64] >> (node.index() % 64)) & 1U) != 0;
}

NodeVerdict FitCache::Judge(NodeId node, ShapeId shape) const {
  NodeVerdict verdict = NodeVerdict::kFits;
  if (!KnownAllowed(node, PredicatesOf(shape)) &&
      !Allowed(node, ShapePredicates(shape), &verdict)) {
    return verdict;
  }
  if (Concerned(shape)) {
    verdict = TermJudge(state_, {shape}).Judge(0, node);
    if (verdict != NodeVerdict::kFits) {
      return verdict;
    }
  }
  if (state_.IsAvoided(node, ShapeClass(shape))) {
    return NodeVerdict::kAvoided;
  }
  return state_.columns().Fit(node, ShapeRequest(shape)) > 0 ? NodeVerdict::kFits
                                                             : NodeVerdict::kResources;
}

int64_t FitCache::FitAfresh(NodeId node, ShapeId shape) const {
  const PredicateSet& set = ShapePredicates(shape);
  if (!Allowed(node, set, nullptr) || state_.IsAvoided(node, ShapeClass(shape))) {
    return 0;
  }
  int64_t most = set.ports.empty() ? kMaxFitPerNode : 1;
  if (Concerned(shape)) {
    TermJudge judge(state_, {shape});
    if (judge.Judge(0, node) != NodeVerdict::kFits) {
      return 0;
    }
    most = judge.OnePerNode(0, node) ? 1 : most;
  }
  return std::min(most, state_.columns().Fit(node, ShapeRequest(shape)));
}

bool FitCache::Concerned(ShapeId shape) const {
  const TermSet& terms = ShapePredicates(shape).terms;
  return (terms.Asks() || !terms.matches.empty()) && state_.terms().Concerns(terms);
}

const SpreadCounts* FitCache::SpreadOf(ShapeId shape) const {
  const Predicate& p = PredicatesOf(shape);
  if (p.set.terms.spread.empty()) {
    return nullptr;
  }
  if (p.spread == nullptr) {
    p.spread = std::make_unique<SpreadCounts>();
  }
  p.spread->Update(state_, p.set);
  return p.spread.get();
}

ShapeId FitCache::Bare(ShapeId shape) {
  if (!ShapePredicates(shape).terms.Asks() && ShapePredicates(shape).terms.matches.empty()) {
    return shape;
  }
  PredicateSet set = ShapePredicates(shape);
  set.terms = {};
  return InternShape(ShapeClass(shape), InternPredicates(set));
}

// The room that the bare shape finds, but for nodes that the pods around them forbid.
const ShapeFit& FitCache::GetJudged(ShapeId shape, const std::vector<const topology::Tree*>& trees,
                                    uint64_t topology_version) {
  const ShapeId bare = Bare(shape);
  const uint64_t version = state_.terms().Version(ShapePredicates(shape).terms);
  const uint64_t seen = state_.columns().room_journal().end();
  Shape& current = shapes_[shape.index()];
  const bool same_trees = current.topology_version == topology_version;
  if (current.data && current.judged && current.seen == seen && current.terms_seen == version &&
      same_trees) {
    current.last_use = ++clock_;
    current.data->sums.resize(trees.size());
    return *current.data;
  }
  const ShapeFit& open = Get(bare, trees, topology_version);
  auto data = std::make_unique<ShapeFit>();
  data->fit = open.fit;
  data->max_fit = open.max_fit;
  TermJudge judge(state_, {shape});
  for (size_t n = 0; n < data->fit.size(); ++n) {
    uint16_t& fit = data->fit[n];
    if (fit == 0) {
      continue;
    }
    if (judge.Judge(0, NodeId(n)) != NodeVerdict::kFits) {
      fit = 0;
    } else if (judge.OnePerNode(0, NodeId(n))) {
      fit = 1;
    }
  }
  data->sums.resize(trees.size());
  Shape& s = shapes_[shape.index()];
  held_ += s.data ? 0 : data->fit.size() * sizeof(uint16_t);
  s.data = std::move(data);
  s.judged = true;
  s.seen = seen;
  s.terms_seen = version;
  s.topology_version = topology_version;
  s.last_use = ++clock_;
  Evict(shape);
  return *s.data;
}

int64_t FitCache::FitEmpty(NodeId node, ShapeId shape) const {
  const PredicateSet& set = ShapePredicates(shape);
  if (!KnownAllowed(node, PredicatesOf(shape)) &&
      JudgeTraits(state_, state_.node(node), set) != NodeVerdict::kFits) {
    return 0;
  }
  const int64_t most = set.ports.empty() ? kMaxFitPerNode : 1;
  return std::min(most, state_.columns().FitEmpty(node, ShapeRequest(shape)));
}

void FitCache::UpdatePredicates(Predicate& p) {
  const Journal& journal = state_.columns().traits_journal();
  const size_t nodes = state_.node_slots();
  const Journal::Tail tail = journal.Since(p.fresh ? p.seen : 0);
  p.bits.resize((nodes + 63) / 64, 0);
  if (p.fresh && tail.complete && tail.nodes.size() <= nodes / kFollowShare + 1) {
    for (const NodeId node : tail.nodes) {
      const uint64_t bit = uint64_t{1} << (node.index() % 64);
      uint64_t& word = p.bits[node.index() / 64];
      word = Allowed(node, p.set, nullptr) ? word | bit : word & ~bit;
    }
  } else {
    std::ranges::fill(p.bits, 0);
    for (size_t n = 0; n < nodes; ++n) {
      const NodeRecord& record = state_.node(NodeId(n));
      // Most nodes of a cluster are plain; only the others need the full judgement when nothing is
      // demanded of them.
      const bool plain =
          record.alive && record.ready && !record.unschedulable && record.taints.empty();
      if ((plain && p.trivial) || (record.alive && Allowed(NodeId(n), p.set, nullptr))) {
        p.bits[n / 64] |= uint64_t{1} << (n % 64);
      }
    }
  }
  p.fresh = true;
  p.seen = journal.end();
}

int64_t FitCache::MostOf(const Request& request, const PredicateSet& set) const {
  int64_t most = set.ports.empty() ? kMaxFitPerNode : 1;
  for (const auto& [r, amount] : request) {
    most = std::min(most, state_.columns().max_allocatable(r) / amount);
  }
  return most;
}

int64_t FitCache::MostPerNode(ShapeId shape) const {
  return MostOf(ShapeRequest(shape), ShapePredicates(shape));
}

void FitCache::Recompute(Shape& s) {
  const Columns& columns = state_.columns();
  const size_t nodes = state_.node_slots();
  const Request& request = ClassRequest(s.resource_class);
  const Predicate& p = predicates_[s.predicates.index()];
  ShapeFit& data = *s.data;
  data.fit.resize(nodes);
  const int64_t most = MostOf(request, p.set);
  data.max_fit = static_cast<uint16_t>(most);
  const auto start = static_cast<uint16_t>(most);
  for (size_t lo = 0; lo < nodes; lo += Columns::kZone) {
    const size_t n = std::min(Columns::kZone, nodes - lo);
    const size_t zone = lo / Columns::kZone;
    uint16_t* counts = data.fit.data() + lo;
    if (NoneFits(columns, request, zone)) {
      std::fill_n(counts, n, uint16_t{0});
      continue;
    }
    for (size_t i = 0; i < n; i += 64) {  // kZone is a multiple, so a word begins here
      const uint64_t word = p.bits[(lo + i) / 64];
      const size_t some = std::min<size_t>(64, n - i);
      if (word == ~uint64_t{0}) {
        std::fill_n(counts + i, some, start);
        continue;
      }
      for (size_t b = 0; b < some; ++b) {
        counts[i + b] = ((word >> b) & 1U) != 0 ? start : uint16_t{0};
      }
    }
    for (const auto& [r, amount] : request) {
      if (SaturatingMul(most, amount) <= columns.free_extent(r, zone).least) {
        continue;  // binds nowhere in the zone
      }
      const int64_t* free = columns.free(r).data() + lo;
      if (most <= kCompareUpTo) {
        NarrowByCompare(free, amount, most, counts, n);
      } else {
        NarrowByDivision(free, amount, counts, n);
      }
      if (!columns.free_extent(r, zone).exact) {
        columns.Tighten(r, zone);  // just read, so it costs little
      }
    }
  }
  for (const auto& [node, resource_class] : state_.avoided()) {
    if (resource_class == s.resource_class && node.index() < nodes) {
      data.fit[node.index()] = 0;
    }
  }
  data.sums.clear();
}

namespace {

// Room on the nodes that are members of d itself.
int64_t SumOwn(const ShapeFit& data, const topology::Tree& tree, size_t d) {
  const topology::Tree::Outline& outline = tree.outlines[d];
  if (outline.own_nodes <= kMaxFitPerNode && outline.first_id != topology::Tree::kNoPosition) {
    const uint16_t* fit = data.fit.data() + outline.first_id;
    uint32_t narrow = 0;  // vectorises better; the count times the most per node fits
    for (uint32_t i = 0; i < outline.own_nodes; ++i) {
      narrow += fit[i];
    }
    return narrow;
  }
  int64_t sum = 0;
  for (uint32_t i = 0; i < outline.own_nodes; ++i) {
    sum += data.fit[tree.order[tree.domains[d].lo + i].index()];
  }
  return sum;
}

}  // namespace

void FitCache::SumTree(const ShapeFit& data, const topology::Tree& tree,
                       std::vector<int64_t>& sums) const {
  const size_t domains = tree.domains.size();
  sums.assign(domains, 0);
  // Children come after their parents, so walking backwards every domain is complete before it is
  // added to its parent.
  for (size_t d = domains; d-- > 0;) {
    sums[d] += SumOwn(data, tree, d);
    if (d > 0) {
      sums[tree.outlines[d].parent] += sums[d];
    }
  }
}

std::vector<int64_t> FitCache::EmptySums(ShapeId shape, const topology::Tree& tree) {
  Shape& s = shapes_[shape.index()];
  Predicate& p = predicates_[s.predicates.index()];
  UpdatePredicates(p);
  const Columns& columns = state_.columns();
  const Request& request = ClassRequest(s.resource_class);
  const size_t nodes = state_.node_slots();
  ShapeFit empty;
  empty.fit.resize(nodes);
  const int64_t most = p.set.ports.empty() ? kMaxFitPerNode : 1;
  for (size_t lo = 0; lo < nodes; lo += Columns::kZone) {
    const size_t n = std::min(Columns::kZone, nodes - lo);
    uint16_t* counts = empty.fit.data() + lo;
    for (size_t i = 0; i < n; ++i) {
      // A port in use is no lasting obstacle, so only traits count here.
      const bool allowed = ((p.bits[(lo + i) / 64] >> ((lo + i) % 64)) & 1U) != 0 ||
                           (!p.set.ports.empty() && JudgeTraits(state_, state_.node(NodeId(lo + i)),
                                                                p.set) == NodeVerdict::kFits);
      counts[i] = allowed ? static_cast<uint16_t>(most) : uint16_t{0};
    }
    for (const auto& [r, amount] : request) {
      NarrowByDivision(columns.allocatable(r).data() + lo, amount, counts, n);
    }
  }
  std::vector<int64_t> sums;
  SumTree(empty, tree, sums);
  return sums;
}

void FitCache::Follow(Shape& s, const std::vector<const topology::Tree*>& trees) {
  ShapeFit& data = *s.data;
  const Columns& columns = state_.columns();
  const Predicate& p = predicates_[s.predicates.index()];
  const Request& request = ClassRequest(s.resource_class);
  const int64_t most = p.set.ports.empty() ? kMaxFitPerNode : 1;
  for (const NodeId node : columns.room_journal().Since(s.seen).nodes) {
    const bool allowed = ((p.bits[node.index() / 64] >> (node.index() % 64)) & 1U) != 0 &&
                         !state_.IsAvoided(node, s.resource_class);
    const auto now =
        static_cast<uint16_t>(allowed ? std::min(most, columns.Fit(node, request)) : 0);
    const int64_t delta = int64_t{now} - data.fit[node.index()];
    if (delta == 0) {
      continue;
    }
    data.fit[node.index()] = now;
    data.max_fit = std::max(data.max_fit, now);
    for (size_t t = 0; t < data.sums.size(); ++t) {
      if (data.sums[t].empty()) {
        continue;
      }
      for (DomainId d = trees[t]->leaf_of[node.index()]; d.valid(); d = trees[t]->at(d).parent) {
        data.sums[t][d.index()] += delta;
      }
    }
  }
}

const ShapeFit& FitCache::Get(ShapeId shape, const std::vector<const topology::Tree*>& trees,
                              uint64_t topology_version) {
  if (Concerned(shape)) {
    return GetJudged(shape, trees, topology_version);
  }
  Shape& s = shapes_[shape.index()];
  s.last_use = ++clock_;
  Predicate& p = predicates_[s.predicates.index()];
  UpdatePredicates(p);
  const Journal& journal = state_.columns().room_journal();
  const Journal::Tail tail = journal.Since(s.data ? s.seen : 0);
  const size_t nodes = state_.node_slots();
  const bool follow = s.data && !s.judged && tail.complete && s.data->fit.size() == nodes &&
                      tail.nodes.size() <= nodes / kFollowShare + 1;
  if (s.data && s.topology_version != topology_version) {
    s.data->sums.clear();
  }
  if (follow) {
    Follow(s, trees);
  } else {
    if (!s.data) {
      s.data = std::make_unique<ShapeFit>();
      held_ += nodes * sizeof(uint16_t);
      Evict(shape);
    }
    Recompute(s);
  }
  s.judged = false;
  s.seen = journal.end();
  s.topology_version = topology_version;
  s.data->sums.resize(trees.size());
  return *s.data;
}

const std::vector<int64_t>& FitCache::Sums(ShapeId shape,
                                           const std::vector<const topology::Tree*>& trees,
                                           size_t tree) {
  ShapeFit& data = *shapes_[shape.index()].data;
  if (data.sums[tree].empty()) {
    SumTree(data, *trees[tree], data.sums[tree]);
  }
  return data.sums[tree];
}

void FitCache::Evict(ShapeId keep) {
  while (held_ > budget_) {
    size_t oldest = shapes_.size();
    for (size_t i = 0; i < shapes_.size(); ++i) {
      if (shapes_[i].data && i != keep.index() &&
          (oldest == shapes_.size() || shapes_[i].last_use < shapes_[oldest].last_use)) {
        oldest = i;
      }
    }
    if (oldest == shapes_.size()) {
      return;
    }
    held_ -= std::min(held_, shapes_[oldest].data->fit.capacity() * sizeof(uint16_t));
    shapes_[oldest].data.reset();
  }
}

size_t FitCache::MemoryBytes() const {
  size_t bytes = 0;
  for (const Shape& s : shapes_) {
    if (s.data) {
      bytes += s.data->fit.capacity() * sizeof(uint16_t);
      for (const auto& sums : s.data->sums) {
        bytes += sums.capacity() * sizeof(int64_t);
      }
    }
  }
  return bytes;
}

}  // namespace hopwise::cluster
