// Signals as calls on a thread of their own, so that what they do may take locks and memory.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace hopwise::rt {

// Make it before any other thread: the signals are blocked in all threads started afterwards.
class Signals {
 public:
  Signals(const std::vector<int>& signals, std::function<void(int)> on_signal);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  int signal_fd_ = -1, stop_fd_ = -1;
  std::function<void(int)> on_signal_;
  std::thread thread_;
};

// For a process that goes on for long: a reader of its output that is gone, or a full disk, is an
// error of that write and ends nothing (SIGPIPE, SIGXFSZ), and what it opens is never taken for its
// standard streams, should it have been started without them.
void SurviveOutput();

}  // namespace hopwise::rt
