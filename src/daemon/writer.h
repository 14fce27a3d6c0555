// Carries out patches and creations, on the client's loop: one at a time for each object, the
// newest in place of one that still waits, tried again where that may help.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/effects.h"
#include "kube/backoff.h"
#include "kube/errors.h"
#include "kube/lifeline.h"
#include "kube/transport.h"

namespace hopwise::daemon {

// About 20 s in all: a status is worth less than a bind, and nobody waits for it. Our own choice.
inline constexpr int kWriteTries = 8;
inline constexpr Duration kFirstWriteWait = Millis(200);
inline constexpr Duration kMostWriteWait = Seconds(5);

class Writer {
 public:
  using Patched = std::function<void(const Patch&, const kube::ApiError&)>;
  using QueueCreated = std::function<void(const std::string&, const kube::ApiError&)>;

  // `may_write` is asked before each request; what it refuses is dropped and told as unreachable.
  Writer(kube::Transport& transport, std::function<bool()> may_write, Patched patched,
         QueueCreated queue_created, int at_once = 8);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Write(Patch patch);
  // Nothing that was to be written of the object before is written from here on: what waits is
  // dropped, and `then` runs at once or when the answer to what is under way has come.
  void Settle(const kube::Resource& resource, const ObjectName& object,
              std::string_view subresource, std::function<void()> then);
  void CreateQueue(const std::string& name);
  [[nodiscard]] size_t waiting() const { return jobs_.size(); }

 private:
  struct Job {
    Patch patch;
    kube::Backoff backoff{kFirstWriteWait, kMostWriteWait};
    int tries = 0;
    bool sent = false;
    std::optional<Patch> next;  // follows when the answer to this one has come
    std::vector<std::function<void()>> settled;
  };
  void Pump();
  void Send(const std::string& key);
  void Answered(const std::string& key, const kube::ApiError& error);

  kube::Transport& transport_;
  std::function<bool()> may_write_;
  Patched patched_;
  QueueCreated queue_created_;
  int at_once_;
  int under_way_ = 0;
  std::map<std::string, Job> jobs_;  // by path
  std::deque<std::string> queue_;    // keys of jobs, some dropped or sent meanwhile
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
