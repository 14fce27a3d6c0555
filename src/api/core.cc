#include "api/core.h"

namespace hopwise::api {

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

bool IsReady(const Node& node) {
  for (const Condition& condition : node.conditions) {
    if (condition.type == "Ready") {
      return condition.status != "False" && condition.status != "Unknown";
    }
  }
  return true;
}

}  // namespace hopwise::api
