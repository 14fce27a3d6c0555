// PodGroups: the queue of their namespace, and that their queue takes them.
#include <fmt/format.h>

#include "control/admission_rules.h"

namespace hopwise::control {
namespace {

std::string QueueOf(const Json& group, const AdmissionContext& context) {
  const std::string queue = Text(group, {"spec", "queue"});
  return queue.empty() ? context.settings.default_queue : queue;
}

}  // namespace

void FillPodGroup(const AdmissionRequest& request, const AdmissionContext& context, Json& group) {
  if (QueueOf(group, context) != context.settings.default_queue) return;
  const auto& by_namespace = context.view.namespace_queues;
  if (const auto at = by_namespace.find(request.ns); at != by_namespace.end()) {
    Set(group, {"spec", "queue"}, at->second);
  }
}

void AdmitPodGroup(const AdmissionRequest& request, const AdmissionContext& context,
                   Findings& findings) {
  const Json& group = request.object;
  // The status is written by updates of the whole object, often.
  if (request.updates() && (IsLeaving(group) || SamePart(group, request.old_object, {"spec"}))) {
    return;
  }
  const std::string queue = QueueOf(group, context);
  if (!request.updates() || queue != QueueOf(request.old_object, context)) {
    CheckQueueOf(queue, "spec.queue", false, context, findings);
  }
  CheckTopology(Get(group, {"spec", "networkTopology"}), "spec.networkTopology", findings);
  const Json& policies = List(group, {"spec", "subGroupPolicy"});
  for (size_t i = 0; i < policies.size(); ++i) {
    CheckTopology(Get(policies[i], {"networkTopology"}),
                  fmt::format("spec.subGroupPolicy[{}].networkTopology", i), findings);
  }
}

}  // namespace hopwise::control
