#include "daemon/admission_desk.h"

#include <utility>
#include <variant>

#include "base/log.h"
#include "control/expand.h"
#include "daemon/webhook_metrics.h"
#include "kube/credentials.h"
#include "rt/clock.h"

namespace hopwise::daemon {
namespace {

constexpr double kNsPerMs = 1e6;

server::HttpResponse Sentence(int status, std::string text) {
  server::HttpResponse response;
  response.status = status;
  response.body = std::move(text) + "\n";
  return response;
}

std::string_view VerdictOf(const control::AdmissionAnswer& answer) {
  if (!answer.allowed) return "refused";
  return answer.warnings.empty() ? "allowed" : "warned";
}

}  // namespace

AdmissionDesk::AdmissionDesk(control::AdmissionSettings settings, server::Metrics& metrics)
    : metrics_(metrics), settings_(std::move(settings)) {
  view_.faults_brought_by = [this](const api::HyperNode& next) {
    const std::lock_guard lock(fabric_mutex_);
    return fabric_.FaultsBroughtBy(next);
  };
}

void AdmissionDesk::SetKnowsTimeZone(std::function<bool(const std::string&)> knows) {
  view_.knows_time_zone = std::move(knows);
}

void AdmissionDesk::SetConfig(control::AdmissionConfig config) {
  const std::unique_lock lock(mutex_);
  settings_.config = std::move(config);
}

void AdmissionDesk::Observe(const kube::Resource& resource,
                            std::vector<kube::WatchEvent>&& events) {
  if (resource == kube::kNodes || resource == kube::kHyperNodes) {
    const std::lock_guard lock(fabric_mutex_);
    for (kube::WatchEvent& event : events) ObserveOne(resource, std::move(event));
  } else {
    const std::unique_lock lock(mutex_);
    for (kube::WatchEvent& event : events) ObserveOne(resource, std::move(event));
  }
}

void AdmissionDesk::ObserveOne(const kube::Resource& resource, kube::WatchEvent&& event) {
  const bool deleted = event.type == kube::WatchEvent::Type::kDeleted;
  const api::ObjectMeta& meta = api::MetaOf(event.decoded.object);
  if (resource == kube::kNodes) {
    if (deleted) {
      fabric_.RemoveNode(meta.name);
    } else {
      fabric_.UpsertNode(meta.name, meta.labels);
    }
  } else if (resource == kube::kHyperNodes) {
    const auto* object = std::get_if<api::HyperNode>(&event.decoded.object);
    if (deleted) {
      fabric_.RemoveHyperNode(meta.name);
    } else if (object != nullptr) {
      fabric_.UpsertHyperNode(*object);
    }
  } else if (resource == kube::kQueues) {
    auto* object = std::get_if<api::Queue>(&event.decoded.object);
    if (deleted) {
      view_.queues.erase(meta.name);
    } else if (object != nullptr) {
      const std::string name = meta.name;
      view_.queues[name] = std::move(*object);
    }
  } else if (resource == kube::kNamespaces) {
    const std::string* queue =
        deleted ? nullptr : api::Find(meta.annotations, control::kQueueNameKey);
    if (queue == nullptr || queue->empty()) {
      view_.namespace_queues.erase(meta.name);
    } else {
      view_.namespace_queues[meta.name] = *queue;
    }
  }
}

control::AdmissionAnswer AdmissionDesk::Judge(const control::AdmissionService& service,
                                              const control::AdmissionRequest& request) {
  std::optional<control::AdmissionAnswer> answer;
  {
    const std::shared_lock lock(mutex_);
    answer = control::Admit(service, request, {settings_, view_});
  }
  // What was made a moment ago may not have been seen yet; who applies a file of a queue and its
  // jobs does not wait in between.
  std::vector<api::Queue> found;
  if (fetch_queue_ != nullptr) {
    for (const std::string& name : answer->missed_queues) {
      if (std::optional<api::Queue> queue = fetch_queue_(name)) found.push_back(std::move(*queue));
    }
  }
  if (found.empty()) return std::move(*answer);
  const std::shared_lock lock(mutex_);
  control::AdmissionView younger = view_;
  for (api::Queue& queue : found) {
    const std::string name = queue.meta.name;
    younger.queues.emplace(name, std::move(queue));
  }
  return control::Admit(service, request, {settings_, younger});
}

server::HttpResponse AdmissionDesk::AnswerReview(const control::AdmissionService& service,
                                                 const server::HttpRequest& request,
                                                 std::string& operation, std::string& verdict) {
  verdict = "bad_request";
  if (request.method != "POST") {
    return Sentence(405, "Send an AdmissionReview by POST.");
  }
  const Result<control::AdmissionRequest> review = control::ReadReview(request.body);
  if (!review) {
    return Sentence(400, review.error().message);
  }
  operation = review->operation;
  if (const std::string mismatch = control::Mismatch(service, *review); !mismatch.empty()) {
    return Sentence(400, mismatch);
  }
  if (!synced_) {
    verdict = "not_ready";
    return Sentence(503, "The cluster was not seen in full yet; ask again in a moment.");
  }
  const control::AdmissionAnswer answer = Judge(service, *review);
  verdict = VerdictOf(answer);
  if (!answer.allowed) {
    Log(LogLevel::kDebug, "admission_refused",
        {{"path", service.path},
         {"namespace", review->ns},
         {"name", review->name},
         {"why", answer.message}});
  }
  server::HttpResponse response;
  response.content_type = "application/json";
  response.body = control::ReviewText(answer, &kube::EncodeBase64);
  return response;
}

server::HttpResponse AdmissionDesk::Answer(const control::AdmissionService& service,
                                           const server::HttpRequest& request) {
  const Time start = rt::MonotonicNow();
  std::string operation;
  std::string verdict;
  server::HttpResponse response = AnswerReview(service, request, operation, verdict);
  metrics_.Count(
      kAdmissionReviews, 1,
      {{"path", std::string(service.path)}, {"operation", operation}, {"verdict", verdict}});
  metrics_.Observe(kAdmissionDuration,
                   static_cast<double>((rt::MonotonicNow() - start).ns) / kNsPerMs,
                   {{"resource", std::string(service.resource)}, {"verdict", verdict}});
  return response;
}

}  // namespace hopwise::daemon
