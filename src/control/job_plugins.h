// What the plugins of a vcjob (`spec.plugins`) add: to each of its pods, and objects beside them.
// Names, flags and their defaults as Volcano's pkg/controllers/job/plugins: env, svc, ssh, pytorch,
// tensorflow, mpi, ray, hcclrank. Flags are written --name=value, --name value, or --name alone for
// a boolean one; with one dash, too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/json.h"
#include "control/vcjob.h"

namespace hopwise::control {

// Of the ssh plugin: PEM, and a line of authorized_keys. Made outside, since it takes chance.
struct SshKeys {
  std::string private_key, public_key;
};

// Those that there are, in alphabetical order.
std::vector<std::string> PluginNames();
// What the job's plugins say that cannot be followed, each a sentence: an unknown plugin or flag, a
// task that is not there. "" objects to nothing.
std::vector<std::string> PluginProblems(const Json& job);

// In the order in which they work: by name, those last that read what others have written.
std::vector<std::string> PluginsOf(const Json& job);
bool HasPlugin(const Json& job, std::string_view name);

// Into a pod that VcPod made.
void DressPod(const Json& job, const std::vector<VcTask>& tasks, const VcTask& task, int64_t index,
              Json& pod);

// Services, a ConfigMap, a NetworkPolicy, a Secret: owned by the job, and made before its first
// pod.
std::vector<Json> PluginObjects(const Json& job, const std::vector<VcTask>& tasks,
                                const SshKeys& keys);
// The ConfigMap of the svc plugin alone, as it should be now; null without that plugin.
Json HostsOf(const Json& job, const std::vector<VcTask>& tasks);
// Of the ssh plugin: whether it asks for new keys, and its Secret's name and file "config".
bool NeedsKeys(const Json& job);
std::string SshSecretName(const Json& job);
std::string SshConfigOf(const Json& job, const std::vector<VcTask>& tasks);

}  // namespace hopwise::control
