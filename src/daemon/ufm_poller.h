// Asks UFM for the ports of its fabric: at once, then at each interval, and sooner after a failure.
// Lives on the client's loop; UFM itself is spoken to by a client and a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/ufm.h"
#include "base/time.h"
#include "control/controller_config.h"
#include "kube/backoff.h"
#include "kube/curl_transport.h"
#include "kube/lifeline.h"

namespace hopwise::daemon {

// Volcano's time-out and limit for an answer; a large fabric takes UFM seconds.
inline constexpr Duration kUfmTimeout = Seconds(30);
inline constexpr size_t kMostUfmBytes = size_t{100} << 20U;
// After a failure, twice as long after each further one, never longer than the interval.
inline constexpr Duration kFirstUfmRetry = Seconds(5);
inline constexpr Duration kMostUfmRetry = Seconds(300);

// Why there are no ports: as a condition's reason and message.
struct UfmFailure {
  std::string reason, message;
};

class UfmPoller {
 public:
  using Answered = std::function<void(Result<api::UfmPorts>&& ports, const UfmFailure& failure)>;

  // The Secret is read anew each time, so that an exchanged password is found.
  UfmPoller(kube::CurlTransport& api, control::UfmSettings settings, Duration interval,
            Answered answered);
  ~UfmPoller();
  UfmPoller(const UfmPoller&) = delete;
  UfmPoller& operator=(const UfmPoller&) = delete;

  // What was answered last cannot be used: it is asked again as after a failure.
  void Refused();

 private:
  void AskSecret();
  void TakeSecret(kube::Response&& response);
  void AskUfm(const std::string& username, const std::string& password);
  void TakeAnswer(kube::Response&& response);
  void Fail(const std::string& reason, const std::string& message);
  void AskAgain(Duration pause);

  kube::CurlTransport& api_;
  control::UfmSettings settings_;
  Duration interval_;
  Answered answered_;
  kube::Backoff backoff_;
  std::unique_ptr<kube::CurlTransport> ufm_;  // while it is asked
  kube::Transport::Id timer_ = 0;             // until it is asked again
  bool refused_ = false;                      // since the last answer
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
