// JobFlows: each flow depends on flows of the same object, and none on itself.
#include <fmt/format.h>

#include "control/admission_rules.h"

namespace hopwise::control {

void AdmitJobFlow(const AdmissionRequest& request, const AdmissionContext& /*context*/,
                  Findings& findings) {
  const Json& object = request.object;
  if (request.updates() && (IsLeaving(object) || SamePart(object, request.old_object, {"spec"}))) {
    return;
  }
  const Json& flows = List(object, {"spec", "flows"});
  std::map<std::string, std::vector<std::string>> depends_on;
  for (size_t i = 0; i < flows.size(); ++i) {
    const std::string name = Text(flows[i], {"name"});
    const std::string path = fmt::format("spec.flows[{}].name", i);
    if (name.empty()) {
      findings.Refuse(path, "is missing: the JobTemplate to run");
    } else if (!depends_on.emplace(name, std::vector<std::string>()).second) {
      findings.Refuse(path, fmt::format("{} stands twice", name));
    }
  }
  for (size_t i = 0; i < flows.size(); ++i) {
    const std::string name = Text(flows[i], {"name"});
    const Json& targets = List(flows[i], {"dependsOn", "targets"});
    for (size_t t = 0; t < targets.size(); ++t) {
      const std::string path = fmt::format("spec.flows[{}].dependsOn.targets[{}]", i, t);
      const std::string target = targets[t].is_string() ? targets[t].get<std::string>() : "";
      if (target == name) {
        findings.Refuse(path, fmt::format("{} depends on itself", name));
      } else if (!depends_on.contains(target)) {
        findings.Refuse(path, fmt::format("there is no flow \"{}\" here", target));
      } else {
        depends_on[name].push_back(target);
      }
    }
  }
  if (const std::string cycle = CycleIn(depends_on); !cycle.empty()) {
    findings.Refuse("spec.flows", "the flows depend on each other in a cycle: " + cycle);
  }
}

}  // namespace hopwise::control
