// Conditions in the status of an object that is a JSON tree.
#pragma once

#include <string_view>

#include "base/time.h"
#include "control/json.h"

namespace hopwise::control {

// Sets a condition by type; lastTransitionTime moves only with the status. Whether anything but
// times changed.
bool SetCondition(Json& object, std::string_view type, std::string_view status,
                  std::string_view reason, std::string_view message, Time now);
bool RemoveCondition(Json& object, std::string_view type);
// The condition, or nullptr.
const Json* ConditionOf(const Json& object, std::string_view type);

}  // namespace hopwise::control
