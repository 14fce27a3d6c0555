// Events for people: what happened to an object. The same again within a while counts up instead of
// being written anew, similar ones beyond a number are folded into one, and the queue is bounded:
// when it is full the oldest that is not important goes, and is counted.
//
// Numbers as client-go's record: a spam filter per object of 25 events and one more every 5 min
// (EventCorrelator's burst and qps), aggregation of 10 similar ones (same object, type, reason and
// component, another message) within 10 min into "(combined from similar events): …". A write that
// fails for a reason that may pass is tried 12 times; an important one for as long as the server
// does not answer or says that it is busy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kube/transport.h"

namespace hopwise::kube {

struct ObjectReference {
  std::string api_version, kind, ns, name, uid;
};

struct EventText {
  bool warning = false;
  std::string reason, message;
  // Important ones (a bind, an eviction: exactly one each) are never folded, dropped or held back
  // by the spam filter.
  bool important = false;
  // Not empty, of an important one: makes the Event's name, so that the same told again, by
  // whoever, finds it written (AlreadyExists).
  std::string key;
};

// While binds are sent, Events stand back: so many requests at once, until so many Events wait,
// which then takes a second or less to write.
inline constexpr int kAtOnceBehind = 3;
inline constexpr uint64_t kMostBehind = 600;

class EventRecorder {
 public:
  struct Options {
    std::string component = "volcano";  // source.component and reportingComponent
    std::string instance;               // reportingInstance: host or pod name
    size_t most_waiting = 100'000;      // that are not important
    int at_once = 16;                   // requests in flight
    // Something more urgent is under way: then kAtOnceBehind, as long as no more than kMostBehind
    // wait. Not set: never.
    std::function<bool()> yields = {};
  };
  EventRecorder(Transport& transport, Options options);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Record(const ObjectReference& about, const EventText& text);
  // An important one; `then` once it is written or can never be.
  void RecordFirst(const ObjectReference& about, const EventText& text, std::function<void()> then);
  // Events that wait or are under way, written, counted up instead, dropped, and given up after
  // retries.
  struct Counts {
    uint64_t waiting = 0, written = 0, counted_up = 0, dropped = 0, failed = 0;
  };
  [[nodiscard]] Counts counts() const;
  // `done` when nothing waits any more, or after `limit`.
  void Flush(Duration limit, std::function<void()> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopwise::kube
