// The rules behind the services of admission.h, kind by kind, and what several of them share.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/decode.h"
#include "control/admission.h"

namespace hopwise::control {

// --- the services; each lies in the file of its kind (admit_job.cc, …)

void FillJob(const AdmissionRequest& request, const AdmissionContext& context, Json& job);
void AdmitJob(const AdmissionRequest& request, const AdmissionContext& context, Findings& findings);
void FillQueue(const AdmissionRequest& request, const AdmissionContext& context, Json& queue);
void AdmitQueue(const AdmissionRequest& request, const AdmissionContext& context,
                Findings& findings);
void FillPodGroup(const AdmissionRequest& request, const AdmissionContext& context, Json& group);
void AdmitPodGroup(const AdmissionRequest& request, const AdmissionContext& context,
                   Findings& findings);
void FillPod(const AdmissionRequest& request, const AdmissionContext& context, Json& pod);
void AdmitPod(const AdmissionRequest& request, const AdmissionContext& context, Findings& findings);
void AdmitHyperNode(const AdmissionRequest& request, const AdmissionContext& context,
                    Findings& findings);
void AdmitCronJob(const AdmissionRequest& request, const AdmissionContext& context,
                  Findings& findings);
void AdmitJobFlow(const AdmissionRequest& request, const AdmissionContext& context,
                  Findings& findings);

// --- parts

// All rules for a Job that is new. Paths begin with `prefix`, such as "spec.jobTemplate.".
void CheckNewJob(const Json& job, const std::string& prefix, const AdmissionContext& context,
                 Findings& findings);
// Kubernetes' rules for a pod template, as far as a look at it alone can tell.
void CheckTemplate(const Json* pod_template, const std::string& path, Findings& findings);
// What the API server would fill into it.
void FillTemplate(Json& pod_template);

// highestTierAllowed and highestTierName exclude each other.
void CheckTopology(const Json* topology, const std::string& path, Findings& findings);
// The queue is there and open; `leaf`: and holds jobs itself.
void CheckQueueOf(const std::string& name, const std::string& path, bool leaf,
                  const AdmissionContext& context, Findings& findings);

// "a -> b -> a", or "" when nothing depends on itself. Names that have no entry lead nowhere.
std::string CycleIn(const std::map<std::string, std::vector<std::string>>& depends_on);

// RFC 1123, as Kubernetes checks names: at most 63 and 253 characters.
bool IsDnsLabel(std::string_view text);
bool IsDnsSubdomain(std::string_view text);
inline constexpr std::string_view kDnsLabelRule =
    "must be at most 63 lower case letters, digits and '-', with a letter or digit at both ends";

// Whether a part of the object is the same as before; null, absent and empty are one.
bool SamePart(const Json& a, const Json& b, Path path);
// Names the object whose deletion has begun: only finalizers matter then.
bool IsLeaving(const Json& object);

// The typed object; where it does not decode, that is a finding, which names the field.
template <class T>
bool ReadTyped(const Json& object, Findings& findings, T& out) {
  Result<api::Decoded> decoded = api::DecodeObject(Dump(object));
  if (!decoded) {
    const std::string& message = decoded.error().message;
    const size_t colon = message.find(": ");
    const bool has_path = colon != std::string::npos;
    findings.Refuse(has_path ? message.substr(0, colon) : "object",
                    has_path ? message.substr(colon + 2) : message);
    return false;
  }
  T* typed = std::get_if<T>(&decoded->object);
  if (typed == nullptr) {
    findings.Refuse("kind", decoded->kind + " of " + decoded->api_version + " is not served here");
    return false;
  }
  out = std::move(*typed);
  return true;
}

}  // namespace hopwise::control
