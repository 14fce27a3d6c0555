// Carries out the controllers' writes, on the client's loop: batches of steps, the writes of a step
// at once, the next step when all of it went well. What may pass is tried again; what failed for
// good ends the batch after its step, and whoever planned it plans anew.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kube/backoff.h"
#include "kube/errors.h"
#include "kube/lifeline.h"
#include "kube/resources.h"
#include "kube/transport.h"

namespace hopwise::daemon {

// Requests in flight at most, of all batches: above it the server only queues them. Our own choice,
// measured: bench/live.py.
inline constexpr int kWritesAtOnce = 32;
// About 10 s in all; then the batch fails, and is planned anew from what is there by then.
inline constexpr int kCarryTries = 6;
inline constexpr Duration kFirstCarryWait = Millis(200);
inline constexpr Duration kMostCarryWait = Seconds(5);

struct ObjectWrite {
  enum class Verb : uint8_t { kCreate, kPatch, kPatchStatus, kDelete };
  Verb verb = Verb::kCreate;
  kube::Resource resource;
  std::string ns, name;
  // Of a deletion: the object, and its version, that are meant; "": whatever has the name.
  std::string uid, resource_version;
  // The object of a creation, a JSON merge patch (which holds uid or resourceVersion where these
  // are to match), DeleteOptions beside the uid (may be "").
  std::string body;
  // Of a creation: an object of the name that is there already will do.
  bool exists_ok = false;
};

struct Batch {
  uint64_t id = 0;
  std::vector<std::vector<ObjectWrite>> steps;
};

// What became of a write.
struct WriteResult {
  ObjectWrite write;
  kube::ApiError error;
  std::string object;  // as the server has it now; "" when it is gone, or failed
};

class Carrier {
 public:
  struct Handlers {
    std::function<void(uint64_t batch, WriteResult&&)> wrote;
    // All of the batch was answered, or, where ok is false, given up.
    std::function<void(uint64_t batch, bool ok)> ended;
  };
  // `may_write` is asked before each request; what it refuses fails as unreachable.
  Carrier(kube::Transport& transport, std::function<bool()> may_write, Handlers handlers)
      : transport_(transport), may_write_(std::move(may_write)), handlers_(std::move(handlers)) {}
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  void Carry(Batch batch);
  // Batches that have not ended.
  [[nodiscard]] size_t under_way() const { return batches_.size(); }

 private:
  struct Running {
    Batch batch;
    size_t step = 0;
    size_t open = 0;  // writes of the step without an answer
    bool failed = false;
  };
  struct Write {
    uint64_t batch = 0;
    ObjectWrite write;
    kube::Backoff backoff{kFirstCarryWait, kMostCarryWait};
    int tries = 0;
  };

  void Begin(uint64_t id);
  void Pump();
  void Send(Write write);
  void Answered(Write write, kube::Response&& response);
  void Ended(const Write& write, const kube::ApiError& error, std::string object);

  kube::Transport& transport_;
  std::function<bool()> may_write_;
  Handlers handlers_;
  int in_flight_ = 0;
  std::map<uint64_t, Running> batches_;
  std::deque<Write> waiting_;
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
