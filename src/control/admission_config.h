// The file of --admission-conf: what is put into pods by the group that they belong to. Volcano's
// format (pkg/webhooks/config); every key is explained in docs/reference/webhook.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/json.h"

namespace hopwise::control {

// Pods without an `object` of their own belong to the group that this annotation names.
inline constexpr std::string_view kResourceGroupKey = "volcano.sh/resource-group";

struct ResourceGroup {
  std::string name;
  // A pod belongs to it if its namespace is one of these, or one of these annotations is on it.
  std::vector<std::string> namespaces;
  std::vector<std::pair<std::string, std::string>> annotations;
  std::string scheduler_name;  // "": the pod's stays
  Json node_selector = Json::object();
  Json affinity;  // null: none
  Json tolerations = Json::array();
};

struct AdmissionConfig {
  std::vector<ResourceGroup> groups;  // the first that fits counts
};

struct AdmissionConfigReport {
  AdmissionConfig config;
  std::vector<std::string> errors;    // with one the file cannot be used
  std::vector<std::string> warnings;  // what it has and nobody reads
};

// Errors name the path ("resourceGroups[1].object.key: …") or, of what is not YAML, the line. Text
// without a document is a configuration without groups.
AdmissionConfigReport ReadAdmissionConfig(std::string_view text);

// The group of a pod in namespace `ns`, or nullptr.
const ResourceGroup* GroupOfPod(const AdmissionConfig& config, const Json& pod,
                                std::string_view ns);

}  // namespace hopwise::control
