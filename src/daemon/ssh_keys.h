// Key pairs for the ssh plugin of vcjobs. To make one takes some hundredths of a second and chance,
// so it is done on a thread of its own, ahead of those who ask.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "control/job_plugins.h"

namespace hopwise::daemon {

// As Volcano's plugin makes them.
inline constexpr int kSshKeyBits = 2048;
// Kept ready, once somebody has asked.
inline constexpr size_t kSshKeysReady = 8;

// PEM (PKCS #1), and "ssh-rsa <base64>\n". Nothing where OpenSSL cannot, which is logged.
std::optional<control::SshKeys> MakeSshKeys();

class SshKeyMaker {
 public:
  SshKeyMaker() = default;
  ~SshKeyMaker();
  SshKeyMaker(const SshKeyMaker&) = delete;
  SshKeyMaker& operator=(const SshKeyMaker&) = delete;

  // Never waits: nothing while none is ready. Of one thread.
  std::optional<control::SshKeys> Take();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<control::SshKeys> ready_;
  bool ending_ = false;
  std::thread thread_;  // begins with the first question
};

}  // namespace hopwise::daemon
