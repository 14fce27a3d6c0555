#include "daemon/ufm_poller.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/json.h"
#include "kube/credentials.h"
#include "kube/errors.h"
#include "rt/files.h"

namespace hopwise::daemon {
namespace {

constexpr const char* kPortsPath = "/ufmRest/resources/ports";
constexpr size_t kMostCaBytes = size_t{1} << 20U;

// "Failed to connect to … after 3 ms: …": with another number it would be told as another failure.
std::string WithoutTimes(std::string text) {
  constexpr std::string_view kAfter = " after ";
  if (const size_t begin = text.find(kAfter); begin != std::string::npos) {
    const size_t digits = begin + kAfter.size();
    const size_t end = text.find_first_not_of("0123456789", digits);
    if (end != digits && end != std::string::npos && text.compare(end, 3, " ms") == 0) {
      text.erase(begin, end + 3 - begin);
    }
  }
  return text;
}

UfmFailure FailureOf(const kube::Response& response, const std::string& endpoint) {
  if (response.status == 0) {
    const std::string error = WithoutTimes(response.error);
    const bool long_answer = error.find("the answer is longer than") != std::string::npos;
    return {response.untrusted ? "Untrusted" : long_answer ? "BadAnswer" : "Unreachable", error};
  }
  const std::string said =
      fmt::format("{}{} answered with status {}", endpoint, kPortsPath, response.status);
  if (response.status == 401 || response.status == 403) {
    return {"Unauthorized", said + ": look at the username and password in the Secret"};
  }
  return {"Refused", said};
}

}  // namespace

UfmPoller::UfmPoller(kube::CurlTransport& api, control::UfmSettings settings, Duration interval,
                     Answered answered)
    : api_(api),
      settings_(std::move(settings)),
      interval_(interval),
      answered_(std::move(answered)),
      backoff_(std::min(kFirstUfmRetry, interval), std::min(kMostUfmRetry, interval)) {
  AskSecret();
}

UfmPoller::~UfmPoller() { api_.Cancel(timer_); }

void UfmPoller::AskAgain(Duration pause) {
  timer_ = api_.After(pause, lifeline_.Guard([this] { AskSecret(); }));
}

void UfmPoller::AskSecret() {
  timer_ = 0;
  kube::Request request;
  request.path = kube::ObjectPath(kube::kSecrets, settings_.secret.ns, settings_.secret.name);
  api_.Send(std::move(request), lifeline_.Guard([this](kube::Response&& response) {
    TakeSecret(std::move(response));
  }));
}

void UfmPoller::TakeSecret(kube::Response&& response) {
  const std::string name = settings_.secret.ns + "/" + settings_.secret.name;
  if (const kube::ApiError error = kube::ErrorOf(response, "get", kube::kSecrets, name);
      !error.ok()) {
    Fail("NoSecret", error.message);
    return;
  }
  const json::Json secret = json::ParseOrNull(response.body);
  const Result<std::string> username = kube::DecodeBase64(json::Text(secret, {"data", "username"}));
  const Result<std::string> password = kube::DecodeBase64(json::Text(secret, {"data", "password"}));
  if (!username || !password || username->empty()) {
    Fail("NoSecret", fmt::format("Secret {} has no usable username and password", name));
    return;
  }
  AskUfm(*username, *password);
}

void UfmPoller::AskUfm(const std::string& username, const std::string& password) {
  kube::Access access;
  access.server = settings_.endpoint;
  access.insecure = settings_.insecure_skip_verify;
  access.username = username;
  access.password = password;
  access.source = "UFM";
  if (!settings_.ca_file.empty() && !access.insecure) {
    Result<std::string> ca = rt::ReadSmallFile(settings_.ca_file, kMostCaBytes);
    if (!ca) {
      Fail("Untrusted", "caFile: " + ca.error().message);
      return;
    }
    access.ca_pem = std::move(*ca);
  }
  kube::CurlOptions options;
  options.user_agent = "hopwise-controller";
  options.connections = 1;
  options.most_body = kMostUfmBytes;
  ufm_ = std::make_unique<kube::CurlTransport>(std::move(access), std::move(options));
  kube::Request request;
  request.path = kPortsPath;
  request.timeout = kUfmTimeout;
  // From UFM's thread back to ours, where it may end.
  auto answered = lifeline_.Guard([this](kube::Response&& response) {
    ufm_.reset();
    TakeAnswer(std::move(response));
  });
  ufm_->Post([ufm = ufm_.get(), api = &api_, request, answered] {
    ufm->Send(request, [api, answered](kube::Response&& response) {
      const auto shared = std::make_shared<kube::Response>(std::move(response));
      api->Post([answered, shared]() mutable { answered(std::move(*shared)); });
    });
  });
}

void UfmPoller::TakeAnswer(kube::Response&& response) {
  if (!response.ok()) {
    const UfmFailure failure = FailureOf(response, settings_.endpoint);
    Fail(failure.reason, failure.message);
    return;
  }
  Result<api::UfmPorts> ports = api::ReadUfmPorts(response.body);
  if (!ports) {
    Fail("BadAnswer",
         fmt::format("{}{}: {}", settings_.endpoint, kPortsPath, ports.error().message));
    return;
  }
  if (!std::exchange(refused_, false)) {
    backoff_.Reset();
  }
  AskAgain(interval_);
  answered_(std::move(ports), {});
}

void UfmPoller::Refused() {
  refused_ = true;
  if (ufm_ == nullptr && timer_ != 0) {
    api_.Cancel(std::exchange(timer_, 0));
    AskAgain(std::min(backoff_.Next(api_.Random()), interval_));
  }
}

void UfmPoller::Fail(const std::string& reason, const std::string& message) {
  AskAgain(std::min(backoff_.Next(api_.Random()), interval_));
  answered_(Invalid(message), {reason, message});
}

}  // namespace hopwise::daemon
