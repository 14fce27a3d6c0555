#include "cli/cluster_load.h"

#include <utility>

namespace hopwise::cli {

using json::Json;

Result<sim::Manifest> LoadCluster(ClusterClient& client, const std::vector<WantedKind>& kinds,
                                  Io& io, int& status) {
  sim::Manifest manifest;
  for (const WantedKind& kind : kinds) {
    Answer<std::vector<Json>> found = client.List(kind.resource, kind.query);
    if (!found) {
      const kube::Failure failure = found.error().failure;
      if (kind.optional &&
          (failure == kube::Failure::kForbidden || failure == kube::Failure::kNoSuchKind)) {
        continue;
      }
      status = Refused(io, found.error());
      return Fail(ErrorCode::kIo, found.error().message);
    }
    Json list = {{"apiVersion", "v1"}, {"kind", "List"}};
    list["items"] = std::move(*found);
    sim::AddManifest("the cluster", json::Dump(list), manifest);
  }
  sim::FinishManifest(manifest);
  return manifest;
}

}  // namespace hopwise::cli
