// The daemon's end of the API server: what is watched, who leads, and what is written. Lives on the
// client's loop; talks to the core's thread by the mailbox alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/binder.h"
#include "daemon/core.h"
#include "daemon/effects.h"
#include "daemon/options.h"
#include "daemon/writer.h"
#include "kube/curl_transport.h"
#include "kube/events.h"
#include "kube/lease.h"
#include "kube/lifeline.h"
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

class Link {
 public:
  struct Handlers {
    // Runs on the core's thread, in order.
    std::function<void(std::function<void(Core&, Time)>)> to_core;
    std::function<void(const Readiness&)> readiness;
    // Before the first sync something can never work: credentials or rights.
    std::function<void(const kube::ApiError&)> hopeless;
  };

  Link(kube::CurlTransport& transport, const SchedulerOptions& options, const std::string& identity,
       server::Metrics& metrics, Handlers handlers);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void Start();
  void CarryOut(const Effects& effects);
  // About the scheduler itself; on its Lease.
  void TellAboutUs(const kube::EventText& text);
  // Waits for what is under way, writes waiting Events, gives the Lease back; then `done`.
  void Stop(Duration limit, std::function<void()> done);

 private:
  struct Source {
    std::unique_ptr<kube::Reflector> reflector;
    bool listed = false;   // once since it was last started
    bool missing = false;  // the kind does not exist
  };

  void Watch(const kube::Resource& resource, bool optional);
  void Listed(const kube::Resource& resource);
  void Trouble(const kube::Resource& resource, bool optional, const kube::ApiError& error);
  void LookWhetherSynced();
  void Elected();
  void LookUp(const ObjectName& pod);
  void WaitUntilQuiet(Time until, std::function<void()> done);
  [[nodiscard]] Duration Remaining() const;
  void Publish();

  kube::CurlTransport& transport_;
  const SchedulerOptions& options_;
  std::string identity_;
  server::Metrics& metrics_;
  Handlers handlers_;
  Readiness readiness_;
  std::map<std::string, Source> sources_;  // by resource name
  std::unique_ptr<kube::EventRecorder> events_;
  std::unique_ptr<kube::LeaderElector> elector_;
  std::unique_ptr<Binder> binder_;
  std::unique_ptr<Writer> writer_;
  bool once_synced_ = false;
  bool fresh_ = true;  // the pods were listed since we were elected
  bool stopped_ = false;
  uint64_t dropped_ = 0;  // Events, as last counted
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
