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

}  // namespace hopwise::rt
