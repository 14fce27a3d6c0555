#include "daemon/ca_bundle.h"

#include <utility>

#include <fmt/format.h>

#include "api/json.h"
#include "base/log.h"
#include "daemon/webhook_metrics.h"
#include "kube/credentials.h"

namespace hopwise::daemon {
namespace {

// A JSON patch that puts `bundle` where another stands; empty when none does. It holds for the
// list of webhooks that was read.
json::Json PatchOf(const json::Json& configuration, const std::string& bundle) {
  json::Json patch = json::Json::array();
  const json::Json& webhooks = json::List(configuration, {"webhooks"});
  for (size_t i = 0; i < webhooks.size(); ++i) {
    if (json::Text(webhooks[i], {"clientConfig", "caBundle"}) == bundle) continue;
    const std::string at = fmt::format("/webhooks/{}", i);
    patch.push_back(
        {{"op", "test"}, {"path", at + "/name"}, {"value", json::Text(webhooks[i], {"name"})}});
    patch.push_back({{"op", "add"}, {"path", at + "/clientConfig/caBundle"}, {"value", bundle}});
  }
  return patch;
}

}  // namespace

CaBundle::CaBundle(kube::Transport& transport, const std::vector<std::string>& names,
                   server::Metrics& metrics)
    : transport_(transport), metrics_(metrics) {
  for (const std::string& name : names) {
    kept_.push_back({kube::kMutatingWebhooks, name});
    kept_.push_back({kube::kValidatingWebhooks, name});
  }
}

void CaBundle::Set(const std::string& ca) {
  bundle_ = kube::EncodeBase64(ca);
  Look();
}

void CaBundle::Look() {
  transport_.Cancel(std::exchange(timer_, 0));
  timer_ = transport_.After(kBundleLook, lifeline_.Guard([this] { Look(); }));
  for (Kept& kept : kept_) Read(kept);
}

void CaBundle::Read(Kept& kept) {
  kube::Request request;
  request.path = kube::ObjectPath(kept.resource, "", kept.name);
  transport_.Send(std::move(request), lifeline_.Guard([this, &kept](kube::Response&& response) {
    Compare(kept, std::move(response));
  }));
}

void CaBundle::Compare(Kept& kept, kube::Response&& response) {
  if (const kube::ApiError error = kube::ErrorOf(response, "get", kept.resource, kept.name);
      !error.ok()) {
    Ended(kept, error, false);
    return;
  }
  const json::Json patch = PatchOf(json::ParseOrNull(response.body), bundle_);
  if (patch.empty()) {
    Ended(kept, {}, false);
    return;
  }
  kube::Request request;
  request.method = kube::Method::kPatch;
  request.path = kube::ObjectPath(kept.resource, "", kept.name);
  request.content_type = kube::kJsonPatch;
  request.body = json::Dump(patch);
  transport_.Send(std::move(request), lifeline_.Guard([this, &kept](kube::Response&& answer) {
    Ended(kept, kube::ErrorOf(answer, "patch", kept.resource, kept.name), true);
  }));
}

void CaBundle::Ended(Kept& kept, const kube::ApiError& error, bool wrote) {
  const std::string resource = kube::ResourceName(kept.resource);
  if (error.ok()) {
    kept.told.clear();
    if (wrote) {
      metrics_.Count(kCaBundlePatches, 1, {{"resource", resource}, {"result", "written"}});
      Log(LogLevel::kInfo, "ca_bundle_written", {{"resource", resource}, {"name", kept.name}});
    }
    return;
  }
  // One that is not there may be left out on purpose.
  const bool absent = error.failure == kube::Failure::kNotFound;
  if (!absent) {
    metrics_.Count(kCaBundlePatches, 1, {{"resource", resource}, {"result", "failed"}});
  }
  if (std::exchange(kept.told, error.message) != error.message) {
    Log(absent ? LogLevel::kInfo : LogLevel::kWarning, "ca_bundle_not_written",
        {{"resource", resource}, {"name", kept.name}, {"error", error.message}});
  }
}

}  // namespace hopwise::daemon
