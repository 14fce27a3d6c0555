#include "sim/load.h"

#include "sim/simulator.h"

namespace hopwise::sim {

void LoadState(const Manifest& manifest, Store& store, cluster::State& state) {
  for (const ManifestObject& item : manifest.objects) {
    if (!item.remove) {
      store.Apply(item.object, World::kEpoch);
    }
  }
  store.EachObject(
      [&](const Key& key, const Entry& entry) { ApplyToState(state, key, entry, ""); });
}

}  // namespace hopwise::sim
