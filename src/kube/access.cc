#include "kube/access.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "api/decode.h"
#include "api/json.h"
#include "kube/credentials.h"

namespace hopwise::kube {

using json::Json;
namespace {

// Where the kubelet puts a pod's service account.
constexpr const char* kPodFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::array<std::string_view, 2> kExecVersions = {"client.authentication.k8s.io/v1",
                                                           "client.authentication.k8s.io/v1beta1"};

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// A path in a kubeconfig is relative to the file it stands in.
std::string Resolve(const std::string& file, const std::string& path) {
  return path.empty() || path.front() == '/' ? path : FolderOf(file) + path;
}

// The fields of one mapping in a kubeconfig. The first mistake is kept, with the field's path;
// values are never shown, for they may be secrets.
class Fields {
 public:
  Fields(const Json* object, std::string where, Status* status)
      : object_(object), where_(std::move(where)), status_(status) {
    if (object_ != nullptr && object_->is_null()) {
      object_ = nullptr;
    }
    if (object_ != nullptr && !object_->is_object()) {
      Bad("", "expected a mapping");
      object_ = nullptr;
    }
  }

  [[nodiscard]] const Json* Find(const char* name) const {
    if (object_ == nullptr) {
      return nullptr;
    }
    const auto at = object_->find(name);
    return at == object_->end() || at->is_null() ? nullptr : &*at;
  }
  [[nodiscard]] std::string Text(const char* name) const {
    const Json* value = Find(name);
    const std::string* text = value == nullptr ? nullptr : value->get_ptr<const std::string*>();
    if (value != nullptr && text == nullptr) {
      Bad(name, "expected text; put it in quotes");
    }
    return text == nullptr ? std::string() : *text;
  }
  [[nodiscard]] bool Flag(const char* name) const {
    const Json* value = Find(name);
    const bool* flag = value == nullptr ? nullptr : value->get_ptr<const bool*>();
    if (value != nullptr && flag == nullptr) {
      Bad(name, "expected true or false");
    }
    return flag != nullptr && *flag;
  }
  [[nodiscard]] Fields Inner(const char* name) const { return {Find(name), Path(name), status_}; }
  [[nodiscard]] std::vector<Fields> List(const char* name) const {
    std::vector<Fields> all;
    const Json* list = Find(name);
    if (list != nullptr && !list->is_array()) {
      Bad(name, "expected a list");
    } else if (list != nullptr) {
      for (const Json& item : *list) {
        all.emplace_back(&item, fmt::format("{}[{}]", Path(name), all.size()), status_);
      }
    }
    return all;
  }
  [[nodiscard]] std::vector<std::string> Texts(const char* name) const {
    std::vector<std::string> all;
    const Json* list = Find(name);
    if (list != nullptr && !list->is_array()) {
      Bad(name, "expected a list");
    } else if (list != nullptr) {
      for (const Json& item : *list) {
        const auto* text = item.get_ptr<const std::string*>();
        if (text == nullptr) {
          Bad(name, "expected a list of texts; put each in quotes");
          break;
        }
        all.push_back(*text);
      }
    }
    return all;
  }

  void Bad(const char* name, const std::string& what, ErrorCode code = ErrorCode::kInvalid) const {
    if (status_->has_value()) {
      *status_ = Fail(code, Path(name) + ": " + what);
    }
  }
  [[nodiscard]] bool present() const { return object_ != nullptr; }
  // The same mapping, named after what it describes: users[dev] says more than users[3].user.
  [[nodiscard]] Fields Named(std::string where) const {
    return {object_, std::move(where), status_};
  }

 private:
  [[nodiscard]] std::string Path(const char* name) const {
    if (*name == '\0') {
      return where_;
    }
    return where_.empty() ? std::string(name) : where_ + "." + name;
  }

