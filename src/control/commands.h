// Commands of bus.volcano.sh: an action, and the object that it is for. Whoever carries one out
// deletes it first, so that it is done at most once.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "control/store.h"

namespace hopwise::control {

inline constexpr std::string_view kVolcanoBus = "bus.volcano.sh";

// What a Command is for, in its own namespace where that kind has one; nothing for other objects.
std::optional<Key> TargetOf(const Key& key, const Json& object);

// Those for an object, the oldest first. One that names the uid of a predecessor is not for it.
std::vector<Key> CommandsFor(const Store& store, const Key& target);

}  // namespace hopwise::control
