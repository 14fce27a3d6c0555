#include "control/conditions.h"

#include <string>
#include <utility>

#include "control/expand.h"

namespace hopwise::control {

const Json* ConditionOf(const Json& object, std::string_view type) {
  for (const Json& condition : List(object, {"status", "conditions"})) {
    if (Text(condition, {"type"}) == type) {
      return &condition;
    }
  }
  return nullptr;
}

bool SetCondition(Json& object, std::string_view type, std::string_view status,
                  std::string_view reason, std::string_view message, Time now) {
  Json& holder = Member(object, "status");
  Json& conditions = ListIn(holder, "conditions");
  Json* found = nullptr;
  for (Json& condition : conditions) {
    if (Text(condition, {"type"}) == type) {
      found = &condition;
    }
  }
  if (found == nullptr) {
    conditions.push_back({{"type", std::string(type)}, {"status", ""}});
    found = &conditions.back();
  } else if (Text(*found, {"status"}) == status && Text(*found, {"reason"}) == reason &&
             Text(*found, {"message"}) == message) {
    return false;
  }
  if (Text(*found, {"status"}) != status) {
    (*found)["lastTransitionTime"] = FormatRfc3339(now);
  }
  (*found)["status"] = std::string(status);
  for (const auto& [field, text] : {std::pair("reason", reason), std::pair("message", message)}) {
    if (text.empty()) {
      found->erase(field);
    } else {
      (*found)[field] = std::string(text);
    }
  }
  return true;
}

bool RemoveCondition(Json& object, std::string_view type) {
  if (ConditionOf(object, type) == nullptr) {
    return false;
  }
  Json kept = Json::array();
  for (const Json& condition : List(object, {"status", "conditions"})) {
    if (Text(condition, {"type"}) != type) {
      kept.push_back(condition);
    }
  }
  Set(object, {"status", "conditions"}, std::move(kept));
  return true;
}

}  // namespace hopwise::control
