#include "kube/errors.h"

#include <algorithm>
#include <utility>

#include "api/json.h"

namespace hopwise::kube {

using json::Json;
namespace {

// What a metav1.Status says; empty when the body is none.
struct StatusObject {
  std::string reason, message;
  std::string name;  // details.name: the object that the server could not find
  Duration retry_after;
  bool too_new = false;  // the resourceVersion asked for lies ahead of the server's data
};

StatusObject ReadStatus(std::string_view body) {
  StatusObject out;
  const Json json = json::ParseOrNull(body);
  if (json::Text(json, {"kind"}) != "Status") return out;
  out.reason = json::Text(json, {"reason"});
  out.message = json::Text(json, {"message"});
  out.name = json::Text(json, {"details", "name"});
  // An hour is beyond any sensible answer, and keeps the product in range.
  static constexpr int64_t kMostSeconds = 3600;
  out.retry_after = Seconds(std::clamp<int64_t>(
      json::Number(json, {"details", "retryAfterSeconds"}, 0), 0, kMostSeconds));
  if (const Json* causes = json::Get(json, {"details", "causes"});
      causes != nullptr && causes->is_array()) {
    for (const Json& cause : *causes) {
      out.too_new = out.too_new || json::Text(cause, {"reason"}) == "ResourceVersionTooLarge";
    }
  }
  return out;
}

// A 404 of an object says so of that object; of a collection, that nobody serves the path. A
// create in a namespace that does not exist names the namespace.
Failure MissingWhat(std::string_view verb, std::string_view object, const StatusObject& status) {
  if (verb == "list" || verb == "watch") return Failure::kNoSuchKind;
  return object.empty() && status.name.empty() ? Failure::kNoSuchKind : Failure::kNotFound;
}

Failure FailureOf(int code, std::string_view verb, std::string_view object,
                  const StatusObject& status) {
  if (code == 0) return Failure::kUnreachable;
  if (status.reason == "Expired" || status.reason == "Gone" || status.too_new) {
    return Failure::kExpired;
  }
  switch (code) {
    case 400:
    case 405:  // the method, …
    case 406:  // … what we accept, …
    case 413:  // … the size, …
    case 415:  // … the content type: no later try changes these
    case 422:
      return Failure::kInvalid;
    case 401:
      return Failure::kUnauthorized;
    case 403:
      return Failure::kForbidden;
    case 404:
      return MissingWhat(verb, object, status);
    case 409:
      return Failure::kConflict;
    case 410:
      return Failure::kExpired;
    case 429:
      return Failure::kThrottled;
    default:
      return Failure::kServer;
  }
}

// "pods", or "pods/status" when the server's sentence says that it was about a subresource.
std::string DeniedResource(const Resource& resource, std::string_view message) {
  const std::string begin = "\"" + std::string(resource.plural) + "/";
  const size_t at = message.find(begin);
  const size_t end = at == std::string_view::npos ? at : message.find('"', at + 1);
  if (end == std::string_view::npos) return std::string(resource.plural);
  return std::string(message.substr(at + 1, end - at - 1));
}

std::string Grant(std::string_view verb, const Resource& resource, std::string_view message) {
  std::string out = "; grant the verb \"" + std::string(verb) + "\" on \"";
  out += DeniedResource(resource, message) + "\" in ";
  out += resource.group.empty() ? "the core API group (\"\")"
                                : "API group \"" + std::string(resource.group) + "\"";
  return out;
}

// What the server said: the Status' sentence, else the beginning of whatever came.
std::string Said(const Response& response, const StatusObject& status) {
  if (!status.message.empty()) return status.message;
  static constexpr size_t kMostBytes = 200;
  std::string text = response.body.substr(0, kMostBytes);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  const size_t end = text.find_last_not_of(' ');
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text.empty() ? "HTTP status " + std::to_string(response.status)
                      : "HTTP status " + std::to_string(response.status) + ": " + text;
}

std::string Explain(Failure failure, const Response& response, const StatusObject& status,
                    std::string_view verb, const Resource& resource) {
  std::string said = Said(response, status);
  switch (failure) {
    case Failure::kUnreachable:
      return "no answer from the API server: " +
             (response.error.empty() ? std::string("the connection ended") : response.error);
    case Failure::kUnauthorized:
      return "the API server refuses our credentials, they are expired or wrong (" + said +
             "); renew the token, the client certificate or the exec plugin's login of the "
             "kubeconfig";
    case Failure::kForbidden: {
      // The server's sentence names the object first, which ours did already.
      const size_t user = said.find("User \"");
      // Refused by admission, a quota or a webhook: no right would help.
      const bool webhook = said.find("admission webhook \"") != std::string::npos;
      if (webhook ||
          (user == std::string::npos && said.find(" is forbidden: ") != std::string::npos)) {
        return said;
      }
      return "forbidden: " + (user == std::string::npos ? said : said.substr(user)) +
             Grant(verb, resource, said);
    }
    case Failure::kNoSuchKind:
      return "the API server does not serve it (" + said + "); install its CRD";
    case Failure::kThrottled:
      return "the API server is busy: " + said;
    case Failure::kExpired:
      return "the version asked for is not in the API server's history: " + said;
    default:
      return said;
  }
}

}  // namespace

ApiError ErrorOf(const Response& response, std::string_view verb, const Resource& resource,
                 std::string_view object) {
  ApiError out;
  out.status = response.status;
  if (response.ok()) return out;
  StatusObject status = ReadStatus(response.body);
  out.failure = FailureOf(response.status, verb, object, status);
  out.retry_after = response.retry_after > Duration{} ? response.retry_after : status.retry_after;
  out.message = "cannot " + std::string(verb) + " " + ResourceName(resource);
  if (!object.empty()) out.message += " " + std::string(object);
  out.message += ": " + Explain(out.failure, response, status, verb, resource);
  out.reason = std::move(status.reason);
  return out;
}

}  // namespace hopwise::kube
