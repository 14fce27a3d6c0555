// What is filled into a Job, so that whoever reads it finds what it means.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/quantity.h"
#include "control/admission_rules.h"
#include "control/vcjob.h"

namespace hopwise::control {
namespace {

constexpr int64_t kMaxRetry = 3;
// Kubernetes' defaults of a pod (pkg/apis/core/v1/defaults.go).
constexpr int64_t kGracePeriodS = 30;
constexpr std::string_view kTerminationPath = "/dev/termination-log";

// Where the field is absent or null.
void Default(Json& object, const char* key, Json value) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) object[key] = std::move(value);
}

void DefaultText(Json& object, const char* key, std::string_view value) {
  if (Text(object, {key}).empty() &&
      (!object.contains(key) || object[key].is_null() || object[key].is_string())) {
    object[key] = std::string(value);
  }
}

// "latest" may be another image tomorrow.
std::string_view PullPolicyOf(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const size_t slash = image.rfind('/');
  const size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
  const bool latest = colon == std::string_view::npos || image.substr(colon + 1) == "latest";
  return latest ? "Always" : "IfNotPresent";
}

void FillContainer(Json& container) {
  if (!container.is_object()) return;
  DefaultText(container, "imagePullPolicy", PullPolicyOf(Text(container, {"image"})));
  DefaultText(container, "terminationMessagePath", kTerminationPath);
  DefaultText(container, "terminationMessagePolicy", "File");
  Default(container, "resources", Json::object());
  if (const auto ports = container.find("ports"); ports != container.end() && ports->is_array()) {
    for (Json& port : *ports) {
      if (port.is_object()) DefaultText(port, "protocol", "TCP");
    }
  }
  // A limit without a request is one, too.
  const Json* limits = Get(container, {"resources", "limits"});
  if (limits == nullptr || !limits->is_object()) return;
  const Json given = *limits;
  for (const auto& [resource, amount] : given.items()) {
    if (Get(container, {"resources", "requests", resource}) == nullptr) {
      Set(container, {"resources", "requests", resource}, amount);
    }
  }
}

// --- tasks

// So many of the plugins need svc, so that the pods find each other; mpi needs ssh besides.
void FillPlugins(Json& spec) {
  const Json* plugins = Get(spec, {"plugins"});
  if (plugins == nullptr || !plugins->is_object()) return;
  const auto has = [plugins](const char* name) { return plugins->contains(name); };
  constexpr std::array<const char*, 4> kSpread = {"tensorflow", "mpi", "pytorch", "ray"};
  const bool svc = std::ranges::any_of(kSpread, has) && !has("svc");
  const bool ssh = has("mpi") && !has("ssh");
  if (svc) spec["plugins"]["svc"] = Json::array();
  if (ssh) spec["plugins"]["ssh"] = Json::array();
}

void FillTask(const VcTask& read, Json& task) {
  DefaultText(task, "name", read.name);
  Default(task, "replicas", read.replicas);
  Default(task, "minAvailable", read.min_available);
  Default(task, "maxRetry", kMaxRetry);
  if (const auto at = task.find("template"); at != task.end() && at->is_object()) {
    FillTemplate(*at);
  }
}

}  // namespace

void FillTemplate(Json& pod_template) {
  const auto at = pod_template.find("spec");
  if (at == pod_template.end() || !at->is_object()) return;
  Json& spec = *at;
  const bool host = Flag(spec, {"hostNetwork"}, false);
  DefaultText(spec, "dnsPolicy", host ? "ClusterFirstWithHostNet" : "ClusterFirst");
  DefaultText(spec, "restartPolicy", "Always");
  Default(spec, "terminationGracePeriodSeconds", kGracePeriodS);
  for (const char* list : {"initContainers", "containers"}) {
    const auto containers = spec.find(list);
    if (containers == spec.end() || !containers->is_array()) continue;
    for (Json& container : *containers) FillContainer(container);
  }
}

void FillJob(const AdmissionRequest& /*request*/, const AdmissionContext& context, Json& job) {
  const std::vector<VcTask> read = VcTasks(job);
  const int64_t minimum = VcMinAvailable(job, read);
  Json& spec = Member(job, "spec");
  DefaultText(spec, "queue", context.settings.default_queue);
  DefaultText(spec, "schedulerName", context.settings.scheduler_names.front());
  Default(spec, "maxRetry", kMaxRetry);
  // 0 is what a program writes that has none to tell.
  if (SamePart(spec, {{"minAvailable", 0}}, {"minAvailable"})) Unset(spec, {"minAvailable"});
  Default(spec, "minAvailable", minimum);
  FillPlugins(spec);
  if (const auto tasks = spec.find("tasks"); tasks != spec.end() && tasks->is_array()) {
    for (size_t i = 0; i < tasks->size(); ++i) {
      if ((*tasks)[i].is_object()) FillTask(read[i], (*tasks)[i]);
    }
  }
}

}  // namespace hopwise::control
