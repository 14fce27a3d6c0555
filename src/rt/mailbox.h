// Messages from many threads to one. Nothing is lost and nothing waits for the reader: what must be
// bounded is bounded by whoever posts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/time.h"

namespace hopwise::rt {

template <class Message>
class Mailbox {
 public:
  void Post(Message message) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(message));
    }
    ready_.notify_one();
  }

  // All that waits, in the order posted; waits up to `limit` for the first. Empty when none came.
  std::vector<Message> Take(Duration limit) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, std::chrono::nanoseconds(limit.ns), [&] { return !waiting_.empty(); });
    return std::exchange(waiting_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Message> waiting_;
};

}  // namespace hopwise::rt
