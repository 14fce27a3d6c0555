#include "api/pod_request.h"

#include <algorithm>
#include <cstdint>
#include <utility>

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

ResourceList WithResize(ResourceList asked, const std::optional<HeldResources>& held,
                        const PodResources& resources) {
  if (!held) return asked;
  const ResourceList there = Max(held->actual, held->granted);
  return resources.resize_infeasible ? there : Max(asked, there);
}

enum class Read : uint8_t { kSpec, kSpecAndStatus };

// The larger of what runs at the same time: each init container beside the sidecars started before
// it, and at last all containers beside all sidecars.
ResourceList AggregateOf(const PodResources& resources, Read read) {
  const auto running_request = [&](const ContainerResources& container) {
    ResourceList asked = RequestOf(container);
    if (read == Read::kSpec) return asked;
    return WithResize(std::move(asked), container.held, resources);
  };
  ResourceList sidecars;
  ResourceList peak;
  for (const ContainerResources& container : resources.init) {
    const ResourceList together =
        Sum(sidecars, container.sidecar ? running_request(container) : RequestOf(container));
    peak = Max(peak, together);
    if (container.sidecar) sidecars = together;
  }
  ResourceList running = std::move(sidecars);
  for (const ContainerResources& container : resources.containers) {
    running =
        running.empty() ? running_request(container) : Sum(running, running_request(container));
  }
  return peak.empty() ? running : Max(peak, running);
}

// The pod level's requests as the API server completes them where it has limits: cpu and memory by
// what the containers add up to, and what is still missing by the limit itself.
ResourceList PodLevelRequest(const PodResources& resources) {
  ResourceList asked;
  for (const auto& [name, amount] : resources.pod.requests) {
    if (IsPodLevelResource(name)) asked.emplace_back(name, amount);
  }
  if (resources.pod.limits.empty()) return asked;
  for (const auto& [name, amount] : AggregateOf(resources, Read::kSpec)) {
    if ((name == kCpu || name == kMemory) && !Names(asked, name)) SetAmount(asked, name, amount);
  }
  for (const auto& [name, limit] : resources.pod.limits) {
    if (IsPodLevelResource(name) && !Names(asked, name)) SetAmount(asked, name, limit);
  }
  return asked;
}

bool AnyAboveZero(const ContainerResources& container) {
  const auto above_zero = [](const auto& entry) { return entry.second > 0; };
  return std::ranges::any_of(container.requests, above_zero) ||
         std::ranges::any_of(container.limits, above_zero);
}

}  // namespace

ResourceList EffectiveRequest(const PodResources& resources) {
  ResourceList request = AggregateOf(resources, Read::kSpecAndStatus);
  const ResourceList asked = PodLevelRequest(resources);
  if (!asked.empty()) {
    const ResourceList held = WithResize(asked, resources.pod.held, resources);
    for (const auto& [name, amount] : asked) SetAmount(request, name, AmountOf(held, name));
  }
  return resources.overhead.empty() ? request : Sum(request, resources.overhead);
}

bool IsBestEffort(const PodResources& resources) {
  return std::ranges::none_of(resources.init, AnyAboveZero) &&
         std::ranges::none_of(resources.containers, AnyAboveZero) && !AnyAboveZero(resources.pod);
}

}  // namespace hopwise::api
