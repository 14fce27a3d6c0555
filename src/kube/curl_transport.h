// Transport over libcurl: HTTP/1.1, a pool of connections, TLS, on a thread of its own.
//
// HTTP/1.1 because libcurl 7.88's HTTP/2 is known to stall (docs/decisions/005). A stream holds a
// connection of its own, outside the pool's limit for requests. Credentials are refreshed when they
// expire, token files once a minute, exec plugins on a thread beside the loop; after a 401 they are
// fetched anew once and the request is sent again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kube/access.h"
#include "kube/transport.h"

namespace hopwise::kube {

struct CurlOptions {
  // Requests per second and how many at once after a pause: volcano's --kube-api-qps/burst.
  double qps = 2000;
  int burst = 2000;
  int connections = 32;  // for requests; measured: more gain nothing on two cores
  std::string user_agent = "hopwise";
  size_t most_body = 0;  // a longer answer is none; 0: as long as it is
};
// TCP: keepalive after 15 s idle, every 5 s, three times; unacknowledged data for 30 s ends it.
inline constexpr Duration kConnectTimeout = Seconds(10);

class CurlTransport final : public Transport {
 public:
  CurlTransport(Access access, CurlOptions options);
  // Ends the loop: nothing is called any more once this returns. Not from the loop.
  ~CurlTransport() override;

  // Runs on the loop, soon. From any thread; the one member for which that holds.
  void Post(std::function<void()> run);
  // Posts and waits until it has run. Not from the loop.
  void Run(const std::function<void()>& run);

  Id Send(Request request, Done done) override;
  Id Stream(Request request, std::function<void(std::string_view)> chunk, Done done) override;
  Id After(Duration delay, std::function<void()> run) override;
  void Cancel(Id id) override;
  [[nodiscard]] Time Now() const override;
  [[nodiscard]] Time Wall() const override;
  uint64_t Random() override;

  struct Counts {
    uint64_t sent = 0, failed = 0, throttled = 0, waiting = 0, in_flight = 0;
  };
  [[nodiscard]] Counts counts() const;  // on the loop

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopwise::kube
