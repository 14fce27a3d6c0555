// Pod templates: what Kubernetes would refuse of each of their pods, told when the Job is applied
// and not when its pods are made.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "api/resources.h"
#include "control/admission_rules.h"
#include "control/expand.h"

namespace hopwise::control {
namespace {

constexpr int64_t kLargestPort = 65535;

using Words = std::initializer_list<std::string_view>;

// "" will do: it is filled in.
void CheckWord(const Json& object, std::string_view key, const std::string& path, Words known,
               Findings& findings) {
  const std::string word = Text(object, {key});
  if (word.empty() || std::ranges::find(known, std::string_view(word)) != known.end()) return;
  findings.Refuse(fmt::format("{}.{}", path, key),
                  fmt::format("\"{}\" is none of {}", word, fmt::join(known, ", ")));
}

// Every entry has a name of its own.
void CheckNames(const Json& list, const std::string& path, std::set<std::string>& seen,
                Findings& findings) {
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name = Text(list[i], {"name"});
    const std::string at = fmt::format("{}[{}].name", path, i);
    if (!IsDnsLabel(name)) {
      findings.Refuse(at, fmt::format("\"{}\" {}", name, kDnsLabelRule));
    } else if (!seen.insert(name).second) {
      findings.Refuse(at, fmt::format("{} stands twice", name));
    }
  }
}

// Whole devices cannot be promised to more than one.
bool IsExtended(std::string_view resource) {
  return resource.find('/') != std::string_view::npos &&
         resource.find("kubernetes.io/") == std::string_view::npos;
}

void CheckResources(const Json& container, const std::string& path, Findings& findings) {
  const Json* requests = Get(container, {"resources", "requests"});
  const Json* limits = Get(container, {"resources", "limits"});
  const auto amount = [](const Json* list, const std::string& resource) -> Result<int64_t> {
    const Json* value = list == nullptr ? nullptr : Get(*list, {resource});
    if (value == nullptr) return Fail(ErrorCode::kNotFound, "");
    return api::ParseAmount(resource,
                            value->is_string() ? value->get<std::string>() : Dump(*value));
  };
  std::set<std::string> resources;
  for (const Json* list : {requests, limits}) {
    if (list == nullptr || !list->is_object()) continue;
    for (const auto& [resource, value] : list->items()) resources.insert(resource);
  }
  for (const std::string& resource : resources) {
    const Result<int64_t> request = amount(requests, resource);
    const Result<int64_t> limit = amount(limits, resource);
    const std::string at = fmt::format("{}.resources.requests[{}]", path, resource);
    if ((request && *request < 0) || (limit && *limit < 0)) {
      findings.Refuse(at, "is negative");
    } else if (request && limit && *request > *limit) {
      findings.Refuse(at, "is more than its limit");
    } else if (IsExtended(resource) && request && (!limit || *request != *limit)) {
      findings.Refuse(at, "must be the same as its limit: such a resource is not shared");
    }
  }
}

void CheckPorts(const Json& container, const std::string& path, Findings& findings) {
  const Json& ports = List(container, {"ports"});
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string at = fmt::format("{}.ports[{}]", path, i);
    const int64_t port = Number(ports[i], {"containerPort"}, 0);
    if (port < 1 || port > kLargestPort) {
      findings.Refuse(at + ".containerPort",
                      fmt::format("{} is no port from 1 to {}", port, kLargestPort));
    }
    CheckWord(ports[i], "protocol", at, {"TCP", "UDP", "SCTP"}, findings);
  }
}

void CheckMounts(const Json& container, const std::string& path,
                 const std::set<std::string>& volumes, Findings& findings) {
  const Json& mounts = List(container, {"volumeMounts"});
  std::set<std::string> places;
  for (size_t i = 0; i < mounts.size(); ++i) {
    const std::string at = fmt::format("{}.volumeMounts[{}]", path, i);
    const std::string name = Text(mounts[i], {"name"});
    const std::string place = Text(mounts[i], {"mountPath"});
    if (!volumes.contains(name)) {
      findings.Refuse(at + ".name", fmt::format("there is no volume \"{}\" in spec.volumes", name));
    }
    if (place.empty()) {
      findings.Refuse(at + ".mountPath", "is missing");
    } else if (!places.insert(place).second) {
      findings.Refuse(at + ".mountPath", fmt::format("{} stands twice", place));
    }
  }
}

void CheckContainers(const Json& spec, const std::string& path, Findings& findings) {
  if (List(spec, {"containers"}).empty()) {
    findings.Refuse(path + ".containers", "a pod needs at least one container");
  }
  std::set<std::string> volumes;
  CheckNames(List(spec, {"volumes"}), path + ".volumes", volumes, findings);
  std::set<std::string> seen;
  for (const char* list : {"containers", "initContainers"}) {
    const Json& containers = List(spec, {list});
    const std::string at = fmt::format("{}.{}", path, list);
    CheckNames(containers, at, seen, findings);
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::string each = fmt::format("{}[{}]", at, i);
      if (Text(containers[i], {"image"}).empty()) {
        findings.Refuse(each + ".image", "is missing");
      }
      CheckWord(containers[i], "imagePullPolicy", each, {"Always", "IfNotPresent", "Never"},
                findings);
      CheckResources(containers[i], each, findings);
      CheckPorts(containers[i], each, findings);
      CheckMounts(containers[i], each, volumes, findings);
    }
  }
}

}  // namespace

void CheckTemplate(const Json* pod_template, const std::string& path, Findings& findings) {
  const Json* spec = pod_template == nullptr ? nullptr : Get(*pod_template, {"spec"});
  if (spec == nullptr || !spec->is_object()) {
    findings.Refuse(path + ".spec", "is missing: the pods that are made of it");
    return;
  }
  // The types of the fields that a scheduler reads.
  const Json pod = MakePod(pod_template, "default", "pod", Json::object());
  if (const Result<api::Decoded> decoded = api::DecodeObject(Dump(pod)); !decoded) {
    const std::string& message = decoded.error().message;
    const size_t colon = std::min(message.find(": "), message.size());
    findings.Refuse(fmt::format("{}.{}", path, message.substr(0, colon)),
                    message.substr(std::min(colon + 2, message.size())));
    return;
  }
  const std::string at = path + ".spec";
  CheckContainers(*spec, at, findings);
  CheckWord(*spec, "restartPolicy", at, {"Always", "OnFailure", "Never"}, findings);
  CheckWord(*spec, "dnsPolicy", at, {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
            findings);
  if (Number(*spec, {"terminationGracePeriodSeconds"}, 0) < 0) {
    findings.Refuse(at + ".terminationGracePeriodSeconds", "is negative");
  }
  if (Number(*spec, {"activeDeadlineSeconds"}, 1) < 1) {
    findings.Refuse(at + ".activeDeadlineSeconds", "must be above zero");
  }
}

}  // namespace hopwise::control
