// What an answer that is not 2xx means, in words and as something to act on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kube/resources.h"
#include "kube/transport.h"

namespace hopwise::kube {

enum class Failure : uint8_t {
  kNone,
  kUnreachable,   // no answer: refused, time-out, broken TLS
  kUnauthorized,  // 401
  kForbidden,     // 403
  kNotFound,      // 404 of an object
  kNoSuchKind,    // 404 of a collection: the CRD is not installed
  kConflict,      // 409
  kExpired,       // 410, a Status with reason Expired or Gone, or a version ahead of the server's
  kInvalid,       // 400, 422 and their like: the same request will never do
  kThrottled,     // 429
  kServer,        // 5xx and what else there is
};

struct ApiError {
  Failure failure = Failure::kNone;
  int status = 0;
  std::string reason;   // of the Status object: "AlreadyExists", "Conflict", …; "" without one
  std::string message;  // a whole sentence: verb, resource, object, and what the server said
  Duration retry_after;

  [[nodiscard]] bool ok() const { return failure == Failure::kNone; }
  // Whether the same request may do later.
  [[nodiscard]] bool retriable() const {
    return failure == Failure::kUnreachable || failure == Failure::kThrottled ||
           failure == Failure::kServer || failure == Failure::kUnauthorized;
  }
};

// `verb` as RBAC names it: "list", "watch", "create", "patch", "delete". `object` may be "" or
// "ns/name". Of a 403 the message names verb, resource and the user as the server does.
ApiError ErrorOf(const Response& response, std::string_view verb, const Resource& resource,
                 std::string_view object = "");

}  // namespace hopwise::kube
