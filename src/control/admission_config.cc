#include "control/admission_config.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "api/decode.h"

namespace hopwise::control {
namespace {

constexpr std::string_view kGroups = "resourceGroups";

class Reader {
 public:
  AdmissionConfigReport Read(const Json& document) {
    WarnOfUnknown(document, "", {kGroups});
    const Json* list = Get(document, {kGroups});
    if (list == nullptr || list->is_null()) return std::move(report_);
    if (!list->is_array()) {
      Refuse(std::string(kGroups), "must be a list of groups");
      return std::move(report_);
    }
    for (size_t i = 0; i < list->size(); ++i) {
      report_.config.groups.push_back(ReadGroup((*list)[i], fmt::format("{}[{}]", kGroups, i)));
    }
    return std::move(report_);
  }

 private:
  void Refuse(const std::string& path, std::string_view why) {
    report_.errors.push_back(fmt::format("{}: {}", path, why));
  }
  void WarnOfUnknown(const Json& object, const std::string& path,
                     std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(known, std::string_view(key)) == known.end()) {
        report_.warnings.push_back(
            fmt::format("{}{}{}: nothing here is called so", path, path.empty() ? "" : ".", key));
      }
    }
  }

  ResourceGroup ReadGroup(const Json& entry, const std::string& path) {
    ResourceGroup group;
    if (!entry.is_object()) {
      Refuse(path, "must be a map with resourceGroup, object and what to put into the pods");
      return group;
    }
    WarnOfUnknown(
        entry, path,
        {"resourceGroup", "object", "schedulerName", "tolerations", "labels", "affinity"});
    group.name = Text(entry, {"resourceGroup"});
    if (group.name.empty()) Refuse(path + ".resourceGroup", "is missing");
    group.scheduler_name = Text(entry, {"schedulerName"});
    ReadMembers(entry, path + ".object", group);
    ReadParts(entry, path, group);
    return group;
  }

  void ReadMembers(const Json& entry, const std::string& path, ResourceGroup& group) {
    const Json* object = Get(entry, {"object"});
    if (object == nullptr || object->is_null()) {
      group.annotations.emplace_back(kResourceGroupKey, group.name);
      return;
    }
    const std::string key = Text(*object, {"key"});
    const Json& values = List(*object, {"value"});
    if (key != "namespace" && key != "annotation") {
      Refuse(path + ".key", "must be namespace or annotation");
    }
    if (values.empty()) Refuse(path + ".value", "must be a list with what belongs to the group");
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string at = fmt::format("{}.value[{}]", path, i);
      if (values[i].is_string() && key == "namespace") {
        group.namespaces.push_back(values[i].get<std::string>());
      } else if (key == "annotation") {
        ReadAnnotation(values[i], at, group);
      } else {
        Refuse(at, "must be a string");
      }
    }
  }

  // "key: value" as one string, or a map of one.
  void ReadAnnotation(const Json& value, const std::string& path, ResourceGroup& group) {
    if (value.is_object() && value.size() == 1 && value.begin()->is_string()) {
      group.annotations.emplace_back(value.begin().key(), value.begin()->get<std::string>());
      return;
    }
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const size_t colon = text.find(':');
    if (colon == std::string::npos || colon == 0) {
      Refuse(path, "must be an annotation, \"key: value\"");
      return;
    }
    const size_t begin = std::min(text.find_first_not_of(' ', colon + 1), text.size());
    group.annotations.emplace_back(text.substr(0, colon), text.substr(begin));
  }

  void ReadParts(const Json& entry, const std::string& path, ResourceGroup& group) {
    if (const Json* labels = Get(entry, {"labels"}); labels != nullptr && !labels->is_null()) {
      const bool good = labels->is_object() &&
                        std::ranges::all_of(*labels, [](const Json& v) { return v.is_string(); });
      if (good) {
        group.node_selector = *labels;
      } else {
        Refuse(path + ".labels", "must be a map of node labels, all values strings");
      }
    }
    if (const Json* list = Get(entry, {"tolerations"}); list != nullptr && !list->is_null()) {
      if (list->is_array()) {
        group.tolerations = *list;
      } else {
        Refuse(path + ".tolerations", "must be a list of tolerations");
      }
    }
    const Json* affinity = Get(entry, {"affinity"});
    if (affinity == nullptr || affinity->is_null()) return;
    // Volcano has it as a text of JSON.
    group.affinity =
        affinity->is_string() ? json::ParseOrNull(affinity->get<std::string>()) : *affinity;
    if (!group.affinity.is_object()) {
      Refuse(path + ".affinity", "must be a pod's affinity, as a map or as a text of JSON");
    }
  }

  AdmissionConfigReport report_;
};

}  // namespace

AdmissionConfigReport ReadAdmissionConfig(std::string_view text) {
  const std::vector<api::Document> documents = api::SplitDocuments(text);
  if (documents.empty()) return {};
  const api::Document& first = documents.front();
  if (!first.error.empty()) return {{}, {first.error}, {}};
  const Result<Json> document = ParseJson(first.json);
  if (!document || !document->is_object()) {
    return {{}, {fmt::format("line {}: must be a map with {}", first.line, kGroups)}, {}};
  }
  AdmissionConfigReport report = Reader().Read(*document);
  if (documents.size() > 1) {
    report.warnings.push_back(
        fmt::format("line {}: only the first document of the file counts", documents[1].line));
  }
  return report;
}

const ResourceGroup* GroupOfPod(const AdmissionConfig& config, const Json& pod,
                                std::string_view ns) {
  for (const ResourceGroup& group : config.groups) {
    const bool by_annotation = std::ranges::any_of(group.annotations, [&](const auto& one) {
      return Get(pod, {"metadata", "annotations", one.first}) != nullptr &&
             Annotation(pod, one.first) == one.second;
    });
    if (by_annotation || std::ranges::find(group.namespaces, ns) != group.namespaces.end()) {
      return &group;
    }
  }
  return nullptr;
}

}  // namespace hopwise::control
