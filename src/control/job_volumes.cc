#include "control/job_volumes.h"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "control/discovery.h"
#include "control/expand.h"

namespace hopwise::control {
namespace {

struct Volume {
  std::string name, mount_path;
  const Json* claim = nullptr;  // the spec of one to be made
  bool claimed = false;         // a claim, made or given
};

std::vector<Volume> VolumesOf(const Json& job) {
  std::vector<Volume> volumes;
  for (const Json& spec : List(job, {"spec", "volumes"})) {
    Volume volume;
    volume.name = Text(spec, {"volumeClaimName"});
    volume.mount_path = Text(spec, {"mountPath"});
    volume.claim = Get(spec, {"volumeClaim"});
    volume.claimed = !volume.name.empty() || volume.claim != nullptr;
    if (volume.name.empty()) {
      const std::string identity = fmt::format("{}/{}", Uid(job), volumes.size());
      volume.name = fmt::format("{}-volume-{}", Name(job), StableSuffix(identity));
    }
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

}  // namespace

std::vector<Json> ClaimsOf(const Json& job) {
  std::vector<Json> claims;
  for (const Volume& volume : VolumesOf(job)) {
    if (volume.claim != nullptr) {
      claims.push_back({{"apiVersion", "v1"},
                        {"kind", "PersistentVolumeClaim"},
                        {"metadata",
                         {{"name", volume.name},
                          {"namespace", Namespace(job)},
                          {"ownerReferences", Json::array({ControllerRef(job)})}}},
                        {"spec", *volume.claim}});
    }
  }
  return claims;
}

void MountVolumes(const Json& job, Json& pod) {
  Json& spec = Member(pod, "spec");
  std::set<std::string> present;
  for (const Volume& volume : VolumesOf(job)) {
    if (present.insert(volume.name).second) {
      Json source = {{"name", volume.name}};
      if (volume.claimed) {
        source["persistentVolumeClaim"] = {{"claimName", volume.name}};
      } else {
        source["emptyDir"] = Json::object();
      }
      Append(spec, "volumes", std::move(source));
    }
    for (const char* field : {"containers", "initContainers"}) {
      if (!spec.contains(field)) {
        continue;
      }
      for (Json& container : spec[field]) {
        Append(container, "volumeMounts",
               {{"name", volume.name}, {"mountPath", volume.mount_path}});
      }
    }
  }
}

}  // namespace hopwise::control
