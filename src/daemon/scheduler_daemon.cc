// `hopwise scheduler`: the core on the main thread, the client's loop, the HTTP server and the
// signals on theirs, joined by one mailbox.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "api/json.h"
#include "base/log.h"
#include "daemon/ask.h"
#include "daemon/config_file.h"
#include "daemon/config_news.h"
#include "daemon/core.h"
#include "daemon/dump.h"
#include "daemon/endpoints.h"
#include "daemon/link.h"
#include "daemon/measures.h"
#include "daemon/options.h"
#include "daemon/process.h"
#include "daemon/rivals.h"
#include "daemon/scheduler_metrics.h"
#include "kube/credentials.h"
#include "rt/log_sink.h"
#include "rt/signals.h"

namespace hopwise::daemon {
namespace {

constexpr Duration kDumpWait = Seconds(10);
// Of /debug where /metrics is served to everybody: beside Volcano's port for health, 11251.
constexpr const char* kDebugAddress = "127.0.0.1:11252";

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options)
      : options_(options), config_(options.scheduler_conf) {
    DeclareSchedulerMetrics(metrics_);
  }

  int Run();

 private:
  Status Join();
  Status Serve();
  void StartLink();
  void Step(Duration took);
  void Stop();
  void WatchConfig();
  void ReloadConfig();
  void End(int code);
  Result<std::string> Dump();
  bool Alive();

  const SchedulerOptions& options_;
  ConfigFile config_;
  server::Metrics metrics_;
  ReadinessBox readiness_;
  CoreThread<Core> thread_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<kube::CurlTransport> transport_;
  std::unique_ptr<Link> link_;  // touched on the transport's loop only, once started
  std::unique_ptr<server::HttpServer> http_, healthz_, debug_;
  std::atomic<bool> started_ = false;
  // From any thread; link_ is gone at the end.
  ConfigNews news_{metrics_, [this](const kube::EventText& text) {
                     transport_->Post([this, text] {
                       if (link_ != nullptr) {
                         link_->TellAboutUs(text);
                       }
                     });
                   }};
  std::string identity_;
};

int Scheduler::Run() {
  Result<sched::Config> config = LoadSchedulerConf(config_);
  if (!config) {
    return Refuse("configuration_refused", config.error(), kUnusable);
  }
  const rt::Signals signals({SIGTERM, SIGINT}, [this](int) {
    if (!started_) {
      kube::KillPlugin();
      std::_Exit(kEnded);  // nothing is held and nothing was written yet
    }
    thread_.Post([this](Core&, Time) { End(kEnded); });
  });
  CoreOptions core;
  core.scheduler_names = options_.scheduler_names;
  core.default_queue = options_.default_queue;
  core.gang_deadline = options_.gang_deadline;
  core.group_wait = options_.group_wait;
  core.dry_run = options_.dry_run;
  core_ = std::make_unique<Core>(std::move(core), *config, metrics_);
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
  news_.Warn(config->warnings);
  const int code = thread_.Run(*core_, [this](Duration took) { Step(took); });
  Stop();
  return code;
}

Status Scheduler::Join() {
  Result<std::unique_ptr<kube::CurlTransport>> transport = Connect(options_, "hopwise-scheduler");
  if (!transport) {
    return tl::unexpected(transport.error());
  }
  transport_ = std::move(*transport);
  identity_ = MakeIdentity(*transport_);
  Status status = CheckAccess(*transport_, SchedulerRights(options_), "deploy/rbac/scheduler.yaml",
                              options_.startup_timeout);
  return status ? LookForRivals(*transport_, options_) : status;
}