  const Json* object_;
  std::string where_;
  Status* status_;
};

// One file. `clusters` and its like map names to the inner mapping.
struct Config {
  std::string path;
  Json json;
  std::string current_context;
  std::map<std::string, const Json*> clusters, contexts, users;
};

Status TakeNamed(const Fields& root, const char* list, const char* inner,
                 std::map<std::string, const Json*>& into, Status& status) {
  for (const Fields& item : root.List(list)) {
    const std::string name = item.Text("name");
    static const Json kEmpty = Json::object();
    const Json* value = item.Find(inner);
    if (!into.emplace(name, value == nullptr ? &kEmpty : value).second) {
      item.Bad("name", fmt::format("\"{}\" is there twice; remove one", name));
    }
  }
  return status;
}

Result<std::unique_ptr<Config>> Parse(const std::string& path, const std::string& text) {
  auto config = std::make_unique<Config>();
  config->path = path;
  const std::vector<api::Document> documents = api::SplitDocuments(text);
  if (documents.empty()) {
    return config;  // kubectl takes an empty file as one that names nothing
  }
  if (!documents.front().error.empty()) {
    return Invalid(fmt::format("{}: is no kubeconfig: {}", path, documents.front().error));
  }
  if (documents.size() > 1) {
    return Invalid(fmt::format(
        "{}: holds {} documents; a kubeconfig is one. Put each into a file of its own and name "
        "them all in KUBECONFIG, with ':' between",
        path, documents.size()));
  }
  config->json = json::ParseOrNull(documents.front().json);
  if (config->json.is_discarded()) {
    return Invalid(path + ": is no kubeconfig: cannot be read as YAML");
  }
  Status status;
  const Fields root(&config->json, "", &status);
  const std::string kind = root.Text("kind");
  if (status && !kind.empty() && kind != "Config") {
    return Invalid(
        fmt::format("{}: kind: expected Config, found {}; this is no kubeconfig", path, kind));
  }
  config->current_context = root.Text("current-context");
  TakeNamed(root, "clusters", "cluster", config->clusters, status);
  TakeNamed(root, "contexts", "context", config->contexts, status);
  TakeNamed(root, "users", "user", config->users, status);
  if (!status) {
    return tl::unexpected(status.error().Prefix(path));
  }
  return config;
}

using Configs = std::vector<std::unique_ptr<Config>>;
using Named = std::map<std::string, const Json*> Config::*;

// A named thing and the file that names it first; both null when none does.
struct Found {
  const Config* config = nullptr;
  const Json* json = nullptr;
};
Found FindNamed(const Configs& configs, Named list, const std::string& name) {
  for (const auto& config : configs) {
    const auto& all = config.get()->*list;
    if (const auto at = all.find(name); at != all.end()) {
      return {config.get(), at->second};
    }
  }
  return {};
}

std::string NamesOf(const Configs& configs, Named list) {
  std::vector<std::string> names;
  for (const auto& config : configs) {
    for (const auto& [name, json] : config.get()->*list) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names.empty() ? "there is none" : fmt::format("there are: {}", fmt::join(names, ", "));
}

std::string PathsOf(const Configs& configs) {
  std::vector<std::string> paths;
  paths.reserve(configs.size());
  for (const auto& config : configs) {
    paths.push_back(config->path);
  }
  return fmt::format("{}", fmt::join(paths, ":"));
}

// `name`-data as base64, else the file that `name` is; "" without either.
std::string DataOrFile(const Fields& fields, const std::string& file, const char* name) {
  const std::string data_name = std::string(name) + "-data";
  const std::string data = fields.Text(data_name.c_str());
  const std::string path = Resolve(file, fields.Text(name));
  if (data.empty() && path.empty()) {
    return "";
  }
  const char* field = data.empty() ? name : data_name.c_str();
  Result<std::string> pem = data.empty() ? ReadSmallFile(path) : DecodeBase64(data);
  if (!pem) {
    fields.Bad(field, pem.error().message, pem.error().code);
    return "";
  }
  if (pem->find(kPemBegin) == std::string::npos) {
    fields.Bad(field, fmt::format("{}holds no PEM text (\"-----BEGIN …\")",
                                  data.empty() ? path + " " : std::string()));
    return "";
  }
  return *std::move(pem);
}

void TakeCluster(const Fields& fields, const std::string& file, Access& access) {
  access.server = fields.Text("server");
  access.tls_server_name = fields.Text("tls-server-name");
  access.proxy_url = fields.Text("proxy-url");
  access.insecure = fields.Flag("insecure-skip-tls-verify");
  access.ca_pem = DataOrFile(fields, file, "certificate-authority");
  if (access.insecure && !access.ca_pem.empty()) {
    fields.Bad("insecure-skip-tls-verify",
               "excludes certificate-authority and certificate-authority-data; remove one of them");
  }
}

std::optional<ExecPlugin> TakeExec(const Fields& fields, const std::string& file) {
  if (!fields.present()) {
    return std::nullopt;
  }
  ExecPlugin exec;
  exec.api_version = fields.Text("apiVersion");
  exec.command = fields.Text("command");
  exec.args = fields.Texts("args");
  for (const Fields& variable : fields.List("env")) {
    exec.env.emplace_back(variable.Text("name"), variable.Text("value"));
  }
  exec.provide_cluster_info = fields.Flag("provideClusterInfo");
  exec.install_hint = fields.Text("installHint");
  if (exec.command.empty()) {
    fields.Bad("command", "is missing: the program that prints the credential");
  }
  if (std::ranges::find(kExecVersions, exec.api_version) == kExecVersions.end()) {
    fields.Bad("apiVersion",
               fmt::format("expected {}, found \"{}\"", fmt::join(kExecVersions, " or "),
                           exec.api_version),
               ErrorCode::kUnsupported);
  }
  if (fields.Text("interactiveMode") == "Always") {
    fields.Bad("interactiveMode",
               "\"Always\" asks for a person at a terminal, and there is none here; use a plugin "
               "that needs none, or a token or a client certificate",
               ErrorCode::kUnsupported);
  }
  // A bare name is looked up in PATH.
  if (exec.command.find('/') != std::string::npos) {
    exec.command = Resolve(file, exec.command);
  }
  return exec;
}

void RefuseUnsupported(const Fields& fields) {
  if (const Json* provider = fields.Find("auth-provider"); provider != nullptr) {
    const std::string name = fields.Inner("auth-provider").Text("name");
    fields.Bad("auth-provider",
               fmt::format("\"{}\" is not supported, nor by kubectl since 1.26; use exec, a token "
                           "or a client certificate",
                           name),
               ErrorCode::kUnsupported);
  }
  for (const char* field : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (const Json* value = fields.Find(field); value != nullptr && !value->empty()) {
      fields.Bad(field,
                 "impersonation is not supported; use the credential of that user itself, or a "
                 "token of its service account",
                 ErrorCode::kUnsupported);
    }
  }
}

void TakeUser(const Fields& fields, const std::string& file, Access& access) {
  RefuseUnsupported(fields);
  access.client_cert_pem = DataOrFile(fields, file, "client-certificate");
  access.client_key_pem = DataOrFile(fields, file, "client-key");
  if (access.client_cert_pem.empty() != access.client_key_pem.empty()) {
    fields.Bad(access.client_key_pem.empty() ? "client-key" : "client-certificate",
               "is missing; certificate and key go together");
  }
  access.token = TrimToken(fields.Text("token"));
  access.token_file = Resolve(file, fields.Text("tokenFile"));
  access.username = fields.Text("username");
  access.password = fields.Text("password");
  access.exec = TakeExec(fields.Inner("exec"), file);
  if (!IsToken(access.token)) {
    fields.Bad("token", "holds a blank or a line break; it cannot be sent");
  }
  if (!access.token_file.empty()) {
    if (const Result<std::string> token = ReadTokenFile(access.token_file); !token) {
      fields.Bad("tokenFile", token.error().message, token.error().code);
    }
  }
}

// "localhost:8080" gets a scheme as client-go gives it: https where anything speaks of TLS.
Status TidyServer(Access& access, const std::string& field) {
  std::string& server = access.server;
  while (server.ends_with('/')) {
    server.pop_back();
  }
  if (server.empty()) {
    return Invalid(field + ": is missing: the API server's address, as https://10.0.0.1:6443");
  }
  if (server.find("://") == std::string::npos) {
    const bool tls = access.insecure || !access.ca_pem.empty() || !access.client_cert_pem.empty();
    server.insert(0, tls ? "https://" : "http://");
  }
  if (!server.starts_with("https://") && !server.starts_with("http://")) {
    return Fail(ErrorCode::kUnsupported, field + ": expected an address with https:// or http://");
  }
  if (server.find_first_of(" \t\r\n") != std::string::npos) {
    return Invalid(field + ": holds a blank; expected an address as https://10.0.0.1:6443");
  }
  return {};
}

// The fields of the cluster or the user that a context names.
Result<Found> Referred(const Configs& configs, Named list, const char* what,
                       const std::string& name, const std::string& context) {
  const Found found = FindNamed(configs, list, name);
  if (found.json == nullptr) {
    return Fail(ErrorCode::kNotFound,
                name.empty() ? fmt::format("contexts[{}].{}: is missing", context, what)
                             : fmt::format("contexts[{}].{}: no {} \"{}\" is defined; {}", context,
                                           what, what, name, NamesOf(configs, list)));
  }
  return found;
}

// `what` is "clusters[dev]": the thing's fields, taken by `take`; errors name the file.
template <class Take>
Status TakeFound(const Found& found, std::string what, Take take, Access& access) {
  Status status;
  take(Fields(found.json, std::move(what), &status), found.config->path, access);
  if (!status) {
    return tl::unexpected(status.error().Prefix(found.config->path));
  }
  return {};
}

Result<Access> FromContext(const Configs& configs, const std::string& name, const Found& context) {
  Access access;
  access.source = fmt::format("{}, context {}", context.config->path, name);
  Status status;
  const Fields fields(context.json, fmt::format("contexts[{}]", name), &status);
  const std::string cluster_name = fields.Text("cluster");
  const std::string user_name = fields.Text("user");
  if (const std::string ns = fields.Text("namespace"); !ns.empty()) {
    access.ns = ns;
  }
  if (!status) {
    return tl::unexpected(status.error().Prefix(context.config->path));
  }
  const auto cluster = Referred(configs, &Config::clusters, "cluster", cluster_name, name);
  if (!cluster) {
    return tl::unexpected(cluster.error().Prefix(context.config->path));
  }
  status = TakeFound(*cluster, fmt::format("clusters[{}]", cluster_name), TakeCluster, access);
  if (status && !user_name.empty()) {  // without one: anonymous, as kubectl takes it
    const auto user = Referred(configs, &Config::users, "user", user_name, name);
    if (!user) {
      return tl::unexpected(user.error().Prefix(context.config->path));
    }
    status = TakeFound(*user, fmt::format("users[{}]", user_name), TakeUser, access);
  }
  if (!status) {
    return tl::unexpected(status.error());
  }
  return access;
}

// --master; credentials stay those of the kubeconfig.
Result<Access> WithServer(Access access, const AccessOptions& options, const std::string& field) {
  if (!options.server.empty()) {
    access.server = options.server;
  }
  const Status tidy = TidyServer(access, options.server.empty() ? field : "--master");
  if (!tidy) {
    return tl::unexpected(tidy.error());
  }
  return access;
}

Result<Access> ServerAlone(const AccessOptions& options) {
  Access access;
  access.source = "--master";
  return WithServer(std::move(access), options, "--master");
}

std::vector<std::string> SplitList(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    if (end > at && std::ranges::find(parts, list.substr(at, end - at)) == parts.end()) {
      parts.push_back(list.substr(at, end - at));
    }
    at = end + 1;
  }
  return parts;
}

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The files that are there. Of a list some may be absent, but not all.
Result<Access> LoadFiles(const std::vector<std::string>& paths, const std::string& origin,
                         const AccessOptions& options) {
  std::vector<std::pair<std::string, std::string>> read;
  for (const std::string& path : paths) {
    Result<std::string> text = ReadSmallFile(path);
    if (!text && (text.error().code != ErrorCode::kNotFound || paths.size() == 1)) {
      return Fail(text.error().code, fmt::format("{}: {}; give the path of a kubeconfig", origin,
                                                 text.error().message));
    }
    if (text) {
      read.emplace_back(path, *std::move(text));
    }
  }
  if (read.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: none of these files exists: {}; give the path of a kubeconfig",
                            origin, fmt::join(paths, ":")));
  }
  return AccessFromKubeconfigs(read, options);
}

