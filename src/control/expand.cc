#include "control/expand.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "api/decode.h"
#include "base/quantity.h"
#include "control/store.h"

namespace hopwise::control {

Json ControllerRef(const Json& owner) {
  return {{"apiVersion", Text(owner, {"apiVersion"})},
          {"kind", Text(owner, {"kind"})},
          {"name", Name(owner)},
          {"uid", Uid(owner)},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

const Json* ControllerOf(const Json& object) {
  for (const Json& owner : List(object, {"metadata", "ownerReferences"})) {
    if (Flag(owner, {"controller"}, false)) {
      return &owner;
    }
  }
  return nullptr;
}

bool IsControlledBy(const Json& object, const Json& owner) {
  const Json* ref = ControllerOf(object);
  if (ref == nullptr) {
    return false;
  }
  const std::string uid = Text(*ref, {"uid"});
  if (!uid.empty()) {
    return uid == Uid(owner);
  }
  return Text(*ref, {"kind"}) == Text(owner, {"kind"}) && Text(*ref, {"name"}) == Name(owner);
}

int64_t Replicas(const Json& object, Path path, int64_t fallback) {
  return std::max<int64_t>(0, Number(object, path, fallback));
}

Json& ListIn(Json& object, std::string_view key) {
  Json& list = object[std::string(key)];
  if (!list.is_array()) {
    list = Json::array();
  }
  return list;
}

void Append(Json& object, std::string_view key, Json value) {
  ListIn(object, key).push_back(std::move(value));
}

void SetLabel(Json& object, std::string_view key, std::string_view value) {
  Set(object, {"metadata", "labels", key}, std::string(value));
}
void SetAnnotation(Json& object, std::string_view key, std::string_view value) {
  Set(object, {"metadata", "annotations", key}, std::string(value));
}

Json MakePod(const Json* pod_template, std::string_view ns, std::string_view name,
             const Json& owner) {
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", Json::object()}};
  if (pod_template != nullptr) {
    for (const char* field : {"labels", "annotations"}) {
      const Json* map = Get(*pod_template, {"metadata", field});
      if (map != nullptr && map->is_object()) {
        pod["metadata"][field] = *map;
      }
    }
    if (const Json* spec = Get(*pod_template, {"spec"}); spec != nullptr) {
      pod["spec"] = *spec;
    }
  }
  pod["metadata"]["name"] = std::string(name);
  pod["metadata"]["namespace"] = std::string(ns);
  pod["metadata"]["ownerReferences"] = Json::array({ControllerRef(owner)});
  return pod;
}

bool Complete(Json& pod, const Json& expansion) {
  bool changed = false;
  for (const char* field : {"labels", "annotations"}) {
    const Json* wanted = Get(expansion, {"metadata", field});
    if (wanted == nullptr || !wanted->is_object()) {
      continue;
    }
    for (const auto& [key, value] : wanted->items()) {
      if (Get(pod, {"metadata", field, key}) == nullptr) {
        Set(pod, {"metadata", field, key}, value);
        changed = true;
      }
    }
  }
  if (ControllerOf(pod) == nullptr && ControllerOf(expansion) != nullptr) {
    Json owners = List(pod, {"metadata", "ownerReferences"});
    owners.push_back(*ControllerOf(expansion));
    Set(pod, {"metadata", "ownerReferences"}, std::move(owners));
    changed = true;
  }
  return changed;
}

bool NamesItsGroup(const Json& pod) {
  return !Annotation(pod, kGroupNameKey).empty() ||
         !Label(pod, "pod-group.scheduling.sigs.k8s.io/name").empty() ||
         !Annotation(pod, "pod-group.scheduling.sigs.k8s.io/name").empty() ||
         !Label(pod, "scheduling.x-k8s.io/pod-group").empty();
}

bool IsCount(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int64_t CountIn(const std::string& text, int64_t fallback) {
  return IsCount(text) ? std::stoll(text) : fallback;
}

bool HasReadableTier(const Json& pod) {
  const std::string tier = Annotation(pod, kTopologyTierKey);
  return tier.empty() || IsCount(tier);
}

Json TopologyOfAnnotations(const Json& pod) {
  const std::string mode = Annotation(pod, kTopologyModeKey);
  const std::string tier = Annotation(pod, kTopologyTierKey);
  if (mode.empty() && tier.empty()) {
    return nullptr;
  }
  Json topology = {{"mode", mode == "soft" ? "soft" : "hard"}};
  if (IsCount(tier)) {
    topology["highestTierAllowed"] = std::stoi(tier);
  }
  return topology;
}

api::ResourceList RequestOf(const Json& pod) {
  const Result<api::Decoded> decoded = api::DecodeObject(Dump(pod));
  if (!decoded) {
    return {};
  }
  const auto* typed = std::get_if<api::Pod>(&decoded->object);
  return typed == nullptr ? api::ResourceList() : typed->request;
}

Json MinResources(const api::ResourceList& sum, int64_t pods) {
  Json amounts = Json::object();
  for (const auto& [resource, amount] : sum) {
    const std::string text = FormatQuantity(resource, amount);
    if (resource == api::kCpu || resource == api::kMemory) {
      amounts[resource] = text;
    }
    amounts["requests." + resource] = text;
  }
  amounts["pods"] = std::to_string(pods);
  amounts["count/pods"] = std::to_string(pods);
  return amounts;
}

Json MakePodGroup(std::string_view ns, std::string_view name, int64_t min_member) {
  return {{"apiVersion", "scheduling.volcano.sh/v1beta1"},
          {"kind", "PodGroup"},
          {"metadata", {{"name", std::string(name)}, {"namespace", std::string(ns)}}},
          {"spec", {{"minMember", min_member}}},
          {"status", {{"phase", "Pending"}}}};
}

void CopyMeta(const Json& from, std::string_view field, Json& to) {
  const Json* map = Get(from, {"metadata", field});
  if (map == nullptr || !map->is_object()) {
    return;
  }
  for (const auto& [key, value] : map->items()) {
    if (key != kSimulateKey && key != "kubectl.kubernetes.io/last-applied-configuration") {
      Set(to, {"metadata", field, key}, value);
    }
  }
}

void InheritVolcanoAnnotations(const Json& owner, Json& pod_group) {
  constexpr std::string_view kPrefix = "volcano.sh/";
  const Json* annotations = Get(owner, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) {
    return;
  }
  for (const auto& [key, value] : annotations->items()) {
    if (key.compare(0, kPrefix.size(), kPrefix) == 0) {
      Set(pod_group, {"metadata", "annotations", key}, value);
    }
  }
}

std::vector<TemplateAt> TemplatesOf(const Json& workload) {
  const Key key = KeyOf(workload);
  std::vector<TemplateAt> found;
  const auto add = [&](std::string path, const Json& from, Path at) {
    if (const Json* pod_template = Get(from, at); pod_template != nullptr) {
      found.push_back({std::move(path), pod_template});
    }
  };
  if (key.group == kVolcanoBatch && key.kind == "Job") {
    const Json& tasks = List(workload, {"spec", "tasks"});
    for (size_t i = 0; i < tasks.size(); ++i) {
      add(fmt::format("spec.tasks[{}].template", i), tasks[i], {"template"});
    }
  } else if (key.group == kLws && key.kind == "LeaderWorkerSet") {
    for (const char* field : {"leaderTemplate", "workerTemplate"}) {
      add(fmt::format("spec.leaderWorkerTemplate.{}", field), workload,
          {"spec", "leaderWorkerTemplate", field});
    }
  } else if (key.group == kApps || (key.group == kBatch && key.kind == "Job")) {
    add("spec.template", workload, {"spec", "template"});
  }
  return found;
}

}  // namespace hopwise::control
