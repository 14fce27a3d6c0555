#include "daemon/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "kube/access.h"

namespace hopwise::daemon {
namespace {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

}  // namespace

bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]:");
}

int Refuse(std::string_view event, const Error& error, int code) {
  Log(LogLevel::kError, event, {{"error", error.message}});
  return code;
}

Result<std::unique_ptr<kube::CurlTransport>> Connect(const CommonOptions& options,
                                                     std::string_view user_agent) {
  kube::AccessOptions access_options;
  access_options.kubeconfig = options.kubeconfig;
  access_options.context = options.context;
  access_options.server = options.master;
  Result<kube::Access> access = kube::LoadAccess(access_options);
  if (!access) {
    return tl::unexpected(access.error());
  }
  Log(LogLevel::kInfo, "connecting", {{"access", access->Redacted()}});
  kube::CurlOptions curl;
  curl.qps = options.qps;
  curl.burst = options.burst;
  curl.user_agent = user_agent;
  return std::make_unique<kube::CurlTransport>(std::move(*access), std::move(curl));
}

std::string MakeIdentity(kube::CurlTransport& transport) {
  return fmt::format("{}_{:016x}", HostName(), transport.Random());
}

server::ServerOptions ListenOptions(const CommonOptions& options) {
  server::ServerOptions listen;
  listen.address = options.listen_address;
  listen.cert_file = options.tls_cert_file;
  listen.key_file = options.tls_key_file;
  listen.client_ca_file = options.client_ca_file;
  return listen;
}

Status OpenServer(std::string_view event, const server::ServerOptions& options,
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

bool LoopAnswers(kube::CurlTransport& transport, Time until) {
  const auto answer = std::make_shared<std::promise<void>>();
  transport.Post([answer] { answer->set_value(); });
  const Duration left = std::max(until - rt::MonotonicNow(), Duration{});
  return answer->get_future().wait_for(std::chrono::nanoseconds(left.ns)) ==
         std::future_status::ready;
}

}  // namespace hopwise::daemon
