// The Transport of tests: no network, no sleeping. The test answers what was sent, by hand or by a
// handler, and moves the clock; callbacks run within Run, Advance and AdvanceTo, in the order of
// their time and, at the same time, in the order in which they came to be.
//
//   FakeTransport transport;
//   transport.on_send = [](const Request& request) { return Reply(200, "{}"); };
//   thing_under_test.Start();
//   transport.Advance(Seconds(30));
//
// What no handler answers stays open: Answer ends a request, Feed and End serve a stream. A request
// that is not answered within its time-out is answered as CurlTransport would, with status 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "base/time.h"
#include "kube/transport.h"

namespace hopwise::kube {

// An answer, and none.
inline Response Reply(int status, std::string body = "") {
  Response out;
  out.status = status;
  out.body = std::move(body);
  return out;
}
inline Response NoReply(std::string error) {
  Response out;
  out.error = std::move(error);
  return out;
}

class FakeTransport final : public Transport {
 public:
  // A request or a stream as it was sent; kept after it is over.
  struct Sent {
    Id id = 0;
    Request request;
    bool is_stream = false;
    Time at;             // Now() of the sending
    bool open = true;    // neither answered nor cancelled
    bool begun = false;  // of a stream: its headers were there
    bool cancelled = false;
  };

  // Answers what is sent, `latency` after it; nothing leaves it open for Answer.
  std::function<std::optional<Response>(const Request&)> on_send;
  // Hears of each new stream, `latency` after it, and may Feed or End it or leave it open.
  std::function<void(Id, const Request&)> on_stream;
  Duration latency;

  explicit FakeTransport(uint64_t seed = 1) : prng_(seed) {}

  // --- Transport
  Id Send(Request request, Done done) override {
    const Id id = Open(std::move(request), false, {}, std::move(done));
    At(now_ + latency, [this, id] {
      if (!on_send || !calls_.contains(id)) return;
      if (auto response = on_send(Find(id).request)) Finish(id, std::move(*response));
    });
    return id;
  }
  Id Stream(Request request, std::function<void(std::string_view)> chunk, Done done) override {
    const Id id = Open(std::move(request), true, std::move(chunk), std::move(done));
    At(now_ + latency, [this, id] {
      if (on_stream && calls_.contains(id)) on_stream(id, Find(id).request);
    });
    return id;
  }
  Id After(Duration delay, std::function<void()> run) override {
    const Id id = next_id_++;
    timers_.insert(id);
    At(now_ + std::max(delay, Duration{}), [this, id, run = std::move(run)] {
      if (timers_.erase(id) > 0) run();
    });
    return id;
  }
  void Cancel(Id id) override {
    timers_.erase(id);
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    Sent& sent = Find(id);
    sent.open = false;
    sent.cancelled = true;
    calls_.erase(found);
  }
  [[nodiscard]] Time Now() const override { return now_; }
  [[nodiscard]] Time Wall() const override { return now_ + wall_ahead_; }
  uint64_t Random() override { return prng_.Next(); }

  // --- the test's side of a request. Nothing happens to one that is over, nor before Run.
  void Answer(Id id, Response response) {
    At(now_,
       [this, id, response = std::move(response)]() mutable { Finish(id, std::move(response)); });
  }
  // A stream's headers came: its time-out is over. Feed does it too.
  void Begin(Id id) {
    At(now_, [this, id] {
      if (calls_.contains(id)) Find(id).begun = true;
    });
  }
  void Feed(Id id, std::string text) {
    At(now_, [this, id, text = std::move(text)] {
      const auto found = calls_.find(id);
      if (found == calls_.end()) return;
      Find(id).begun = true;
      // A copy: the callback may cancel its own stream.
      const auto chunk = found->second.chunk;
      chunk(text);
    });
  }
  void End(Id id, Response response = Reply(200)) { Answer(id, std::move(response)); }

  // --- the clock
  // Runs what is due, and what that makes due.
  void Run() { AdvanceTo(now_); }
  void Advance(Duration by) { AdvanceTo(now_ + by); }
  void AdvanceTo(Time until) {
    while (!tasks_.empty() && tasks_.begin()->first.first <= until.ns) {
      auto task = tasks_.extract(tasks_.begin());
      now_ = std::max(now_, Time{task.key().first});
      task.mapped()();
    }
    now_ = std::max(now_, until);
  }
  // The time passes and nothing runs, as for a process that was stopped; Run then catches up.
  void Jump(Duration by) { now_ = now_ + by; }
  // Sets the world's clock apart from ours.
  void ShiftWall(Duration by) { wall_ahead_.ns += by.ns; }

  // --- what happened
  [[nodiscard]] const std::deque<Sent>& sent() const { return sent_; }
  [[nodiscard]] const Sent& last() const {
    HOPWISE_CHECK(!sent_.empty());
    return sent_.back();
  }
  [[nodiscard]] std::vector<Sent> open() const {
    std::vector<Sent> out;
    for (const Sent& sent : sent_) {
      if (sent.open) out.push_back(sent);
    }
    return out;
  }
  [[nodiscard]] size_t timers() const { return timers_.size(); }
  void Forget() {
    std::erase_if(sent_, [](const Sent& sent) { return !sent.open; });
  }

 private:
  struct Call {
    std::function<void(std::string_view)> chunk;
    Done done;
  };

  Id Open(Request request, bool is_stream, std::function<void(std::string_view)> chunk, Done done) {
    const Id id = next_id_++;
    const Duration timeout = request.timeout;
    Sent& sent = sent_.emplace_back();
    sent.id = id;
    sent.request = std::move(request);
    sent.is_stream = is_stream;
    sent.at = now_;
    calls_[id] = {std::move(chunk), std::move(done)};
    At(now_ + timeout, [this, id, timeout] {
      if (calls_.contains(id) && Find(id).begun) return;
      Finish(id, NoReply("no answer within " + FormatGoDuration(timeout)));
    });
    return id;
  }
  void Finish(Id id, Response response) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    const Done done = std::move(found->second.done);
    calls_.erase(found);
    Find(id).open = false;
    done(std::move(response));
  }
  // What is over or cancelled meanwhile finds that out when its time comes.
  void At(Time when, std::function<void()> run) {
    tasks_.emplace(std::pair(when.ns, next_task_++), std::move(run));
  }
  // The latest are the ones that are asked for.
  Sent& Find(Id id) {
    const auto found = std::find_if(sent_.rbegin(), sent_.rend(),
                                    [id](const Sent& sent) { return sent.id == id; });
    HOPWISE_CHECK(found != sent_.rend());
    return *found;
  }

  Prng prng_;
  Time now_ = Time{} + Seconds(1000);  // not the world's, so that a mix-up shows
  Duration wall_ahead_ = Seconds(1'800'000'000);
  Id next_id_ = 1;
  uint64_t next_task_ = 1;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> tasks_;
  std::set<Id> timers_;
  std::map<Id, Call> calls_;
  std::deque<Sent> sent_;  // a deque, so that a handler may send and keep its request
};

}  // namespace hopwise::kube
