#include "cluster/terms.h"

#include <algorithm>

#include "base/check.h"
#include "cluster/state.h"

namespace hopwise::cluster {
namespace {

void AppendNumber(std::string& out, int64_t value) {
  out += std::to_string(value);
  out.push_back('\x1f');
}

void AppendText(std::string& out, std::string_view text) {
  AppendNumber(out, static_cast<int64_t>(text.size()));
  out.append(text);
}

void AppendSelector(std::string& out, const std::optional<api::LabelSelector>& selector) {
  AppendNumber(out, selector ? static_cast<int64_t>(selector->requirements.size()) : -1);
  if (!selector) return;
  for (const api::Requirement& requirement : selector->requirements) {
    AppendText(out, requirement.key);
    AppendNumber(out, static_cast<int64_t>(requirement.op));
    AppendNumber(out, static_cast<int64_t>(requirement.values.size()));
    for (const std::string& value : requirement.values) AppendText(out, value);
  }
}

// None when the labels lack the key.
StringId LabelOf(const PackedLabels& labels, StringId key) {
  const auto at =
      std::ranges::lower_bound(labels, key, {}, [](const auto& pair) { return pair.first; });
  return at != labels.end() && at->first == key ? at->second : StringId();
}

uint64_t PairOf(StringId key, StringId value) { return uint64_t{key.value} << 32U | value.value; }

void AddOn(Terms::NodeCounts& on, NodeId node, int32_t by) {
  const auto [at, fresh] = on.try_emplace(node.value, 0);
  at->second += by;
  HOPWISE_CHECK(at->second >= 0);
  if (at->second == 0) on.erase(at);
}

}  // namespace

bool MatchesPacked(const std::vector<PackedRequirement>& requirements, const PackedLabels& labels) {
  return std::ranges::all_of(requirements, [&](const PackedRequirement& requirement) {
    const StringId value = LabelOf(labels, requirement.key);
    const bool listed = value.valid() && std::ranges::binary_search(requirement.values, value);
    switch (requirement.op) {
      case api::Operator::kIn:
        return listed;
      case api::Operator::kNotIn:
        return !listed;
      case api::Operator::kExists:
        return value.valid();
      case api::Operator::kDoesNotExist:
        return !value.valid();
      case api::Operator::kGt:
      case api::Operator::kLt:
        return false;  // of node selectors only
    }
    return false;
  });
}

bool TermSet::MatchesOf(uint32_t matcher) const {
  return std::ranges::binary_search(matches, matcher);
}

void TermSet::AppendKey(std::string& key) const {
  if (!Asks() && matches.empty()) return;
  AppendNumber(key, affinity == kNoTerm ? -1 : int64_t{affinity});
  for (const auto* list : {&affinity_keys, &matches}) {
    AppendNumber(key, static_cast<int64_t>(list->size()));
    for (const uint32_t id : *list) AppendNumber(key, id);
  }
  AppendNumber(key, static_cast<int64_t>(anti.size()));
  for (const auto& [matcher, topology] : anti) {
    AppendNumber(key, matcher);
    AppendNumber(key, topology);
  }
  for (const SpreadTerm& term : spread) {
    AppendNumber(key, term.matcher);
    AppendNumber(key, term.key);
    AppendNumber(key, term.max_skew);
    AppendNumber(key, term.min_domains);
    AppendNumber(key, (term.honor_affinity ? 1 : 0) + (term.honor_taints ? 2 : 0));
  }
}

// --- namespaces

void Terms::SetNamespace(const std::string& name, const PackedLabels& labels) {
  ReplaceNamespace(name, &labels);
}

void Terms::RemoveNamespace(std::string_view name) { ReplaceNamespace(std::string(name), nullptr); }

void Terms::ReplaceNamespace(const std::string& name, const PackedLabels* labels) {
  std::vector<bool> before;
  for (const auto& matcher : matchers_) {
    before.push_back(matcher != nullptr && matcher->by_namespace &&
                     InScope(matcher->parts.front().scope, name));
  }
  const auto known = namespaces_.find(name);
  if (known != namespaces_.end()) {
    for (const auto& [key, value] : known->second) {
      strings_.Release(key);
      strings_.Release(value);
    }
    namespaces_.erase(known);
  }
  if (labels != nullptr) namespaces_.emplace(name, *labels);
  for (size_t m = 0; m < matchers_.size(); ++m) {
    Matcher* matcher = matchers_[m].get();
    // Of several parts any may have changed.
    if (matcher == nullptr || !matcher->by_namespace ||
        (matcher->parts.size() == 1 && InScope(matcher->parts.front().scope, name) == before[m])) {
      continue;
    }
    matcher->counted = false;
    matcher->on.clear();
    matcher->sums.clear();
    ++matcher->version;
    ++epoch_;
  }
}

bool Terms::InScope(const Scope& scope, std::string_view ns) const {
  if (std::ranges::binary_search(scope.names, ns)) return true;
  if (!scope.selects) return false;
  static const PackedLabels kNone;
  const auto known = namespaces_.find(ns);
  return MatchesPacked(scope.selector, known == namespaces_.end() ? kNone : known->second);
}

// --- topology keys

uint32_t Terms::InternKey(std::string_view name) {
  const auto known = key_ids_.find(name);
  if (known != key_ids_.end()) return known->second;
  const auto id = static_cast<uint32_t>(keys_.size());
  key_ids_.emplace(name, id);
  Key& key = keys_.emplace_back();
  key.name = strings_.Intern(name);
  key.text = name;
  for (size_t n = 0; n < state_.node_slots(); ++n) {
    const NodeRecord& node = state_.node(NodeId(n));
    if (node.alive) SetValue(key, NodeId(n), LabelOf(node.labels, key.name));
  }
  return id;
}

void Terms::SetValue(Key& key, NodeId node, StringId label) {
  if (key.value_of.size() <= node.index()) key.value_of.resize(node.index() + 1, kNoTerm);
  uint32_t& value = key.value_of[node.index()];
  if (value != kNoTerm && --key.nodes[value] == 0) {
    key.index.erase(key.ids[value].value);
    strings_.Release(key.ids[value]);
    key.free.push_back(value);
  }
  value = kNoTerm;
  if (!label.valid()) return;
  const auto known = key.index.find(label.value);
  if (known != key.index.end()) {
    value = known->second;
  } else if (key.free.empty()) {
    value = static_cast<uint32_t>(key.nodes.size());
    key.nodes.push_back(0);
    key.ids.emplace_back();
  } else {
    value = key.free.back();
    key.free.pop_back();
  }
  if (key.nodes[value]++ == 0) {
    key.ids[value] = strings_.Intern(strings_.Text(label));
    key.index.emplace(label.value, value);
  }
}

void Terms::NodeChanged(NodeId node, const PackedLabels* labels) {
  for (uint32_t k = 0; k < keys_.size(); ++k) {
    Key& key = keys_[k];
    const StringId next = labels != nullptr ? LabelOf(*labels, key.name) : StringId();
    const uint32_t now = ValueOf(k, node);
    if (now == kNoTerm ? !next.valid() : key.ids[now] == next) continue;
    MoveCounts(k, node, -1);
    SetValue(key, node, next);
    MoveCounts(k, node, 1);
  }
}

void Terms::MoveCounts(uint32_t key, NodeId node, int64_t by) {
  const auto move = [&](std::deque<Sums>& list, const NodeCounts& on) {
    const auto here = on.find(node.value);
    for (Sums& sums : list) {
      if (sums.key == key && here != on.end()) AddTo(sums, node, by * here->second);
    }
    return here != on.end();
  };
  for (const auto& matcher : matchers_) {
    if (matcher == nullptr) continue;
    bool moved = move(matcher->sums, matcher->on);
    for (Carried& carried : matcher->carried) {
      const auto here = carried.on.find(node.value);
      if (carried.sums.key != key || here == carried.on.end()) continue;
      AddTo(carried.sums, node, by * here->second);
      moved = true;
    }
    matcher->version += moved ? 1 : 0;
  }
}

void Terms::AddTo(Sums& sums, NodeId node, int64_t by) const {
  const uint32_t value = ValueOf(sums.key, node);
  if (value == kNoTerm) return;
  if (sums.by_value.size() <= value) sums.by_value.resize(value + 1, 0);
  sums.by_value[value] += by;
  sums.total += by;
}

// --- matchers

std::vector<PackedRequirement> Terms::Compile(const api::LabelSelector& selector) {
  std::vector<PackedRequirement> packed;
  for (const api::Requirement& requirement : selector.requirements) {
    PackedRequirement& next = packed.emplace_back();
    next.key = strings_.Intern(requirement.key);
    next.op = requirement.op;
    for (const std::string& value : requirement.values) {
      next.values.push_back(strings_.Intern(value));
    }
    std::ranges::sort(next.values);
  }
  return packed;
}

void Terms::ReleaseStrings(const std::vector<PackedRequirement>& requirements) {
  for (const PackedRequirement& requirement : requirements) {
    strings_.Release(requirement.key);
    for (const StringId value : requirement.values) strings_.Release(value);
  }
}

Terms::Part Terms::Compile(std::string_view ns, const api::PodAffinityTerm& term) {
  Part part;
  part.scope.names = term.namespaces;
  part.scope.selects = term.namespace_selector.has_value();
  if (part.scope.names.empty() && !part.scope.selects) part.scope.names.emplace_back(ns);
  std::ranges::sort(part.scope.names);
  if (part.scope.selects) part.scope.selector = Compile(*term.namespace_selector);
  part.nothing = !term.selector.has_value();
  if (!part.nothing) part.selector = Compile(*term.selector);
  return part;
}

uint32_t Terms::InternMatcher(std::string_view ns,
                              const std::vector<const api::PodAffinityTerm*>& terms, bool spread) {
  std::string text;
  AppendNumber(text, spread ? 1 : 0);
  for (const api::PodAffinityTerm* term : terms) {
    std::vector<std::string> names = term->namespaces;
    if (names.empty() && !term->namespace_selector) names.emplace_back(ns);
    std::ranges::sort(names);
    AppendNumber(text, static_cast<int64_t>(names.size()));
    for (const std::string& name : names) AppendText(text, name);
    AppendSelector(text, term->namespace_selector);
    AppendSelector(text, term->selector);
  }
  const auto known = matcher_ids_.find(text);
  if (known != matcher_ids_.end()) {
    UseMatcher(known->second);
    return known->second;
  }
  const auto id = static_cast<uint32_t>(matchers_.size());
  matcher_ids_.emplace(text, id);
  auto matcher = std::make_unique<Matcher>();
  matcher->text = std::move(text);
  matcher->spread = spread;
  for (const api::PodAffinityTerm* term : terms) {
    matcher->parts.push_back(Compile(ns, *term));
    matcher->by_namespace |= term->namespace_selector.has_value();
  }
  const Part& first = matcher->parts.front();
  matcher->empty = spread && !first.nothing && first.selector.empty();
  matcher->uses = 1;
  matchers_.push_back(std::move(matcher));
  SetIndexed(id, true);
  ++epoch_;
  return id;
}

void Terms::UseMatcher(uint32_t id) {
  Matcher& matcher = *matchers_[id];
  if (matcher.uses++ > 0) return;
  idle_.erase(matcher.idle_since);
  ++epoch_;
}

void Terms::ReleaseMatcher(uint32_t id) {
  Matcher& matcher = *matchers_[id];
  HOPWISE_CHECK(matcher.uses > 0);
  if (--matcher.uses > 0) return;
  ++epoch_;
  matcher.idle_since = ++clock_;
  idle_.emplace(matcher.idle_since, id);
  if (idle_.size() > kMostIdle) {
    const uint32_t oldest = idle_.begin()->second;
    idle_.erase(idle_.begin());
    Destroy(oldest);
  }
}

void Terms::Destroy(uint32_t id) {
  SetIndexed(id, false);
  Matcher& matcher = *matchers_[id];
  matcher_ids_.erase(matcher.text);
  for (const Part& part : matcher.parts) {
    ReleaseStrings(part.scope.selector);
    ReleaseStrings(part.selector);
  }
  matchers_[id].reset();
}

// Each pod of the matcher has one of these labels, if it has any requirement of that kind.
void Terms::SetIndexed(uint32_t id, bool indexed) {
  const auto set = [&](std::vector<uint32_t>& list) {
    if (indexed) {
      list.push_back(id);
    } else {
      std::erase(list, id);
    }
  };
  for (const Part& part : matchers_[id]->parts) {
    if (part.nothing) return;  // matches no pod
  }
  for (const Part& part : matchers_[id]->parts) {
    for (const PackedRequirement& requirement : part.selector) {
      if (requirement.op != api::Operator::kIn) continue;
      for (const StringId value : requirement.values) {
        const uint64_t pair = PairOf(requirement.key, value);
        set(by_label_[pair]);
        if (by_label_[pair].empty()) by_label_.erase(pair);
      }
      return;
    }
  }
  set(general_);
}

bool Terms::MatchesRecord(const Matcher& matcher, const PodRecord& pod) const {
  return std::ranges::all_of(matcher.parts, [&](const Part& part) {
    return !part.nothing && MatchesPacked(part.selector, pod.labels) && InScope(part.scope, pod.ns);
  });
}

// visit(id) once for each matcher that the pod matches.
template <class Visit>
void Terms::ForEachMatch(const PodRecord& pod, Visit visit) const {
  for (const auto& [key, value] : pod.labels) {
    const auto listed = by_label_.find(PairOf(key, value));
    if (listed == by_label_.end()) continue;
    for (const uint32_t id : listed->second) {
      if (MatchesRecord(*matchers_[id], pod)) visit(id);
    }
  }
  for (const uint32_t id : general_) {
    if (MatchesRecord(*matchers_[id], pod)) visit(id);
  }
}

std::vector<uint32_t> Terms::MatchesOf(const PodRecord& pod) const {
  std::vector<uint32_t> matches;
  if (matcher_ids_.empty()) return matches;
  ForEachMatch(pod, [&](uint32_t id) {
    if (matchers_[id]->uses > 0) matches.push_back(id);
  });
  std::ranges::sort(matches);
  return matches;
}

// --- counts

void Terms::Count(const PodRecord& pod, int32_t by) {
  if (matcher_ids_.empty()) return;
  ForEachMatch(pod, [&](uint32_t id) {
    Matcher& matcher = *matchers_[id];
    if (!matcher.counted || (matcher.spread && (pod.terminating || matcher.empty))) return;
    AddOn(matcher.on, pod.node, by);
    for (Sums& sums : matcher.sums) AddTo(sums, pod.node, by);
    ++matcher.version;
  });
  if (pod.terms != 0) CountCarried(pod, pod.node, by);
}

void Terms::CountCarried(const PodRecord& pod, NodeId node, int32_t by) {
  for (const auto& [id, key] : sets_[pod.terms].set.anti) {
    Matcher& matcher = *matchers_[id];
    auto at = std::ranges::find(matcher.carried, key, [](const Carried& c) { return c.sums.key; });
    if (at == matcher.carried.end()) {
      matcher.carried.emplace_back().sums.key = key;
      at = matcher.carried.end() - 1;
    }
    AddOn(at->on, node, by);
    AddTo(at->sums, node, by);
    ++matcher.version;
    if (at->on.empty()) matcher.carried.erase(at);
  }
}

void Terms::CountAfresh(Matcher& matcher) const {
  matcher.counted = true;
  for (size_t p = 0; p < state_.pod_slots(); ++p) {
    const PodRecord& pod = state_.pod(PodId(p));
    const bool counts = pod.alive && HoldsRoom(pod.state) && pod.node.valid() &&
                        !(matcher.spread && (pod.terminating || matcher.empty));
    if (counts && MatchesRecord(matcher, pod)) AddOn(matcher.on, pod.node, 1);
  }
}

const Terms::NodeCounts* Terms::MatchedOn(uint32_t id) const {
  if (Find(id) == nullptr) return nullptr;
  Matcher& matcher = *matchers_[id];
  if (!matcher.counted) CountAfresh(matcher);
  return &matcher.on;
}

const Terms::Sums* Terms::MatchedBy(uint32_t id, uint32_t key) const {
  const NodeCounts* on = MatchedOn(id);
  if (on == nullptr) return nullptr;
  std::deque<Sums>& list = matchers_[id]->sums;
  const auto known = std::ranges::find(list, key, &Sums::key);
  if (known != list.end()) return &*known;
  Sums& sums = list.emplace_back();
  sums.key = key;
  for (const auto& [node, count] : *on) AddTo(sums, NodeId(node), count);
  return &sums;
}

std::vector<Terms::Keeper> Terms::Keepers(const std::vector<uint32_t>& matches) const {
  std::vector<Keeper> keepers;
  for (const uint32_t id : matches) {
    const Matcher* matcher = Find(id);
    if (matcher == nullptr) continue;
    for (const Carried& carried : matcher->carried) keepers.push_back({id, &carried.sums});
  }
  return keepers;
}

bool Terms::Concerns(const TermSet& set) const {
  return set.Asks() || std::ranges::any_of(set.matches, [&](uint32_t id) {
           const Matcher* matcher = Find(id);
           return matcher != nullptr && !matcher->carried.empty();
         });
}

uint64_t Terms::MatcherVersion(uint32_t id) const {
  const Matcher* matcher = Find(id);
  return matcher == nullptr ? 0 : matcher->version;
}

uint64_t Terms::Version(const TermSet& set) const {
  uint64_t version = set.affinity == kNoTerm ? 0 : MatcherVersion(set.affinity);
  for (const auto& [matcher, key] : set.anti) version += MatcherVersion(matcher);
  for (const SpreadTerm& term : set.spread) version += MatcherVersion(term.matcher);
  for (const uint32_t id : set.matches) version += MatcherVersion(id);
  return version;
}

// --- sets

TermSet Terms::Intern(std::string_view ns, const api::PodTerms& terms, bool placing) {
  TermSet set;
  for (const api::PodAffinityTerm& term : terms.anti_affinity) {
    set.anti.emplace_back(InternMatcher(ns, {&term}, false), InternKey(term.topology_key));
  }
  std::ranges::sort(set.anti);
  if (!placing) return set;
  if (!terms.affinity.empty()) {
    std::vector<const api::PodAffinityTerm*> all;
    for (const api::PodAffinityTerm& term : terms.affinity) {
      all.push_back(&term);
      set.affinity_keys.push_back(InternKey(term.topology_key));
    }
    set.affinity = InternMatcher(ns, all, false);
    std::ranges::sort(set.affinity_keys);
    set.affinity_keys.erase(std::ranges::unique(set.affinity_keys).begin(),
                            set.affinity_keys.end());
  }
  for (const api::SpreadConstraint& constraint : terms.spread) {
    if (!constraint.hard) continue;
    api::PodAffinityTerm term;
    term.selector = constraint.selector;
    set.spread.push_back({InternMatcher(ns, {&term}, true), InternKey(constraint.topology_key),
                          constraint.max_skew, constraint.min_domains, constraint.honor_affinity,
                          constraint.honor_taints});
  }
  std::ranges::sort(set.spread);
  return set;
}

void Terms::ReleaseUses(const TermSet& set) {
  if (set.affinity != kNoTerm) ReleaseMatcher(set.affinity);
  for (const auto& [matcher, key] : set.anti) ReleaseMatcher(matcher);
  for (const SpreadTerm& term : set.spread) ReleaseMatcher(term.matcher);
}

uint32_t Terms::InternId(std::string_view ns, const api::PodTerms& terms, bool placing) {
  if (terms.anti_affinity.empty() &&
      (!placing || (terms.affinity.empty() && terms.spread.empty()))) {
    return 0;
  }
  TermSet set = Intern(ns, terms, placing);
  if (!set.Asks()) return 0;
  std::string text;
  set.AppendKey(text);
  const auto known = set_ids_.find(text);
  if (known != set_ids_.end()) {
    ++sets_[known->second].uses;
    ReleaseUses(set);
    return known->second;
  }
  if (free_sets_.empty()) {
    free_sets_.push_back(static_cast<uint32_t>(sets_.size()));
    sets_.emplace_back();
  }
  const uint32_t id = free_sets_.back();
  free_sets_.pop_back();
  sets_[id] = {std::move(set), 1};
  set_ids_.emplace(std::move(text), id);
  return id;
}

void Terms::Release(uint32_t id) {
  if (id == 0 || --sets_[id].uses > 0) return;
  std::string text;
  sets_[id].set.AppendKey(text);
  set_ids_.erase(text);
  ReleaseUses(sets_[id].set);
  sets_[id] = {};
  free_sets_.push_back(id);
}

// "" when the pods on nodes that the matcher counts are those that it matches.
std::string Terms::AuditCounts(const Matcher& matcher) const {
  Matcher afresh;
  afresh.parts = matcher.parts;
  afresh.spread = matcher.spread;
  afresh.empty = matcher.empty;
  CountAfresh(afresh);
  if (matcher.counted && matcher.on != afresh.on) return "pods by node differ";
  for (const Sums& sums : matcher.sums) {
    Sums again;
    again.key = sums.key;
    for (const auto& [node, count] : afresh.on) AddTo(again, NodeId(node), count);
    for (uint32_t value = 0; value < value_count(sums.key); ++value) {
      if (sums.Of(value) != again.Of(value)) return "sums of " + KeyName(sums.key);
    }
    if (sums.total != again.total) return "total of " + KeyName(sums.key);
  }
  return "";
}

// The same for those that carry it as their anti-affinity.
std::string Terms::AuditCarriers(uint32_t id, const Matcher& matcher) const {
  std::map<uint32_t, std::map<uint32_t, int32_t>> carriers;  // by key, by node
  for (size_t p = 0; p < state_.pod_slots(); ++p) {
    const PodRecord& pod = state_.pod(PodId(p));
    if (!pod.alive || !HoldsRoom(pod.state) || !pod.node.valid()) continue;
    for (const auto& [of, key] : sets_[pod.terms].set.anti) {
      if (of == id) ++carriers[key][pod.node.value];
    }
  }
  if (carriers.size() != matcher.carried.size()) return "carried keys";
  for (const Carried& carried : matcher.carried) {
    Sums again;
    again.key = carried.sums.key;
    for (const auto& [node, count] : carriers[again.key]) AddTo(again, NodeId(node), count);
    for (uint32_t value = 0; value < value_count(again.key); ++value) {
      if (carried.sums.Of(value) != again.Of(value)) return "carriers by " + KeyName(again.key);
    }
  }
  return "";
}

std::string Terms::Audit() const {
  for (const auto& [text, id] : matcher_ids_) {
    const Matcher& matcher = *matchers_[id];
    std::string wrong = AuditCounts(matcher);
    if (wrong.empty()) wrong = AuditCarriers(id, matcher);
    if (!wrong.empty()) return "matcher " + std::to_string(id) + ": " + wrong;
  }
  return "";
}

}  // namespace hopwise::cluster
