// The daemon's end of the API server: what is watched, who leads, and what is written. Lives on the
// client's loop; talks to the core's thread by the mailbox alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/binder.h"
#include "daemon/core.h"
#include "daemon/effects.h"
#include "daemon/election.h"
#include "daemon/evictor.h"
#include "daemon/options.h"
#include "daemon/watches.h"
#include "daemon/writer.h"
#include "kube/curl_transport.h"
#include "kube/events.h"
#include "kube/lifeline.h"
#include "server/metrics.h"

namespace hopwise::daemon {

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
  void MakeWatches();
  void MakeWriters();
  void MakeElection();
  void Elected();
  void LookUp(const ObjectName& pod);
  void Publish();

  kube::CurlTransport& transport_;
  const SchedulerOptions& options_;
  std::string identity_;
  server::Metrics& metrics_;
  Handlers handlers_;
  std::unique_ptr<Watches> watches_;
  std::unique_ptr<Election> election_;
  std::unique_ptr<kube::EventRecorder> events_;
  std::unique_ptr<Binder> binder_;
  std::unique_ptr<Evictor> evictor_;
  std::unique_ptr<Writer> writer_;
  bool synced_ = false;
  bool fresh_ = true;     // the pods were listed since we were elected
  uint64_t dropped_ = 0;  // Events, as last counted
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
