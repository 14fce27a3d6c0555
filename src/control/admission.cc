#include "control/admission.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "control/admission_rules.h"
#include "control/store.h"

namespace hopwise::control {
namespace {

constexpr std::string_view kReviewVersion = "admission.k8s.io/v1";
constexpr std::string_view kVolcanoFlow = "flow.volcano.sh";
// Kubernetes sends warnings as headers and cuts them where they are many.
constexpr size_t kMostWarnings = 10;
// A message stands in a status and in Events.
constexpr size_t kMostProblems = 20;

constexpr std::array<AdmissionService, 11> kServices = {{
    {"/cronjobs/validate", kVolcanoBatch, "cronjobs", "CREATE UPDATE", &AdmitCronJob},
    {"/hypernodes/validate", kVolcanoTopology, "hypernodes", "CREATE UPDATE", &AdmitHyperNode},
    {"/jobflows/validate", kVolcanoFlow, "jobflows", "CREATE UPDATE", &AdmitJobFlow},
    {"/jobs/mutate", kVolcanoBatch, "jobs", "CREATE", nullptr, &FillJob},
    {"/jobs/validate", kVolcanoBatch, "jobs", "CREATE UPDATE", &AdmitJob},
    {"/podgroups/mutate", kVolcanoScheduling, "podgroups", "CREATE", nullptr, &FillPodGroup},
    {"/podgroups/validate", kVolcanoScheduling, "podgroups", "CREATE UPDATE", &AdmitPodGroup},
    {"/pods/mutate", "", "pods", "CREATE", nullptr, &FillPod},
    {"/pods/validate", "", "pods", "CREATE", &AdmitPod},
    {"/queues/mutate", kVolcanoScheduling, "queues", "CREATE", nullptr, &FillQueue},
    {"/queues/validate", kVolcanoScheduling, "queues", "CREATE UPDATE DELETE", &AdmitQueue},
}};

std::string NameOf(std::string_view resource, std::string_view group) {
  return group.empty() ? std::string(resource) : fmt::format("{}.{}", resource, group);
}

// All of them while they are few.
std::vector<std::string> AtMost(std::vector<std::string> lines, size_t most) {
  if (lines.size() > most) {
    const size_t more = lines.size() - most;
    lines.resize(most);
    lines.push_back(fmt::format("and {} more", more));
  }
  return lines;
}

bool IsServed(const AdmissionService& service, const AdmissionRequest& request) {
  // No operation's name is a part of another's.
  return request.subresource.empty() && !request.operation.empty() &&
         service.operations.find(request.operation) != std::string_view::npos;
}

}  // namespace

void Findings::Refuse(std::string_view path, std::string_view why) {
  problems_.push_back(fmt::format("{}: {}", path, why));
}

void Findings::Warn(std::string_view path, std::string_view what) {
  warnings_.push_back(fmt::format("{}: {}", path, what));
}

Result<AdmissionRequest> ReadReview(std::string_view text) {
  Result<Json> review = ParseJson(text);
  if (!review) {
    return Fail(review.error().code, "the body " + review.error().message);
  }
  const std::string version = Text(*review, {"apiVersion"});
  const std::string kind = Text(*review, {"kind"});
  if (kind != "AdmissionReview" || version != kReviewVersion) {
    return Invalid(
        fmt::format("the body is no AdmissionReview of {}: its kind is \"{}\", its apiVersion "
                    "\"{}\"; set admissionReviewVersions: [v1]",
                    kReviewVersion, kind, version));
  }
  const auto found = review->find("request");
  if (found == review->end() || !found->is_object()) {
    return Invalid("the AdmissionReview has no request");
  }
  Json& from = *found;
  AdmissionRequest request;
  request.uid = Text(from, {"uid"});
  request.operation = Text(from, {"operation"});
  request.ns = Text(from, {"namespace"});
  request.name = Text(from, {"name"});
  request.group = Text(from, {"resource", "group"});
  request.resource = Text(from, {"resource", "resource"});
  request.subresource = Text(from, {"subResource"});
  if (request.uid.empty() || request.operation.empty() || request.resource.empty()) {
    return Invalid("the AdmissionReview's request lacks its uid, operation or resource");
  }
  constexpr std::array<std::string_view, 4> kOperations = {"CREATE", "UPDATE", "DELETE", "CONNECT"};
  if (std::ranges::find(kOperations, std::string_view(request.operation)) == kOperations.end()) {
    return Invalid("the AdmissionReview's operation is none of CREATE, UPDATE, DELETE, CONNECT");
  }
  const std::pair<const char*, Json*> parts[] = {{"object", &request.object},
                                                 {"oldObject", &request.old_object}};
  for (const auto& [key, into] : parts) {
    if (const auto at = from.find(key); at != from.end()) *into = std::move(*at);
  }
  const bool connects = request.operation == "CONNECT";
  const bool wants_old = request.deletes() || request.operation == "UPDATE";
  const char* const missing = !connects && !request.deletes() && !request.object.is_object()
                                  ? "object"
                              : wants_old && !request.old_object.is_object() ? "oldObject"
                                                                             : nullptr;
  if (missing != nullptr) {
    return Invalid(fmt::format("the AdmissionReview's request lacks its {}", missing));
  }
  return request;
}

std::span<const AdmissionService> AdmissionServices() { return kServices; }

const AdmissionService* FindAdmissionService(std::string_view path) {
  const auto* at = std::ranges::find(kServices, path, &AdmissionService::path);
  return at == kServices.end() ? nullptr : at;
}

std::string Mismatch(const AdmissionService& service, const AdmissionRequest& request) {
  if (request.group == service.group && request.resource == service.resource) return "";
  return fmt::format("{} judges {}, and the request is about {}; correct the webhook's rules",
                     service.path, NameOf(service.resource, service.group),
                     NameOf(request.resource, request.group));
}

AdmissionAnswer Admit(const AdmissionService& service, const AdmissionRequest& request,
                      const AdmissionContext& context) {
  AdmissionAnswer answer;
  answer.uid = request.uid;
  if (!IsServed(service, request)) return answer;
  if (service.fill != nullptr) {
    Json filled = request.object;
    service.fill(request, context, filled);
    answer.patch = Json::diff(request.object, filled);
    return answer;
  }
  Findings findings;
  service.judge(request, context, findings);
  answer.warnings = AtMost(findings.warnings(), kMostWarnings);
  answer.missed_queues = findings.missed_queues();
  if (!findings.problems().empty()) {
    answer.allowed = false;
    answer.code = request.deletes() ? 403 : 422;
    answer.message = fmt::format("{}", fmt::join(AtMost(findings.problems(), kMostProblems), "; "));
  }
  return answer;
}

std::string ReviewText(const AdmissionAnswer& answer,
                       const std::function<std::string(std::string_view)>& base64) {
  Json response = {{"uid", answer.uid}, {"allowed", answer.allowed}};
  if (!answer.allowed) {
    response["status"] = {{"status", "Failure"},
                          {"code", answer.code},
                          {"reason", answer.code == 403 ? "Forbidden" : "Invalid"},
                          {"message", answer.message}};
  }
  if (!answer.warnings.empty()) response["warnings"] = answer.warnings;
  if (!answer.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = base64(Dump(answer.patch));
  }
  return Dump({{"apiVersion", kReviewVersion},
               {"kind", "AdmissionReview"},
               {"response", std::move(response)}});
}

}  // namespace hopwise::control
