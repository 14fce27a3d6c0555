#include "daemon/ask.h"

#include <future>
#include <initializer_list>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/json.h"
#include "base/log.h"
#include "daemon/webhook_options.h"
#include "daemon/workload_controller.h"
#include "kube/reflector.h"
#include "rt/clock.h"

namespace hopwise::daemon {
namespace {

constexpr kube::Resource kAccessReviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                                        "SelfSubjectAccessReview", false};
constexpr Duration kReachPause = Millis(500);  // so soon a starting server is found
// A server answers a review from memory; longer, and it is not there yet.
constexpr Duration kReviewTimeout = Seconds(5);

kube::Response AskWhether(kube::CurlTransport& transport, const Right& right) {
  json::Json attributes = {
      {"verb", right.verb}, {"group", right.group}, {"resource", right.resource}};
  if (!right.subresource.empty()) {
    attributes["subresource"] = right.subresource;
  }
  if (!right.ns.empty()) {
    attributes["namespace"] = right.ns;
  }
  if (!right.name.empty()) {
    attributes["name"] = right.name;
  }
  kube::Request request;
  request.method = kube::Method::kPost;
  request.path = kube::CollectionPath(kAccessReviews);
  request.content_type = kube::kJsonType;
  request.body = json::Dump({{"apiVersion", "authorization.k8s.io/v1"},
                             {"kind", "SelfSubjectAccessReview"},
                             {"spec", {{"resourceAttributes", std::move(attributes)}}}});
  request.timeout = kReviewTimeout;
  return Ask(transport, std::move(request));
}

void Pause(kube::CurlTransport& transport, Duration pause) {
  const auto over = std::make_shared<std::promise<void>>();
  transport.Post(
      [&transport, over, pause] { transport.After(pause, [over] { over->set_value(); }); });
  over->get_future().wait();
}

// The answer to the first question, as soon as there is one.
Result<kube::Response> Reach(kube::CurlTransport& transport, const Right& first, Duration limit) {
  const Time start = rt::MonotonicNow();
  std::string told;
  while (true) {
    kube::Response response = AskWhether(transport, first);
    const kube::ApiError error = kube::ErrorOf(response, "create", kAccessReviews);
    if (error.ok()) {
      return response;
    }
    if (!error.retriable() || error.failure == kube::Failure::kUnauthorized || response.untrusted) {
      // What Go's server says to whoever speaks without TLS.
      const bool plain = error.message.find("HTTP request to an HTTPS server") != std::string::npos;
      return Fail(ErrorCode::kIo,
                  error.message + (plain ? "; write https:// in the server's address" : ""));
    }
    if (rt::MonotonicNow() - start >= limit) {
      return Fail(ErrorCode::kIo,
                  fmt::format("the API server did not answer within {} (--startup-timeout): {}",
                              FormatGoDuration(limit), error.message));
    }
    if (told != error.message) {
      told = error.message;
      Log(LogLevel::kWarning, "api_server_not_reached", {{"error", error.message}});
    }
    Pause(transport, kReachPause);
  }
}

using GroupedResource = std::pair<std::string_view, std::string_view>;

void AddWatched(std::initializer_list<GroupedResource> watched, std::vector<Right>& rights) {
  for (const auto& [group, resource] : watched) {
    for (const std::string_view verb : {"list", "watch"}) {
      rights.push_back({verb, group, resource, "", ""});
    }
  }
}

void AddVerbs(std::initializer_list<std::string_view> verbs, const GroupedResource& resource,
              std::vector<Right>& rights) {
  for (const std::string_view verb : verbs) {
    rights.push_back({verb, resource.first, resource.second, "", ""});
  }
}

// Events and the Lease.
void AddOwn(const CommonOptions& options, std::vector<Right>& rights) {
  rights.push_back({"create", "", "events", "", ""});
  rights.push_back({"patch", "", "events", "", ""});
  if (options.leader_elect) {
    for (const std::string_view verb : {"get", "create", "update"}) {
      rights.push_back({verb, "coordination.k8s.io", "leases", "", options.lock_namespace});
    }
  }
}

}  // namespace

kube::Response Ask(kube::CurlTransport& transport, kube::Request request) {
  const auto answer = std::make_shared<std::promise<kube::Response>>();
  transport.Post([&transport, answer, request = std::move(request)]() mutable {
    transport.Send(std::move(request),
                   [answer](kube::Response&& response) { answer->set_value(std::move(response)); });
  });
  return answer->get_future().get();
}

kube::Response AskPage(kube::CurlTransport& transport, const kube::Resource& resource,
                       const std::string& token) {
  kube::Request request;
  request.path = kube::CollectionPath(resource) + "?limit=" + std::to_string(kube::kPageSize);
  if (!token.empty()) {
    request.path += "&continue=" + kube::UrlEscape(token);
  }
  return Ask(transport, std::move(request));
}

std::vector<Right> SchedulerRights(const SchedulerOptions& options) {
  std::vector<Right> rights;
  AddWatched({{"", "pods"},
              {"", "nodes"},
              {"scheduling.k8s.io", "priorityclasses"},
              {"scheduling.volcano.sh", "podgroups"},
              {"scheduling.volcano.sh", "queues"},
              {"topology.volcano.sh", "hypernodes"}},
             rights);
  if (options.dry_run) {
    return rights;
  }
  rights.push_back({"get", "", "pods", "", ""});
  rights.push_back({"create", "", "pods", "binding", ""});
  rights.push_back({"create", "", "pods", "eviction", ""});
  rights.push_back({"patch", "", "pods", "status", ""});
  rights.push_back({"patch", "scheduling.volcano.sh", "podgroups", "", ""});
  rights.push_back({"create", "scheduling.volcano.sh", "queues", "", ""});
  rights.push_back({"patch", "scheduling.volcano.sh", "queues", "status", ""});
  AddOwn(options, rights);
  if (options.leader_elect) {
    rights.push_back({"list", "coordination.k8s.io", "leases", "", options.lock_namespace});
  }
  return rights;
}

