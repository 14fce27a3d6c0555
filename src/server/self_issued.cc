#include "server/self_issued.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

namespace hopwise::server {
namespace {

constexpr int64_t kCaTimes = 10;
// Clocks of a cluster differ a little.
constexpr Duration kBackdated = Seconds(300);
constexpr const char* kCaName = "CN=hopwise-webhook-ca";
constexpr const char* kServerName = "CN=hopwise-webhook";

struct FreeCert {
  void operator()(gnutls_x509_crt_t cert) const { gnutls_x509_crt_deinit(cert); }
};
struct FreeKey {
  void operator()(gnutls_x509_privkey_t key) const { gnutls_x509_privkey_deinit(key); }
};
using Cert = std::unique_ptr<std::remove_pointer_t<gnutls_x509_crt_t>, FreeCert>;
using Key = std::unique_ptr<std::remove_pointer_t<gnutls_x509_privkey_t>, FreeKey>;

gnutls_datum_t Datum(const std::string& text) {
  // GnuTLS takes bytes it does not change as unsigned char*.
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
          static_cast<unsigned>(text.size())};
}

std::string Take(gnutls_datum_t& datum) {
  std::string text(reinterpret_cast<const char*>(datum.data), datum.size);
  gnutls_free(datum.data);
  datum.data = nullptr;
  return text;
}

time_t InSeconds(Time time) { return static_cast<time_t>(time.ns / 1'000'000'000); }

// --- reading

// In their order; none where one cannot be read.
std::vector<Cert> ReadCerts(const std::string& pem) {
  gnutls_x509_crt_t* list = nullptr;
  unsigned count = 0;
  const gnutls_datum_t text = Datum(pem);
  if (pem.empty() ||
      gnutls_x509_crt_list_import2(&list, &count, &text, GNUTLS_X509_FMT_PEM, 0) < 0) {
    return {};
  }
  std::vector<Cert> certs;
  for (unsigned i = 0; i < count; ++i) certs.emplace_back(list[i]);
  gnutls_free(static_cast<void*>(list));
  return certs;
}

Key ReadKey(const std::string& pem) {
  gnutls_x509_privkey_t made = nullptr;
  if (pem.empty() || gnutls_x509_privkey_init(&made) < 0) return nullptr;
  Key key(made);
  const gnutls_datum_t text = Datum(pem);
  if (gnutls_x509_privkey_import2(made, &text, GNUTLS_X509_FMT_PEM, nullptr, 0) < 0) {
    return nullptr;
  }
  return key;
}

Time Expiry(gnutls_x509_crt_t cert) {
  return Time{} + Seconds(gnutls_x509_crt_get_expiration_time(cert));
}
Time Issued(gnutls_x509_crt_t cert) {
  return Time{} + Seconds(gnutls_x509_crt_get_activation_time(cert)) + kBackdated;
}

using KeyId = std::array<unsigned char, 20>;

bool IsOfKey(gnutls_x509_crt_t cert, gnutls_x509_privkey_t key) {
  KeyId of_cert{};
  KeyId of_key{};
  size_t cert_size = of_cert.size();
  size_t key_size = of_key.size();
  return gnutls_x509_crt_get_key_id(cert, 0, of_cert.data(), &cert_size) == 0 &&
         gnutls_x509_privkey_get_key_id(key, 0, of_key.data(), &key_size) == 0 && of_cert == of_key;
}

bool IsSignedBy(gnutls_x509_crt_t cert, gnutls_x509_crt_t issuer) {
  unsigned status = 0;
  return gnutls_x509_crt_verify(cert, &issuer, 1, GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &status) ==
             0 &&
         status == 0;
}

// --- making

// 0, or the first error of a number of calls.
class Calls {
 public:
  Calls& Then(int rc) {
    if (rc_ >= 0) rc_ = rc;
    return *this;
  }
  [[nodiscard]] bool ok() const { return rc_ >= 0; }
  [[nodiscard]] tl::unexpected<Error> error(std::string_view what) const {
    return Fail(ErrorCode::kIo, fmt::format("cannot make {}: {}", what, gnutls_strerror(rc_)));
  }

 private:
  int rc_ = 0;
};

Result<Key> MakeKey() {
  gnutls_x509_privkey_t made = nullptr;
  Calls calls;
  calls.Then(gnutls_x509_privkey_init(&made));
  Key key(made);
  if (calls.ok()) {
    calls.Then(gnutls_x509_privkey_generate(made, GNUTLS_PK_ECDSA,
                                            GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
  }
  if (!calls.ok()) return calls.error("a key");
  return key;
}

// What a certificate and that of a CA have in common.
Result<Cert> Begin(const char* name, gnutls_x509_privkey_t key, Time now, Duration validity) {
  gnutls_x509_crt_t made = nullptr;
  Calls calls;
  calls.Then(gnutls_x509_crt_init(&made));
  Cert cert(made);
  if (!calls.ok()) return calls.error("a certificate");
  std::array<unsigned char, 16> serial{};
  calls.Then(gnutls_rnd(GNUTLS_RND_NONCE, serial.data(), serial.size()));
  // A positive number.
  serial[0] = static_cast<unsigned char>((serial[0] & 0x3fU) | 0x40U);
  KeyId id{};
  size_t id_size = id.size();
  calls.Then(gnutls_x509_crt_set_version(made, 3))
      .Then(gnutls_x509_crt_set_serial(made, serial.data(), serial.size()))
      .Then(gnutls_x509_crt_set_dn(made, name, nullptr))
      .Then(gnutls_x509_crt_set_activation_time(made, InSeconds(Time{now.ns - kBackdated.ns})))
      .Then(gnutls_x509_crt_set_expiration_time(made, InSeconds(now + validity)))
      .Then(gnutls_x509_crt_set_key(made, key))
      .Then(gnutls_x509_privkey_get_key_id(key, 0, id.data(), &id_size))
      .Then(gnutls_x509_crt_set_subject_key_id(made, id.data(), id_size));
  if (!calls.ok()) return calls.error("a certificate");
  return cert;
}

// "10.0.0.1" as an address, anything else as a DNS name.
int AddName(gnutls_x509_crt_t cert, const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  for (const auto& [family, size] : {std::pair(AF_INET, 4U), std::pair(AF_INET6, 16U)}) {
    if (inet_pton(family, name.c_str(), bytes.data()) == 1) {
      return gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, bytes.data(), size,
                                                  GNUTLS_FSAN_APPEND);
    }
  }
  return gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, name.data(),
                                              static_cast<unsigned>(name.size()),
                                              GNUTLS_FSAN_APPEND);
}

Result<std::string> PemOf(gnutls_x509_crt_t cert) {
  gnutls_datum_t out{};
  Calls calls;
  if (!calls.Then(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &out)).ok()) {
    return calls.error("a certificate's text");
  }
  return Take(out);
}

Result<std::string> PemOf(gnutls_x509_privkey_t key) {
  gnutls_datum_t out{};
  Calls calls;
  calls.Then(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN,
                                               &out));
  if (!calls.ok()) return calls.error("a key's text");
  return Take(out);
}

struct Pair {
  Cert cert;
  Key key;
};

Result<Pair> IssueCa(Time now, Duration validity) {
  Result<Key> key = MakeKey();
  if (!key) return tl::unexpected(key.error());
  Result<Cert> cert = Begin(kCaName, key->get(), now, validity);
  if (!cert) return tl::unexpected(cert.error());
  Calls calls;
  calls.Then(gnutls_x509_crt_set_basic_constraints(cert->get(), 1, 0))
      .Then(gnutls_x509_crt_set_key_usage(cert->get(), GNUTLS_KEY_KEY_CERT_SIGN))
      .Then(gnutls_x509_crt_sign2(cert->get(), cert->get(), key->get(), GNUTLS_DIG_SHA256, 0));
  if (!calls.ok()) return calls.error("a CA");
  return Pair{std::move(*cert), std::move(*key)};
}

Result<Pair> IssueServer(const Pair& ca, const IssueTerms& terms, Time now) {
  Result<Key> key = MakeKey();
  if (!key) return tl::unexpected(key.error());
  Result<Cert> cert = Begin(kServerName, key->get(), now, terms.validity);
  if (!cert) return tl::unexpected(cert.error());
  Calls calls;
  for (const std::string& name : terms.names) calls.Then(AddName(cert->get(), name));
  KeyId id{};
  size_t id_size = id.size();
  calls.Then(gnutls_x509_privkey_get_key_id(ca.key.get(), 0, id.data(), &id_size))
      .Then(gnutls_x509_crt_set_authority_key_id(cert->get(), id.data(), id_size))
      .Then(gnutls_x509_crt_set_key_usage(cert->get(), GNUTLS_KEY_DIGITAL_SIGNATURE))
      .Then(gnutls_x509_crt_set_key_purpose_oid(cert->get(), GNUTLS_KP_TLS_WWW_SERVER, 0))
      .Then(gnutls_x509_crt_sign2(cert->get(), ca.cert.get(), ca.key.get(), GNUTLS_DIG_SHA256, 0));
  if (!calls.ok()) return calls.error("a certificate");
  return Pair{std::move(*cert), std::move(*key)};
}

// --- what is due

// What a server has to present.
struct Standing {
  bool usable = false;         // it is of a CA that is trusted, for the names, and not expired
  bool fresh = false;          // and more than a third of its time is left
  bool of_present_ca = false;  // and that CA is the one that signs now
};

Standing StandingOf(const SelfIssued& present, const std::vector<Cert>& cas,
                    gnutls_x509_crt_t present_ca, const IssueTerms& terms, Time now) {
  const std::vector<Cert> certs = ReadCerts(present.cert);
  const Key key = ReadKey(present.key);
  if (certs.empty() || key == nullptr) return {};
  gnutls_x509_crt_t cert = certs.front().get();
  const bool trusted =
      std::ranges::any_of(cas, [&](const Cert& ca) { return IsSignedBy(cert, ca.get()); });
  const bool named = std::ranges::all_of(terms.names, [&](const std::string& name) {
    return gnutls_x509_crt_check_hostname(cert, name.c_str()) != 0;
  });
  const Duration left = Expiry(cert) - now;
  if (!trusted || !named || !IsOfKey(cert, key.get()) || left.ns <= 0) return {};
  return {true, left.ns > terms.validity.ns / 3, IsSignedBy(cert, present_ca)};
}

// The CA that signs from now on, first of `ca`; made where there is none that lasts.
Result<Pair> PresentCa(SelfIssued& next, std::vector<Cert>& cas, const IssueTerms& terms,
                       Time now) {
  std::erase_if(cas, [now](const Cert& ca) { return Expiry(ca.get()) <= now; });
  Key key = ReadKey(next.ca_key);
  if (!cas.empty() && key != nullptr && IsOfKey(cas.front().get(), key.get()) &&
      Expiry(cas.front().get()) >= now + terms.validity) {
    std::vector<Cert> copy = ReadCerts(next.ca);
    return Pair{std::move(copy.front()), std::move(key)};
  }
  Result<Pair> made = IssueCa(now, Duration{terms.validity.ns * kCaTimes});
  if (!made) return made;
  Result<std::string> text = PemOf(made->cert.get());
  Result<std::string> key_text = PemOf(made->key.get());
  if (!text) return tl::unexpected(text.error());
  if (!key_text) return tl::unexpected(key_text.error());
  for (const Cert& old : cas) {
    const Result<std::string> old_text = PemOf(old.get());
    if (old_text) *text += *old_text;
  }
  next.ca = std::move(*text);
  next.ca_key = std::move(*key_text);
  return made;
}

}  // namespace

Time ExpiryOf(const std::string& pem) {
  const std::vector<Cert> certs = ReadCerts(pem);
  return certs.empty() ? Time{} : Expiry(certs.front().get());
}

Result<SelfIssued> Renew(const SelfIssued& present, const IssueTerms& terms, Time now) {
  SelfIssued next = present;
  std::vector<Cert> cas = ReadCerts(present.ca);
  Result<Pair> ca = PresentCa(next, cas, terms, now);
  if (!ca) return tl::unexpected(ca.error());
  const Standing standing = StandingOf(present, cas, ca->cert.get(), terms, now);
  if (standing.fresh && standing.of_present_ca) return next;
  const bool spread = now >= Issued(ca->cert.get()) + kTrustSpreads;
  if (standing.usable && !standing.of_present_ca && !spread) return next;
  Result<Pair> made = IssueServer(*ca, terms, now);
  if (!made) return tl::unexpected(made.error());
  Result<std::string> cert = PemOf(made->cert.get());
  Result<std::string> key = PemOf(made->key.get());
  if (!cert) return tl::unexpected(cert.error());
  if (!key) return tl::unexpected(key.error());
  next.cert = std::move(*cert);
  next.key = std::move(*key);
  return next;
}

}  // namespace hopwise::server
