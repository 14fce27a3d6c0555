// Volumes of a vcjob (`spec.volumes`): each is mounted into all containers of all its pods. One
// with a claim's spec gets a PersistentVolumeClaim of its own, one with a claim's name takes that
// one, and one with neither is an emptyDir.
#pragma once

#include <vector>

#include "control/json.h"

namespace hopwise::control {

// The claims to be made, owned by the job.
std::vector<Json> ClaimsOf(const Json& job);
// Into a pod that VcPod made.
void MountVolumes(const Json& job, Json& pod);

}  // namespace hopwise::control
