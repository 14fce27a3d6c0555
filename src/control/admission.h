// Admission: what is filled into an object before it is stored, and what is refused or warned of,
// as pure rules. A service is one path of the webhook: Volcano's names, Volcano's rules
// (pkg/webhooks), and for HyperNodes what topology finds.
//
// What an object violates is told with the path of the field. An update is judged by what it
// changes: an object that was stored before there was a webhook can still get a label or lose a
// finalizer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch.h"
#include "base/result.h"
#include "control/admission_config.h"
#include "control/expand.h"
#include "control/json.h"
#include "topology/forest.h"

namespace hopwise::control {

inline constexpr std::string_view kOpen = "Open";

struct AdmissionSettings {
  // Of these schedulers are the pods that are judged; the first is that of a Job without one.
  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  std::string default_queue = "default";
  int max_queue_depth = 5;                // levels below root
  bool check_allocated_pods = false;      // a queue with pods gets no first child
  bool protect_root = true;               // root's resources stay as they are
  bool refuse_hyper_node_faults = false;  // else they are warnings
  bool gate_pods = false;  // inject the queue-allocation gate where a pod asks for it
  AdmissionConfig config;
};

// What the rules look up of other objects.
struct AdmissionView {
  std::map<std::string, api::Queue, std::less<>> queues;
  // By namespace: its annotation scheduling.volcano.sh/queue-name, where it has one.
  std::map<std::string, std::string, std::less<>> namespace_queues;
  // FabricTrial::FaultsBroughtBy of all HyperNodes and nodes; without it no such fault is found.
  std::function<std::vector<topology::Fault>(const api::HyperNode&)> faults_brought_by;
  // Whether the machine's database has the zone; without it every name will do.
  std::function<bool(const std::string&)> knows_time_zone;
};

struct AdmissionContext {
  const AdmissionSettings& settings;
  const AdmissionView& view;
};

// request of an AdmissionReview.
struct AdmissionRequest {
  std::string uid, operation, ns, name;
  std::string group, resource, subresource;
  Json object, old_object;  // null where there is none

  [[nodiscard]] bool creates() const { return operation == "CREATE"; }
  [[nodiscard]] bool updates() const { return operation == "UPDATE"; }
  [[nodiscard]] bool deletes() const { return operation == "DELETE"; }
};
// An AdmissionReview of admission.k8s.io/v1. The error says what is missing.
Result<AdmissionRequest> ReadReview(std::string_view text);

// What a rule found.
class Findings {
 public:
  void Refuse(std::string_view path, std::string_view why);
  void Warn(std::string_view path, std::string_view what);
  // A queue that the view does not know; a younger view may.
  void MissQueue(std::string name) { missed_queues_.push_back(std::move(name)); }

  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  [[nodiscard]] const std::vector<std::string>& missed_queues() const { return missed_queues_; }

 private:
  std::vector<std::string> problems_, warnings_, missed_queues_;
};

struct AdmissionService {
  std::string_view path;  // "/jobs/validate"
  std::string_view group, resource;
  std::string_view operations;  // "CREATE UPDATE"
  // One of the two.
  void (*judge)(const AdmissionRequest&, const AdmissionContext&, Findings&) = nullptr;
  void (*fill)(const AdmissionRequest&, const AdmissionContext&, Json& object) = nullptr;
};
// All that there are, by path.
std::span<const AdmissionService> AdmissionServices();
// nullptr when there is none.
const AdmissionService* FindAdmissionService(std::string_view path);

// "" or why a request cannot be one of this service's: it is about another resource.
std::string Mismatch(const AdmissionService& service, const AdmissionRequest& request);

struct AdmissionAnswer {
  std::string uid;
  bool allowed = true;
  int code = 200;       // of a refusal: 422, or 403 for a deletion
  std::string message;  // of a refusal: all problems
  std::vector<std::string> warnings;
  Json patch = Json::array();  // a JSON patch
  std::vector<std::string> missed_queues;
};
// An operation that the service does not judge, and a subresource, is allowed.
AdmissionAnswer Admit(const AdmissionService& service, const AdmissionRequest& request,
                      const AdmissionContext& context);

// The AdmissionReview to send back.
std::string ReviewText(const AdmissionAnswer& answer,
                       const std::function<std::string(std::string_view)>& base64);

}  // namespace hopwise::control
