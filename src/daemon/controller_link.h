// The controllers' end of the API server: what is watched, who leads, and what is written. Lives on
// the client's loop; talks to the core's thread by the mailbox alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "control/controller_config.h"
#include "daemon/carrier.h"
#include "daemon/controller_core.h"
#include "daemon/election.h"
#include "daemon/options.h"
#include "daemon/ufm_poller.h"
#include "daemon/watches.h"
#include "kube/curl_transport.h"
#include "kube/events.h"
#include "kube/lifeline.h"
#include "server/metrics.h"

namespace hopwise::daemon {

class ControllerLink {
 public:
  struct Handlers {
    // Runs on the core's thread, in order.
    std::function<void(std::function<void(ControllerCore&, Time)>)> to_core;
    std::function<void(const Readiness&)> readiness;
    // Before the first sync something can never work: credentials or rights.
    std::function<void(const kube::ApiError&)> hopeless;
    // volcano-controller.conf as the ConfigMap has it, when it is first seen and when its content
    // changes; nothing where the map or its key is gone, or was never there.
    std::function<void(const std::optional<std::string>&)> configured;
  };
  ControllerLink(kube::CurlTransport& transport, const ControllerOptions& options,
                 const std::string& identity, server::Metrics& metrics, Handlers handlers);

  void Start();
  // Which sources are to be asked.
  void Configure(const control::ControllerConfig& config);
  void CarryOut(ControllerEffects& effects, WorkEffects& work);
  // About the controller itself; on its Lease.
  void TellAboutUs(const kube::EventText& text);
  // Waits for what is under way, writes waiting Events, gives the Lease back; then `done`.
  void Stop(Duration limit, std::function<void()> done);

 private:
  void Record(const std::vector<Tell>& events);
  void Observe(const kube::Resource& resource, std::vector<kube::WatchEvent>&& events);
  void ObserveConfig(const std::vector<kube::WatchEvent>& events);
  // Begins to ask, or leaves it: only the leader does.
  void AskSources();
  void Publish();

  kube::CurlTransport& transport_;
  const ControllerOptions& options_;
  server::Metrics& metrics_;
  Handlers handlers_;
  Watches watches_;
  Election election_;
  kube::EventRecorder events_;
  Carrier carrier_, work_carrier_;
  std::optional<control::SourceSettings> ufm_settings_;
  std::unique_ptr<UfmPoller> ufm_;
  std::optional<std::string> conf_;
  bool conf_told_ = false;
  bool synced_ = false;
  uint64_t dropped_ = 0;  // Events, as last counted
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
