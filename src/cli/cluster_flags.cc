#include "cli/cluster_flags.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "daemon/ask.h"
#include "kube/access.h"
#include "kube/curl_transport.h"

namespace hopwise::cli {
namespace {

// What "no limit" is for the client, which has none without a limit: a day.
constexpr Duration kNoLimit = Seconds(86'400);

// A token on the command line stands for whatever else the kubeconfig's user has.
void TakeToken(const std::string& token, kube::Access& access) {
  access.token = token;
  access.token_file.clear();
  access.client_cert_pem.clear();
  access.client_key_pem.clear();
  access.username.clear();
  access.password.clear();
  access.exec.reset();
}

}  // namespace

void AddClusterFlags(CLI::App* command, Tool tool, ClusterFlags& flags) {
  const bool vcctl = tool == Tool::kVcctl;
  command->add_option(vcctl ? "-k,--kubeconfig" : "--kubeconfig", flags.kubeconfig,
                      "Default: $KUBECONFIG, in a pod its service account, else ~/.kube/config");
  command->add_option("--context", flags.context, "A context of the kubeconfig");
  command->add_option(vcctl ? "-s,--master" : "-s,--server,--master", flags.server,
                      "The API server, in place of the kubeconfig's");
  command->add_option("--token", flags.token, "A bearer token, in place of the kubeconfig's user");
  command->add_flag("--insecure-skip-tls-verify", flags.insecure,
                    "Take any certificate of the API server");
  command->add_option("--request-timeout", flags.request_timeout,
                      "How long one answer is waited for, such as 10s; 0: as long as it takes");
}

void AddNamespaceFlag(CLI::App* command, Tool tool, ClusterFlags& flags) {
  if (tool == Tool::kVcctl) {
    flags.ns = "default";
  }
  command->add_option("-n,--namespace", flags.ns,
                      tool == Tool::kVcctl ? "Default: default" : "Default: that of the context");
}

void AddNamespaceFlags(CLI::App* command, Tool tool, ClusterFlags& flags) {
  AddNamespaceFlag(command, tool, flags);
  command->add_flag("-A,--all-namespaces", flags.all_namespaces, "In all namespaces");
}

Result<Duration> ReadRequestTimeout(const std::string& text) {
  if (text.empty()) {
    return kube::kRequestTimeout;
  }
  int64_t seconds = 0;
  const char* end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, seconds);
  const bool number = failed == std::errc() && at == end && seconds >= 0;
  Result<Duration> limit =
      number ? Seconds(std::min(seconds, kNoLimit.ns / Seconds(1).ns)) : ParseGoDuration(text);
  if (!limit || limit->ns < 0) {
    return Invalid(fmt::format(
        "--request-timeout: {} is no duration such as 10s or 1m30s, nor 0 for no limit", text));
  }
  return limit->ns == 0 ? kNoLimit : std::min(*limit, kNoLimit);
}

Result<ApiServer> ConnectToCluster(const ClusterFlags& flags) {
  kube::AccessOptions options;
  options.kubeconfig = flags.kubeconfig;
  options.context = flags.context;
  options.server = flags.server;
  Result<kube::Access> access = kube::LoadAccess(options);
  if (!access) {
    return tl::unexpected(access.error());
  }
  if (!flags.token.empty()) {
    TakeToken(flags.token, *access);
  }
  access->insecure = access->insecure || flags.insecure;
  ApiServer server;
  server.ns = access->ns;
  server.source = access->source;
  const auto transport = std::make_shared<kube::CurlTransport>(*std::move(access), [] {
    kube::CurlOptions curl;
    curl.user_agent = "hopwise-cli";
    return curl;
  }());
  server.exchange = [transport](kube::Request request) {
    return daemon::Ask(*transport, std::move(request));
  };
  return server;
}

}  // namespace hopwise::cli
