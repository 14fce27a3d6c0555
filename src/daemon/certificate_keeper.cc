#include "daemon/certificate_keeper.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "base/log.h"
#include "kube/credentials.h"
#include "kube/resources.h"

namespace hopwise::daemon {
namespace {

using json::Json;

std::string Decoded(const Json& secret, std::string_view key) {
  // What is no base64 is as good as not there.
  return kube::DecodeBase64(json::Text(secret, {"data", key})).value_or("");
}

server::SelfIssued FromSecret(const Json& secret) {
  return {Decoded(secret, "ca.crt"), Decoded(secret, "ca.key"), Decoded(secret, "tls.crt"),
          Decoded(secret, "tls.key")};
}

Json ToSecret(const server::SelfIssued& issued, const std::string& ns, const std::string& name,
              const std::string& version) {
  Json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"type", "Opaque"},
                 {"metadata", {{"name", name}, {"namespace", ns}}},
                 {"data",
                  {{"ca.crt", kube::EncodeBase64(issued.ca)},
                   {"ca.key", kube::EncodeBase64(issued.ca_key)},
                   {"tls.crt", kube::EncodeBase64(issued.cert)},
                   {"tls.key", kube::EncodeBase64(issued.key)}}}};
  if (!version.empty()) secret["metadata"]["resourceVersion"] = version;
  return secret;
}

}  // namespace

void CertificateKeeper::LookIn(Duration pause) {
  transport_.After(pause, lifeline_.Guard([this] { Look(); }));
}

void CertificateKeeper::Look() {
  kube::Request request;
  request.path = kube::ObjectPath(kube::kSecrets, options_.ns, options_.secret);
  transport_.Send(std::move(request), lifeline_.Guard([this](kube::Response&& response) {
    Read(std::move(response));
  }));
}

void CertificateKeeper::Read(kube::Response&& response) {
  const kube::ApiError error = kube::ErrorOf(response, "get", kube::kSecrets, Name());
  const bool absent = error.failure == kube::Failure::kNotFound;
  if (!error.ok() && !absent) {
    Fail(error.message);
    return;
  }
  const Json secret = absent ? Json() : json::ParseOrNull(response.body);
  const server::SelfIssued stored = FromSecret(secret);
  Result<server::SelfIssued> next = server::Renew(stored, options_.terms, transport_.Wall());
  if (!next) {
    Fail(next.error().message);
  } else if (*next == stored) {
    Adopt(std::move(*next));
  } else {
    Write(std::move(*next), json::Text(secret, {"metadata", "resourceVersion"}));
  }
}

// `version`: of the Secret that is replaced, "" where there is none. Another replica may have been
// faster: then its certificates count.
void CertificateKeeper::Write(server::SelfIssued next, const std::string& version) {
  kube::Request request;
  const bool create = version.empty();
  request.method = create ? kube::Method::kPost : kube::Method::kPut;
  request.path = create ? kube::CollectionPath(kube::kSecrets, options_.ns)
                        : kube::ObjectPath(kube::kSecrets, options_.ns, options_.secret);
  request.content_type = kube::kJsonType;
  request.body = json::Dump(ToSecret(next, options_.ns, options_.secret, version));
  const auto answered = [this, create, next = std::move(next)](kube::Response&& response) {
    const kube::ApiError error =
        kube::ErrorOf(response, create ? "create" : "update", kube::kSecrets, Name());
    const bool gone = error.failure == kube::Failure::kNotFound && !create;
    if (error.failure == kube::Failure::kConflict || gone) {
      LookIn(kSecretRetry);
    } else if (!error.ok()) {
      Fail(error.message);
    } else {
      Log(LogLevel::kInfo, "certificate_issued",
          {{"secret", Name()},
           {"expires", FormatRfc3339(server::ExpiryOf(next.cert))},
           {"ca_expires", FormatRfc3339(server::ExpiryOf(next.ca))}});
      Adopt(next);
    }
  };
  transport_.Send(std::move(request), lifeline_.Guard(answered));
}

void CertificateKeeper::Adopt(server::SelfIssued next) {
  if (!std::exchange(trouble_, "").empty()) handlers_.trouble("");
  if (next != present_) {
    present_ = std::move(next);
    handlers_.issued(present_);
  }
  LookIn(std::min(kSecretLook, Duration{options_.terms.validity.ns / 10}));
}

// What was issued before is presented on.
void CertificateKeeper::Fail(const std::string& why) {
  if (std::exchange(trouble_, why) != why) {
    Log(LogLevel::kWarning, "certificate_trouble", {{"error", why}});
    handlers_.trouble(why);
  }
  LookIn(kSecretRetry);
}

}  // namespace hopwise::daemon
