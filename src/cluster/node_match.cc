#include "cluster/node_match.h"

#include <algorithm>
#include <charconv>

#include "cluster/state.h"

namespace hopwise::cluster {
namespace {

// Labels of a node looked up through the state's string pool.
class NodeLabels {
 public:
  NodeLabels(const State& state, const NodeRecord& node) : state_(state), node_(node) {}

  [[nodiscard]] const std::string* Find(std::string_view key) const {
    const StringId id = state_.strings().Find(key);
    if (!id.valid()) {
      return nullptr;
    }
    const auto at =
        std::ranges::lower_bound(node_.labels, id, {}, [](const auto& pair) { return pair.first; });
    return at != node_.labels.end() && at->first == id ? &state_.Text(at->second) : nullptr;
  }

 private:
  const State& state_;
  const NodeRecord& node_;
};

bool ParseInteger(const std::string& text, int64_t& out) {
  const auto done = std::from_chars(text.data(), text.data() + text.size(), out);
  return done.ec == std::errc() && done.ptr == text.data() + text.size();
}

bool MatchesValue(const api::Requirement& requirement, const std::string* value) {
  int64_t have = 0;
  int64_t want = 0;
  switch (requirement.op) {
    case api::Operator::kIn:
      return value != nullptr &&
             std::ranges::find(requirement.values, *value) != requirement.values.end();
    case api::Operator::kNotIn:
      return value == nullptr ||
             std::ranges::find(requirement.values, *value) == requirement.values.end();
    case api::Operator::kExists:
      return value != nullptr;
    case api::Operator::kDoesNotExist:
      return value == nullptr;
    case api::Operator::kGt:
    case api::Operator::kLt:
      if (value == nullptr || requirement.values.size() != 1 || !ParseInteger(*value, have) ||
          !ParseInteger(requirement.values.front(), want)) {
        return false;
      }
      return requirement.op == api::Operator::kGt ? have > want : have < want;
  }
  return false;
}

bool AllMatch(const std::vector<api::Requirement>& requirements, const NodeLabels& labels) {
  return std::ranges::all_of(requirements, [&](const api::Requirement& requirement) {
    return MatchesValue(requirement, labels.Find(requirement.key));
  });
}

bool MatchesTerm(const api::NodeSelectorTerm& term, const NodeRecord& node,
                 const NodeLabels& labels) {
  if (term.expressions.empty() && term.fields.empty()) {
    return false;  // as kube-scheduler: an empty term selects nothing
  }
  const bool fields = std::ranges::all_of(term.fields, [&](const api::Requirement& field) {
    return field.key == "metadata.name" && MatchesValue(field, &node.name);
  });
  return fields && AllMatch(term.expressions, labels);
}

}  // namespace

bool MatchesAll(const State& state, const NodeRecord& node,
                const std::vector<api::Requirement>& requirements) {
  return AllMatch(requirements, NodeLabels(state, node));
}

bool MatchesAny(const State& state, const NodeRecord& node,
                const std::vector<api::NodeSelectorTerm>& terms) {
  const NodeLabels labels(state, node);
  return std::ranges::any_of(
      terms, [&](const api::NodeSelectorTerm& term) { return MatchesTerm(term, node, labels); });
}

bool MatchesNodeAffinity(const State& state, const NodeRecord& node, const PredicateSet& set) {
  return MatchesAll(state, node, set.selector) &&
         (!set.has_affinity || MatchesAny(state, node, set.affinity));
}

bool ToleratesAll(const std::vector<api::Toleration>& tolerations,
                  const std::vector<api::Taint>& taints) {
  return std::ranges::all_of(taints, [&](const api::Taint& taint) {
    if (taint.effect == "PreferNoSchedule") {
      return true;
    }
    return std::ranges::any_of(tolerations,
                               [&](const api::Toleration& t) { return api::Tolerates(t, taint); });
  });
}

}  // namespace hopwise::cluster
