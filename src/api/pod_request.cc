#include "api/pod_request.h"

#include <algorithm>

namespace hopwise::api {
namespace {

bool Names(const ResourceList& list, std::string_view name) {
  return std::ranges::binary_search(
      list, name, {}, [](const auto& entry) -> std::string_view { return entry.first; });
}

// What the API server defaults requests to.
ResourceList RequestOf(const ContainerResources& container) {
  ResourceList request = container.requests;
  for (const auto& [name, limit] : container.limits) {
    if (!Names(container.requests, name)) SetAmount(request, name, limit);
  }
  return request;
}

bool IsPodLevelResource(std::string_view name) {
  return name == kCpu || name == kMemory || name.starts_with("hugepages-");
}

// The larger of what runs at the same time: each init container beside the sidecars started before
// it, and at last all containers beside all sidecars.
ResourceList AggregateOf(const PodResources& resources) {
  ResourceList sidecars;
  ResourceList peak;
  for (const ContainerResources& container : resources.init) {
    const ResourceList together = Sum(sidecars, RequestOf(container));
    peak = Max(peak, together);
    if (container.sidecar) sidecars = together;
  }
  ResourceList running = std::move(sidecars);
  for (const ContainerResources& container : resources.containers) {
    running = running.empty() ? RequestOf(container) : Sum(running, RequestOf(container));
  }
  return peak.empty() ? running : Max(peak, running);
}

bool AnyAboveZero(const ContainerResources& container) {
  const auto above_zero = [](const auto& entry) { return entry.second > 0; };
  return std::ranges::any_of(container.requests, above_zero) ||
         std::ranges::any_of(container.limits, above_zero);
}

}  // namespace

ResourceList EffectiveRequest(const PodResources& resources) {
  ResourceList request = AggregateOf(resources);
  for (const auto& [name, limit] : resources.pod.limits) {
    if (IsPodLevelResource(name) && !Names(request, name)) SetAmount(request, name, limit);
  }
  for (const auto& [name, amount] : resources.pod.requests) {
    if (IsPodLevelResource(name)) SetAmount(request, name, amount);
  }
  return resources.overhead.empty() ? request : Sum(request, resources.overhead);
}

bool IsBestEffort(const PodResources& resources) {
  return std::ranges::none_of(resources.init, AnyAboveZero) &&
         std::ranges::none_of(resources.containers, AnyAboveZero) && !AnyAboveZero(resources.pod);
}

}  // namespace hopwise::api
