#include "daemon/watches.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace hopwise::daemon {

void Watches::Add(const kube::Resource& resource, bool optional, kube::Reflector::Options options) {
  const std::string name = kube::ResourceName(resource);
  kube::Reflector::Handlers handlers;
  handlers.events = [this, resource](std::vector<kube::WatchEvent>&& events) {
    handlers_.events(resource, std::move(events));
  };
  handlers.synced = [this, name, resource] {
    Listed(name);
    handlers_.listed(resource);
  };
  handlers.trouble = [this, name](const kube::ApiError& error) { Trouble(name, error); };
  Source& source = sources_[name];
  source.optional = optional;
  source.reflector = std::make_unique<kube::Reflector>(transport_, resource, std::move(options),
                                                       std::move(handlers));
  source.reflector->Start();
}

void Watches::ListAnew(const kube::Resource& resource) {
  Source& source = sources_.at(kube::ResourceName(resource));
  source.reflector->Stop();
  source.reflector->Start();
}

void Watches::Listed(const std::string& name) {
  Source& source = sources_.at(name);
  source.listed = true;
  source.missing = false;
  metrics_.Count("hopwise_reflector_lists_total", 1, {{"resource", name}});
  metrics_.Set("hopwise_cache_synced", 1, {{"resource", name}});
  LookWhetherListed();
}

void Watches::Trouble(const std::string& name, const kube::ApiError& error) {
  Source& source = sources_.at(name);
  const bool was_missing = source.missing;
  source.missing = source.optional && error.failure == kube::Failure::kNoSuchKind;
  if (error.ok() || source.missing) {
    troubles_.erase(name);
  } else {
    troubles_[name] = error.message;
  }
  if (source.missing && !was_missing) {
    Log(LogLevel::kWarning, "kind_not_installed",
        {{"resource", name}, {"again_in", FormatGoDuration(kube::kMissingRetry)}});
  } else if (!error.ok() && !source.missing) {
    Log(LogLevel::kWarning, "watch_trouble", {{"resource", name}, {"error", error.message}});
  }
  const bool never =
      error.failure == kube::Failure::kForbidden || error.failure == kube::Failure::kUnauthorized;
  if (never && !once_listed_) {
    handlers_.hopeless(error);
  }
  LookWhetherListed();
  handlers_.changed();
}

void Watches::LookWhetherListed() {
  const bool all = std::ranges::all_of(
      sources_, [](const auto& entry) { return entry.second.listed || entry.second.missing; });
  if (all && !once_listed_) {
    once_listed_ = true;
    Log(LogLevel::kInfo, "caches_synced");
    handlers_.changed();
  }
}

}  // namespace hopwise::daemon