std::vector<Right> ControllerRights(const ControllerOptions& options) {
  constexpr std::string_view kScheduling = "scheduling.volcano.sh", kFabric = "topology.volcano.sh",
                             kJobs = "batch.volcano.sh", kBus = "bus.volcano.sh";
  std::vector<Right> rights;
  if (options.hypernodes) {
    AddWatched({{"", "nodes"}, {kFabric, "hypernodes"}}, rights);
    AddVerbs({"create", "patch", "delete"}, {kFabric, "hypernodes"}, rights);
    rights.push_back({"patch", kFabric, "hypernodes", "status", ""});
  }
  for (const WatchedKind& kind : WatchedWorkloads(options)) {
    AddWatched({{kind.resource.group, kind.resource.plural}}, rights);
  }
  if (options.jobs) {
    AddVerbs({"create", "delete"}, {"", "pods"}, rights);
    AddVerbs({"create", "delete"}, {"", "services"}, rights);
    AddVerbs({"create", "patch", "delete"}, {"", "configmaps"}, rights);
    AddVerbs({"create", "patch", "delete"}, {"", "secrets"}, rights);
    AddVerbs({"create", "delete"}, {"networking.k8s.io", "networkpolicies"}, rights);
    AddVerbs({"create"}, {"", "persistentvolumeclaims"}, rights);
    AddVerbs({"delete"}, {kJobs, "jobs"}, rights);
    rights.push_back({"patch", kJobs, "jobs", "status", ""});
  }
  if (options.pod_groups) {
    AddVerbs({"patch"}, {"", "pods"}, rights);
  }
  if (options.jobs || options.pod_groups) {
    AddVerbs({"create", "patch", "delete"}, {kScheduling, "podgroups"}, rights);
  }
  if (options.queues) {
    AddVerbs({"patch"}, {kScheduling, "queues"}, rights);
    rights.push_back({"patch", kScheduling, "queues", "status", ""});
  }
  if (options.jobs || options.queues) {
    AddVerbs({"delete"}, {kBus, "commands"}, rights);
  }
  if (!options.conf_map_name.empty()) {
    for (const std::string_view verb : {"list", "watch"}) {
      rights.push_back({verb, "", "configmaps", "", options.conf_map_ns});
    }
  }
  AddOwn(options, rights);
  return rights;
}

std::vector<Right> WebhookRights(const WebhookOptions& options) {
  std::vector<Right> rights;
  const WebhookNeeds needs = NeedsOf(options);
  if (needs.queues) AddWatched({{"scheduling.volcano.sh", "queues"}}, rights);
  if (needs.queues) rights.push_back({"get", "scheduling.volcano.sh", "queues", "", ""});
  if (needs.fabric) {
    AddWatched({{"", "nodes"}, {"topology.volcano.sh", "hypernodes"}}, rights);
  }
  if (needs.namespaces) AddWatched({{"", "namespaces"}}, rights);
  if (options.issues_certificates()) {
    const std::string& ns = options.webhook_namespace;
    rights.push_back({"create", "", "secrets", "", ns});
    for (const std::string_view verb : {"get", "update"}) {
      rights.push_back({verb, "", "secrets", "", ns, options.certificate_secret});
    }
  }
  if (options.publishes_ca()) {
    for (const kube::Resource& resource : {kube::kMutatingWebhooks, kube::kValidatingWebhooks}) {
      for (const std::string& name : options.webhook_configurations) {
        rights.push_back({"get", resource.group, resource.plural, "", "", name});
        rights.push_back({"patch", resource.group, resource.plural, "", "", name});
      }
    }
  }
  if (rights.empty()) {
    // One question at least: whether the server is there and knows us.
    rights.push_back({"get", "scheduling.volcano.sh", "queues", "", ""});
  }
  return rights;
}

std::string RightText(const Right& right) {
  std::string text(right.verb);
  text += ' ';
  text += right.resource;
  if (!right.group.empty()) {
    text += '.';
    text += right.group;
  }
  if (!right.subresource.empty()) {
    text += '/';
    text += right.subresource;
  }
  if (!right.name.empty()) {
    text += ' ';
    text += right.name;
  }
  return right.ns.empty() ? text : text + " in namespace " + right.ns;
}

Status CheckAccess(kube::CurlTransport& transport, const std::vector<Right>& rights,
                   std::string_view manifest, Duration limit) {
  Result<kube::Response> first = Reach(transport, rights.front(), limit);
  if (!first) {
    return tl::unexpected(first.error());
  }
  std::string missing;
  for (size_t i = 0; i < rights.size(); ++i) {
    const kube::Response response = i == 0 ? *first : AskWhether(transport, rights[i]);
    const Result<json::Json> review = json::ParseJson(response.ok() ? response.body : "null");
    // No answer here is no proof of anything: what is denied shows when it is done.
    if (review && review->is_object() && !json::Flag(*review, {"status", "allowed"}, true)) {
      missing += (missing.empty() ? "" : ", ") + RightText(rights[i]);
    }
  }
  if (!missing.empty()) {
    return Fail(ErrorCode::kIo,
                fmt::format("RBAC denies what is needed: {}; {} grants it all", missing, manifest));
  }
  return {};
}

}  // namespace hopwise::daemon
