// `hopwise webhook`: the HTTPS server whose threads answer the API server, the client's loop with
// what is watched and the certificates, the signals, and the main thread, which waits for the end.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/admission_desk.h"
#include "daemon/ask.h"
#include "daemon/ca_bundle.h"
#include "daemon/certificate_keeper.h"
#include "daemon/config_file.h"
#include "daemon/endpoints.h"
#include "daemon/process.h"
#include "daemon/watches.h"
#include "daemon/webhook_metrics.h"
#include "daemon/webhook_options.h"
#include "kube/credentials.h"
#include "rt/log_sink.h"
#include "rt/signals.h"
#include "server/self_issued.h"
#include "server/tls_pair.h"

namespace hopwise::daemon {
namespace {

constexpr int kUnavailable = 503;
constexpr size_t kAdmissionThreads = 4;
// API servers keep as many connections as they have requests at a time; the rest is room for
// clients that are stuck.
constexpr size_t kMostConnections = 512;
// Longer than the 90 s after which the API server leaves a connection that lies idle: it never
// sends a request into one that we are about to close.
constexpr int kKeepAliveS = 120;
constexpr Duration kQueueTimeout = Seconds(2);

control::AdmissionSettings SettingsOf(const WebhookOptions& options) {
  control::AdmissionSettings settings;
  settings.scheduler_names = options.scheduler_names;
  settings.default_queue = options.default_queue;
  settings.max_queue_depth = options.max_queue_depth;
  settings.check_allocated_pods = options.check_allocated_pods;
  settings.protect_root = options.protect_root;
  settings.refuse_hyper_node_faults = options.refuse_hyper_node_faults;
  settings.gate_pods = options.gate_pods;
  return settings;
}

// Where the machine has no database every name will do.
bool KnowsTimeZone(const std::string& zone) {
  const std::filesystem::path database = "/usr/share/zoneinfo";
  std::error_code error;
  return !std::filesystem::is_directory(database, error) ||
         std::filesystem::is_regular_file(database / zone, error);
}

class Webhook {
 public:
  explicit Webhook(const WebhookOptions& options)
      : options_(options),
        conf_file_(options.admission_conf),
        ca_file_(options.ca_cert_file),
        desk_(SettingsOf(options), metrics_) {
    DeclareWebhookMetrics(metrics_);
    desk_.SetKnowsTimeZone(&KnowsTimeZone);
    desk_.SetFetchQueue([this](const std::string& name) { return FetchQueue(name); });
  }

  int Run();

 private:
  Status ReadFiles();
  Status Join();
  Status Serve();
  Status ServeAdmission();
  void StartLink();
  void AddWatches();
  void KeepCertificates();
  void Present(const server::SelfIssued& issued);
  void WatchFiles();
  void TakeConfig();
  void TakeCa();
  void Publish();
  server::HttpResponse Ready() const;
  std::optional<api::Queue> FetchQueue(const std::string& name);
  void Stop();

