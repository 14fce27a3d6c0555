#include "daemon/fabric_faults.h"

#include "base/log.h"

namespace hopwise::daemon {

void FabricFaults::Look(const topology::Topology& topology, Time now, Effects& effects) {
  if (!seen_ || topology.version != version_) {
    seen_ = true;
    version_ = topology.version;
    auto before = std::exchange(faults_, {});
    for (const topology::Fault& fault : topology.faults) {
      const std::pair key(fault.object, fault.message);
      const auto at = before.find(key);
      faults_.emplace(key, at == before.end() ? Standing{fault.kind, now, false} : at->second);
    }
  }
  next_wake_ = {};
  for (auto& [key, fault] : faults_) {
    const auto& [object, message] = key;
    const auto uid = uids_.find(object);
    if (fault.told || uid == uids_.end()) {
      continue;
    }
    if (const Time due = fault.since + kFaultStands; now < due) {
      next_wake_ = !next_wake_.set() || due < next_wake_ ? due : next_wake_;
      continue;
    }
    fault.told = true;
    Log(LogLevel::kWarning, "fabric_fault", {{"hypernode", object}, {"fault", message}});
    effects.events.push_back(
        {{kube::ApiVersionOf(kube::kHyperNodes), "HyperNode", "", object, uid->second},
         {.warning = true,
          .reason = std::string(topology::ReasonOf(fault.kind)),
          .message = message,
          .key = ""}});
  }
}

}  // namespace hopwise::daemon
