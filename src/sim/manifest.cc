#include "sim/manifest.h"

#include <array>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "api/decode.h"
#include "base/quantity.h"
#include "sim/apps.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

Status CheckOperation(const Json& object) {
  const std::string operation = Annotation(object, kSimulateKey);
  for (const char* known : {"", "apply", "update", "delete", "recreate"}) {
    if (operation == known) {
      return {};
    }
  }
  return Invalid(fmt::format("metadata.annotations[{}]: '{}' is none of delete, recreate, update",
                             kSimulateKey, operation));
}

Status CheckRunTime(const Json& pod, const std::string& path) {
  const std::string text = Annotation(pod, kRunTimeKey);
  if (Get(pod, {"metadata", "annotations", kRunTimeKey}) == nullptr) {
    return {};
  }
  const Result<Duration> parsed = ParseGoDuration(text);
  if (parsed && parsed->ns >= 0) {
    return {};
  }
  return Invalid(fmt::format("{}metadata.annotations[{}]: {}", path, kRunTimeKey,
                             parsed ? "must not be negative" : parsed.error().message));
}

Status CheckCount(const Json& object, Path path, std::string_view shown) {
  const Json* value = Get(object, path);
  if (value == nullptr || value->is_null()) {
    return {};
  }
  if (!value->is_number_integer()) {
    return Invalid(fmt::format("{}: must be a whole number, is {}", shown, Dump(*value)));
  }
  const int64_t count = Number(object, path, 0);
  if (count < 0) {
    return Invalid(fmt::format("{}: must not be negative, is {}", shown, count));
  }
  if (count > kMaxPodsPerWorkload) {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("{}: {} pods; the simulator makes at most {} of one object", shown,
                            count, kMaxPodsPerWorkload));
  }
  return {};
}

Status CheckVcJob(const Json& job) {
  const Json& specs = List(job, {"spec", "tasks"});
  int64_t pods = 0;
  std::set<std::string> names;
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string path = fmt::format("spec.tasks[{}]", i);
    if (Status status = CheckCount(specs[i], {"replicas"}, path + ".replicas"); !status) {
      return status;
    }
  }
  for (const VcTask& task : VcTasks(job)) {
    pods = SaturatingAdd(pods, task.replicas);
    if (!names.insert(task.name).second) {
      return Invalid(fmt::format("spec.tasks: two tasks are called '{}'", task.name));
    }
  }
  if (pods > kMaxPodsPerWorkload) {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("spec.tasks: {} pods; the simulator makes at most {} of one object",
                            pods, kMaxPodsPerWorkload));
  }
  return {};
}

Status CheckLws(const Json& lws) {
  if (Status status = CheckCount(lws, {"spec", "replicas"}, "spec.replicas"); !status) {
    return status;
  }
  if (Status status = CheckCount(lws, {"spec", "leaderWorkerTemplate", "size"},
                                 "spec.leaderWorkerTemplate.size");
      !status) {
    return status;
  }
  const int64_t pods = SaturatingMul(Replicas(lws, {"spec", "replicas"}, 1), LwsSize(lws));
  if (pods > kMaxPodsPerWorkload) {
    return Fail(
        ErrorCode::kTooLarge,
        fmt::format("spec.replicas: {} pods in all; the simulator makes at most {} of one object",
                    pods, kMaxPodsPerWorkload));
  }
  return {};
}

Status CheckReplicas(const Key& key, const Json& object) {
  if (key.group == kVolcanoBatch && key.kind == "Job") {
    return CheckVcJob(object);
  }
  if (key.group == kLws && key.kind == "LeaderWorkerSet") {
    return CheckLws(object);
  }
  if (key.group == kBatch && key.kind == "Job") {
    return CheckCount(object, {"spec", "parallelism"}, "spec.parallelism");
  }
  if (key.group == kApps && key.kind != "DaemonSet") {
    return CheckCount(object, {"spec", "replicas"}, "spec.replicas");
  }
  return {};
}