  const WebhookOptions& options_;
  ConfigFile conf_file_, ca_file_;
  server::Metrics metrics_;
  ReadinessBox readiness_;
  AdmissionDesk desk_;
  rt::Mailbox<int> endings_;  // exit codes
  std::atomic<bool> started_ = false, leaving_ = false;
  std::unique_ptr<kube::CurlTransport> transport_;
  std::shared_ptr<server::TlsGiven> given_ = std::make_shared<server::TlsGiven>();
  std::unique_ptr<server::HttpServer> http_, healthz_, admission_;
  // On the loop.
  std::unique_ptr<Watches> watches_;
  std::unique_ptr<CertificateKeeper> keeper_;
  std::unique_ptr<CaBundle> bundle_;
  std::string certificate_trouble_;
  kube::Lifeline lifeline_;
};

int Webhook::Run() {
  if (Status status = ReadFiles(); !status) {
    return Refuse("configuration_refused", status.error(), kUnusable);
  }
  const rt::Signals signals({SIGTERM, SIGINT}, [this](int) {
    if (!started_) {
      kube::KillPlugin();
      std::_Exit(kEnded);  // nothing is held and nothing was written yet
    }
    endings_.Post(kEnded);
  });
  if (Status status = Join(); !status) {
    return Refuse("cannot_start", status.error(), kFailed);
  }
  if (Status status = Serve(); !status) {
    return Refuse("cannot_serve", status.error(), kFailed);
  }
  StartLink();
  started_ = true;
  for (const std::string& flag : options_.ignored_flags) {
    Log(LogLevel::kWarning, "flag_ignored", {{"flag", flag}});
  }
  std::vector<int> codes;
  while (codes.empty()) codes = endings_.Take(kNap);
  if (codes.front() == kEnded) {
    // Not ready, but answering: requests come until all API servers know that we leave.
    Log(LogLevel::kInfo, "leaving", {{"within", FormatGoDuration(options_.graceful_shutdown)}});
    leaving_ = true;
    endings_.Take(options_.graceful_shutdown);
  }
  Stop();
  return codes.front();
}

Status Webhook::ReadFiles() {
  for (ConfigFile* file : {&conf_file_, &ca_file_}) {
    const Result<std::string> text = file->Read();
    if (!text) return tl::unexpected(text.error());
  }
  if (!options_.ca_cert_file.empty()) {
    const Status good = server::CheckCa(ca_file_.content(), options_.ca_cert_file);
    if (!good) return good;
  }
  control::AdmissionConfigReport report = control::ReadAdmissionConfig(conf_file_.content());
  if (!report.errors.empty()) {
    return Invalid(fmt::format("{}: {}", conf_file_.path(), fmt::join(report.errors, "; ")));
  }
  for (const std::string& warning : report.warnings) {
    Log(LogLevel::kWarning, "configuration_warning", {{"warning", warning}});
  }
  desk_.SetConfig(std::move(report.config));
  return {};
}

Status Webhook::Join() {
  Result<std::unique_ptr<kube::CurlTransport>> transport = Connect(options_, "hopwise-webhook");
  if (!transport) {
    return tl::unexpected(transport.error());
  }
  transport_ = std::move(*transport);
  return CheckAccess(*transport_, WebhookRights(options_), "deploy/rbac/webhook.yaml",
                     options_.startup_timeout);
}

Status Webhook::Serve() {
  const Endpoints endpoints{
      readiness_,
      metrics_,
      [this] { return LoopAnswers(*transport_, rt::MonotonicNow() + kAlive); },
      {}};
  const auto ours = [this](std::vector<std::pair<std::string, server::Handler>> routes) {
    for (auto& [path, handler] : routes) {
      if (path == "/readyz") handler = [this](const server::HttpRequest&) { return Ready(); };
    }
    return routes;
  };
  server::ServerOptions plain;
  plain.address = options_.listen_address;
  if (Status status = OpenServer("serving", plain, ours(MetricsRoutes(endpoints)), http_);
      !status) {
    return status;
  }
  plain.address = options_.healthz_address;
  if (!plain.address.empty()) {
    Status status = OpenServer("serving_health", plain, ours(HealthRoutes(endpoints)), healthz_);
    if (!status) return status;
  }
  return ServeAdmission();
}

Status Webhook::ServeAdmission() {
  server::ServerOptions options;
  options.address = fmt::format("{}:{}", options_.bind_address, options_.port);
  options.client_ca_file = options_.client_ca_file;
  options.threads = kAdmissionThreads;
  options.most_connections = kMostConnections;
  options.keep_alive_s = kKeepAliveS;
  if (options_.issues_certificates()) {
    options.tls = given_;
  } else {
    options.cert_file = options_.tls_cert_file;
    options.key_file = options_.tls_key_file;
  }
  std::vector<std::pair<std::string, server::Handler>> routes = {
      {"/readyz", [this](const server::HttpRequest&) { return Ready(); }}};
  for (const control::AdmissionService& service : control::AdmissionServices()) {
    if (!options_.serves(service.path)) continue;
    routes.emplace_back(std::string(service.path),
                        [this, &service](const server::HttpRequest& request) {
                          return desk_.Answer(service, request);
                        });
  }
  auto server = server::HttpServer::Start(std::move(options), std::move(routes));
  if (!server) {
    const bool address = server.error().message.starts_with("cannot listen on");
    return Fail(server.error().code,
                server.error().message +
                    (address ? "; --bind-address and --port name another address" : ""));
  }
  admission_ = std::move(*server);
  Log(LogLevel::kInfo, "serving_admission", {{"address", admission_->url()}});
  return {};
}

// --- on the loop

void Webhook::StartLink() {
  transport_->Run([this] {
    AddWatches();
    KeepCertificates();
    WatchFiles();
    Publish();
  });
}

void Webhook::AddWatches() {
  Watches::Handlers handlers;
  handlers.events = [this](const kube::Resource& resource, std::vector<kube::WatchEvent>&& events) {
    desk_.Observe(resource, std::move(events));
  };
  handlers.listed = [this](const kube::Resource&) { Publish(); };
  handlers.changed = [this] { Publish(); };
  handlers.hopeless = [this](const kube::ApiError& error) {
    Log(LogLevel::kError, "cannot_start", {{"error", error.message}});
    endings_.Post(kFailed);
  };
  watches_ = std::make_unique<Watches>(*transport_, metrics_, std::move(handlers));
  Log(LogLevel::kInfo, "watching");
  kube::Reflector::Options reflector;
  reflector.streaming_list = options_.streaming_lists;
  const WebhookNeeds needs = NeedsOf(options_);
  if (needs.queues) watches_->Add(kube::kQueues, true, reflector);
  if (needs.namespaces) watches_->Add(kube::kNamespaces, false, reflector);
  if (needs.fabric) {
    watches_->Add(kube::kNodes, false, reflector);
    watches_->Add(kube::kHyperNodes, true, reflector);
  }
}

void Webhook::KeepCertificates() {
  if (options_.publishes_ca()) {
    bundle_ = std::make_unique<CaBundle>(*transport_, options_.webhook_configurations, metrics_);
  }
  if (!options_.issues_certificates()) {
    TakeCa();
    return;
  }
  CertificateKeeper::Options keeper;
  keeper.ns = options_.webhook_namespace;
  keeper.secret = options_.certificate_secret;
  const std::string service = options_.webhook_service;
  const std::string full = service + "." + options_.webhook_namespace;
  keeper.terms.names = {full + ".svc", full + ".svc.cluster.local", full, service};
  keeper.terms.names.insert(keeper.terms.names.end(), options_.certificate_names.begin(),
                            options_.certificate_names.end());
  keeper.terms.validity = options_.certificate_validity;
  certificate_trouble_ = "no certificate yet";
  keeper_ = std::make_unique<CertificateKeeper>(
      *transport_, std::move(keeper),
      CertificateKeeper::Handlers{
          .issued = [this](const server::SelfIssued& issued) { Present(issued); },
          .trouble =
              [this](const std::string& why) {
                certificate_trouble_ = why;
                Publish();
              }});
  keeper_->Start();
}

// Trust goes first: a CA joins the bundle before it signs what is presented.
void Webhook::Present(const server::SelfIssued& issued) {
  if (bundle_ != nullptr) bundle_->Set(issued.ca);
  auto pair = server::MakePair(issued.cert, issued.key, "tls.crt", "tls.key");
  if (!pair) {
    certificate_trouble_ = pair.error().message;
    Log(LogLevel::kWarning, "certificate_trouble", {{"error", certificate_trouble_}});
  } else {
    given_->Set(std::move(*pair));
    certificate_trouble_.clear();
    const Time expiry = server::ExpiryOf(issued.cert);
    metrics_.Count(kCertificateChanges);
    const int64_t expiry_s = expiry.ns / 1'000'000'000;
    metrics_.Set(kCertificateExpiry, static_cast<double>(expiry_s));
    Log(LogLevel::kInfo, "certificate_taken", {{"expires", FormatRfc3339(expiry)}});
  }
  Publish();
}

void Webhook::WatchFiles() {
  transport_->After(kConfigLook, lifeline_.Guard([this] {
    if (conf_file_.Look() != ConfigFile::Seen::kSame) TakeConfig();
    if (ca_file_.Look() == ConfigFile::Seen::kChanged && ca_file_.Read()) TakeCa();
    WatchFiles();
  }));
}

// Nobody could reach the webhook by what is no certificate: the one before stays.
void Webhook::TakeCa() {
  const Status good = server::CheckCa(ca_file_.content(), options_.ca_cert_file);
  if (!good) {
    Log(LogLevel::kWarning, "ca_certificate_refused", {{"error", good.error().message}});
  } else if (bundle_ != nullptr) {
    bundle_->Set(ca_file_.content());
  }
}

// What cannot be used changes nothing, but is said.
void Webhook::TakeConfig() {
  const Result<std::string> text = conf_file_.Read();
  control::AdmissionConfigReport report;
  if (text) {
    report = control::ReadAdmissionConfig(*text);
  } else {
    report.errors.push_back(text.error().message);
  }
  for (const std::string& warning : report.warnings) {
    Log(LogLevel::kWarning, "configuration_warning", {{"warning", warning}});
  }
  const bool good = report.errors.empty();
  metrics_.Count("hopwise_config_reloads_total", 1, {{"result", good ? "loaded" : "refused"}});
  if (good) {
    desk_.SetConfig(std::move(report.config));
    Log(LogLevel::kInfo, "configuration_loaded", {{"file", conf_file_.path()}});
  } else {
    Log(LogLevel::kWarning, "configuration_refused",
        {{"file", conf_file_.path()},
         {"error", fmt::format("{}", fmt::join(report.errors, "; "))}});
  }
}

void Webhook::Publish() {
  Readiness readiness;
  // Where nothing is looked up nothing is watched.
  const WebhookNeeds needs = NeedsOf(options_);
  const bool alone = !needs.queues && !needs.fabric && !needs.namespaces;
  readiness.synced = alone || watches_->all_listed();
  readiness.troubles = watches_->troubles();
  if (!certificate_trouble_.empty()) readiness.troubles["certificate"] = certificate_trouble_;
  if (readiness.synced) desk_.SetSynced();
  readiness_.Set(readiness);
}

// --- on the server's threads

server::HttpResponse Webhook::Ready() const {
  const Readiness readiness = readiness_.Get();
  std::string problems;
  if (leaving_) problems += "leaving\n";
  if (!readiness.synced) problems += "caches are not synced\n";
  for (const auto& [what, why] : readiness.troubles) problems += what + ": " + why + "\n";
  server::HttpResponse response;
  response.status = problems.empty() ? 200 : kUnavailable;
  response.body = problems.empty() ? "ok\n" : problems;
  return response;
}

std::optional<api::Queue> Webhook::FetchQueue(const std::string& name) {
  kube::Request request;
  request.path = kube::ObjectPath(kube::kQueues, "", name);
  request.timeout = kQueueTimeout;
  const kube::Response response = Ask(*transport_, std::move(request));
  if (!response.ok()) return std::nullopt;
  Result<api::Decoded> decoded = api::DecodeObject(response.body);
  if (!decoded) return std::nullopt;
  auto* queue = std::get_if<api::Queue>(&decoded->object);
  return queue == nullptr ? std::nullopt : std::optional(std::move(*queue));
}

void Webhook::Stop() {
  Log(LogLevel::kInfo, "stopping");
  admission_.reset();
  healthz_.reset();
  http_.reset();
  transport_->Run([this] {
    keeper_.reset();
    bundle_.reset();
    watches_.reset();
  });
  transport_.reset();
}

}  // namespace

bool WebhookOptions::serves(std::string_view path) const {
  return enabled_admission.empty() ||
         std::ranges::find(enabled_admission, path) != enabled_admission.end();
}

WebhookNeeds NeedsOf(const WebhookOptions& options) {
  WebhookNeeds needs;
  for (const std::string_view path :
       {"/jobs/validate", "/cronjobs/validate", "/podgroups/validate", "/queues/validate"}) {
    needs.queues = needs.queues || options.serves(path);
  }
  needs.fabric = options.serves("/hypernodes/validate");
  needs.namespaces = options.serves("/podgroups/mutate");
  return needs;
}

int RunWebhook(const WebhookOptions& options) {
  rt::SurviveOutput();
  SetLogSink(rt::MakeLogSink(options.log_format, STDERR_FILENO), options.log_level);
  return Webhook(options).Run();
}

}  // namespace hopwise::daemon