Status Scheduler::Serve() {
  const Endpoints endpoints{readiness_, metrics_, [this] { return Alive(); },
                            [this] { return Dump(); }};
  const server::ServerOptions options = ListenOptions(options_);
  const bool debug_here = options_.debug_address.empty() && IsLoopback(options.address);
  auto routes = MetricsRoutes(endpoints);
  if (debug_here) {
    std::ranges::move(DebugRoutes(endpoints), std::back_inserter(routes));
  }
  if (Status status = OpenServer("serving", options, std::move(routes), http_); !status) {
    return status;
  }
  server::ServerOptions plain;
  plain.address = options_.healthz_address;
  if (!plain.address.empty()) {
    if (Status status = OpenServer("serving_health", plain, HealthRoutes(endpoints), healthz_);
        !status) {
      return status;
    }
  }
  if (debug_here) {
    return {};
  }
  const bool asked_for = !options_.debug_address.empty();
  plain.address = asked_for ? options_.debug_address : kDebugAddress;
  Status status = OpenServer("serving_debug", plain, DebugRoutes(endpoints), debug_);
  if (!status && !asked_for) {
    Log(LogLevel::kWarning, "debug_not_served", {{"error", status.error().message}});
    return {};
  }
  return status;
}

void Scheduler::StartLink() {
  Link::Handlers handlers;
  handlers.to_core = [this](CoreThread<Core>::Message message) {
    thread_.Post(std::move(message));
  };
  handlers.readiness = [this](const Readiness& readiness) { readiness_.Set(readiness); };
  handlers.hopeless = [this](const kube::ApiError& error) {
    Log(LogLevel::kError, "cannot_start", {{"error", error.message}});
    thread_.Post([this](Core&, Time) { End(kFailed); });
  };
  transport_->Run([&] {
    link_ = std::make_unique<Link>(*transport_, options_, identity_, metrics_, std::move(handlers));
    link_->Start();
    WatchConfig();
  });
}

void Scheduler::Step(Duration took) {
  if (took.ns > 0) {
    ObserveMs(metrics_, "volcano_open_session_duration_milliseconds", took);
  }
  auto effects = std::make_shared<Effects>(core_->Step(thread_.Now()));
  if (!effects->empty()) {
    transport_->Post([this, effects] { link_->CarryOut(*effects); });
  }
}

void Scheduler::End(int code) {
  thread_.End(code);
  core_->StopDeciding();
}

void Scheduler::Stop() {
  Log(LogLevel::kInfo, "stopping", {{"binds_under_way", core_->binds_under_way()}});
  StopLink(*transport_, link_);
  thread_.Drain(*core_);
  debug_.reset();
  healthz_.reset();
  http_.reset();
  transport_->Run([this] { link_.reset(); });
  transport_.reset();
}

void Scheduler::WatchConfig() {
  transport_->After(kConfigLook, [this] {
    if (link_ == nullptr) {
      return;  // at the end
    }
    if (config_.Look() != ConfigFile::Seen::kSame) {
      ReloadConfig();
    }
    WatchConfig();
  });
}

// What cannot be used changes nothing, but is said.
void Scheduler::ReloadConfig() {
  Result<sched::Config> config = LoadSchedulerConf(config_);
  if (!config) {
    news_.Refused(config.error().message);
    return;
  }
  news_.Loaded(config_.path());
  news_.Warn(config->warnings);
  thread_.Post([config = *config](Core& core, Time) { core.SetConfig(config); });
}

Result<std::string> Scheduler::Dump() {
  if (thread_.ending()) {
    return Fail(ErrorCode::kIo, "the scheduler is stopping");
  }
  const auto own = std::make_shared<std::promise<std::string>>();
  auto answer = own->get_future();
  thread_.Post([own](Core& core, Time) { own->set_value(core.DumpText()); });
  if (answer.wait_for(std::chrono::nanoseconds(kDumpWait.ns)) != std::future_status::ready) {
    return Fail(ErrorCode::kIo, "the scheduling thread does not answer");
  }
  Result<json::Json> parsed = json::ParseJson(answer.get());
  json::Json state = parsed ? std::move(*parsed) : json::Json::object();
  state["schedulerNames"] = options_.scheduler_names;
  state["defaultQueue"] = options_.default_queue;
  state["configuration"] = config_.content();
  return DumpState(*transport_, std::move(state));
}

bool Scheduler::Alive() {
  const Time until = rt::MonotonicNow() + kAlive;
  return thread_.ending() || (thread_.Answers(until) && LoopAnswers(*transport_, until));
}

}  // namespace

int RunScheduler(const SchedulerOptions& options) {
  rt::SurviveOutput();
  SetLogSink(rt::MakeLogSink(options.log_format, STDERR_FILENO), options.log_level);
  return Scheduler(options).Run();
}

}  // namespace hopwise::daemon
