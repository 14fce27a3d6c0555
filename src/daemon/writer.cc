#include "daemon/writer.h"

#include <algorithm>
#include <utility>

#include "api/json.h"

namespace hopwise::daemon {
namespace {

// Of a server-side apply: what another manager set is taken over.
constexpr const char* kAppliedBy = "?fieldManager=hopwise-scheduler&force=true";

std::string PathOf(const Patch& patch) {
  return kube::ObjectPath(patch.resource, patch.object.ns, patch.object.name, patch.subresource);
}

}  // namespace

Writer::Writer(kube::Transport& transport, std::function<bool()> may_write, Patched patched,
               QueueCreated queue_created, int at_once)
    : transport_(transport),
      may_write_(std::move(may_write)),
      patched_(std::move(patched)),
      queue_created_(std::move(queue_created)),
      at_once_(at_once) {}

void Writer::Write(Patch patch) {
  const std::string key = PathOf(patch);
  const auto at = jobs_.find(key);
  if (at == jobs_.end()) {
    jobs_[key].patch = std::move(patch);
    queue_.push_back(key);
  } else if (at->second.sent) {
    at->second.next = std::move(patch);
  } else {
    at->second.patch = std::move(patch);
  }
  Pump();
}

void Writer::Settle(const kube::Resource& resource, const ObjectName& object,
                    std::string_view subresource, std::function<void()> then) {
  const auto at = jobs_.find(kube::ObjectPath(resource, object.ns, object.name, subresource));
  if (at != jobs_.end() && at->second.sent) {
    at->second.next.reset();
    at->second.settled.push_back(std::move(then));
    return;
  }
  if (at != jobs_.end()) {
    jobs_.erase(at);
  }
  then();
}

void Writer::Pump() {
  while (!queue_.empty() && under_way_ < at_once_) {
    const std::string key = queue_.front();
    queue_.pop_front();
    const auto at = jobs_.find(key);
    if (at == jobs_.end() || at->second.sent) {
      continue;
    }
    if (may_write_()) {
      Send(key);
      continue;
    }
    const Patch patch = std::move(at->second.patch);
    jobs_.erase(at);
    patched_(patch, NotLeading());
  }
}

void Writer::Send(const std::string& key) {
  Job& job = jobs_.at(key);
  job.sent = true;
  ++job.tries;
  ++under_way_;
  kube::Request request;
  request.method = kube::Method::kPatch;
  request.path = key;
  if (job.patch.content_type == kube::kApplyPatch) {
    request.path += kAppliedBy;
  }
  request.content_type = job.patch.content_type;
  request.body = job.patch.body;
  const kube::Resource resource = job.patch.resource;
  const std::string name = NameOf(job.patch.object);
  const auto answered = [this, key, resource, name](kube::Response&& response) {
    --under_way_;
    Answered(key, kube::ErrorOf(response, "patch", resource, name));
    Pump();
  };
  transport_.Send(std::move(request), lifeline_.Guard(answered));
}

void Writer::Answered(const std::string& key, const kube::ApiError& error) {
  const auto at = jobs_.find(key);
  Job& job = at->second;
  if (error.retriable() && !job.next && job.settled.empty() && job.tries < kWriteTries) {
    job.sent = false;
    const Duration wait = std::max(job.backoff.Next(transport_.Random()), error.retry_after);
    transport_.After(wait, lifeline_.Guard([this, key] {
      queue_.push_back(key);
      Pump();
    }));
    return;
  }
  const Patch patch = std::move(job.patch);
  std::optional<Patch> next = std::move(job.next);
  const std::vector<std::function<void()>> settled = std::move(job.settled);
  jobs_.erase(at);
  patched_(patch, error);
  for (const auto& then : settled) {
    then();
  }
  if (next) {
    Write(std::move(*next));
  }
}

void Writer::CreateQueue(const std::string& name) {
  if (!may_write_()) {
    queue_created_(name, NotLeading());
    return;
  }
  kube::Request request;
  request.method = kube::Method::kPost;
  request.path = kube::CollectionPath(kube::kQueues);
  request.content_type = kube::kJsonType;
  request.body = json::Dump({{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                             {"kind", "Queue"},
                             {"metadata", {{"name", name}}},
                             {"spec", {{"weight", 1}, {"reclaimable", name != "root"}}}});
  const auto answered = [this, name](kube::Response&& response) {
    queue_created_(name, kube::ErrorOf(response, "create", kube::kQueues, name));
  };
  transport_.Send(std::move(request), lifeline_.Guard(answered));
}

}  // namespace hopwise::daemon
