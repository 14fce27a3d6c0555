// `hopwise scheduler`: the core on the main thread, the client's loop, the HTTP server and the
// signals on theirs, joined by one mailbox.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/ask.h"
#include "daemon/config_file.h"
#include "daemon/core.h"
#include "daemon/dump.h"
#include "daemon/endpoints.h"
#include "daemon/link.h"
#include "daemon/measures.h"
#include "daemon/options.h"
#include "daemon/rivals.h"
#include "daemon/scheduler_metrics.h"
#include "kube/access.h"
#include "kube/credentials.h"
#include "kube/curl_transport.h"
#include "rt/clock.h"
#include "rt/log_sink.h"
#include "rt/mailbox.h"
#include "rt/signals.h"

namespace hopwise::daemon {
namespace {

constexpr int kEnded = 0;
constexpr int kFailed = 1;
constexpr int kUnusable = 2;

// Binds under way and Events that wait may take so long after a signal.
constexpr Duration kStopLimit = Seconds(5);
// The core's thread must answer a health check within this; a decision takes milliseconds.
constexpr Duration kAlive = Seconds(5);
// Nothing to do: the longest nap. Whatever happens wakes it at once.
constexpr Duration kNap = Seconds(60);
constexpr Duration kDumpWait = Seconds(10);
// Of /debug where /metrics is served to everybody: beside Volcano's port for health, 11251.
constexpr const char* kDebugAddress = "127.0.0.1:11252";

// The wall clock as it was at start, run on by the monotonic one: what is timed does not jump.
class SteadyWall {
 public:
  [[nodiscard]] Time Now() const { return wall_ + (rt::MonotonicNow() - steady_); }

 private:
  Time wall_ = rt::WallNow();
  Time steady_ = rt::MonotonicNow();
};

// Of "host:port": whether only this machine reaches it.
bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]:");
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

int Refuse(std::string_view event, const Error& error, int code) {
  Log(LogLevel::kError, event, {{"error", error.message}});
  return code;
}

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options)
      : options_(options), config_(options.scheduler_conf) {
    DeclareSchedulerMetrics(metrics_);
  }

  int Run();

 private:
  using Message = std::function<void(Core&, Time)>;

  Status Connect();
  Status Serve();
  static Status Open(std::string_view event, const server::ServerOptions& options,
                     std::vector<std::pair<std::string, server::Handler>> routes,
                     std::unique_ptr<server::HttpServer>& opened);
  void StartLink();
  void Loop();
  void Stop();
  void WatchConfig();
  void ReloadConfig();
  void TellConfig(const sched::Config& config);
  void End(int code);
  Result<std::string> Dump();
  bool Alive();

  const SchedulerOptions& options_;
  ConfigFile config_;
  SteadyWall clock_;
  server::Metrics metrics_;
  ReadinessBox readiness_;
  rt::Mailbox<Message> mailbox_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<kube::CurlTransport> transport_;
  std::unique_ptr<Link> link_;  // touched on the transport's loop only, once started
  std::unique_ptr<server::HttpServer> http_, healthz_, debug_;
  std::atomic<bool> started_ = false;
  std::string identity_;
  std::atomic<bool> ending_ = false;  // set on the core's thread
  int exit_code_ = kEnded;
};

