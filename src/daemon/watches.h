// What a daemon watches: one reflector for each kind, whether all were listed, and what is wrong
// with them. Lives on the client's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/reflector.h"
#include "server/metrics.h"

namespace hopwise::daemon {

// What /readyz tells. Written on the loop, read by the server's threads.
struct Readiness {
  bool synced = false;
  bool leading = false;
  std::string leader;                           // who holds the Lease, "" when nobody
  std::map<std::string, std::string> troubles;  // by resource: why it cannot be watched now
};

class Watches {
 public:
  struct Handlers {
    std::function<void(const kube::Resource&, std::vector<kube::WatchEvent>&&)> events;
    // A list of the kind is complete: the first, or a later one.
    std::function<void(const kube::Resource&)> listed;
    // Something that `listed` and `troubles` tell has changed.
    std::function<void()> changed;
    // Before everything was listed once something can never work: credentials or rights.
    std::function<void(const kube::ApiError&)> hopeless;
  };
  Watches(kube::Transport& transport, server::Metrics& metrics, Handlers handlers)
      : transport_(transport), metrics_(metrics), handlers_(std::move(handlers)) {}

  // Begins to watch. An optional kind may be missing: that is no trouble, and it is looked for
  // again.
  void Add(const kube::Resource& resource, bool optional, kube::Reflector::Options options);
  // Lists it anew; it counts as listed meanwhile.
  void ListAnew(const kube::Resource& resource);
  // Every kind was listed once, or is missing. True for ever once it was.
  [[nodiscard]] bool all_listed() const { return once_listed_; }
  [[nodiscard]] const std::map<std::string, std::string>& troubles() const { return troubles_; }

 private:
  struct Source {
    std::unique_ptr<kube::Reflector> reflector;
    bool optional = false;
    bool listed = false;
    bool missing = false;  // the kind does not exist
  };

  void Listed(const std::string& name);
  void Trouble(const std::string& name, const kube::ApiError& error);
  void LookWhetherListed();

  kube::Transport& transport_;
  server::Metrics& metrics_;
  Handlers handlers_;
  std::map<std::string, Source> sources_;  // by resource name
  std::map<std::string, std::string> troubles_;
  bool once_listed_ = false;
};

}  // namespace hopwise::daemon
