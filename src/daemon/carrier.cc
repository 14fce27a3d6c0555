#include "daemon/carrier.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "daemon/effects.h"

namespace hopwise::daemon {
namespace {

using Verb = ObjectWrite::Verb;

std::string_view VerbName(Verb verb) {
  return verb == Verb::kCreate ? "create" : verb == Verb::kDelete ? "delete" : "patch";
}

std::string NameOf(const ObjectWrite& write) {
  return write.ns.empty() ? write.name : write.ns + "/" + write.name;
}

// What is deleted is the object that was decided about, not its successor of the same name.
std::string DeleteBody(const ObjectWrite& write) {
  json::Json options = write.body.empty() ? json::Json::object() : json::ParseOrNull(write.body);
  options["apiVersion"] = "v1";
  options["kind"] = "DeleteOptions";
  if (!write.uid.empty()) {
    json::Set(options, {"preconditions", "uid"}, write.uid);
  }
  if (!write.resource_version.empty()) {
    json::Set(options, {"preconditions", "resourceVersion"}, write.resource_version);
  }
  return json::Dump(options);
}

kube::Request RequestFor(const ObjectWrite& write) {
  kube::Request request;
  request.body = write.body;
  request.content_type = kube::kJsonType;
  switch (write.verb) {
    case Verb::kCreate:
      request.method = kube::Method::kPost;
      request.path = kube::CollectionPath(write.resource, write.ns);
      break;
    case Verb::kPatch:
    case Verb::kPatchStatus:
      request.method = kube::Method::kPatch;
      request.path = kube::ObjectPath(write.resource, write.ns, write.name,
                                      write.verb == Verb::kPatchStatus ? "status" : "");
      request.content_type = kube::kMergePatch;
      break;
    case Verb::kDelete:
      request.method = kube::Method::kDelete;
      request.path = kube::ObjectPath(write.resource, write.ns, write.name);
      request.body = DeleteBody(write);
      break;
  }
  return request;
}

// A deletion is answered with the object while its finalizers or its grace period last, and with a
// Status when it is gone.
std::string ObjectIn(const ObjectWrite& write, std::string&& body) {
  if (write.verb == Verb::kDelete) {
    const json::Json answer = json::ParseOrNull(body);
    if (json::Text(answer, {"kind"}) == "Status" ||
        json::Text(answer, {"metadata", "deletionTimestamp"}).empty()) {
      return "";
    }
  }
  return std::move(body);
}

}  // namespace

void Carrier::Carry(Batch batch) {
  const uint64_t id = batch.id;
  Running& running = batches_[id];
  running.batch = std::move(batch);
  Begin(id);
  Pump();
}

// The current step of the batch, or its end.
void Carrier::Begin(uint64_t id) {
  const auto at = batches_.find(id);
  Running& running = at->second;
  while (!running.failed && running.step < running.batch.steps.size()) {
    std::vector<ObjectWrite>& writes = running.batch.steps[running.step];
    running.open = writes.size();
    for (ObjectWrite& write : writes) {
      waiting_.push_back({id, std::move(write), {kFirstCarryWait, kMostCarryWait}, 0});
    }
    if (running.open > 0) {
      return;
    }
    ++running.step;
  }
  const bool ok = !running.failed;
  batches_.erase(at);
  handlers_.ended(id, ok);
}

void Carrier::Pump() {
  while (!waiting_.empty() && in_flight_ < kWritesAtOnce) {
    Write write = std::move(waiting_.front());
    waiting_.pop_front();
    if (may_write_()) {
      Send(std::move(write));
    } else {
      Ended(write, NotLeading(), "");
    }
  }
}

void Carrier::Send(Write write) {
  ++in_flight_;
  ++write.tries;
  kube::Request request = RequestFor(write.write);
  const auto answered = [this, write = std::move(write)](kube::Response&& response) {
    --in_flight_;
    Answered(write, std::move(response));
    Pump();
  };
  transport_.Send(std::move(request), lifeline_.Guard(answered));
}

void Carrier::Answered(Write write, kube::Response&& response) {
  const kube::ApiError error = kube::ErrorOf(response, VerbName(write.write.verb),
                                             write.write.resource, NameOf(write.write));
  const bool gone = write.write.verb == Verb::kDelete && error.failure == kube::Failure::kNotFound;
  const bool there = write.write.exists_ok && error.reason == "AlreadyExists";
  if (error.ok() || gone || there) {
    Ended(write, {}, error.ok() ? ObjectIn(write.write, std::move(response.body)) : "");
    return;
  }
  if (!error.retriable() || write.tries >= kCarryTries) {
    Ended(write, error, "");
    return;
  }
  const Duration wait = std::max(write.backoff.Next(transport_.Random()), error.retry_after);
  transport_.After(wait, lifeline_.Guard([this, write = std::move(write)] {
    waiting_.push_back(write);
    Pump();
  }));
}

void Carrier::Ended(const Write& write, const kube::ApiError& error, std::string object) {
  Running& running = batches_.at(write.batch);
  running.failed = running.failed || !error.ok();
  const bool over = --running.open == 0;
  handlers_.wrote(write.batch, {write.write, error, std::move(object)});
  if (over) {
    ++running.step;
    Begin(write.batch);
  }
}

}  // namespace hopwise::daemon
