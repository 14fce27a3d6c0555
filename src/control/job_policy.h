// What a vcjob's lifecycle policies say of what happened to its pods: Volcano's applyPolicies
// (pkg/controllers/job/job_controller_util.go). Task policies stand before the job's, and the first
// that matches counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "control/json.h"

namespace hopwise::control {

// Actions of bus.volcano.sh/v1alpha1. kSync: nothing but the usual.
enum class JobAction : uint8_t {
  kSync,
  kAbortJob,
  kRestartJob,
  kRestartTask,
  kRestartPod,
  kRestartPartition,
  kTerminateJob,
  kCompleteJob,
  kResumeJob,
};
// "AbortJob"; "SyncJob" of kSync.
std::string_view NameOf(JobAction action);
// Those that users may ask for.
std::vector<std::string_view> JobActionNames();
// Nothing for a word that is no action of a user.
std::optional<JobAction> ParseJobAction(std::string_view text);

struct JobEvent {
  std::string_view name;  // "PodFailed", "PodEvicted", "PodPending", "TaskCompleted", …
  std::string task;       // "" of the job as a whole
  std::string pod;        // "" of a task as a whole
  int64_t partition = -1;
  std::optional<int64_t> exit_code;  // of the first container
  Time since;                        // a time-out counts from here
};

struct JobRequest {
  JobAction action = JobAction::kSync;
  JobEvent event;
};
// The first event whose policy's time is up, in the order given. `again` becomes the earliest time
// at which another one's will be.
JobRequest ApplyPolicies(const Json& job, const std::vector<JobEvent>& events, Time now,
                         Time& again);

}  // namespace hopwise::control
