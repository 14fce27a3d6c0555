// Where the API server is and who we are there: a kubeconfig, or what a pod finds in its container.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace hopwise::kube {

// `exec` of a kubeconfig user: a program that prints an ExecCredential
// (client.authentication.k8s.io v1 or v1beta1).
struct ExecPlugin {
  std::string api_version, command;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool provide_cluster_info = false;
  std::string install_hint;
};

// Secrets are in here: never logged, never dumped. Redacted() is what may be shown.
struct Access {
  std::string server;  // "https://10.0.0.1:6443", without a trailing slash
  std::string ca_pem;  // "": the system's
  std::string tls_server_name, proxy_url;
  bool insecure = false;  // insecure-skip-tls-verify

  std::string client_cert_pem, client_key_pem;
  std::string token;
  std::string token_file;  // read again every kTokenReread; wins over token
  std::string username, password;
  std::optional<ExecPlugin> exec;

  std::string ns = "default";  // of the context, or of the pod
  std::string source;          // for messages: "/root/.kube/config, context dev", "the pod"
  [[nodiscard]] std::string Redacted() const;
};

// client-go's cachingTokenSource reads a bound token again once a minute.
inline constexpr Duration kTokenReread = Seconds(60);

struct AccessOptions {
  std::string kubeconfig;  // --kubeconfig; "": $KUBECONFIG (a list by ':'), in a pod that, else
                           // ~/.kube/config
  std::string context;     // "": current-context
  std::string server;      // --master: in place of the cluster's
};

// Merges as kubectl does: of two files the first to name a thing wins; relative paths are relative
// to the file they stand in; *-data is base64 and wins over the path. Errors name file and field;
// what is missing says what to do.
Result<Access> LoadAccess(const AccessOptions& options);

// The pieces, for tests: one file's text; `path` for relative names and messages.
Result<Access> AccessFromKubeconfigs(
    const std::vector<std::pair<std::string, std::string>>& path_and_text,
    const AccessOptions& options);
// KUBERNETES_SERVICE_HOST/_PORT and the files in `folder`
// (/var/run/secrets/kubernetes.io/serviceaccount).
Result<Access> AccessInPod(const std::string& folder);

}  // namespace hopwise::kube
