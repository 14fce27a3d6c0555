// What commands that read manifests read of a live cluster instead.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cluster_client.h"
#include "cli/io.h"
#include "sim/manifest.h"

namespace hopwise::cli {

struct WantedKind {
  kube::Resource resource;
  ListQuery query;
  // Without it the command can still say something: where it may not be read, or does not exist,
  // it is left out.
  bool optional = false;
};

// All objects of the kinds as one step. Nobody who looks at a cluster can mend what others put
// there, so what cannot be used is told and left out. On failure `status` is the exit status and
// the complaint was made.
Result<sim::Manifest> LoadCluster(ClusterClient& client, const std::vector<WantedKind>& kinds,
                                  Io& io, int& status);

}  // namespace hopwise::cli
