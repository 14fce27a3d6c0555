// Carries out evictions, on the client's loop: an Event that says why, then the pod's conditions,
// then the eviction API with the pod's uid as precondition. Each of the three waits for the answer
// to the one before, so that nobody has to ask why a pod went; none is sent unless we are sure to
// lead for longer than it may take.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "daemon/core.h"
#include "daemon/effects.h"
#include "kube/backoff.h"
#include "kube/events.h"
#include "kube/lifeline.h"
#include "kube/transport.h"

namespace hopwise::daemon {

// Of one eviction: tries that got no answer or a passing one (5xx), and the waits between them.
// Those of a Binding (binder.h): about 4 s in all, what an API server takes to fail over.
inline constexpr int kEvictTries = 5;
inline constexpr Duration kFirstEvictWait = Millis(100);
inline constexpr Duration kMostEvictWait = Seconds(2);

class Evictor {
 public:
  // How long we are sure to lead; 0: not at all, and then nothing is sent any more.
  using Remaining = std::function<Duration()>;
  // Once for each eviction asked for. ok: the pod goes or is gone. A budget that forbids it
  // (kThrottled) is told at once: whoever wanted it will want it again, or somebody else.
  using Ended = std::function<void(const EvictionResult&)>;

  Evictor(kube::Transport& transport, kube::EventRecorder& events, Remaining remaining, Ended ended,
          Duration timeout);
  Evictor(const Evictor&) = delete;
  Evictor& operator=(const Evictor&) = delete;

  // One that is asked for again while it is under way is passed over.
  void Evict(const EvictPod& evict);
  [[nodiscard]] size_t under_way() const { return under_way_.size(); }

 private:
  [[nodiscard]] bool Leads() const { return remaining_() > timeout_; }
  void TellConditions(const EvictPod& evict);
  void Try(const EvictPod& evict, int tries, kube::Backoff backoff);
  void Answered(const EvictPod& evict, int tries, kube::Backoff backoff,
                const kube::ApiError& error);
  void End(const EvictPod& evict, const kube::ApiError& error, bool sent);

  kube::Transport& transport_;
  kube::EventRecorder& events_;
  Remaining remaining_;
  Ended ended_;
  Duration timeout_;
  std::set<std::string> under_way_;  // uids
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
