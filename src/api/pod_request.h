// What a pod asks for as a whole, from what its containers ask for (Kubernetes 1.29 and later).
#pragma once

#include <vector>

#include "api/resources.h"

namespace hopwise::api {

struct ContainerResources {
  ResourceList requests{}, limits{};
  bool sidecar = false;  // an init container with restartPolicy Always: it stays while others run
};

struct PodResources {
  std::vector<ContainerResources> init{};  // in the order of the pod: it decides what runs together
  std::vector<ContainerResources> containers{};
  ContainerResources pod{};  // spec.resources
  ResourceList overhead{};   // spec.overhead
};

// A limit without a request counts as the request, for containers and for the pod level.
// Sidecars run on beside everything after them. A pod-level request for cpu, memory or hugepages
// replaces what the containers add up to; the overhead comes on top.
ResourceList EffectiveRequest(const PodResources& resources);

// True when neither a container nor the pod level asks for, or is limited in, more than zero.
bool IsBestEffort(const PodResources& resources);

}  // namespace hopwise::api
