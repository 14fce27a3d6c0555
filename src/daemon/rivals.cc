#include "daemon/rivals.h"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/json.h"
#include "base/log.h"
#include "daemon/ask.h"
#include "kube/lease.h"

namespace hopwise::daemon {
namespace {

struct LeaseName {
  std::string ns, name;
};

// Of schedulers that are known to serve one of the names.
std::vector<LeaseName> KnownLeases(const std::vector<std::string>& names) {
  std::vector<LeaseName> leases;
  for (const std::string& name : names) {
    if (name == "volcano") {
      leases.push_back({"volcano-system", "vc-scheduler"});
      leases.push_back({"volcano-system", "volcano"});
    } else if (name == "default-scheduler") {
      leases.push_back({"kube-system", "kube-scheduler"});
    }
  }
  return leases;
}

bool Overlap(const std::string& served, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    return ("," + served + ",").find("," + name + ",") != std::string::npos;
  });
}

// Of other Hopwise in our namespace that serve one of our names.
std::vector<LeaseName> OtherHopwise(kube::CurlTransport& transport,
                                    const SchedulerOptions& options) {
  kube::Request request;
  request.path = kube::CollectionPath(kube::kLeases, options.lock_namespace);
  const kube::Response response = Ask(transport, std::move(request));
  const kube::ApiError error = kube::ErrorOf(response, "list", kube::kLeases);
  const Result<json::Json> list = json::ParseJson(response.ok() ? response.body : "null");
  if (!error.ok() || !list) {
    Log(LogLevel::kWarning, "leases_not_listed", {{"error", error.message}});
    return {};
  }
  std::vector<LeaseName> leases;
  for (const json::Json& lease : json::List(*list, {"items"})) {
    const std::string name = json::Text(lease, {"metadata", "name"});
    const std::string served = json::Text(lease, {"metadata", "annotations", kServedNames});
    if (name != options.lock_name && Overlap(served, options.scheduler_names)) {
      leases.push_back({options.lock_namespace, name});
    }
  }
  return leases;
}

// Who renews it; "" when nobody does.
std::string HolderOf(kube::CurlTransport& transport, const LeaseName& lease) {
  const auto answer = std::make_shared<std::promise<std::string>>();
  transport.Post([&transport, answer, lease] {
    kube::FindActiveHolder(transport, lease.ns, lease.name, kube::kRetryPeriod,
                           [answer](std::string holder, const kube::ApiError& error) {
                             if (!error.ok()) {
                               Log(LogLevel::kWarning, "lease_not_read",
                                   {{"error", error.message}});
                             }
                             answer->set_value(std::move(holder));
                           });
  });
  return answer->get_future().get();
}

}  // namespace

std::string ServedNames(const SchedulerOptions& options) {
  return fmt::format("{}", fmt::join(options.scheduler_names, ","));
}

Status LookForRivals(kube::CurlTransport& transport, const SchedulerOptions& options) {
  if (options.takeover || options.dry_run) {
    return {};
  }
  std::vector<LeaseName> leases = KnownLeases(options.scheduler_names);
  if (options.leader_elect) {
    std::ranges::move(OtherHopwise(transport, options), std::back_inserter(leases));
  }
  for (const LeaseName& lease : leases) {
    const std::string holder = HolderOf(transport, lease);
    if (!holder.empty()) {
      return Fail(ErrorCode::kIo,
                  fmt::format("{} holds and renews the Lease {}/{}: another scheduler serves the "
                              "same scheduler name. Stop it, choose another --scheduler-name, try "
                              "--dry-run beside it, or pass --takeover",
                              holder, lease.ns, lease.name));
    }
  }
  return {};
}

}  // namespace hopwise::daemon
