// Carries out binds, on the client's loop.
//
// One Binding per pod with its uid as precondition, so that it can be sent again when its fate is
// not known. Each bind is followed by exactly one Event. None is sent unless we are sure to lead
// for longer than it may take.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "daemon/core.h"
#include "daemon/effects.h"
#include "kube/backoff.h"
#include "kube/events.h"
#include "kube/lifeline.h"
#include "kube/transport.h"

namespace hopwise::daemon {

// Of one Binding; far above what a healthy server takes (some milliseconds). Less where the Lease
// is short, see BinderOptions.
inline constexpr Duration kBindTimeout = Seconds(5);
// Tries of one Binding that got no answer or a passing one (429, 5xx), before the scheduler is told
// that it failed, and the waits between them: about 4 s in all, what an API server takes to fail
// over. Our own choice; client-go tries a request ten times, each a second apart.
inline constexpr int kBindTries = 5;
inline constexpr Duration kFirstBindWait = Millis(100);
inline constexpr Duration kMostBindWait = Seconds(2);
// While too little of the Lease is left, it is looked at again this often.
inline constexpr Duration kLeaseLook = Millis(20);

struct BinderOptions {
  int at_once = 16;  // more gained nothing on a server with two cores
  Duration timeout = kBindTimeout;
  // Runs `then` once nothing older is being written of the pod; at once when not set.
  std::function<void(const ObjectName& pod, std::function<void()> then)> settle;
};

class Binder {
 public:
  // How long we are sure to lead; 0: not at all, and then nothing is sent any more.
  using Remaining = std::function<Duration()>;
  using Ended = std::function<void(const BindResult&)>;

  Binder(kube::Transport& transport, kube::EventRecorder& events, Remaining remaining, Ended ended,
         BinderOptions options);
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  void Bind(const BindPod& bind);
  // A bind that was not sent ends as such; of one under way the answer is told, and it is not tried
  // again. What is to be bound of that pod next waits for it.
  void Cancel(const std::string& uid);
  [[nodiscard]] size_t waiting() const { return queue_.size(); }
  [[nodiscard]] int under_way() const { return under_way_; }

 private:
  struct Job {
    BindPod bind;
    kube::Backoff backoff{kFirstBindWait, kMostBindWait};
    int tries = 0;
    Time queued;
    uint64_t timer = 0;
    bool settling = false;  // something older is still being written of the pod
    bool under_way = false;
    bool cancelled = false;
    std::optional<BindPod> next;
  };

  void Pump();
  void Send(const std::string& uid);
  void Answered(const std::string& uid, const kube::ApiError& error);
  // After a conflict: the pod may be bound as we wished, by a Binding whose answer was lost.
  void Verify(const std::string& uid, const kube::ApiError& conflict);
  // After the back-off, and not before the server allows it.
  void Again(const std::string& uid, Duration at_least);
  void Finish(const std::string& uid, const kube::ApiError& error, bool sent);

  kube::Transport& transport_;
  kube::EventRecorder& events_;
  Remaining remaining_;
  Ended ended_;
  BinderOptions options_;
  std::map<std::string, Job> jobs_;  // by uid
  std::deque<std::string> queue_;    // uids to be sent, some cancelled meanwhile
  int under_way_ = 0;
  uint64_t look_timer_ = 0;
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
