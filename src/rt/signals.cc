#include "rt/signals.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"

namespace hopwise::rt {

Signals::Signals(const std::vector<int>& signals, std::function<void(int)> on_signal)
    : on_signal_(std::move(on_signal)) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
  }
  HOPWISE_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  HOPWISE_CHECK(signal_fd_ >= 0 && stop_fd_ >= 0);
  thread_ = std::thread([this] {
    for (;;) {
      std::array<pollfd, 2> fds = {{{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
      if (poll(fds.data(), fds.size(), -1) < 0) {
        continue;
      }
      if ((fds[1].revents & POLLIN) != 0) {
        return;
      }
      signalfd_siginfo info{};
      if (read(signal_fd_, &info, sizeof(info)) == ssize_t{sizeof(info)}) {
        on_signal_(static_cast<int>(info.ssi_signo));
      }
    }
  });
}

Signals::~Signals() {
  const uint64_t one = 1;
  // Cannot fail: the counter is far from full.
  static_cast<void>(write(stop_fd_, &one, sizeof(one)) == ssize_t{sizeof(one)});
  thread_.join();
  close(signal_fd_);
  close(stop_fd_);
}

void SurviveOutput() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    HOPWISE_CHECK(std::signal(signal, SIG_IGN) != SIG_ERR);
  }
  // The least free number is taken, so those that are open are passed over.
  for (int fd = 0; fd <= STDERR_FILENO;) {
    fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO) {
      close(fd);
    }
    if (fd < 0) {
      return;
    }
  }
}

}  // namespace hopwise::rt
