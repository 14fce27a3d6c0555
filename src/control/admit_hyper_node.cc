// HyperNodes: what can never work is refused; what they would do to the topology is what topology
// itself finds.
#include <fmt/format.h>

#include "control/admission_rules.h"
#include "topology/patterns.h"

namespace hopwise::control {
namespace {

void CheckMembers(const Json& object, Findings& findings) {
  const Json& members = List(object, {"spec", "members"});
  if (members.empty()) {
    findings.Refuse("spec.members", "a HyperNode needs at least one member");
  }
  topology::PatternTable patterns;
  for (size_t i = 0; i < members.size(); ++i) {
    const Json* pattern = Get(members[i], {"selector", "regexMatch", "pattern"});
    if (pattern == nullptr || !pattern->is_string()) continue;
    const std::string why = patterns.Add(pattern->get<std::string>(), static_cast<uint32_t>(i));
    if (!why.empty()) {
      findings.Refuse(fmt::format("spec.members[{}].selector.regexMatch.pattern", i),
                      "is no regular expression: " + why);
    }
  }
}

std::string_view PathOf(topology::FaultKind kind) {
  using enum topology::FaultKind;
  switch (kind) {
    case kTierOrder:
      return "spec.tier";
    case kTierNameClash:
      return "spec.tierName";
    case kNameClash:
      return "metadata.name";
    default:
      return "spec.members";
  }
}

}  // namespace

void AdmitHyperNode(const AdmissionRequest& request, const AdmissionContext& context,
                    Findings& findings) {
  const Json& object = request.object;
  const bool same = request.updates() && SamePart(object, request.old_object, {"spec"}) &&
                    SamePart(object, request.old_object, {"metadata", "labels"}) &&
                    SamePart(object, request.old_object, {"metadata", "annotations"});
  if (same || (request.updates() && IsLeaving(object))) return;
  CheckMembers(object, findings);
  api::HyperNode typed;
  // After what cannot be used nothing else would be true.
  if (!findings.problems().empty() || !ReadTyped(object, findings, typed) ||
      context.view.faults_brought_by == nullptr) {
    return;
  }
  for (const topology::Fault& fault : context.view.faults_brought_by(typed)) {
    const std::string text = fmt::format("{} ({})", fault.message, topology::ReasonOf(fault.kind));
    if (fault.isolates && context.settings.refuse_hyper_node_faults) {
      findings.Refuse(PathOf(fault.kind), text);
    } else {
      findings.Warn(PathOf(fault.kind), text);
    }
  }
}

}  // namespace hopwise::control
