#include "daemon/evictor.h"

#include <utility>

#include "api/json.h"
#include "base/log.h"

namespace hopwise::daemon {
namespace {

constexpr kube::Resource kEvictions{"", "v1", "pods/eviction", "Eviction"};

std::string EvictionBody(const ObjectName& pod) {
  return json::Dump({{"apiVersion", "policy/v1"},
                     {"kind", "Eviction"},
                     {"metadata", {{"name", pod.name}, {"namespace", pod.ns}}},
                     {"deleteOptions", {{"preconditions", {{"uid", pod.uid}}}}}});
}

}  // namespace

Evictor::Evictor(kube::Transport& transport, kube::EventRecorder& events, Remaining remaining,
                 Ended ended, Duration timeout)
    : transport_(transport),
      events_(events),
      remaining_(std::move(remaining)),
      ended_(std::move(ended)),
      timeout_(timeout) {}

void Evictor::Evict(const EvictPod& evict) {
  if (!under_way_.insert(evict.pod.uid).second) {
    return;
  }
  events_.RecordFirst({"v1", "Pod", evict.pod.ns, evict.pod.name, evict.pod.uid},
                      {.warning = true,
                       .reason = "Evict",
                       .message = "Pod is evicted, because of " + evict.why,
                       .important = true,
                       .key = evict.pod.uid + "/Evict"},
                      lifeline_.Guard([this, evict] { TellConditions(evict); }));
}

// What becomes of it is no reason to keep the pod: the Event has told already.
void Evictor::TellConditions(const EvictPod& evict) {
  const auto then = [this, evict] { Try(evict, 0, {kFirstEvictWait, kMostEvictWait}); };
  if (evict.conditions.empty() || !Leads()) {
    then();
    return;
  }
  kube::Request request;
  request.method = kube::Method::kPatch;
  request.path = kube::ObjectPath(kube::kPods, evict.pod.ns, evict.pod.name, "status");
  request.content_type = kube::kStrategicPatch;
  request.body = evict.conditions;
  request.timeout = timeout_;
  transport_.Send(std::move(request), lifeline_.Guard([evict, then](kube::Response&& response) {
    if (!response.ok()) {
      const auto error = kube::ErrorOf(response, "patch", kube::kPods, NameOf(evict.pod));
      Log(LogLevel::kWarning, "eviction_not_in_conditions", {{"error", error.message}});
    }
    then();
  }));
}

void Evictor::Try(const EvictPod& evict, int tries, kube::Backoff backoff) {
  if (!Leads()) {
    Log(LogLevel::kInfo, "eviction_left", {{"pod", NameOf(evict.pod)}});
    End(evict, NotLeading(), tries > 0);  // whoever leads next finds everything as we did
    return;
  }
  kube::Request request;
  request.method = kube::Method::kPost;
  request.path = kube::ObjectPath(kube::kPods, evict.pod.ns, evict.pod.name, "eviction");
  request.content_type = kube::kJsonType;
  request.body = EvictionBody(evict.pod);
  request.timeout = timeout_;
  const auto answered = [this, evict, tries, backoff](kube::Response&& response) {
    Answered(evict, tries, backoff,
             kube::ErrorOf(response, "create", kEvictions, NameOf(evict.pod)));
  };
  transport_.Send(std::move(request), lifeline_.Guard(answered));
}

void Evictor::Answered(const EvictPod& evict, int tries, kube::Backoff backoff,
                       const kube::ApiError& error) {
  // Gone, or another of its name: by itself, or by a try of ours whose answer was lost.
  const bool gone =
      error.failure == kube::Failure::kNotFound || error.failure == kube::Failure::kConflict;
  if (error.ok() || gone) {
    Log(LogLevel::kInfo, error.ok() || tries > 0 ? "pod_evicted" : "pod_gone",
        {{"pod", NameOf(evict.pod)}, {"why", evict.why}});
    End(evict, {}, true);
    return;
  }
  // A disruption budget answers 429; until it allows the eviction its reason may be gone.
  const bool forbidden = error.failure == kube::Failure::kThrottled;
  if (error.retriable() && !forbidden && tries + 1 < kEvictTries) {
    const Duration wait = backoff.Next(transport_.Random());
    transport_.After(
        wait, lifeline_.Guard([this, evict, tries, backoff] { Try(evict, tries + 1, backoff); }));
    return;
  }
  Log(LogLevel::kWarning, "eviction_failed",
      {{"pod", NameOf(evict.pod)}, {"error", error.message}});
  End(evict, error, true);
}

void Evictor::End(const EvictPod& evict, const kube::ApiError& error, bool sent) {
  under_way_.erase(evict.pod.uid);
  ended_({evict.pod, error, sent});
}

}  // namespace hopwise::daemon
