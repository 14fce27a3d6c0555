#include "daemon/ssh_keys.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/log.h"
#include "kube/credentials.h"

namespace hopwise::daemon {
namespace {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Pkey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Bignum = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using MemoryBio = std::unique_ptr<BIO, Freer<BIO_free>>;

// RFC 4251, section 5: a length of four bytes, then the bytes.
void AppendString(const std::string& bytes, std::string& wire) {
  const auto size = static_cast<uint32_t>(bytes.size());
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    wire += static_cast<char>((size >> shift) & 0xffU);
  }
  wire += bytes;
}

// The same section's mpint: a leading zero keeps it positive.
std::string MpInt(const BIGNUM* number) {
  std::vector<unsigned char> bytes(static_cast<size_t>(BN_num_bytes(number)));
  BN_bn2bin(number, bytes.data());
  std::string text(bytes.begin(), bytes.end());
  return !bytes.empty() && bytes.front() >= 0x80 ? std::string(1, '\0') + text : text;
}

Bignum Parameter(const Pkey& key, const char* name) {
  BIGNUM* number = nullptr;
  EVP_PKEY_get_bn_param(key.get(), name, &number);
  return Bignum(number);
}

}  // namespace

std::optional<control::SshKeys> MakeSshKeys() {
  const Pkey key(EVP_RSA_gen(static_cast<unsigned>(kSshKeyBits)));
  const MemoryBio out(BIO_new(BIO_s_mem()));
  const bool written = key != nullptr && out != nullptr &&
                       PEM_write_bio_PrivateKey_traditional(out.get(), key.get(), nullptr, nullptr,
                                                            0, nullptr, nullptr) == 1;
  const Bignum n = written ? Parameter(key, OSSL_PKEY_PARAM_RSA_N) : nullptr;
  const Bignum e = written ? Parameter(key, OSSL_PKEY_PARAM_RSA_E) : nullptr;
  if (n == nullptr || e == nullptr) {
    Log(LogLevel::kError, "ssh_keys_not_made", {{"error", "OpenSSL cannot make an RSA key"}});
    return std::nullopt;
  }
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(out.get(), &text));
  std::string wire;
  AppendString("ssh-rsa", wire);
  AppendString(MpInt(e.get()), wire);
  AppendString(MpInt(n.get()), wire);
  return control::SshKeys{std::string(text, size), "ssh-rsa " + kube::EncodeBase64(wire) + "\n"};
}

SshKeyMaker::~SshKeyMaker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wanted_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::optional<control::SshKeys> SshKeyMaker::Take() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  }
  if (ready_.empty()) {
    return std::nullopt;
  }
  control::SshKeys keys = std::move(ready_.front());
  ready_.pop_front();
  wanted_.notify_all();
  return keys;
}

void SshKeyMaker::Run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wanted_.wait(lock, [this] { return ending_ || ready_.size() < kSshKeysReady; });
      if (ending_) {
        return;
      }
    }
    std::optional<control::SshKeys> keys = MakeSshKeys();
    if (!keys) {
      return;
    }
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(*keys));
  }
}

}  // namespace hopwise::daemon
