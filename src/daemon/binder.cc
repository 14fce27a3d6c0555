#include "daemon/binder.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "base/log.h"

namespace hopwise::daemon {
namespace {

constexpr kube::Resource kBindings{"", "v1", "pods/binding", "Binding"};

std::string BindingBody(const BindPod& bind) {
  return json::Dump(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata", {{"name", bind.pod.name}, {"namespace", bind.pod.ns}, {"uid", bind.pod.uid}}},
       {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", bind.node}}}});
}

}  // namespace

Binder::Binder(kube::Transport& transport, kube::EventRecorder& events, Remaining remaining,
               Ended ended, BinderOptions options)
    : transport_(transport),
      events_(events),
      remaining_(std::move(remaining)),
      ended_(std::move(ended)),
      options_(std::move(options)) {}

void Binder::Bind(const BindPod& bind) {
  if (const auto at = jobs_.find(bind.pod.uid); at != jobs_.end() && at->second.cancelled) {
    at->second.next = bind;
    return;
  }
  Job job;
  job.bind = bind;
  job.queued = transport_.Now();
  job.settling = options_.settle != nullptr;
  if (!jobs_.emplace(bind.pod.uid, std::move(job)).second) {
    return;
  }
  if (options_.settle == nullptr) {
    queue_.push_back(bind.pod.uid);
    Pump();
    return;
  }
  options_.settle(bind.pod, lifeline_.Guard([this, uid = bind.pod.uid] {
    if (const auto at = jobs_.find(uid); at != jobs_.end()) {
      at->second.settling = false;
      queue_.push_back(uid);
      Pump();
    }
  }));
}

void Binder::Cancel(const std::string& uid) {
  const auto at = jobs_.find(uid);
  if (at == jobs_.end()) {
    return;
  }
  at->second.next.reset();
  if (at->second.under_way) {
    at->second.cancelled = true;
    return;
  }
  transport_.Cancel(at->second.timer);
  kube::ApiError error = NotLeading();
  error.message = "it is not to be bound any more";
  Finish(uid, error, false);
}

void Binder::Pump() {
  while (!queue_.empty() && under_way_ < options_.at_once) {
    const std::string uid = queue_.front();
    const auto at = jobs_.find(uid);
    if (at == jobs_.end() || at->second.under_way || at->second.settling) {
      queue_.pop_front();  // what it was queued for was cancelled
      continue;
    }
    const Duration left = remaining_();
    if (left.ns > 0 && left <= options_.timeout) {
      if (look_timer_ == 0) {
        look_timer_ = transport_.After(kLeaseLook, lifeline_.Guard([this] {
          look_timer_ = 0;
          Pump();
        }));
      }
      return;
    }
    queue_.pop_front();
    if (left.ns <= 0) {
      Finish(uid, NotLeading(), false);
    } else {
      Send(uid);
    }
  }
}

void Binder::Send(const std::string& uid) {
  Job& job = jobs_.at(uid);
  ++job.tries;
  job.under_way = true;
  ++under_way_;
  kube::Request request;
  request.method = kube::Method::kPost;
  request.path = kube::ObjectPath(kube::kPods, job.bind.pod.ns, job.bind.pod.name, "binding");
  request.content_type = kube::kJsonType;
  request.body = BindingBody(job.bind);
  request.timeout = options_.timeout;
  const std::string name = NameOf(job.bind.pod);
  const auto answered = [this, uid, name](kube::Response&& response) {
    --under_way_;
    Answered(uid, kube::ErrorOf(response, "create", kBindings, name));
    Pump();
  };
  transport_.Send(std::move(request), lifeline_.Guard(answered));
}

void Binder::Answered(const std::string& uid, const kube::ApiError& error) {
  const auto at = jobs_.find(uid);
  if (at == jobs_.end()) {
    return;
  }
  at->second.under_way = false;
  if (error.failure == kube::Failure::kConflict) {
    Verify(uid, error);
  } else if (error.retriable() && at->second.tries < kBindTries && !at->second.cancelled) {
    Log(LogLevel::kInfo, "bind_again",
        {{"pod", NameOf(at->second.bind.pod)}, {"error", error.message}});
    Again(uid, error.retry_after);
  } else {
    Finish(uid, error, true);
  }
}

void Binder::Again(const std::string& uid, Duration at_least) {
  Job& job = jobs_.at(uid);
  const Duration wait = std::max(job.backoff.Next(transport_.Random()), at_least);
  job.timer = transport_.After(wait, lifeline_.Guard([this, uid] {
    if (const auto at = jobs_.find(uid); at != jobs_.end()) {
      at->second.timer = 0;
      queue_.push_front(uid);
      Pump();
    }
  }));
}

void Binder::Verify(const std::string& uid, const kube::ApiError& conflict) {
  Job& job = jobs_.at(uid);
  job.under_way = true;
  kube::Request request;
  request.path = kube::ObjectPath(kube::kPods, job.bind.pod.ns, job.bind.pod.name);
  request.timeout = options_.timeout;
  const auto answered = [this, uid, conflict](kube::Response&& response) {
    const auto at = jobs_.find(uid);
    if (at == jobs_.end()) {
      return;
    }
    const Result<json::Json> pod = json::ParseJson(response.ok() ? response.body : "null");
    const bool as_wished = pod && json::Uid(*pod) == uid &&
                           json::Text(*pod, {"spec", "nodeName"}) == at->second.bind.node;
    Finish(uid, as_wished ? kube::ApiError() : conflict, true);
  };
  transport_.Send(std::move(request), lifeline_.Guard(answered));
}

void Binder::Finish(const std::string& uid, const kube::ApiError& error, bool sent) {
  const auto at = jobs_.find(uid);
  const Job job = std::move(at->second);
  jobs_.erase(at);
  if (error.ok()) {
    const Tell told = ScheduledEvent(job.bind.pod, job.bind.node);
    events_.Record(told.about, told.text);
  }
  ended_(
      {job.bind.pod, job.bind.node, job.bind.decision, error, sent, transport_.Now() - job.queued});
  if (job.next && !error.ok()) {
    Bind(*job.next);
  }
}

}  // namespace hopwise::daemon
