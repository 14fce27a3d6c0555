#include "api/decode_parts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace hopwise::api {
namespace {

// Sorts by key. Of equal keys the last counts, as for every JSON reader of Kubernetes.
template <class Value>
void SortByKey(std::vector<std::pair<std::string, Value>>& map) {
  const auto key = [](const auto& entry) -> const std::string& { return entry.first; };
  if (std::ranges::is_sorted(map, std::ranges::less_equal(), key) &&
      std::ranges::adjacent_find(map, {}, key) == map.end()) {
    return;  // as the API server writes them
  }
  std::vector<size_t> order(map.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    const int by_key = map[a].first.compare(map[b].first);
    return by_key != 0 ? by_key < 0 : a < b;
  });
  std::vector<std::pair<std::string, Value>> sorted;
  sorted.reserve(map.size());
  for (const size_t i : order) {
    if (!sorted.empty() && sorted.back().first == map[i].first) sorted.pop_back();
    sorted.push_back(std::move(map[i]));
  }
  map = std::move(sorted);
}

bool DecodeAmounts(JsonValue& value, ResourceList& out, bool negative_allowed) {
  out.clear();
  const bool ok = value.ForEachField([&](std::string_view name, JsonValue& amount) {
    std::string_view text;
    if (!amount.ReadScalarText(text)) return false;
    const Result<int64_t> parsed = ParseAmount(name, text);
    if (!parsed) return amount.Fail(parsed.error().message);
    if (*parsed < 0 && !negative_allowed) {
      return amount.Fail("expected an amount of at least 0, found " + std::string(text));
    }
    if (*parsed < 0) amount.Warn("negative amount, counts as 0");
    out.emplace_back(name, *parsed);
    return true;
  });
  if (ok) SortByKey(out);
  return ok;
}

struct OperatorName {
  std::string_view name;
  Operator op;
};
constexpr std::array<OperatorName, 6> kOperators = {{{"In", Operator::kIn},
                                                     {"NotIn", Operator::kNotIn},
                                                     {"Exists", Operator::kExists},
                                                     {"DoesNotExist", Operator::kDoesNotExist},
                                                     {"Gt", Operator::kGt},
                                                     {"Lt", Operator::kLt}}};

bool DecodeOperator(JsonValue& value, Operator& out, bool on_nodes) {
  std::string_view text;
  if (!value.ReadString(text)) return false;
  for (const OperatorName& known : kOperators) {
    if (known.name != text) continue;
    if (!on_nodes && (known.op == Operator::kGt || known.op == Operator::kLt)) break;
    out = known.op;
    return true;
  }
  return value.Fail(std::string("expected In, NotIn, Exists") +
                    (on_nodes ? ", DoesNotExist, Gt or Lt" : " or DoesNotExist") + ", found \"" +
                    std::string(text) + "\"");
}

bool DecodeRequirement(JsonValue& value, Requirement& out, bool on_nodes) {
  bool has_operator = false;
  const bool ok = value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "key") return Decode(field, out.key);
    if (key == "values") return Decode(field, out.values);
    if (key != "operator") return true;
    has_operator = true;
    return DecodeOperator(field, out.op, on_nodes);
  });
  if (!ok) return false;
  if (!has_operator) return value.Fail("the operator is missing");
  std::ranges::sort(out.values);
  return true;
}

bool DecodeMode(JsonValue& value, NetworkTopology& out) {
  std::string_view mode;
  if (!value.ReadString(mode)) return false;
  out.mode = mode == "soft" ? TopologyMode::kSoft : TopologyMode::kHard;
  if (mode != "soft" && mode != "hard" && !mode.empty()) {
    value.Warn("\"" + std::string(mode) + "\" is neither hard nor soft; taken as hard");
  }
  return true;
}

constexpr std::array<JsonField<OwnerReference>, 5> kOwnerFields = {{
    {"apiVersion", Into<&OwnerReference::api_version>},
    {"kind", Into<&OwnerReference::kind>},
    {"name", Into<&OwnerReference::name>},
    {"uid", Into<&OwnerReference::uid>},
    {"controller", Into<&OwnerReference::controller>},
}};

constexpr std::array<JsonField<ObjectMeta>, 11> kMetaFields = {{
    {"name", Into<&ObjectMeta::name>},
    {"namespace", Into<&ObjectMeta::ns>},
    {"uid", Into<&ObjectMeta::uid>},
    {"resourceVersion", Into<&ObjectMeta::resource_version>},
    {"generateName", Into<&ObjectMeta::generate_name>},
    {"generation", Into<&ObjectMeta::generation>},
    {"creationTimestamp", Into<&ObjectMeta::creation>},
    {"deletionTimestamp", Into<&ObjectMeta::deletion>},
    {"labels", Into<&ObjectMeta::labels>},
    {"annotations", Into<&ObjectMeta::annotations>},
    {"ownerReferences", Into<&ObjectMeta::owners>},
}};

