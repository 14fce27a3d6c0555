// What a pod asks for as a whole, from what its containers ask for (Kubernetes 1.29 and later).
#pragma once

#include <optional>
#include <vector>

#include "api/resources.h"

namespace hopwise::api {

// What a running container, or a pod as a whole, has by its status. It differs from what the spec
// asks for while it is resized in place.
struct HeldResources {
  ResourceList actual{};   // resources.requests
  ResourceList granted{};  // allocatedResources
};

struct ContainerResources {
  ResourceList requests{}, limits{};
  bool sidecar = false;  // an init container with restartPolicy Always: it stays while others run
  std::optional<HeldResources> held{};  // absent where the status does not name actual resources
};

struct PodResources {
  std::vector<ContainerResources> init{};  // in the order of the pod: it decides what runs together
  std::vector<ContainerResources> containers{};
  ContainerResources pod{};        // spec.resources
  ResourceList overhead{};         // spec.overhead
  bool resize_infeasible = false;  // the node cannot give what the spec asks for by now
};

// A limit without a request counts as the request, for containers and for the pod level.
// Sidecars run on beside everything after them. A pod-level request for cpu, memory or hugepages
// replaces what the containers add up to; the overhead comes on top. Who is resized in place counts
// with the most of what is asked, granted and there, or of the latter two where the resize is
// infeasible; init containers that end count with what they ask (component-helpers
// resource/helpers.go, PodRequests).
ResourceList EffectiveRequest(const PodResources& resources);

// True when neither a container nor the pod level asks for, or is limited in, more than zero.
bool IsBestEffort(const PodResources& resources);

}  // namespace hopwise::api
