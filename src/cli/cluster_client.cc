#include "cli/cluster_client.h"

#include <cctype>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "kube/reflector.h"

namespace hopwise::cli {
namespace {

using json::Json;

std::string ShownName(const kube::Resource& resource, const std::string& ns,
                      const std::string& name) {
  return resource.namespaced ? ns + "/" + name : name;
}

// Items of a list leave out what the list says for all of them.
void Complete(const kube::Resource& resource, Json& object) {
  if (!object.is_object()) {
    return;
  }
  object["apiVersion"] = kube::ApiVersionOf(resource);
  object["kind"] = resource.kind;
  json::Unset(object, {"metadata", "managedFields"});
}

// Of a list that the server calls invalid: all that a person wrote of it are the selectors.
kube::ApiError AboutSelector(kube::ApiError error, const ListQuery& query) {
  if (error.failure == kube::Failure::kInvalid && !(query.labels + query.fields).empty()) {
    error.message += fmt::format(
        "; the selector is \"{}\": write it as for kubectl, such as team=vision,stage!=test",
        query.labels.empty() ? query.fields : query.labels);
  }
  return error;
}

// What would not stay one segment of a path: a request for the object "" is one for all objects of
// the kind, and "a/status" is a part of "a". As Kubernetes' path segment names.
std::string NoName(std::string_view what, std::string_view name) {
  const char* const why = name.empty()                          ? "it is empty"
                          : name == "." || name == ".."         ? "it would be a path"
                          : name.find('/') != std::string::npos ? "it has a slash"
                          : name.find('%') != std::string::npos ? "it has a percent sign"
                                                                : nullptr;
  return why == nullptr ? ""
                        : fmt::format("\"{}\" cannot be the name of a {}: {}", name, what, why);
}

// "" when the object can be asked for.
std::string CannotBeAsked(const kube::Resource& resource, std::string_view ns,
                          std::string_view name) {
  const std::string bad = resource.namespaced ? NoName("namespace", ns) : "";
  return bad.empty() ? NoName(SingularName(resource), name) : bad;
}

std::string Place(const std::string& ns) { return ns.empty() ? "" : "in namespace " + ns; }

// Of a 404: whether it is an object that is missing, and not its kind.
bool NamesObject(const kube::Response& response) {
  return !json::Text(json::ParseOrNull(response.body), {"details", "name"}).empty();
}

std::string PagePath(const kube::Resource& resource, const ListQuery& query,
                     const std::string& token) {
  std::string path =
      fmt::format("{}?limit={}", kube::CollectionPath(resource, query.ns), kube::kPageSize);
  if (!query.labels.empty()) {
    path += "&labelSelector=" + kube::UrlEscape(query.labels);
  }
  if (!query.fields.empty()) {
    path += "&fieldSelector=" + kube::UrlEscape(query.fields);
  }
  if (!token.empty()) {
    path += "&continue=" + kube::UrlEscape(token);
  }
  return path;
}

}  // namespace

std::string SingularName(const kube::Resource& resource) {
  std::string name(resource.kind);
  for (char& c : name) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (!resource.group.empty()) {
    name += '.';
    name += resource.group;
  }
  return name;
}

Result<ClusterClient> ClusterClient::Connect(const ClusterFlags& flags, const Io& io) {
  const Result<Duration> timeout = ReadRequestTimeout(flags.request_timeout);
  if (!timeout) {
    return tl::unexpected(timeout.error());
  }
  Result<ApiServer> server = io.connect ? io.connect(flags) : ConnectToCluster(flags);
  if (!server) {
    return tl::unexpected(server.error());
  }
  ClusterClient client;
  client.server_ = *std::move(server);
  client.timeout_ = *timeout;
  client.ns_ = flags.ns.empty() ? client.server_.ns : flags.ns;
  client.all_namespaces_ = flags.all_namespaces;
  return client;
}

kube::ApiError ClusterClient::Advise(kube::ApiError error, bool answered) const {
  if (!answered) {
    error.message +=
        fmt::format("; the server is that of {}: --kubeconfig, --context and --server name another",
                    server_.source);
  } else if (error.failure == kube::Failure::kNoSuchKind) {
    error.message += ", which is in deploy/crds where Hopwise serves the kind";
  }
  return error;
}

Answer<Json> ClusterClient::Send(const kube::Resource& resource, Call call) {
  kube::Request request;
  request.method = call.method;
  request.path = std::move(call.path);
  request.body = std::move(call.body);
  request.content_type = call.content_type;
  request.timeout = timeout_;
  const kube::Response response = server_.exchange(std::move(request));
  const bool no_kind = response.status == 404 && !NamesObject(response);
  kube::ApiError error = kube::ErrorOf(response, call.verb, resource, no_kind ? "" : call.object);
  if (!error.ok()) {
    return tl::unexpected(Advise(std::move(error), response.status != 0));
  }
  Json answer = json::ParseOrNull(response.body);
  if (!answer.is_object()) {
    error.failure = kube::Failure::kServer;
    error.message = fmt::format(
        "cannot {} {}: the answer is no JSON object; is the server of {} a Kubernetes API server?",
        call.verb, kube::ResourceName(resource), server_.source);
    return tl::unexpected(std::move(error));
  }
  return answer;
}

Answer<std::vector<Json>> ClusterClient::List(const kube::Resource& resource,
                                              const ListQuery& query) {
  const std::string place = Place(query.ns);
  if (std::string bad = query.ns.empty() ? "" : NoName("namespace", query.ns); !bad.empty()) {
    kube::ApiError error;
    error.failure = kube::Failure::kInvalid;
    error.message = std::move(bad);
    return tl::unexpected(std::move(error));
  }
  std::vector<Json> items;
  std::string token;
  bool again = true;  // a token that expired between two pages: once from the start
  do {
    Answer<Json> page = Send(
        resource, {kube::Method::kGet, "list", PagePath(resource, query, token), "", "", place});
    if (!page && page.error().failure == kube::Failure::kExpired && again && !token.empty()) {
      again = false;
      items.clear();
      token.clear();
      page = Send(resource,
                  {kube::Method::kGet, "list", PagePath(resource, query, ""), "", "", place});
    }
    if (!page) {
      return tl::unexpected(AboutSelector(std::move(page.error()), query));
    }
    token = json::Text(*page, {"metadata", "continue"});
    const auto found = page->find("items");
    if (found != page->end() && found->is_array()) {
      for (Json& item : *found) {
        Complete(resource, item);
        items.push_back(std::move(item));
      }
    }
  } while (!token.empty());
  return items;
}

// A request for one object; `query` goes behind its path.
Answer<Json> ClusterClient::AskOf(const kube::Resource& resource, const ObjectCall& call) {
  if (std::string bad = CannotBeAsked(resource, call.ns, call.name); !bad.empty()) {
    kube::ApiError error;
    error.failure = kube::Failure::kInvalid;
    error.message = std::move(bad);
    return tl::unexpected(std::move(error));
  }
  return Send(resource, {call.method, call.verb,
                         kube::ObjectPath(resource, call.ns, call.name) + std::string(call.query),
                         call.body, call.content_type, ShownName(resource, call.ns, call.name)});
}

Answer<Json> ClusterClient::Get(const kube::Resource& resource, const std::string& ns,
                                const std::string& name) {
  Answer<Json> answer = AskOf(resource, {kube::Method::kGet, "get", ns, name, "", "", ""});
  if (answer) {
    Complete(resource, *answer);
  }
  return answer;
}

Answer<Json> ClusterClient::Create(const kube::Resource& resource, const Json& object) {
  const std::string ns = json::Namespace(object);
  std::string name = json::Name(object);
  if (name.empty()) {
    name = json::Text(object, {"metadata", "generateName"});
  }
  return Send(resource, {kube::Method::kPost, "create", kube::CollectionPath(resource, ns),
                         json::Dump(object), kube::kJsonType, ShownName(resource, ns, name)});
}

Answer<Json> ClusterClient::MergePatch(const kube::Resource& resource, const std::string& ns,
                                       const std::string& name, const Json& change) {
  return AskOf(resource, {kube::Method::kPatch, "patch", ns, name, "", json::Dump(change),
                          kube::kMergePatch});
}

Answer<Json> ClusterClient::Delete(const kube::Resource& resource, const std::string& ns,
                                   const std::string& name) {
  // As kubectl: what the object owns goes after it.
  return AskOf(resource, {kube::Method::kDelete, "delete", ns, name,
                          "?propagationPolicy=Background", "", ""});
}

bool ClusterClient::NamespaceExists(const std::string& ns) {
  const Answer<Json> found = Get(kNamespaces, "", ns);
  return found || found.error().failure != kube::Failure::kNotFound;
}

int Refused(Io& io, const kube::ApiError& error) {
  Complain(io, error.message);
  return error.failure == kube::Failure::kInvalid ? kUnusable : kFailed;
}

int NothingFound(Io& io, Tool tool, ClusterClient& client) {
  const std::string ns = client.list_ns();
  if (!ns.empty() && !client.NamespaceExists(ns)) {
    Complain(io, fmt::format("the namespace {} does not exist; -n names another, -A looks into all",
                             ns));
    return kFailed;
  }
  if (tool == Tool::kVcctl) {
    io.out << "No resources found\n";
  } else if (ns.empty()) {
    Complain(io, "No resources found");
  } else {
    Complain(io, fmt::format("No resources found in namespace {}", ns));
  }
  return kOk;
}

}  // namespace hopwise::cli
