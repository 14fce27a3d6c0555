// The certificate and key that a TLS server presents: of files, read again when these change, or
// given to it.
//
// A pair that was handed out stays good for as long as it is held, whatever comes after it.
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

// Whether the text is at least one certificate in PEM form, to be trusted as a CA. `name` is what
// errors call it.
Status CheckCa(const std::string& text, const std::string& name);

struct TlsPair {
  TlsPair() = default;
  ~TlsPair();
  TlsPair(const TlsPair&) = delete;
  TlsPair& operator=(const TlsPair&) = delete;

  std::vector<gnutls_pcert_st> chain;  // the server's own certificate first
  gnutls_privkey_t key = nullptr;
};

// Of PEM texts. `cert_name` and `key_name` are what errors call them.
Result<std::shared_ptr<TlsPair>> MakePair(std::string cert_text, std::string key_text,
                                          const std::string& cert_name,
                                          const std::string& key_name);

class TlsSource {
 public:
  virtual ~TlsSource() = default;
  // The pair to use at `now`, a time of the monotonic clock; null when there is none (yet). From
  // any thread.
  virtual std::shared_ptr<TlsPair> Current(Time now) = 0;
};

// A pair that whoever has it sets.
class TlsGiven final : public TlsSource {
 public:
  void Set(std::shared_ptr<TlsPair> pair);
  std::shared_ptr<TlsPair> Current(Time now) override;

 private:
  std::mutex mutex_;
  std::shared_ptr<TlsPair> pair_;
};

class TlsFiles final : public TlsSource {
 public:
  // Reads both files. The error names the one that is at fault.
  static Result<std::unique_ptr<TlsFiles>> Open(std::string cert_file, std::string key_file);

  // Looks at the files at most once a second; what cannot be used is logged once and the pair
  // before it stays.
  std::shared_ptr<TlsPair> Current(Time now) override;

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
