#include "server/tls_pair.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/stat.h>

#include "base/log.h"
#include "rt/files.h"

namespace hopwise::server {
namespace {

// How often a handshake may look at the files.
constexpr Duration kLookAgain = Seconds(1);
// A server's certificate and those between it and its root; real chains have two to four.
constexpr unsigned kLongestChain = 16;
// Certificates, keys and CA bundles are kilobytes; more is a mistaken path.
constexpr size_t kLargestFile = size_t{4} << 20U;

gnutls_datum_t Datum(std::string& text) {
  // GnuTLS takes bytes it does not change as unsigned char*.
  return {reinterpret_cast<unsigned char*>(text.data()), static_cast<unsigned>(text.size())};
}

// What changes when a file is written anew or another takes its place.
std::string StampOf(const std::string& path) {
  struct stat s{};
  if (stat(path.c_str(), &s) != 0) {
    return fmt::format("missing {}", errno);
  }
  return fmt::format("{} {} {} {}.{} {}.{}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                     s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

// Whether the key belongs to the certificate.
int Match(const gnutls_datum_t& cert, const gnutls_datum_t& key) {
  gnutls_certificate_credentials_t scratch = nullptr;
  int rc = gnutls_certificate_allocate_credentials(&scratch);
  if (rc == GNUTLS_E_SUCCESS) {
    rc = gnutls_certificate_set_x509_key_mem(scratch, &cert, &key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(scratch);
  }
  return rc;
}

Result<std::shared_ptr<TlsPair>> ReadPair(const std::string& cert_file,
                                          const std::string& key_file) {
  Result<std::string> cert_text = ReadSmallFile(cert_file);
  if (!cert_text) {
    return tl::unexpected(cert_text.error());
  }
  Result<std::string> key_text = ReadSmallFile(key_file);
  if (!key_text) {
    return tl::unexpected(key_text.error());
  }
  return MakePair(std::move(*cert_text), std::move(*key_text), cert_file, key_file);
}

}  // namespace

Result<std::string> ReadSmallFile(const std::string& path) {
  return rt::ReadSmallFile(path, kLargestFile);
}

Status CheckCa(const std::string& text, const std::string& name) {
  std::string pem = text;
  gnutls_certificate_credentials_t scratch = nullptr;
  int rc = gnutls_certificate_allocate_credentials(&scratch);
  if (rc == GNUTLS_E_SUCCESS) {
    const gnutls_datum_t ca = {reinterpret_cast<unsigned char*>(pem.data()),
                               static_cast<unsigned>(pem.size())};
    rc = gnutls_certificate_set_x509_trust_mem(scratch, &ca, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(scratch);
  }
  if (rc > 0) {
    return {};
  }
  return Invalid(fmt::format("{} holds no CA certificate in PEM form: {}", name,
                             rc == 0 ? "it is empty" : gnutls_strerror(rc)));
}

Result<std::shared_ptr<TlsPair>> MakePair(std::string cert_text, std::string key_text,
                                          const std::string& cert_name,
                                          const std::string& key_name) {
  const gnutls_datum_t cert = Datum(cert_text);
  const gnutls_datum_t key = Datum(key_text);
  auto pair = std::make_shared<TlsPair>();

  std::array<gnutls_pcert_st, kLongestChain> chain{};
  unsigned count = kLongestChain;
  int rc = gnutls_pcert_list_import_x509_raw(chain.data(), &count, &cert, GNUTLS_X509_FMT_PEM, 0);
  if (rc < 0) {
    return Invalid(
        fmt::format("{} is not a certificate in PEM form, with its chain of at most {}: "
                    "{}",
                    cert_name, kLongestChain, gnutls_strerror(rc)));
  }
  pair->chain.assign(chain.begin(), chain.begin() + count);

  rc = gnutls_privkey_init(&pair->key);
  if (rc == GNUTLS_E_SUCCESS) {
    rc = gnutls_privkey_import_x509_raw(pair->key, &key, GNUTLS_X509_FMT_PEM, nullptr, 0);
  }
  if (rc < 0) {
    return Invalid(fmt::format("{} is not a private key in PEM form without a password: {}",
                               key_name, gnutls_strerror(rc)));
  }
  rc = Match(cert, key);
  if (rc < 0) {
    return Invalid(fmt::format("{} is not the key of the certificate in {}: {}", key_name,
                               cert_name, gnutls_strerror(rc)));
  }
  return pair;
}

void TlsGiven::Set(std::shared_ptr<TlsPair> pair) {
  const std::lock_guard lock(mutex_);
  pair_ = std::move(pair);
}

std::shared_ptr<TlsPair> TlsGiven::Current(Time /*now*/) {
  const std::lock_guard lock(mutex_);
  return pair_;
}

TlsPair::~TlsPair() {
  for (gnutls_pcert_st& cert : chain) {
    gnutls_pcert_deinit(&cert);
  }
  if (key != nullptr) {
    gnutls_privkey_deinit(key);
  }
}

std::string TlsFiles::Stamp() const { return StampOf(cert_file_) + "; " + StampOf(key_file_); }

Result<std::unique_ptr<TlsFiles>> TlsFiles::Open(std::string cert_file, std::string key_file) {
  auto files = std::unique_ptr<TlsFiles>(new TlsFiles(std::move(cert_file), std::move(key_file)));
  // The stamp comes first: what is written while the files are read is then seen as a change.
  files->stamp_ = files->Stamp();
  auto pair = ReadPair(files->cert_file_, files->key_file_);
  if (!pair) {
    return tl::unexpected(pair.error());
  }
  files->pair_ = std::move(*pair);
  return files;
}

std::shared_ptr<TlsPair> TlsFiles::Current(Time now) {
  const std::lock_guard lock(mutex_);
  if (looked_.set() && now < looked_ + kLookAgain) {
    return pair_;
  }
  looked_ = now;
  std::string stamp = Stamp();
  if (stamp == stamp_) {
    return pair_;
  }
  stamp_ = std::move(stamp);
  if (auto pair = ReadPair(cert_file_, key_file_)) {
    pair_ = std::move(*pair);
    Log(LogLevel::kInfo, "tls_certificate_reloaded", {{"cert_file", cert_file_}});
  } else {
    Log(LogLevel::kWarning, "tls_certificate_kept",
        {{"cert_file", cert_file_}, {"why", pair.error().message}});
  }
  return pair_;
}

}  // namespace hopwise::server
