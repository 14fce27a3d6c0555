#include "daemon/effects.h"

#include <fmt/format.h>

namespace hopwise::daemon {

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