// "https://user:secret@host/path?token=secret" -> "https://host/path".
std::string WithoutSecrets(const std::string& whole) {
  std::string url = whole.substr(0, whole.find('?'));
  const size_t begin = url.find("://");
  const size_t host = begin == std::string::npos ? 0 : begin + 3;
  const size_t at = url.find('@', host);
  if (at == std::string::npos || at > std::min(url.find('/', host), url.size())) {
    return url;
  }
  return url.substr(0, host) + url.substr(at + 1);
}

}  // namespace

std::string Access::Redacted() const {
  std::vector<std::string> kinds;
  if (exec) {
    kinds.push_back("exec plugin " + exec->command);
  }
  if (!client_cert_pem.empty()) {
    kinds.emplace_back("client certificate");
  }
  if (!token_file.empty()) {
    kinds.push_back("token from " + token_file);
  } else if (!token.empty()) {
    kinds.emplace_back("token");
  }
  if (!username.empty()) {
    kinds.emplace_back("user name and password");
  }
  if (kinds.empty()) {
    kinds.emplace_back("no credential");
  }
  return fmt::format("{} from {}: {}{}{}{}", WithoutSecrets(server), source, fmt::join(kinds, ", "),
                     ca_pem.empty() ? "" : ", own CA",
                     insecure ? ", the server's certificate is not verified" : "",
                     proxy_url.empty() ? "" : ", through a proxy");
}

