// What becomes of a daemon's configuration while it runs: told by log, metric and Event.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kube/events.h"
#include "server/metrics.h"

namespace hopwise::daemon {

class ConfigNews {
 public:
  // `tell`: about the daemon itself, on its Lease.
  ConfigNews(server::Metrics& metrics, std::function<void(const kube::EventText&)> tell)
      : metrics_(metrics), tell_(std::move(tell)) {}

  // `file`: its path, or what else it is called.
  void Loaded(const std::string& file);
  // Of the one in use.
  void Warn(const std::vector<std::string>& warnings);
  // The one before stays in force.
  void Refused(const std::string& why);

 private:
  server::Metrics& metrics_;
  std::function<void(const kube::EventText&)> tell_;
};

}  // namespace hopwise::daemon
