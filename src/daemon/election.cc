#include "daemon/election.h"

#include <utility>

#include "base/log.h"

namespace hopwise::daemon {
namespace {

constexpr const char* kLease = "leases.coordination.k8s.io";
// Without leader election nobody else writes, for ever.
constexpr Duration kForEver = Seconds(1'000'000'000);
constexpr Duration kQuietLook = Millis(20);

}  // namespace

Election::Election(kube::Transport& transport, const CommonOptions& options, bool stand,
                   const std::string& identity, std::map<std::string, std::string> annotations,
                   Handlers handlers)
    : transport_(transport),
      options_(options),
      identity_(identity),
      handlers_(std::move(handlers)) {
  if (!stand) {
    return;
  }
  kube::LeaseOptions lease;
  lease.ns = options.lock_namespace;
  lease.name = options.lock_name;
  lease.identity = identity;
  lease.annotations = std::move(annotations);
  lease.duration = options.lease_duration;
  lease.renew_deadline = options.renew_deadline;
  lease.retry_period = options.retry_period;
  kube::LeaderElector::Handlers told;
  told.elected = [this] { Elected(); };
  told.lost = [this](std::string_view why) {
    leading_ = false;
    trouble_ = why;
    handlers_.lost();
    handlers_.changed();
  };
  told.observed = [this](std::string_view holder) {
    Log(LogLevel::kInfo, "leader_observed", {{"holder", holder}});
    leader_ = holder;
    if (!holder.empty()) {
      trouble_.clear();  // who sees another lead stands by as it should
    }
    handlers_.changed();
  };
  told.trouble = [this](const kube::ApiError& error) {
    // Whoever leads is well until the Lease is lost; who stands by does not see who leads.
    if (error.ok()) {
      trouble_.clear();
    } else {
      Log(LogLevel::kWarning, "lease_trouble", {{"error", error.message}});
      if (!leading_) {
        trouble_ = error.message;
      }
    }
    handlers_.changed();
  };
  elector_ = std::make_unique<kube::LeaderElector>(transport, lease, std::move(told));
}

void Election::Start() {
  if (elector_ == nullptr) {
    Elected();
  } else {
    elector_->Start();
  }
}

void Election::Elected() {
  Log(LogLevel::kInfo, "leading", {{"identity", identity_}});
  leading_ = true;
  leader_ = identity_;
  trouble_.clear();
  handlers_.elected();
  handlers_.changed();
}

void Election::Tell(Readiness& readiness) const {
  readiness.leading = leading_;
  readiness.leader = leader_;
  if (!trouble_.empty()) {
    readiness.troubles[kLease] = trouble_;
  }
}

Duration Election::remaining() const {
  if (left_) {
    return {};
  }
  return elector_ == nullptr ? kForEver : elector_->remaining();
}

void Election::Leave(kube::EventRecorder& events, Duration limit, std::function<bool()> quiet,
                     std::function<void()> done) {
  if (elector_ != nullptr && !elector_->leading()) {
    elector_->Rest();
  }
  AwaitQuiet(transport_.Now() + limit, std::move(quiet),
             [this, &events, limit, done = std::move(done)] {
               events.Flush(limit, [this, done] { Release(done); });
             });
}

void Election::AwaitQuiet(Time until, std::function<bool()> quiet, std::function<void()> done) {
  if (quiet() || transport_.Now() >= until) {
    done();
    return;
  }
  transport_.After(kQuietLook,
                   lifeline_.Guard([this, until, quiet = std::move(quiet), done = std::move(done)] {
                     AwaitQuiet(until, quiet, done);
                   }));
}

void Election::Release(const std::function<void()>& done) {
  left_ = true;
  if (elector_ == nullptr) {
    done();
  } else {
    elector_->Release(done);
  }
}

kube::ObjectReference Election::lease() const {
  return {"coordination.k8s.io/v1", "Lease", options_.lock_namespace, options_.lock_name,
          elector_ == nullptr ? "" : elector_->uid()};
}

}  // namespace hopwise::daemon
