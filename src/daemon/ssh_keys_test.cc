#include "daemon/ssh_keys.h"

#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>

namespace hopwise::daemon {
namespace {

using ::testing::StartsWith;

TEST(SshKeys, AreAPairThatSshReads) {
  const std::optional<control::SshKeys> keys = MakeSshKeys();
  ASSERT_TRUE(keys);
  EXPECT_THAT(keys->private_key, StartsWith("-----BEGIN RSA PRIVATE KEY-----\n"));
  // "ssh-rsa" with its length, in base64: what every such line begins with.
  EXPECT_THAT(keys->public_key, StartsWith("ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB"));
}

TEST(SshKeys, AreNeverTheSame) {
  const std::optional<control::SshKeys> one = MakeSshKeys();
  const std::optional<control::SshKeys> other = MakeSshKeys();
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->public_key, other->public_key);
}

TEST(SshKeyMaker, NeverKeepsAnybodyWaiting) {
  SshKeyMaker maker;
  EXPECT_FALSE(maker.Take());
  while (!maker.Take()) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace hopwise::daemon
