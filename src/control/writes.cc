#include "control/writes.h"

namespace hopwise::control {

Json MergeDiff(const Json& from, const Json& to) {
  if (!from.is_object() || !to.is_object()) {
    return from == to ? Json() : to;
  }
  Json patch = Json::object();
  for (const auto& [name, value] : from.items()) {
    if (!to.contains(name)) {
      patch[name] = nullptr;
    }
  }
  for (const auto& [name, value] : to.items()) {
    const auto before = from.find(name);
    if (before == from.end()) {
      patch[name] = value;
    } else if (*before != value) {
      patch[name] = MergeDiff(*before, value);
    }
  }
  return patch.empty() ? Json() : patch;
}

}  // namespace hopwise::control
