#include "control/commands.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hopwise::control {

std::optional<Key> TargetOf(const Key& key, const Json& object) {
  if (key.group != kVolcanoBus || key.kind != "Command") {
    return std::nullopt;
  }
  Key target{GroupOf(Text(object, {"target", "apiVersion"})), Text(object, {"target", "kind"}),
             key.ns, Text(object, {"target", "name"})};
  if (IsClusterScoped(target.group, target.kind)) {
    target.ns.clear();
  }
  return target;
}

std::vector<Key> CommandsFor(const Store& store, const Key& target) {
  const Json* object = store.FindObject(target);
  const std::string uid = object == nullptr ? "" : Uid(*object);
  std::vector<std::pair<uint64_t, Key>> found;
  store.Each(kVolcanoBus, "Command", [&](const Key& key, const Entry& entry) {
    const std::string meant = Text(entry.object, {"target", "uid"});
    const bool alive = Text(entry.object, {"metadata", "deletionTimestamp"}).empty();
    if (alive && TargetOf(key, entry.object) == target && (meant.empty() || meant == uid)) {
      found.emplace_back(entry.sequence, key);
    }
  });
  std::ranges::sort(found);
  std::vector<Key> keys;
  keys.reserve(found.size());
  for (auto& [sequence, key] : found) {
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace hopwise::control
