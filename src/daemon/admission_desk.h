// Answers the API server's AdmissionReviews, on the HTTP server's threads, by the rules of
// control/admission.h and what was last seen of the cluster.
//
// An answer says yes or no. Whatever keeps it from judging (a body that is no review, a cluster
// that was not seen yet, a bug) is an HTTP error instead: the API server then does what the
// failurePolicy of its webhook says.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "control/admission.h"
#include "control/fabric_trial.h"
#include "kube/reflector.h"
#include "kube/resources.h"
#include "server/http_server.h"
#include "server/metrics.h"

namespace hopwise::daemon {

class AdmissionDesk {
 public:
  // Asks the API server for a queue; may wait.
  using FetchQueue = std::function<std::optional<api::Queue>(const std::string&)>;
  AdmissionDesk(control::AdmissionSettings settings, server::Metrics& metrics);
  AdmissionDesk(const AdmissionDesk&) = delete;
  AdmissionDesk& operator=(const AdmissionDesk&) = delete;

  // --- before the first request
  // For queues that are not known (yet): they may be younger than what was seen.
  void SetFetchQueue(FetchQueue fetch) { fetch_queue_ = std::move(fetch); }
  void SetKnowsTimeZone(std::function<bool(const std::string&)> knows);

  // --- from any thread
  void SetConfig(control::AdmissionConfig config);
  void Observe(const kube::Resource& resource, std::vector<kube::WatchEvent>&& events);
  // All that is looked up was seen.
  void SetSynced() { synced_ = true; }
  server::HttpResponse Answer(const control::AdmissionService& service,
                              const server::HttpRequest& request);

 private:
  void ObserveOne(const kube::Resource& resource, kube::WatchEvent&& event);
  control::AdmissionAnswer Judge(const control::AdmissionService& service,
                                 const control::AdmissionRequest& request);
  server::HttpResponse AnswerReview(const control::AdmissionService& service,
                                    const server::HttpRequest& request, std::string& operation,
                                    std::string& verdict);

  server::Metrics& metrics_;
  FetchQueue fetch_queue_;
  std::atomic<bool> synced_ = false;
  std::shared_mutex mutex_;  // of these:
  control::AdmissionSettings settings_;
  control::AdmissionView view_;
  std::mutex fabric_mutex_;  // of this; taken last
  control::FabricTrial fabric_;
};

}  // namespace hopwise::daemon
