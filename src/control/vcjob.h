// Volcano Jobs: their PodGroup and pods as Volcano's job controller makes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "control/json.h"

namespace hopwise::control {

// A task with the defaults of Volcano's admission filled in.
struct VcTask {
  std::string name;
  int64_t replicas = 1;
  int64_t min_available = 1;
  int64_t partition_size = 0;  // 0: no partitionPolicy
  int64_t min_partitions = 0;
  const Json* pod_template = nullptr;  // into the job
  const Json* partition_topology = nullptr;
  std::string topology_policy;  // of NUMA nodes
  std::vector<std::string> depends_on;
  bool depends_on_any = false;
  int64_t max_retry = -1;  // restarts of its containers that are too many; -1: not counted
};
std::vector<VcTask> VcTasks(const Json& job);
// spec.minAvailable, or the sum of the tasks' minimums.
int64_t VcMinAvailable(const Json& job, const std::vector<VcTask>& tasks);

std::string VcPodName(const Json& job, const VcTask& task, int64_t index);
Json VcPod(const Json& job, const VcTask& task, int64_t index, std::string_view group);

std::string VcPodGroupName(const Json& job);
// `priority_of`: value of a PriorityClass by name; decides whose requests minResources counts
// first.
Json VcPodGroup(const Json& job, const std::function<int64_t(const std::string&)>& priority_of);

}  // namespace hopwise::control