int Scheduler::Run() {
  Result<sched::Config> config = config_.Load();
  if (!config) {
    return Refuse("configuration_refused", config.error(), kUnusable);
  }
  const rt::Signals signals({SIGTERM, SIGINT}, [this](int) {
    if (!started_) {
      kube::KillPlugin();
      std::_Exit(kEnded);  // nothing is held and nothing was written yet
    }
    mailbox_.Post([this](Core&, Time) { End(kEnded); });
  });
  CoreOptions core;
  core.scheduler_names = options_.scheduler_names;
  core.default_queue = options_.default_queue;
  core.gang_deadline = options_.gang_deadline;
  core.dry_run = options_.dry_run;
  core_ = std::make_unique<Core>(std::move(core), *config, metrics_);
  if (Status status = Connect(); !status) {
    return Refuse("cannot_start", status.error(), kFailed);
  }
  if (Status status = LookForRivals(*transport_, options_); !status) {
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
  TellConfig(*config);
  Loop();
  Stop();
  return exit_code_;
}

Status Scheduler::Connect() {
  kube::AccessOptions access_options;
  access_options.kubeconfig = options_.kubeconfig;
  access_options.context = options_.context;
  access_options.server = options_.master;
  Result<kube::Access> access = kube::LoadAccess(access_options);
  if (!access) {
    return tl::unexpected(access.error());
  }
  Log(LogLevel::kInfo, "connecting", {{"access", access->Redacted()}});
  kube::CurlOptions curl;
  curl.qps = options_.qps;
  curl.burst = options_.burst;
  curl.user_agent = "hopwise-scheduler";
  transport_ = std::make_unique<kube::CurlTransport>(std::move(*access), std::move(curl));
  identity_ = fmt::format("{}_{:016x}", HostName(), transport_->Random());
  return CheckAccess(*transport_,
                     NeededRights(options_.lock_namespace, options_.leader_elect, options_.dry_run),
                     options_.startup_timeout);
}

Status Scheduler::Serve() {
  const Endpoints endpoints{readiness_, metrics_, [this] { return Alive(); },
                            [this] { return Dump(); }};
  server::ServerOptions options;
  options.address = options_.listen_address;
  options.cert_file = options_.tls_cert_file;
  options.key_file = options_.tls_key_file;
  options.client_ca_file = options_.client_ca_file;
  const bool debug_here = options_.debug_address.empty() && IsLoopback(options.address);
  auto routes = MetricsRoutes(endpoints);
  if (debug_here) {
    std::ranges::move(DebugRoutes(endpoints), std::back_inserter(routes));
  }
  if (Status status = Open("serving", options, std::move(routes), http_); !status) {
    return status;
  }
  server::ServerOptions plain;
  plain.address = options_.healthz_address;
  if (!plain.address.empty()) {
    if (Status status = Open("serving_health", plain, HealthRoutes(endpoints), healthz_); !status) {
      return status;
    }
  }
  if (debug_here) {
    return {};
  }
  const bool asked_for = !options_.debug_address.empty();
  plain.address = asked_for ? options_.debug_address : kDebugAddress;
  Status status = Open("serving_debug", plain, DebugRoutes(endpoints), debug_);
  if (!status && !asked_for) {
    Log(LogLevel::kWarning, "debug_not_served", {{"error", status.error().message}});
    return {};
  }
  return status;
}

Status Scheduler::Open(std::string_view event, const server::ServerOptions& options,
                       std::vector<std::pair<std::string, server::Handler>> routes,
                       std::unique_ptr<server::HttpServer>& opened) {
  auto server = server::HttpServer::Start(options, std::move(routes));
  if (!server) {
    return Fail(server.error().code,
                server.error().message +
                    "; --listen-address, --healthz-address and --debug-address name others");
  }
  opened = std::move(*server);
  Log(LogLevel::kInfo, event, {{"address", opened->url()}});
  return {};
}

void Scheduler::StartLink() {
  Link::Handlers handlers;
  handlers.to_core = [this](Message message) { mailbox_.Post(std::move(message)); };
  handlers.readiness = [this](const Readiness& readiness) { readiness_.Set(readiness); };
  handlers.hopeless = [this](const kube::ApiError& error) {
    Log(LogLevel::kError, "cannot_start", {{"error", error.message}});
    mailbox_.Post([this](Core&, Time) { End(kFailed); });
  };
  transport_->Run([&] {
    link_ = std::make_unique<Link>(*transport_, options_, identity_, metrics_, std::move(handlers));
    link_->Start();
    WatchConfig();
  });
}

void Scheduler::Loop() {
  while (!ending_) {
    const Time wake = core_->next_wake();
    const Duration left = wake.set() ? wake - clock_.Now() : kNap;
    std::vector<Message> messages = mailbox_.Take(std::clamp(left, Duration{}, kNap));
    const Time start = rt::MonotonicNow();
    for (Message& message : messages) {
      message(*core_, clock_.Now());
    }
    if (!messages.empty()) {
      ObserveMs(metrics_, "volcano_open_session_duration_milliseconds", rt::MonotonicNow() - start);
    }
    auto effects = std::make_shared<Effects>(core_->Step(clock_.Now()));
    if (!effects->empty()) {
      transport_->Post([this, effects] { link_->CarryOut(*effects); });
    }
  }
}

void Scheduler::End(int code) {
  if (!ending_) {
    exit_code_ = code;
  }
  ending_ = true;
  core_->StopDeciding();
}

void Scheduler::Stop() {
  Log(LogLevel::kInfo, "stopping", {{"binds_under_way", core_->binds_under_way()}});
  const auto stopped = std::make_shared<std::promise<void>>();
  transport_->Post(
      [this, stopped] { link_->Stop(kStopLimit, [stopped] { stopped->set_value(); }); });
  // What is under way, Events, and the Lease's release, each within its own limit.
  stopped->get_future().wait_for(std::chrono::nanoseconds(4 * kStopLimit.ns));
  for (Message& message : mailbox_.Take({})) {
    message(*core_, clock_.Now());  // whoever asked over HTTP gets an answer
  }
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
  Result<sched::Config> config = config_.Load();
  metrics_.Count("hopwise_config_reloads_total", 1, {{"result", config ? "loaded" : "refused"}});
  if (!config) {
    Log(LogLevel::kError, "configuration_refused",
        {{"error", config.error().message}, {"kept", "the configuration before"}});
    link_->TellAboutUs({.warning = true,
                        .reason = "ConfigurationRefused",
                        .message = config.error().message + "; the one before is kept",
                        .key = ""});
    return;
  }
  Log(LogLevel::kInfo, "configuration_loaded", {{"file", config_.path()}});
  link_->TellAboutUs(
      {.reason = "ConfigurationLoaded", .message = config_.path() + " was read", .key = ""});
  TellConfig(*config);
  mailbox_.Post([config = *config](Core& core, Time) { core.SetConfig(config); });
}

void Scheduler::TellConfig(const sched::Config& config) {
  metrics_.Set("hopwise_config_warnings", static_cast<double>(config.warnings.size()));
  for (const std::string& warning : config.warnings) {
    Log(LogLevel::kWarning, "configuration_warning", {{"warning", warning}});
    transport_->Post([this, warning] {
      link_->TellAboutUs(
          {.warning = true, .reason = "ConfigurationWarning", .message = warning, .key = ""});
    });
  }
}

Result<std::string> Scheduler::Dump() {
  if (ending_) {
    return Fail(ErrorCode::kIo, "the scheduler is stopping");
  }
  const auto own = std::make_shared<std::promise<std::string>>();
  auto answer = own->get_future();
  mailbox_.Post([own](Core& core, Time) { own->set_value(core.DumpText()); });
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
  if (ending_) {
    return true;
  }
  const auto core = std::make_shared<std::promise<void>>();
  const auto loop = std::make_shared<std::promise<void>>();
  mailbox_.Post([core](Core&, Time) { core->set_value(); });
  transport_->Post([loop] { loop->set_value(); });
  const Time until = rt::MonotonicNow() + kAlive;
  const auto answers = [until](std::promise<void>& thread) {
    const Duration left = std::max(until - rt::MonotonicNow(), Duration{});
    return thread.get_future().wait_for(std::chrono::nanoseconds(left.ns)) ==
           std::future_status::ready;
  };
  return answers(*core) && answers(*loop);
}

}  // namespace

int RunScheduler(const SchedulerOptions& options) {
  rt::SurviveOutput();
  SetLogSink(rt::MakeLogSink(options.log_format, STDERR_FILENO), options.log_level);
  return Scheduler(options).Run();
}

}  // namespace hopwise::daemon
