// The job controller: one vcjob, what there is of it, and what follows. Source of the states and of
// what each does: Volcano's pkg/controllers/job (state/*.go).
//
// Everything is decided by what the objects say, so that a controller that starts anew goes on
// where another one stopped: an action is first written into the status (phase, version,
// retryCount), and what that phase asks for is done after it. JobMemory only keeps what no object
// tells; to lose it loses no more than an eviction that nobody saw.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "control/job_plugins.h"
#include "control/job_policy.h"
#include "control/writes.h"

namespace hopwise::control {

// Reconciliations that fail one after the other until the job is given up: Volcano's
// --max-requeue-num.
inline constexpr int kMostFailures = 15;
inline constexpr int64_t kDefaultMaxRetry = 3;
// Pods made in one go; a larger job takes several. Bounds the memory that their bodies take.
inline constexpr int64_t kMostPodsAtOnce = 1000;
// Until a job is looked at again whose keys are being made.
inline constexpr Duration kKeysPause = Millis(100);

// Why the job's writes fail: the reason of an Event, one of these, and a sentence. While it lasts
// it stands in status.state.
struct JobTrouble {
  std::string reason, message;
};
inline constexpr std::array<std::string_view, 6> kJobTroubles = {
    "FailedCreate", "FailedDelete", "PVCError", "PodGroupError", "PluginError", "JobStatusError"};

struct JobMemory {
  std::vector<JobEvent> evicted;     // pods that vanished since, by nobody of ours
  std::set<std::string> expected;    // uids of pods whose end is no news
  std::map<std::string, Time> seen;  // by uid: when a pod was first seen failed
  int64_t generation = 0;            // of the job's spec as last seen, 0: never
  int failures = 0;                  // batches of its writes that failed one after the other
  JobTrouble trouble;                // of the last of them; empty when it went well
  std::string told;                  // why the gang waits, as last told
  std::string wish;                  // the spec of its PodGroup, as last asked for
  std::set<std::string> foreign;     // names of pods that somebody else has, as told
};

struct JobView {
  const Store& store;
  Key job;
  Time now;
  // Commands that target the job, oldest first.
  std::vector<Key> commands;
  // Value of a PriorityClass by name.
  std::function<int64_t(const std::string&)> priority_of;
  // Whether pods of this PodGroup may be made.
  std::function<bool(const Json& group)> admitted;
  // A new pair for the ssh plugin; nothing while it is being made.
  std::function<std::optional<SshKeys>()> keys;
  int64_t most_pods = kMostPodsAtOnce;
  int most_failures = kMostFailures;  // 0: it is never given up
};

// To be asked again whenever the job, its pods, its PodGroup or a Command changed, at `again`, and
// when the writes have ended. Precondition: the job is in the store.
Outcome ReconcileJob(const JobView& view, JobMemory& memory);

// Of a pod that is gone and was last seen like this: an event, or no news.
void PodGone(const Json& pod, Time now, JobMemory& memory);

}  // namespace hopwise::control
