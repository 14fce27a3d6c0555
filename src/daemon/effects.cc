#include "daemon/effects.h"

#include <fmt/format.h>

namespace hopwise::daemon {

std::string NameOf(const ObjectName& object) {
  return object.ns.empty() ? object.name : object.ns + "/" + object.name;
}

Tell ScheduledEvent(const ObjectName& pod, const std::string& node) {
  return {{"v1", "Pod", pod.ns, pod.name, pod.uid},
          {.reason = "Scheduled",
           .message = fmt::format("Successfully assigned {}/{} to {}", pod.ns, pod.name, node),
           .important = true,
           .key = pod.uid + "/Scheduled"}};
}

kube::ApiError NotLeading() {
  kube::ApiError error;
  error.failure = kube::Failure::kUnreachable;
  error.message = "not the leader";
  return error;
}

}  // namespace hopwise::daemon
