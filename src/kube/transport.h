// How the parts of this module reach the API server and the clock: requests, streams and timers
// with callbacks. One thread, the loop's, makes every call and runs every callback, so that nothing
// here needs a lock. CurlTransport is the real one, FakeTransport (fake_transport.h) that of the
// tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace hopwise::kube {

enum class Method : uint8_t { kGet, kPost, kPut, kPatch, kDelete };
// "GET", …
std::string_view MethodName(Method method);

// Content types of what we send.
inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kMergePatch = "application/merge-patch+json";
inline constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";
inline constexpr std::string_view kJsonPatch = "application/json-patch+json";
inline constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

// client-go's rest.Config has no time-out of its own; 30 s is kubectl's and the scheduler's usual
// `--request-timeout`, and above the API server's own wait for etcd.
inline constexpr Duration kRequestTimeout = Seconds(30);

struct Request {
  Method method = Method::kGet;
  std::string path;          // "/api/v1/nodes?limit=500", escaped
  std::string content_type;  // of the body; "" without one
  std::string body;
  Duration timeout = kRequestTimeout;  // of the whole exchange; of a stream: until its headers
  // Goes ahead of others and past the client's rate limit: the Lease, on which all else hangs.
  bool urgent = false;
};

struct Response {
  int status = 0;  // HTTP; 0: no answer, see error
  std::string body;
  std::string error;       // why there was no answer: "cannot connect to 127.0.0.1:6443: refused"
  Duration retry_after;    // Retry-After of a 429 or 503; 0 when absent
  bool untrusted = false;  // no answer, because a certificate is not accepted: no later try will do

  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
};

class Transport {
 public:
  // Names a request, a stream or a timer; never 0, never used again.
  using Id = uint64_t;
  using Done = std::function<void(Response&&)>;

  virtual ~Transport() = default;

  // `done` is called once, from the loop and never from within Send.
  virtual Id Send(Request request, Done done) = 0;
  // The same for an answer of status 200 that comes bit by bit: `chunk` for each piece, `done` at
  // its end with an empty body. Answers of another status are whole in `done`.
  virtual Id Stream(Request request, std::function<void(std::string_view)> chunk, Done done) = 0;
  virtual Id After(Duration delay, std::function<void()> run) = 0;
  // Nothing of it is called any more. Also from within its own callback; 0 and what is over are
  // passed over.
  virtual void Cancel(Id id) = 0;

  // Monotonic; its zero means nothing. For time-outs and leases.
  [[nodiscard]] virtual Time Now() const = 0;
  // As the world has it; for what is written into objects.
  [[nodiscard]] virtual Time Wall() const = 0;
  // For jitter.
  virtual uint64_t Random() = 0;
};

}  // namespace hopwise::kube
