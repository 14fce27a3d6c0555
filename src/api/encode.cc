#include "api/encode.h"

#include <string_view>
#include <utility>

namespace hopwise::api {
namespace {

using json::Json;

std::string_view NameOf(Operator op) {
  switch (op) {
    case Operator::kIn:
      return "In";
    case Operator::kNotIn:
      return "NotIn";
    case Operator::kExists:
      return "Exists";
    case Operator::kDoesNotExist:
      return "DoesNotExist";
    case Operator::kGt:
      return "Gt";
    case Operator::kLt:
      return "Lt";
  }
  return "";
}

Json Encode(const LabelSelector& selector) {
  Json terms = Json::array();
  for (const Requirement& requirement : selector.requirements) {
    Json term = {{"key", requirement.key}, {"operator", NameOf(requirement.op)}};
    if (!requirement.values.empty()) term["values"] = requirement.values;
    terms.push_back(std::move(term));
  }
  return {{"matchExpressions", std::move(terms)}};
}

Json Encode(const HyperNodeMember& member) {
  Json selector = Json::object();
  if (member.exact) selector["exactMatch"] = {{"name", *member.exact}};
  if (member.pattern) selector["regexMatch"] = {{"pattern", *member.pattern}};
  if (member.labels) selector["labelMatch"] = Encode(*member.labels);
  return {{"type", member.type == MemberType::kNode ? "Node" : "HyperNode"},
          {"selector", std::move(selector)}};
}

}  // namespace

Json Encode(const StringMap& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) {
    object[key] = value;
  }
  return object;
}

Json EncodeSpec(const HyperNode& hypernode) {
  Json members = Json::array();
  for (const HyperNodeMember& member : hypernode.members) {
    members.push_back(Encode(member));
  }
  Json spec = {{"tier", hypernode.tier}, {"members", std::move(members)}};
  if (!hypernode.tier_name.empty()) spec["tierName"] = hypernode.tier_name;
  return spec;
}

Json Encode(const Condition& condition, int64_t observed_generation) {
  Json object = {{"type", condition.type},
                 {"status", condition.status},
                 {"reason", condition.reason},
                 {"message", condition.message},
                 {"lastTransitionTime", FormatRfc3339(condition.last_transition)}};
  if (observed_generation > 0) object["observedGeneration"] = observed_generation;
  return object;
}

}  // namespace hopwise::api
