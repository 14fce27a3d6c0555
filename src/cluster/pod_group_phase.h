// The phase of a PodGroup from its members, as Volcano's scheduler computes it
// (pkg/scheduler/framework/session.go, getPodGroupPhase). One difference: who never ran does not
// become Unknown. For whoever keeps PodGroups: the simulator and the daemon.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hopwise::cluster {

// Reason of the condition Scheduled of a PodGroup that has its minimum.
inline constexpr std::string_view kScheduledReason = "tasks in gang are ready to be scheduled";

// Members that exist; `bound` have a node and have not finished.
struct MemberCounts {
  int64_t total = 0, bound = 0, running = 0, succeeded = 0, failed = 0;
  [[nodiscard]] int64_t finished() const { return succeeded + failed; }
  [[nodiscard]] int64_t scheduled() const { return bound + finished(); }
  [[nodiscard]] bool HasMinimum(int64_t minimum) const {
    return scheduled() > 0 && scheduled() >= minimum;
  }
};

struct PhaseFacts {
  int64_t minimum = 0;
  std::string_view old_phase;
  bool waits = false;              // some member waits with a reason
  bool admitted = false;           // its queue lets it in
  bool scheduler_plugins = false;  // in the words of scheduling.x-k8s.io
};
std::string PodGroupPhase(const MemberCounts& counts, const PhaseFacts& facts);

}  // namespace hopwise::cluster
