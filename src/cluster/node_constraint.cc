// ParseNodeConstraint: {"name":…, "required"|"preferred": {"topologies": [{"key":…}],
// "nodeSelectors": [<metav1.LabelSelector>]}}.
#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cluster/pod_facts.h"

namespace hopwise::cluster {
namespace {

using Json = nlohmann::json;

const Json* Member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null() ? &*found : nullptr;
}

// The member's elements; an absent list is an empty one.
Result<std::vector<const Json*>> ListMember(const Json& object, const std::string& path,
                                            const char* key) {
  std::vector<const Json*> items;
  const Json* list = Member(object, key);
  if (list == nullptr) return items;
  if (!list->is_array()) return Invalid(path + "." + key + ": expected a list");
  for (const Json& item : *list) items.push_back(&item);
  return items;
}

Result<std::string> TextMember(const Json& object, const std::string& path, const char* key) {
  const Json* text = Member(object, key);
  if (text == nullptr || !text->is_string() || text->get_ref<const std::string&>().empty()) {
    return Invalid(path + "." + key + ": expected a text");
  }
  return text->get_ref<const std::string&>();
}

std::optional<api::Operator> ParseOperator(std::string_view text) {
  if (text == "In") return api::Operator::kIn;
  if (text == "NotIn") return api::Operator::kNotIn;
  if (text == "Exists") return api::Operator::kExists;
  if (text == "DoesNotExist") return api::Operator::kDoesNotExist;
  return std::nullopt;
}

Result<api::Requirement> ParseExpression(const Json& json, const std::string& path) {
  if (!json.is_object()) return Invalid(path + ": expected an object");
  Result<std::string> key = TextMember(json, path, "key");
  if (!key) return tl::unexpected(key.error());
  Result<std::string> op_text = TextMember(json, path, "operator");
  if (!op_text) return tl::unexpected(op_text.error());
  const std::optional<api::Operator> op = ParseOperator(*op_text);
  if (!op) return Invalid(path + ".operator: \"" + *op_text + "\" is none");
  Result<std::vector<const Json*>> values = ListMember(json, path, "values");
  if (!values) return tl::unexpected(values.error());
  api::Requirement requirement{std::move(*key), *op, {}};
  for (const Json* value : *values) {
    if (!value->is_string()) return Invalid(path + ".values: expected texts");
    requirement.values.push_back(value->get_ref<const std::string&>());
  }
  const bool wants_values = *op == api::Operator::kIn || *op == api::Operator::kNotIn;
  if (wants_values == requirement.values.empty()) {
    return Invalid(path + ".values: " + *op_text + (wants_values ? " needs some" : " takes none"));
  }
  std::sort(requirement.values.begin(), requirement.values.end());
  return requirement;
}

Result<std::vector<api::Requirement>> ParseSelector(const Json& json, const std::string& path) {
  if (!json.is_object()) return Invalid(path + ": expected a label selector");
  std::vector<api::Requirement> requirements;
  if (const Json* labels = Member(json, "matchLabels")) {
    if (!labels->is_object()) return Invalid(path + ".matchLabels: expected an object");
    for (const auto& [key, value] : labels->items()) {
      if (!value.is_string()) return Invalid(path + ".matchLabels." + key + ": expected a text");
      requirements.push_back({key, api::Operator::kIn, {value.get_ref<const std::string&>()}});
    }
  }
  Result<std::vector<const Json*>> expressions = ListMember(json, path, "matchExpressions");
  if (!expressions) return tl::unexpected(expressions.error());
  for (const Json* expression : *expressions) {
    Result<api::Requirement> parsed = ParseExpression(*expression, path + ".matchExpressions");
    if (!parsed) return tl::unexpected(parsed.error());
    requirements.push_back(std::move(*parsed));
  }
  return requirements;
}

Status ParseTerm(const Json& term, const std::string& path, NodeConstraint& constraint) {
  if (!term.is_object()) return Invalid(path + ": expected an object");
  Result<std::vector<const Json*>> topologies = ListMember(term, path, "topologies");
  if (!topologies) return tl::unexpected(topologies.error());
  for (const Json* topology : *topologies) {
    if (!topology->is_object()) return Invalid(path + ".topologies: expected objects with a key");
    Result<std::string> key = TextMember(*topology, path + ".topologies", "key");
    if (!key) return tl::unexpected(key.error());
    constraint.rule.label_keys.push_back(std::move(*key));
  }
  Result<std::vector<const Json*>> selectors = ListMember(term, path, "nodeSelectors");
  if (!selectors) return tl::unexpected(selectors.error());
  for (const Json* selector : *selectors) {
    Result<std::vector<api::Requirement>> parsed =
        ParseSelector(*selector, path + ".nodeSelectors");
    if (!parsed) return tl::unexpected(parsed.error());
    constraint.selectors.push_back(std::move(*parsed));
  }
  if (constraint.rule.label_keys.empty() && constraint.selectors.empty()) {
    return Invalid(path + ": names neither topologies nor nodeSelectors");
  }
  return {};
}

}  // namespace

Result<NodeConstraint> ParseNodeConstraint(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return Invalid("expected a JSON object");
  const Json* required = Member(json, "required");
  const Json* preferred = Member(json, "preferred");
  if (required == nullptr && preferred == nullptr) {
    return Invalid("has neither \"required\" nor \"preferred\"");
  }
  NodeConstraint constraint;
  const bool hard = required != nullptr;
  const Status parsed =
      ParseTerm(hard ? *required : *preferred, hard ? "required" : "preferred", constraint);
  if (!parsed) return tl::unexpected(parsed.error());
  if (hard && preferred != nullptr) {
    constraint.warnings.emplace_back(
        "alibabacloud.com/topology-aware-constraint: required counts, preferred is ignored");
  }
  if (!hard && !constraint.selectors.empty()) {
    constraint.selectors.clear();
    constraint.warnings.emplace_back(
        "alibabacloud.com/topology-aware-constraint: nodeSelectors under preferred are ignored");
  }
  if (!constraint.rule.label_keys.empty()) {
    constraint.rule.mode = hard ? TopologyRule::Mode::kHard : TopologyRule::Mode::kSoft;
  }
  return constraint;
}

}  // namespace hopwise::cluster