// What is no map would be lost when pods are made of the template.
Status CheckTemplateMeta(const TemplateAt& at) {
  const Json* meta = Get(*at.pod_template, {"metadata"});
  if (meta == nullptr || meta->is_null()) {
    return {};
  }
  if (!meta->is_object()) {
    return Invalid(at.path + ".metadata: expected an object");
  }
  for (const char* field : {"labels", "annotations"}) {
    const Json* map = Get(*meta, {field});
    if (map != nullptr && !map->is_null() && !map->is_object()) {
      return Invalid(fmt::format("{}.metadata.{}: expected an object", at.path, field));
    }
  }
  return {};
}

// Fields and annotations that decide what is made of a workload, and that only its controller
// reads.
Status CheckControls(const Key& key, const Json& object) {
  const Json* suspend = Get(object, {"spec", "suspend"});
  if (key.group == kBatch && suspend != nullptr && !suspend->is_null() && !suspend->is_boolean()) {
    return Invalid("spec.suspend: expected true or false");
  }
  const Json* policy = Get(object, {"spec", "podManagementPolicy"});
  if (key.kind == "StatefulSet" && policy != nullptr && !policy->is_null() &&
      *policy != "Parallel" && *policy != "OrderedReady") {
    return Invalid("spec.podManagementPolicy: expected Parallel or OrderedReady");
  }
  const std::string minimum = Annotation(object, kMinMemberKey);
  if (!minimum.empty() && !IsCount(minimum)) {
    return Invalid(fmt::format("metadata.annotations[\"{}\"]: \"{}\" is no number of pods",
                               kMinMemberKey, minimum));
  }
  return {};
}

Status CheckTemplates(const Json& object) {
  for (const TemplateAt& at : TemplatesOf(object)) {
    if (Status status = CheckRunTime(*at.pod_template, at.path + "."); !status) {
      return status;
    }
    if (Status status = CheckTemplateMeta(at); !status) {
      return status;
    }
    // No owner: its missing uid would be a fault of the sample, not of the manifest.
    Json pod = MakePod(at.pod_template, "default", "sample", object);
    Unset(pod, {"metadata", "ownerReferences"});
    if (const Result<api::Decoded> decoded = api::DecodeObject(Dump(pod)); !decoded) {
      return Invalid(at.path + "." + decoded.error().message);
    }
  }
  return {};
}

// Namespaced objects live in "default" unless they say otherwise; a namespace on the others is
// dropped, as kubectl does.
void PutInNamespace(Json& object) {
  const bool cluster =
      IsClusterScoped(GroupOf(Text(object, {"apiVersion"})), Text(object, {"kind"}));
  if (cluster) {
    Unset(object, {"metadata", "namespace"});
  } else if (const Json* ns = Get(object, {"metadata", "namespace"});
             ns == nullptr || ns->is_null() || (ns->is_string() && Namespace(object).empty())) {
    Set(object, {"metadata", "namespace"}, "default");
  }
}

// What is well-formed but will surprise its author.
void WarnAbout(const Json& object, const Key& key, const std::string& where, Manifest& manifest) {
  const auto warn = [&](std::string_view text) {
    manifest.warnings.push_back(fmt::format("{}: {}", where, text));
  };
  const bool has_templates = !TemplatesOf(object).empty();
  if (key.kind == "DaemonSet" && key.group == kApps) {
    warn("DaemonSets are not expanded; give their pods themselves where they take room");
  }
  if (has_templates && !Annotation(object, kRunTimeKey).empty()) {
    warn(fmt::format("{} has no effect here; it belongs to the pod template", kRunTimeKey));
  }
  if (Annotation(object, kSimulateKey) == "recreate" &&
      (key.kind != "Pod" || ControllerOf(object) != nullptr)) {
    warn(fmt::format("{}: recreate is for pods without a controller only", kSimulateKey));
  }
}

bool TakesPart(const api::Decoded& decoded) {
  // The last is what a scheduler adds to its dump, for people to read.
  return !std::holds_alternative<api::Unknown>(decoded.object) || decoded.kind == "Event" ||
         (decoded.api_version == "hopwise.dev/v1" && decoded.kind == "SchedulerState");
}

