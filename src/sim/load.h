// Manifests into a state without running anything: for looking at what is there.
#pragma once

#include "cluster/state.h"
#include "sim/manifest.h"
#include "sim/objects.h"

namespace hopwise::sim {

// Objects marked for deletion are left out. `store` fills in what an API server would.
void LoadState(const Manifest& manifest, Store& store, cluster::State& state);

}  // namespace hopwise::sim
