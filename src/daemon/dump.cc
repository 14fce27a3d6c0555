#include "daemon/dump.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "daemon/ask.h"

namespace hopwise::daemon {
namespace {

// Annotations that say something to a scheduler come from these; others may hold anything.
constexpr std::array<std::string_view, 8> kAnnotationDomains = {
    "volcano.sh",       "hopwise.dev",         "scheduling.k8s.io", "sigs.k8s.io",
    "alibabacloud.com", "batch.kubernetes.io", "x-k8s.io",          "hami.io"};
constexpr std::array<std::string_view, 5> kContainerFields = {"name", "image", "resources", "ports",
                                                              "restartPolicy"};

bool IsKept(std::string_view annotation) {
  const size_t slash = annotation.find('/');
  if (slash == std::string_view::npos) {
    return annotation == "sla-waiting-time";
  }
  const std::string_view domain = annotation.substr(0, slash);
  return std::ranges::any_of(kAnnotationDomains, [&](std::string_view kept) {
    return domain == kept ||
           (domain.ends_with(kept) && domain[domain.size() - kept.size() - 1] == '.');
  });
}

void PruneMeta(json::Json& object) {
  json::Json& meta = json::Member(object, "metadata");
  meta.erase("managedFields");
  const auto found = meta.find("annotations");
  if (found == meta.end() || !found->is_object()) {
    return;
  }
  json::Json kept = json::Json::object();
  for (const auto& [key, value] : found->items()) {
    if (IsKept(key)) {
      kept[key] = value;
    }
  }
  *found = std::move(kept);
}

void PruneContainers(json::Json& spec, const char* field) {
  const auto found = spec.find(field);
  if (found == spec.end() || !found->is_array()) {
    return;
  }
  json::Json kept = json::Json::array();
  for (const json::Json& container : *found) {
    json::Json next = json::Json::object();
    for (const std::string_view key : kContainerFields) {
      if (const json::Json* value = json::Get(container, {key}); value != nullptr) {
        next[std::string(key)] = *value;
      }
    }
    kept.push_back(std::move(next));
  }
  *found = std::move(kept);
}

// A volume's name and kind, and the claim it needs.
void PruneVolumes(json::Json& spec) {
  const auto found = spec.find("volumes");
  if (found == spec.end() || !found->is_array()) {
    return;
  }
  json::Json kept = json::Json::array();
  for (const json::Json& volume : *found) {
    if (json::Get(volume, {"persistentVolumeClaim"}) != nullptr ||
        json::Get(volume, {"ephemeral"}) != nullptr) {
      kept.push_back(volume);
    }
  }
  *found = std::move(kept);
}

// Appends all of one resource; what is not installed is passed over.
Status AppendAll(kube::CurlTransport& transport, const kube::Resource& resource,
                 json::Json& items) {
  std::string token;
  do {
    const kube::Response response = AskPage(transport, resource, token);
    const kube::ApiError error = kube::ErrorOf(response, "list", resource);
    if (error.failure == kube::Failure::kNoSuchKind) {
      return {};
    }
    if (!error.ok()) {
      return Fail(ErrorCode::kIo, error.message);
    }
    const Result<json::Json> list = json::ParseJson(response.body);
    if (!list) {
      return tl::unexpected(list.error());
    }
    const std::string version = kube::ApiVersionOf(resource);
    for (const json::Json& item : json::List(*list, {"items"})) {
      json::Json pruned = Prune(item);
      pruned["apiVersion"] = version;
      pruned["kind"] = std::string(resource.kind);
      items.push_back(std::move(pruned));
    }
    token = json::Text(*list, {"metadata", "continue"});
  } while (!token.empty());
  return {};
}

}  // namespace

json::Json Prune(const json::Json& object) {
  json::Json pruned = object;
  PruneMeta(pruned);
  const auto spec = pruned.find("spec");
  if (spec != pruned.end() && spec->is_object() && spec->contains("containers")) {
    for (const char* field : {"containers", "initContainers", "ephemeralContainers"}) {
      PruneContainers(*spec, field);
    }
    PruneVolumes(*spec);
    spec->erase("imagePullSecrets");
    if (const auto status = pruned.find("status"); status != pruned.end()) {
      for (const char* field :
           {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
        status->erase(field);
      }
    }
  }
  return pruned;
}

Result<std::string> DumpState(kube::CurlTransport& transport, json::Json own) {
  json::Json items = json::Json::array();
  for (const kube::Resource& resource :
       {kube::kPriorityClasses, kube::kNodes, kube::kHyperNodes, kube::kQueues, kube::kPodGroups,
        kube::kPluginPodGroups, kube::kPods}) {
    if (Status status = AppendAll(transport, resource, items); !status) {
      return tl::unexpected(status.error());
    }
  }
  own["apiVersion"] = "hopwise.dev/v1";
  own["kind"] = "SchedulerState";
  own["metadata"] = {{"name", "scheduler"}};
  items.push_back(std::move(own));
  return json::Dump({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
}

}  // namespace hopwise::daemon
