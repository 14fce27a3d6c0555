// `hopwise controller`: the controllers' core on the main thread, the client's loop, the HTTP
// server and the signals on theirs, joined by one mailbox.
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "control/controller_config.h"
#include "daemon/ask.h"
#include "daemon/config_file.h"
#include "daemon/config_news.h"
#include "daemon/controller_core.h"
#include "daemon/controller_link.h"
#include "daemon/controller_metrics.h"
#include "daemon/endpoints.h"
#include "daemon/options.h"
#include "daemon/process.h"
#include "daemon/ssh_keys.h"
#include "kube/credentials.h"
#include "rt/log_sink.h"
#include "rt/signals.h"

namespace hopwise::daemon {
namespace {

class Controller {
 public:
  explicit Controller(const ControllerOptions& options)
      : options_(options), conf_file_(options.conf_file) {
    DeclareControllerMetrics(metrics_);
    core_ = std::make_unique<ControllerCore>(options, metrics_, [this] { return keys_.Take(); });
  }

  int Run();

 private:
  Status Join();
  Status Serve();
  void StartLink();
  void Stop();
  void WatchFile();
  void ReloadFile();
  void TakeConfig(const std::string& text, const std::string& from);
  bool Alive();

  const ControllerOptions& options_;
  ConfigFile conf_file_;
  server::Metrics metrics_;
  ReadinessBox readiness_;
  CoreThread<ControllerCore> thread_;
  SshKeyMaker keys_;
  std::unique_ptr<ControllerCore> core_;
  std::unique_ptr<kube::CurlTransport> transport_;
  std::unique_ptr<ControllerLink> link_;  // touched on the transport's loop only, once started
  std::unique_ptr<server::HttpServer> http_, healthz_;
  std::atomic<bool> started_ = false;
  // On the loop.
  ConfigNews news_{metrics_, [this](const kube::EventText& text) { link_->TellAboutUs(text); }};
  std::string identity_;
};

std::string Joined(const std::vector<std::string>& errors) {
  return fmt::format("{}", fmt::join(errors, "; "));
}

int Controller::Run() {
  const Result<std::string> text = conf_file_.Read();
  if (!text) {
    return Refuse("configuration_refused", text.error(), kUnusable);
  }
  const control::ControllerConfigReport report = control::ReadControllerConfig(*text);
  if (!report.errors.empty()) {
    return Refuse("configuration_refused",
                  {ErrorCode::kInvalid, conf_file_.path() + ": " + Joined(report.errors)},
                  kUnusable);
  }
  const rt::Signals signals({SIGTERM, SIGINT}, [this](int) {
    if (!started_) {
      kube::KillPlugin();
      std::_Exit(kEnded);  // nothing is held and nothing was written yet
    }
    thread_.Post([this](ControllerCore&, Time) { thread_.End(kEnded); });
  });
  if (Status status = Join(); !status) {
    return Refuse("cannot_start", status.error(), kFailed);
  }
  if (Status status = Serve(); !status) {
    return Refuse("cannot_serve", status.error(), kFailed);
  }
  started_ = true;
  StartLink();
  for (const std::string& flag : options_.ignored_flags) {
    Log(LogLevel::kWarning, "flag_ignored", {{"flag", flag}});
  }
  const int code = thread_.Run(*core_, [this](Duration) {
    auto effects = std::make_shared<ControllerEffects>(core_->topology.Step(thread_.Now()));
    auto work = std::make_shared<WorkEffects>(core_->work.Step(thread_.Now()));
    if (!effects->empty() || !work->empty()) {
      transport_->Post([this, effects, work] { link_->CarryOut(*effects, *work); });
    }
  });
  Stop();
  return code;
}

Status Controller::Join() {
  Result<std::unique_ptr<kube::CurlTransport>> transport = Connect(options_, "hopwise-controller");
  if (!transport) {
    return tl::unexpected(transport.error());
  }
  transport_ = std::move(*transport);
  identity_ = MakeIdentity(*transport_);
  return CheckAccess(*transport_, ControllerRights(options_), "deploy/rbac/controller.yaml",
                     options_.startup_timeout);
}

Status Controller::Serve() {
  const Endpoints endpoints{readiness_, metrics_, [this] { return Alive(); }, {}};
  if (Status status =
          OpenServer("serving", ListenOptions(options_), MetricsRoutes(endpoints), http_);
      !status) {
    return status;
  }
  server::ServerOptions plain;
  plain.address = options_.healthz_address;
  return plain.address.empty()
             ? Status{}
             : OpenServer("serving_health", plain, HealthRoutes(endpoints), healthz_);
}

void Controller::StartLink() {
  ControllerLink::Handlers handlers;
  handlers.to_core = [this](CoreThread<ControllerCore>::Message message) {
    thread_.Post(std::move(message));
  };
  handlers.readiness = [this](const Readiness& readiness) { readiness_.Set(readiness); };
  handlers.hopeless = [this](const kube::ApiError& error) {
    Log(LogLevel::kError, "cannot_start", {{"error", error.message}});
    thread_.Post([this](ControllerCore&, Time) { thread_.End(kFailed); });
  };
  handlers.configured = [this](const std::optional<std::string>& text) {
    const std::string from =
        fmt::format("ConfigMap {}/{}", options_.conf_map_ns, options_.conf_map_name);
    if (text) {
      TakeConfig(*text, from);
    } else {
      news_.Refused(from + " has no volcano-controller.conf");
    }
  };
  transport_->Run([&] {
    link_ = std::make_unique<ControllerLink>(*transport_, options_, identity_, metrics_,
                                             std::move(handlers));
    link_->Start();
    if (!options_.conf_file.empty()) {
      TakeConfig(conf_file_.content(), conf_file_.path());
      WatchFile();
    }
  });
}

void Controller::WatchFile() {
  transport_->After(kConfigLook, [this] {
    if (link_ == nullptr) {
      return;  // at the end
    }
    if (conf_file_.Look() != ConfigFile::Seen::kSame) {
      ReloadFile();
    }
    WatchFile();
  });
}

void Controller::ReloadFile() {
  const Result<std::string> text = conf_file_.Read();
  if (text) {
    TakeConfig(*text, conf_file_.path());
  } else {
    news_.Refused(text.error().message);
  }
}

// What cannot be used changes nothing, but is said. On the loop.
void Controller::TakeConfig(const std::string& text, const std::string& from) {
  const control::ControllerConfigReport report = control::ReadControllerConfig(text);
  if (!report.errors.empty()) {
    news_.Refused(from + ": " + Joined(report.errors));
    return;
  }
  news_.Loaded(from);
  news_.Warn(report.config.warnings);
  thread_.Post([config = report.config](ControllerCore& core, Time now) {
    core.topology.SetConfig(config, now);
  });
  link_->Configure(report.config);
}

bool Controller::Alive() {
  const Time until = rt::MonotonicNow() + kAlive;
  return thread_.ending() || (thread_.Answers(until) && LoopAnswers(*transport_, until));
}

void Controller::Stop() {
  Log(LogLevel::kInfo, "stopping");
  StopLink(*transport_, link_);
  thread_.Drain(*core_);
  healthz_.reset();
  http_.reset();
  transport_->Run([this] { link_.reset(); });
  transport_.reset();
}

}  // namespace

int RunController(const ControllerOptions& options) {
  rt::SurviveOutput();
  SetLogSink(rt::MakeLogSink(options.log_format, STDERR_FILENO), options.log_level);
  return Controller(options).Run();
}

}  // namespace hopwise::daemon