constexpr std::array<JsonField<Condition>, 6> kConditionFields = {{
    {"type", Into<&Condition::type>},
    {"status", Into<&Condition::status>},
    {"reason", Into<&Condition::reason>},
    {"message", Into<&Condition::message>},
    {"transitionID", Into<&Condition::transition_id>},
    {"lastTransitionTime", Into<&Condition::last_transition>},
}};

constexpr std::array<JsonField<NetworkTopology>, 3> kTopologyFields = {{
    {"mode", DecodeMode},
    {"highestTierAllowed", Into<&NetworkTopology::highest_tier>},
    {"highestTierName", Into<&NetworkTopology::highest_tier_name>},
}};

}  // namespace

bool Decode(JsonValue& value, std::string& out) {
  std::string_view text;
  if (!value.ReadString(text)) return false;
  out = text;
  return true;
}

bool Decode(JsonValue& value, bool& out) { return value.ReadBool(out); }

bool Decode(JsonValue& value, int64_t& out) { return value.ReadInt(out); }

bool Decode(JsonValue& value, int32_t& out) {
  int64_t wide = 0;
  if (!value.ReadInt(wide)) return false;
  if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) {
    return value.Fail("expected a whole number of 32 bits, found " + std::to_string(wide));
  }
  out = static_cast<int32_t>(wide);
  return true;
}

bool Decode(JsonValue& value, Time& out) {
  std::string_view text;
  if (!value.ReadString(text)) return false;
  const Result<Time> time = ParseRfc3339(text);
  if (!time) return value.Fail(time.error().message);
  out = *time;
  return true;
}

bool Decode(JsonValue& value, StringMap& out) {
  out.clear();
  const bool ok = value.ForEachField([&](std::string_view key, JsonValue& text) {
    std::string_view view;
    if (!text.ReadString(view)) return false;
    out.emplace_back(key, view);
    return true;
  });
  if (ok) SortByKey(out);
  return ok;
}

bool Decode(JsonValue& value, ResourceList& out) { return DecodeAmounts(value, out, true); }

bool DecodeRequests(JsonValue& value, ResourceList& out) {
  return DecodeAmounts(value, out, false);
}

bool Decode(JsonValue& value, OwnerReference& out) { return Within<kOwnerFields>(value, out); }

bool Decode(JsonValue& value, ObjectMeta& out) { return Within<kMetaFields>(value, out); }

bool Decode(JsonValue& value, Condition& out) { return Within<kConditionFields>(value, out); }

bool Decode(JsonValue& value, LabelSelector& out) {
  StringMap labels;
  std::vector<Requirement> expressions;
  const bool ok = value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "matchLabels") return Decode(field, labels);
    if (key != "matchExpressions") return true;
    expressions.clear();
    return field.ForEachItem([&](JsonValue& item) {
      return DecodeRequirement(item, expressions.emplace_back(), false);
    });
  });
  if (!ok) return false;
  out.requirements.clear();
  for (auto& [key, text] : labels) {
    out.requirements.push_back({std::move(key), Operator::kIn, {std::move(text)}});
  }
  std::ranges::move(expressions, std::back_inserter(out.requirements));
  return true;
}

bool DecodeNodeRequirement(JsonValue& value, Requirement& out) {
  return DecodeRequirement(value, out, true);
}

bool DecodeCount(JsonValue& value, int32_t& out) {
  if (!Decode(value, out)) return false;
  if (out < 0) {
    value.Warn(std::to_string(out) + " is below zero; taken as 0");
    out = 0;
  }
  return true;
}

bool Decode(JsonValue& value, NetworkTopology& out) {
  if (!Only<kTopologyFields, kNoOthers>(value, out)) return false;
  if (out.highest_tier && !out.highest_tier_name.empty()) {
    value.Warn("highestTierAllowed and highestTierName exclude each other; the number counts");
  }
  return true;
}

bool DecodeTemplate(JsonValue& value, PodTemplate& out, std::string& priority_class) {
  std::string_view json;
  const auto visit_spec = [&](std::string_view key, JsonValue& field) {
    return key != "priorityClassName" || Decode(field, priority_class);
  };
  const bool ok = value.ReadRawObject(json, [&](std::string_view key, JsonValue& field) {
    return key != "spec" || field.ForEachField(visit_spec);
  });
  if (!ok) return false;
  out.json = json;
  return true;
}

bool Decode(JsonValue& value, PodTemplate& out) {
  std::string unused;
  return DecodeTemplate(value, out, unused);
}

bool Decode(JsonValue& value, ContainerResources& out) {
  return value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "requests") return DecodeRequests(field, out.requests);
    if (key == "limits") return DecodeRequests(field, out.limits);
    return true;
  });
}

}  // namespace hopwise::api