void AddDocument(const Origin& origin, const api::Document& document, Manifest& manifest) {
  const auto complain = [&](const std::string& object, const std::string& message) {
    manifest.problems.push_back({origin, object, message});
  };
  if (!document.error.empty()) {
    complain("", document.error);
    return;
  }
  Result<Json> parsed = ParseJson(document.json);
  if (!parsed || !parsed->is_object()) {
    complain("", parsed ? "is not an object" : parsed.error().message);
    return;
  }
  Json object = std::move(*parsed);
  const bool named = !Name(object).empty() && !Text(object, {"kind"}).empty();
  if (named) {
    PutInNamespace(object);
  }
  const std::string shown = named ? Describe(object) : "";
  const bool remove = Annotation(object, kSimulateKey) == "delete";
  const Result<api::Decoded> decoded = api::DecodeObject(Dump(object));
  // What is deleted need not be whole: its name is enough.
  if (!decoded && !(remove && named)) {
    complain(shown, decoded.error().message);
    return;
  }
  if (Status status = remove ? Status() : CheckObject(object); !status) {
    complain(shown, status.error().message);
    return;
  }
  const Key key = KeyOf(object);
  const std::string where = ToText({origin, shown, ""});
  if (decoded) {
    for (const std::string& warning : decoded->warnings) {
      manifest.warnings.push_back(fmt::format("{}: {}", where, warning));
    }
    if (!TakesPart(*decoded)) {
      ++manifest.other_kinds[key.kind];
    }
  }
  WarnAbout(object, key, where, manifest);
  manifest.objects.push_back({origin, key, std::move(object), remove});
}

}  // namespace

std::string ToText(const Problem& problem) {
  std::string text = problem.origin.file;
  if (problem.origin.document > 0) {
    text += fmt::format(": document {}", problem.origin.document);
    if (problem.origin.item > 0) {
      text += fmt::format(", item {}", problem.origin.item);
    }
    text += fmt::format(" (line {})", problem.origin.line);
  }
  if (!problem.object.empty()) {
    text += ", " + problem.object;
  }
  return problem.message.empty() ? text : text + ": " + problem.message;
}

Status CheckObject(const Json& object) {
  if (Status status = CheckOperation(object); !status) {
    return status;
  }
  const Key key = KeyOf(object);
  if (key.kind == "Pod" && key.group.empty()) {
    return CheckRunTime(object, "");
  }
  if (Status status = CheckReplicas(key, object); !status) {
    return status;
  }
  if (Status status = CheckControls(key, object); !status) {
    return status;
  }
  return CheckTemplates(object);
}

void AddManifest(std::string_view file, std::string_view text, Manifest& manifest) {
  for (const api::Document& document : api::SplitDocuments(text)) {
    AddDocument({std::string(file), document.index, document.item, document.line}, document,
                manifest);
  }
}

void FinishManifest(Manifest& manifest) {
  std::map<Key, size_t> last;
  std::vector<bool> superseded(manifest.objects.size(), false);
  for (size_t i = 0; i < manifest.objects.size(); ++i) {
    const auto [at, fresh] = last.try_emplace(manifest.objects[i].key, i);
    if (fresh) {
      continue;
    }
    const ManifestObject& first = manifest.objects[at->second];
    const ManifestObject& next = manifest.objects[i];
    manifest.warnings.push_back(fmt::format("{}: given before ({}); the last one counts",
                                            ToText({next.origin, Describe(next.object), ""}),
                                            ToText({first.origin, "", ""})));
    superseded[at->second] = true;
    at->second = i;
  }
  std::vector<ManifestObject> kept;
  kept.reserve(last.size());
  for (size_t i = 0; i < manifest.objects.size(); ++i) {
    if (!superseded[i]) {
      kept.push_back(std::move(manifest.objects[i]));
    }
  }
  manifest.objects = std::move(kept);
  if (manifest.other_kinds.empty()) {
    return;
  }
  std::string list;
  for (const auto& [kind, count] : manifest.other_kinds) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", kind, count);
  }
  manifest.warnings.push_back("kinds that take no part in scheduling: " + list);
}

}  // namespace hopwise::sim
