// A daemon's stand for its Lease, with what /readyz tells of it. Lives on the client's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/options.h"
#include "daemon/watches.h"
#include "kube/events.h"
#include "kube/lease.h"
#include "kube/lifeline.h"

namespace hopwise::daemon {

class Election {
 public:
  struct Handlers {
    std::function<void()> elected, lost;
    std::function<void()> changed;  // something that Tell tells
  };
  // `stand`: false where this process leads whoever else there is.
  Election(kube::Transport& transport, const CommonOptions& options, bool stand,
           const std::string& identity, std::map<std::string, std::string> annotations,
           Handlers handlers);

  void Start();
  // Into `readiness`: whether it leads, who does, and what is wrong.
  void Tell(Readiness& readiness) const;
  // For how long nobody else can lead. 0 when not leading and once it has left, else for ever
  // without a Lease.
  [[nodiscard]] Duration remaining() const;
  // The process is about to end. Who does not lead does not stand any more; who leads waits until
  // what is under way is `quiet`, and then until the Events are written, each for `limit` at most,
  // and gives the Lease back; then `done`.
  void Leave(kube::EventRecorder& events, Duration limit, std::function<bool()> quiet,
             std::function<void()> done);
  // The Lease, for Events about the daemon itself.
  [[nodiscard]] kube::ObjectReference lease() const;

 private:
  void Elected();
  void AwaitQuiet(Time until, std::function<bool()> quiet, std::function<void()> done);
  void Release(const std::function<void()>& done);

  kube::Transport& transport_;
  const CommonOptions& options_;
  std::string identity_;
  Handlers handlers_;
  std::unique_ptr<kube::LeaderElector> elector_;
  bool leading_ = false;
  bool left_ = false;
  std::string leader_, trouble_;
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
