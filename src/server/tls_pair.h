// The certificate and key that a TLS server presents, read again when their files change.
//
// A pair that was handed out stays good for as long as it is held, whatever becomes of the files.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gnutls/abstract.h>

#include "base/result.h"
#include "base/time.h"

namespace hopwise::server {

// The whole file. The error names it and says why.
Result<std::string> ReadSmallFile(const std::string& path);

struct TlsPair {
  TlsPair() = default;
  ~TlsPair();
  TlsPair(const TlsPair&) = delete;
  TlsPair& operator=(const TlsPair&) = delete;

  std::vector<gnutls_pcert_st> chain;  // the server's own certificate first
  gnutls_privkey_t key = nullptr;
};

class TlsFiles {
 public:
  // Reads both files. The error names the one that is at fault.
  static Result<std::unique_ptr<TlsFiles>> Open(std::string cert_file, std::string key_file);

  // The pair to use at `now`, a time of the monotonic clock. Looks at the files at most once a
  // second; what cannot be used is logged once and the pair before it stays. From any thread.
  std::shared_ptr<TlsPair> Current(Time now);

 private:
  TlsFiles(std::string cert_file, std::string key_file)
      : cert_file_(std::move(cert_file)), key_file_(std::move(key_file)) {}
  [[nodiscard]] std::string Stamp() const;

  const std::string cert_file_, key_file_;
  std::mutex mutex_;
  Time looked_;
  std::string stamp_;  // of the files as they were last read, usable or not
  std::shared_ptr<TlsPair> pair_;
};

}  // namespace hopwise::server