Result<Access> AccessFromKubeconfigs(
    const std::vector<std::pair<std::string, std::string>>& path_and_text,
    const AccessOptions& options) {
  Configs configs;
  for (const auto& [path, text] : path_and_text) {
    auto config = Parse(path, text);
    if (!config) {
      return tl::unexpected(config.error());
    }
    configs.push_back(*std::move(config));
  }
  std::string name = options.context;
  for (const auto& config : configs) {
    if (name.empty()) {
      name = config->current_context;
    }
  }
  if (name.empty()) {
    if (!options.server.empty()) {
      return ServerAlone(options);
    }
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: current-context: is missing; choose one with `kubectl config "
                            "use-context NAME` ({})",
                            PathsOf(configs), NamesOf(configs, &Config::contexts)));
  }
  const Found context = FindNamed(configs, &Config::contexts, name);
  if (context.json == nullptr) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: no context \"{}\" is defined; {}", PathsOf(configs), name,
                            NamesOf(configs, &Config::contexts)));
  }
  Result<Access> access = FromContext(configs, name, context);
  if (!access) {
    return access;
  }
  const std::string field = access->source + ": the cluster's server";
  return WithServer(*std::move(access), options, field);
}

Result<Access> AccessInPod(const std::string& folder) {
  const std::string host = FromEnvironment("KUBERNETES_SERVICE_HOST");
  const std::string port = FromEnvironment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return Fail(ErrorCode::kNotFound,
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set: this is no "
                "pod; give --kubeconfig");
  }
  Access access;
  access.source = "the pod";
  const bool ipv6 = host.find(':') != std::string::npos;
  access.server = fmt::format("https://{}:{}", ipv6 ? "[" + host + "]" : host, port);
  access.token_file = folder + "/token";
  if (const auto token = ReadTokenFile(access.token_file); !token) {
    return tl::unexpected(token.error().Prefix("the pod's service account"));
  }
  auto ca = ReadSmallFile(folder + "/ca.crt");
  if (!ca && ca.error().code != ErrorCode::kNotFound) {
    return tl::unexpected(ca.error().Prefix("the pod's service account"));
  }
  if (ca) {
    access.ca_pem = *std::move(ca);
    if (access.ca_pem.find(kPemBegin) == std::string::npos) {
      return Invalid(folder + "/ca.crt: holds no PEM text (\"-----BEGIN …\")");
    }
  }
  if (const auto ns = ReadSmallFile(folder + "/namespace"); ns && !TrimToken(*ns).empty()) {
    access.ns = TrimToken(*ns);
  }
  return access;
}

Result<Access> LoadAccess(const AccessOptions& options) {
  if (!options.kubeconfig.empty()) {
    return LoadFiles({options.kubeconfig}, "--kubeconfig", options);
  }
  if (const auto list = SplitList(FromEnvironment("KUBECONFIG")); !list.empty()) {
    return LoadFiles(list, "KUBECONFIG", options);
  }
  if (!FromEnvironment("KUBERNETES_SERVICE_HOST").empty() &&
      access((std::string(kPodFolder) + "/token").c_str(), F_OK) == 0) {
    Result<Access> in_pod = AccessInPod(kPodFolder);
    return in_pod ? WithServer(*std::move(in_pod), options, "the pod") : in_pod;
  }
  const std::string home = FromEnvironment("HOME");
  const std::string path = home + "/.kube/config";
  if (!home.empty() && access(path.c_str(), F_OK) == 0) {
    return LoadFiles({path}, "~/.kube/config", options);
  }
  if (!options.server.empty()) {
    return ServerAlone(options);
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("no way to an API server: {} does not exist, KUBECONFIG is not set, and "
                          "this is no pod; give --kubeconfig",
                          home.empty() ? "~/.kube/config" : path));
}

}  // namespace hopwise::kube
