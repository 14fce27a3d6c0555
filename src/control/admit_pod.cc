// Pods: what their resource group gives them, the gate of their queue, and their budgets.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "control/admission_rules.h"
#include "control/expand.h"

namespace hopwise::control {
namespace {

// Annotation of a pod that wants it, and name of the scheduling gate.
constexpr std::string_view kQueueGate = "scheduling.volcano.sh/queue-allocation-gate";
constexpr std::string_view kLeastAvailable = "volcano.sh/jdb-min-available";
constexpr std::string_view kMostUnavailable = "volcano.sh/jdb-max-unavailable";

bool IsOurs(const Json& pod, const AdmissionSettings& settings) {
  return std::ranges::find(settings.scheduler_names, Text(pod, {"spec", "schedulerName"})) !=
         settings.scheduler_names.end();
}

void FillFromGroup(const ResourceGroup& group, Json& spec) {
  for (const auto& [key, value] : group.node_selector.items()) {
    Member(spec, "nodeSelector")[key] = value;
  }
  const Json* affinity = Get(spec, {"affinity"});
  const bool has_affinity = affinity != nullptr && !affinity->empty();
  if (!group.affinity.is_null() && !has_affinity) spec["affinity"] = group.affinity;
  for (const Json& toleration : group.tolerations) {
    ListIn(spec, "tolerations").push_back(toleration);
  }
  if (!group.scheduler_name.empty()) spec["schedulerName"] = group.scheduler_name;
}

// A positive number, or 1% to 99%.
bool IsBudget(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  return error == std::errc() && end == text.end() && number > 0 && (!percent || number < 100);
}

}  // namespace

void FillPod(const AdmissionRequest& request, const AdmissionContext& context, Json& pod) {
  Json& spec = Member(pod, "spec");
  if (const ResourceGroup* group = GroupOfPod(context.settings.config, pod, request.ns)) {
    FillFromGroup(*group, spec);
  }
  if (!context.settings.gate_pods || !IsOurs(pod, context.settings) ||
      Annotation(pod, kQueueGate) != "true") {
    return;
  }
  const Json& gates = List(spec, {"schedulingGates"});
  if (std::ranges::none_of(gates, [](const Json& g) { return Text(g, {"name"}) == kQueueGate; })) {
    ListIn(spec, "schedulingGates").push_back({{"name", kQueueGate}});
  }
}

void AdmitPod(const AdmissionRequest& request, const AdmissionContext& context,
              Findings& findings) {
  const Json& pod = request.object;
  if (!IsOurs(pod, context.settings)) return;
  int given = 0;
  for (const std::string_view key : {kLeastAvailable, kMostUnavailable}) {
    if (Get(pod, {"metadata", "annotations", key}) == nullptr) continue;
    ++given;
    if (const std::string text = Annotation(pod, key); !IsBudget(text)) {
      findings.Refuse(
          fmt::format("metadata.annotations[{}]", key),
          fmt::format("\"{}\" is no number above zero and no share from 1% to 99%", text));
    }
  }
  if (given > 1) {
    findings.Refuse("metadata.annotations",
                    fmt::format("{} and {} exclude each other; leave one out", kLeastAvailable,
                                kMostUnavailable));
  }
}

}  // namespace hopwise::control
