// Leader election by a Lease, as client-go's leaderelection does it: whoever holds the Lease renews
// it; who sees it unrenewed for its whole duration, by its own clock, takes it. There is no
// fencing: remaining() says for how long nobody else can have taken it, and every write that
// matters asks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/time.h"
#include "kube/errors.h"
#include "kube/transport.h"

namespace hopwise::kube {

// component-base's defaults.
inline constexpr Duration kLeaseDuration = Seconds(15);
inline constexpr Duration kRenewDeadline = Seconds(10);
inline constexpr Duration kRetryPeriod = Seconds(2);

struct LeaseOptions {
  std::string ns, name;
  std::string identity;                                 // "host_<random>", one per process
  std::map<std::string, std::string> annotations = {};  // kept on the Lease while it is ours
  Duration duration = kLeaseDuration, renew_deadline = kRenewDeadline, retry_period = kRetryPeriod;
};

class LeaderElector {
 public:
  struct Handlers {
    std::function<void()> elected;
    // No renewal got through within the renew deadline, or somebody else holds it. Told before the
    // Lease can have passed to another, as long as clocks run evenly.
    std::function<void(std::string_view why)> lost;
    // Who holds it, when that changes; "" when nobody.
    std::function<void(std::string_view holder)> observed;
    // The Lease could not be read or written; it is tried again. kNone when it could be after all.
    std::function<void(const ApiError&)> trouble;
  };
  LeaderElector(Transport& transport, LeaseOptions options, Handlers handlers);
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void Start();
  // No more turns: it neither renews nor stands again, and tells nothing more. For whoever does not
  // lead and is about to end; Release may follow.
  void Rest();
  // Gives the Lease back if we hold it (holderIdentity "" and a duration of 1 s), so that the next
  // one need not wait; `done` when that is over or failed.
  void Release(std::function<void()> done);

  [[nodiscard]] bool leading() const;
  // For how long we are sure to be the only leader: from the *start* of the last renewal that got
  // through, on our own clock. 0 when not leading. Read before each batch of writes.
  [[nodiscard]] Duration remaining() const;
  // Of the Lease as last seen; "" before.
  [[nodiscard]] std::string uid() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether another scheduler's Lease is being renewed: looks twice, `watch_for` apart (its own
// duration if that is longer), and calls `done` with the holder if renewTime or holder moved in
// between, with "" if the Lease is absent, released or stands still.
void FindActiveHolder(Transport& transport, const std::string& ns, const std::string& name,
                      Duration watch_for,
                      std::function<void(std::string holder, const ApiError&)> done);

}  // namespace hopwise::kube
