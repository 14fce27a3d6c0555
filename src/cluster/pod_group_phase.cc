#include "cluster/pod_group_phase.h"

namespace hopwise::cluster {
namespace {

std::string_view VolcanoPhase(const MemberCounts& counts, const PhaseFacts& facts) {
  if (counts.HasMinimum(facts.minimum)) {
    const bool done = counts.bound == 0 && counts.total == counts.finished();
    return done ? "Completed" : "Running";
  }
  if (counts.running > 0 && (facts.old_phase == "Running" || facts.old_phase == "Unknown")) {
    return facts.waits ? "Unknown" : "Running";
  }
  const bool was_done = facts.old_phase == "Completed" || facts.old_phase == "Finished";
  if (counts.total == 0 && was_done) {
    return "Completed";
  }
  return facts.admitted ? "Inqueue" : "Pending";
}

}  // namespace

std::string PodGroupPhase(const MemberCounts& counts, const PhaseFacts& facts) {
  const std::string_view phase = VolcanoPhase(counts, facts);
  if (facts.scheduler_plugins && phase == "Inqueue") {
    return "Scheduling";
  }
  if (facts.scheduler_plugins && phase == "Completed") {
    return "Finished";
  }
  return std::string(phase);
}

}  // namespace hopwise::cluster
