// What the daemons have in common around their cores: the connection, the HTTP servers, and the
// thread that the core runs on.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "daemon/endpoints.h"
#include "daemon/options.h"
#include "kube/curl_transport.h"
#include "rt/clock.h"
#include "rt/mailbox.h"
#include "server/http_server.h"

namespace hopwise::daemon {

// Exit codes.
inline constexpr int kEnded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUnusable = 2;

// What is under way and Events that wait may take so long after a signal.
inline constexpr Duration kStopLimit = Seconds(5);
// The core's thread and the loop must answer a health check within this; their work takes
// milliseconds.
inline constexpr Duration kAlive = Seconds(5);
// Nothing to do: the longest nap. Whatever happens wakes it at once.
inline constexpr Duration kNap = Seconds(60);

// The wall clock as it was at start, run on by the monotonic one: what is timed does not jump.
class SteadyWall {
 public:
  [[nodiscard]] Time Now() const { return wall_ + (rt::MonotonicNow() - steady_); }

 private:
  Time wall_ = rt::WallNow();
  Time steady_ = rt::MonotonicNow();
};

// Of "host:port": whether only this machine reaches it.
bool IsLoopback(std::string_view address);

// Logs the error; the code.
int Refuse(std::string_view event, const Error& error, int code);

// The client by kubeconfig or service account, as the options tell. It has not asked anything yet.
Result<std::unique_ptr<kube::CurlTransport>> Connect(const CommonOptions& options,
                                                     std::string_view user_agent);
// "host_<random>", one for each process.
std::string MakeIdentity(kube::CurlTransport& transport);

// What --listen-address and the TLS flags say.
server::ServerOptions ListenOptions(const CommonOptions& options);
// The error says which flags name other addresses.
Status OpenServer(std::string_view event, const server::ServerOptions& options,
                  std::vector<std::pair<std::string, server::Handler>> routes,
                  std::unique_ptr<server::HttpServer>& opened);

// One thread's worth of a core: messages in, a step after them and when it is due.
template <class Core>
class CoreThread {
 public:
  using Message = std::function<void(Core&, Time)>;

  // From any thread.
  void Post(Message message) { mailbox_.Post(std::move(message)); }
  [[nodiscard]] Time Now() const { return clock_.Now(); }
  [[nodiscard]] bool ending() const { return ending_; }
  // Whether the thread gets to a message before `until` (monotonic).
  bool Answers(Time until) {
    const auto answer = std::make_shared<std::promise<void>>();
    Post([answer](Core&, Time) { answer->set_value(); });
    const Duration left = std::max(until - rt::MonotonicNow(), Duration{});
    return answer->get_future().wait_for(std::chrono::nanoseconds(left.ns)) ==
           std::future_status::ready;
  }

  // Until End was called on this thread, by a message: the messages, then step(took), `took` being
  // what they needed, 0 when there were none. Returns End's code.
  int Run(Core& core, const std::function<void(Duration took)>& step) {
    while (!ending_) {
      const Time wake = core.next_wake();
      const Duration left = wake.set() ? wake - clock_.Now() : kNap;
      std::vector<Message> messages = mailbox_.Take(std::clamp(left, Duration{}, kNap));
      const Time start = rt::MonotonicNow();
      for (Message& message : messages) {
        message(core, clock_.Now());
      }
      step(messages.empty() ? Duration{} : rt::MonotonicNow() - start);
    }
    return exit_code_;
  }
  void End(int code) {
    if (!ending_) {
      exit_code_ = code;
    }
    ending_ = true;
  }
  // What was posted since: whoever waits for an answer gets one.
  void Drain(Core& core) {
    for (Message& message : mailbox_.Take({})) {
      message(core, clock_.Now());
    }
  }

 private:
  SteadyWall clock_;
  rt::Mailbox<Message> mailbox_;
  std::atomic<bool> ending_ = false;
  int exit_code_ = kEnded;
};

// Not from the loop: waits until the link has stopped. What is under way, Events, and the Lease's
// release each have a limit of their own.
template <class Link>
void StopLink(kube::CurlTransport& transport, const std::unique_ptr<Link>& link) {
  const auto stopped = std::make_shared<std::promise<void>>();
  transport.Post([&link, stopped] { link->Stop(kStopLimit, [stopped] { stopped->set_value(); }); });
  stopped->get_future().wait_for(std::chrono::nanoseconds(4 * kStopLimit.ns));
}

// Whether the client's loop gets to a message before `until` (monotonic).
bool LoopAnswers(kube::CurlTransport& transport, Time until);

}  // namespace hopwise::daemon
