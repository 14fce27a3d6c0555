// The flags by which a command is told of a cluster, named as kubectl's (or vcctl's), and the way
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/transport.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the option parser's name
class App;
}

namespace hopwise::cli {

// Whose commands and flags are spoken: ours, or those of Volcano's vcctl.
enum class Tool : uint8_t { kHopwise, kVcctl };

struct ClusterFlags {
  std::string kubeconfig, context, server, token;
  bool insecure = false;
  std::string request_timeout;  // "": kRequestTimeout
  std::string ns;               // "": that of the context
  bool all_namespaces = false;
};

// --kubeconfig, --context, --server and their like; `flags` lives as long as the command.
void AddClusterFlags(CLI::App* command, Tool tool, ClusterFlags& flags);
// -n, --namespace.
void AddNamespaceFlag(CLI::App* command, Tool tool, ClusterFlags& flags);
// -n and -A, --all-namespaces.
void AddNamespaceFlags(CLI::App* command, Tool tool, ClusterFlags& flags);

// "0" is no limit, a number without a unit seconds, as kubectl reads it.
Result<Duration> ReadRequestTimeout(const std::string& text);

// An API server that can be asked, or what stands for it in a test.
struct ApiServer {
  std::function<kube::Response(kube::Request)> exchange;  // waits for the answer
  std::string ns;                                         // of the context
  std::string source;                                     // "~/.kube/config, context dev"
};
// Nothing is sent yet. The error says which file or flag is wrong.
Result<ApiServer> ConnectToCluster(const ClusterFlags& flags);

}  // namespace hopwise::cli
