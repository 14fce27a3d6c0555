// What all Kubernetes objects share: names, labels, owners, selectors. Values as decoded, nothing
// resolved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace hopwise::api {

// Sorted by key, keys unique.
using StringMap = std::vector<std::pair<std::string, std::string>>;
// Pointer to the value, or nullptr.
const std::string* Find(const StringMap& map, std::string_view key);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
};

struct ObjectMeta {
  std::string name, ns, uid, resource_version, generate_name;
  int64_t generation = 0;
  Time creation, deletion;
  StringMap labels, annotations;
  std::vector<OwnerReference> owners;
};

// The owner with controller: true, or nullptr.
const OwnerReference* ControllerOf(const ObjectMeta& meta);

// One term of a label or node selector. Gt and Lt (node selectors only) compare integers.
enum class Operator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
struct Requirement {
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;  // sorted
};

// metav1.LabelSelector with matchLabels turned into In requirements; all must hold. An empty one
// selects everything; absent (nullopt at the user) selects nothing.
struct LabelSelector {
  std::vector<Requirement> requirements;
};
bool Matches(const Requirement& requirement, const StringMap& labels);
bool Matches(const LabelSelector& selector, const StringMap& labels);

struct Condition {
  std::string type, status, reason, message;
  std::string transition_id;  // transitionID, of a PodGroup's
  Time last_transition;
};

}  // namespace hopwise::api
