#include "daemon/endpoints.h"

namespace hopwise::daemon {
namespace {

constexpr int kUnavailable = 503;

server::HttpResponse Ready(const Readiness& readiness) {
  std::string problems;
  if (!readiness.synced) {
    problems += "caches are not synced\n";
  }
  if (!readiness.leading && readiness.leader.empty()) {
    problems += "neither leading nor standing by: nobody holds the Lease\n";
  }
  for (const auto& [resource, why] : readiness.troubles) {
    problems += resource + ": " + why + "\n";
  }
  server::HttpResponse response;
  if (problems.empty()) {
    response.body =
        readiness.leading ? "ok: leading\n" : "ok: standing by, " + readiness.leader + " leads\n";
  } else {
    response.status = kUnavailable;
    response.body = problems;
  }
  return response;
}

}  // namespace

void ReadinessBox::Set(const Readiness& readiness) {
  const std::lock_guard lock(mutex_);
  readiness_ = readiness;
}

Readiness ReadinessBox::Get() const {
  const std::lock_guard lock(mutex_);
  return readiness_;
}

std::vector<std::pair<std::string, server::Handler>> HealthRoutes(const Endpoints& endpoints) {
  const auto health = [alive = endpoints.alive](const server::HttpRequest&) {
    server::HttpResponse response;
    const bool well = alive();
    response.status = well ? 200 : kUnavailable;
    response.body = well ? "ok\n" : "the scheduling or the network thread does not answer\n";
    return response;
  };
  const auto ready = [&box = endpoints.readiness](const server::HttpRequest&) {
    return Ready(box.Get());
  };
  return {{"/healthz", health}, {"/livez", health}, {"/readyz", ready}};
}

std::vector<std::pair<std::string, server::Handler>> MetricsRoutes(const Endpoints& endpoints) {
  auto routes = HealthRoutes(endpoints);
  routes.emplace_back("/metrics", [&metrics = endpoints.metrics](const server::HttpRequest&) {
    server::HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics.Text();
    return response;
  });
  return routes;
}

std::vector<std::pair<std::string, server::Handler>> DebugRoutes(const Endpoints& endpoints) {
  const auto state = [dump = endpoints.dump](const server::HttpRequest&) {
    server::HttpResponse response;
    Result<std::string> text = dump();
    if (text) {
      response.content_type = "application/json";
      response.body = std::move(*text);
    } else {
      response.status = kUnavailable;
      response.body = text.error().message + "\n";
    }
    return response;
  };
  return {{"/debug/state", state}};
}

}  // namespace hopwise::daemon
