// The pods of a vcjob, as far as their state counts for it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/json.h"
#include "control/store.h"

namespace hopwise::control {

struct JobPod {
  Key key;
  const Json* object = nullptr;  // into the store
  std::string uid, task, phase;
  int64_t version = 0, partition = -1;
  bool terminating = false, ready = false;

  [[nodiscard]] bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
};
JobPod JobPodOf(const Key& key, const Json& pod);
// Those that the job controls, by name.
std::vector<JobPod> JobPodsOf(const Store& store, const Json& job);

// Of the first container, once it has ended.
std::optional<int64_t> ExitCodeOf(const Json& pod);
// Of all containers.
int64_t RestartsOf(const Json& pod);

struct PodCounts {
  int64_t pending = 0, running = 0, succeeded = 0, failed = 0, terminating = 0, unknown = 0;
  std::map<std::string, std::map<std::string, int64_t>> by_task;  // task -> phase -> pods

  void Add(const JobPod& pod, bool leaving);
  [[nodiscard]] int64_t Of(const std::string& task, const std::string& phase) const;
  // pending, running, …, taskStatusCount; a count of 0 is left out, as the API server does.
  void WriteInto(Json& status) const;
};

}  // namespace hopwise::control
