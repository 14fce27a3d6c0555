// TLS: certificates, their change while the server runs, and clients that must show their own.
// The certificates are made here, by a CA of this test.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "rt/clock.h"
#include "server/http_server.h"
#include "server/test_client.h"
#include "server/tls_pair.h"

namespace hopwise::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

constexpr const char* kForServers = GNUTLS_KP_TLS_WWW_SERVER;
constexpr const char* kForClients = GNUTLS_KP_TLS_WWW_CLIENT;

std::string Take(gnutls_datum_t& datum) {
  std::string text(reinterpret_cast<const char*>(datum.data), datum.size);
  gnutls_free(datum.data);
  return text;
}

// What a certificate says of its holder.
struct Profile {
  int serial = 1;
  const char* purpose = "";  // "": it does not say
  int days = 2;              // from yesterday
  bool ca = false;
};

// A certificate with its key, signed by another or by itself.
class Identity {
 public:
  Identity(const std::string& name, const Identity* issuer, Profile profile) {
    gnutls_x509_privkey_init(&key_);
    gnutls_x509_privkey_generate(key_, GNUTLS_PK_ECDSA,
                                 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    gnutls_x509_crt_init(&cert_);
    const auto yesterday = static_cast<time_t>(rt::WallNow().ns / 1'000'000'000 - 86'400);
    const auto serial = static_cast<unsigned char>(profile.serial);
    gnutls_x509_crt_set_version(cert_, 3);
    gnutls_x509_crt_set_serial(cert_, &serial, 1);
    gnutls_x509_crt_set_activation_time(cert_, yesterday);
    gnutls_x509_crt_set_expiration_time(cert_, yesterday + profile.days * time_t{86'400});
    gnutls_x509_crt_set_dn(cert_, ("CN=" + name).c_str(), nullptr);
    gnutls_x509_crt_set_key(cert_, key_);
    if (profile.ca) {
      gnutls_x509_crt_set_basic_constraints(cert_, 1, -1);
      gnutls_x509_crt_set_key_usage(cert_, GNUTLS_KEY_KEY_CERT_SIGN);
    } else {
      const std::string_view loopback("\x7f\0\0\1", 4);
      gnutls_x509_crt_set_key_usage(cert_, GNUTLS_KEY_DIGITAL_SIGNATURE);
      gnutls_x509_crt_set_subject_alt_name(cert_, GNUTLS_SAN_IPADDRESS, loopback.data(), 4,
                                           GNUTLS_FSAN_SET);
    }
    if (*profile.purpose != '\0') {
      gnutls_x509_crt_set_key_purpose_oid(cert_, profile.purpose, 0);
    }
    const Identity& signer = issuer == nullptr ? *this : *issuer;
    EXPECT_EQ(gnutls_x509_crt_sign2(cert_, signer.cert_, signer.key_, GNUTLS_DIG_SHA256, 0), 0);
  }
  ~Identity() {
    gnutls_x509_crt_deinit(cert_);
    gnutls_x509_privkey_deinit(key_);
  }
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  [[nodiscard]] std::string Cert() const {
    gnutls_datum_t out{};
    EXPECT_EQ(gnutls_x509_crt_export2(cert_, GNUTLS_X509_FMT_PEM, &out), 0);
    return Take(out);
  }
  [[nodiscard]] std::string Key() const {
    gnutls_datum_t out{};
    EXPECT_EQ(gnutls_x509_privkey_export2(key_, GNUTLS_X509_FMT_PEM, &out), 0);
    return Take(out);
  }
  [[nodiscard]] std::string KeyWithPassword() const {
    gnutls_datum_t out{};
    EXPECT_EQ(gnutls_x509_privkey_export2_pkcs8(key_, GNUTLS_X509_FMT_PEM, "secret",
                                                GNUTLS_PKCS_PBES2_AES_256, &out),
              0);
    return Take(out);
  }

 private:
  gnutls_x509_privkey_t key_ = nullptr;
  gnutls_x509_crt_t cert_ = nullptr;
};

// What a client that checks nothing saw: the outcome of the handshake and the certificate's serial.
struct Greeting {
  int rc = 0;
  int serial = -1;
};

Greeting Greet(int port, const std::string& priorities = "NORMAL") {
  const Wire wire(port);
  gnutls_certificate_credentials_t credentials = nullptr;
  gnutls_session_t session = nullptr;
  gnutls_certificate_allocate_credentials(&credentials);
  gnutls_init(&session, GNUTLS_CLIENT);
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
  EXPECT_EQ(gnutls_priority_set_direct(session, priorities.c_str(), nullptr), 0) << priorities;
  gnutls_transport_set_int(session, wire.fd());
  gnutls_handshake_set_timeout(session, static_cast<unsigned>(kPatience.count()));
  Greeting greeting;
  do {
    greeting.rc = gnutls_handshake(session);
  } while (greeting.rc < 0 && gnutls_error_is_fatal(greeting.rc) == 0);
  unsigned count = 0;
  const gnutls_datum_t* chain = gnutls_certificate_get_peers(session, &count);
  if (greeting.rc == 0 && count > 0) {
    gnutls_x509_crt_t cert = nullptr;
    unsigned char serial = 0;
    size_t size = 1;
    gnutls_x509_crt_init(&cert);
    gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER);
    gnutls_x509_crt_get_serial(cert, &serial, &size);
    gnutls_x509_crt_deinit(cert);
    greeting.serial = serial;
  }
  gnutls_deinit(session);
  gnutls_certificate_free_credentials(credentials);
  return greeting;
}

// A folder with server.crt and server.key of serial 10, and a CA whose certificates they are.
class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    std::string pattern = (fs::temp_directory_path() / "hopwise-tls-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    options_.address = "127.0.0.1:0";
    options_.cert_file = Path("server.crt");
    options_.key_file = Path("server.key");
    Put(first_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::string Write(const std::string& name, const std::string& text) const {
    // As a tool does that renews certificates: a new file takes the place of the old one.
    const std::string path = Path(name);
    std::ofstream(path + ".new") << text;
    fs::rename(path + ".new", path);
    return path;
  }
  void Put(const Identity& identity) const {
    static_cast<void>(Write("server.crt", identity.Cert()));
    static_cast<void>(Write("server.key", identity.Key()));
  }

  void Start() {
    auto server = HttpServer::Start(
        options_, {{"/", [](const HttpRequest&) { return HttpResponse{.body = "ok"}; }}});
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  // A client that trusts the CA and shows `shown`, if any.
  [[nodiscard]] Answer Get(const Identity* shown = nullptr) const {
    std::string ca = ca_.Cert();
    std::string cert = shown == nullptr ? "" : shown->Cert();
    std::string key = shown == nullptr ? "" : shown->Key();
    const auto blob = [](std::string& text) {
      return curl_blob{text.data(), text.size(), CURL_BLOB_NOCOPY};
    };
    return Fetch(server_->url() + "/", {.adjust = [&](CURL* curl) {
                   const curl_blob trusted = blob(ca);
                   curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &trusted);
                   if (shown != nullptr) {
                     const curl_blob own = blob(cert);
                     const curl_blob own_key = blob(key);
                     curl_easy_setopt(curl, CURLOPT_SSLCERT_BLOB, &own);
                     curl_easy_setopt(curl, CURLOPT_SSLKEY_BLOB, &own_key);
                   }
                 }});
  }

  [[nodiscard]] std::string StartError() const {
    const auto server = HttpServer::Start(options_, {});
    return server ? "it starts" : server.error().message;
  }

  CapturedLog log_;
  Identity ca_{"ca", nullptr, {.ca = true}};
  Identity first_{"server", &ca_, {.serial = 10, .purpose = kForServers}};
  Identity second_{"server", &ca_, {.serial = 20, .purpose = kForServers}};
  fs::path folder_;
  ServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(TlsTest, AClientThatChecksTheCertificateIsServed) {
  Start();
  EXPECT_THAT(server_->url(), StartsWith("https://127.0.0.1:"));
  const Answer answer = Get();
  EXPECT_EQ(answer.code, CURLE_OK);
  EXPECT_EQ(answer.body, "ok");
}

TEST_F(TlsTest, TheIntermediatesInTheFileAreSentToo) {
  // ca_ <- between <- leaf: a client that knows ca_ alone needs `between` from the server.
  const Identity between("between", &ca_, {.serial = 31, .ca = true});
  const Identity leaf("server", &between, {.serial = 30, .purpose = kForServers});
  static_cast<void>(Write("server.crt", leaf.Cert() + between.Cert()));
  static_cast<void>(Write("server.key", leaf.Key()));
  Start();
  EXPECT_EQ(Get().body, "ok");
  EXPECT_EQ(Greet(server_->port()).serial, 30);
}

TEST_F(TlsTest, VersionsBefore12AreRefused) {
  Start();
  const std::vector<std::pair<std::string, bool>> table = {
      {"TLS1.3", true}, {"TLS1.2", true}, {"TLS1.1", false}, {"TLS1.0", false}};
  for (const auto& [version, served] : table) {
    const Greeting greeting = Greet(
        server_->port(), "LEGACY:-VERS-ALL:+VERS-" + version + ":%VERIFY_ALLOW_SIGN_WITH_SHA1");
    EXPECT_EQ(greeting.rc == 0, served) << version << ": " << gnutls_strerror(greeting.rc);
  }
}

TEST_F(TlsTest, WhoSpeaksPlainHttpIsToldSoAndDisturbsNobody) {
  Start();
  for (const std::string& request :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        "POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100000, 'x')}) {
    Wire wire(server_->port());
    ASSERT_TRUE(wire.Send(request));
    EXPECT_THAT(wire.ReadToClose(),
                testing::AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("speaks HTTPS only")));
    EXPECT_TRUE(wire.closed());
  }
  EXPECT_EQ(Get().body, "ok");
}

TEST_F(TlsTest, WhatIsNeitherTlsNorHttpIsClosed) {
  Start();
  Wire wire(server_->port());
  ASSERT_TRUE(wire.Send(std::string(64, '\x01')));
  EXPECT_THAT(wire.ReadToClose(), testing::Not(HasSubstr("HTTP")));
  EXPECT_TRUE(wire.closed());
  EXPECT_EQ(Get().body, "ok");
}

TEST_F(TlsTest, APairThatIsGivenIsPresentedUntilTheNext) {
  const auto given = std::make_shared<TlsGiven>();
  options_.cert_file = options_.key_file = "";
  options_.tls = given;
  Start();
  EXPECT_NE(Get().code, CURLE_OK) << "nothing was given yet";
  given->Set(*MakePair(first_.Cert(), first_.Key(), "cert", "key"));
  EXPECT_EQ(Get().body, "ok");
  EXPECT_EQ(Greet(server_->port()).serial, 10);
  given->Set(*MakePair(second_.Cert(), second_.Key(), "cert", "key"));
  EXPECT_EQ(Greet(server_->port()).serial, 20);
}

TEST_F(TlsTest, AClientThatNeverGreetsIsLeftAfterTheIdleTime) {
  options_.idle_timeout_s = 1;
  Start();
  Wire wire(server_->port());
  static_cast<void>(wire.ReadToClose());  // at most an alert that says so
  EXPECT_TRUE(wire.closed());
}

// --- files that change
// ----------------------------------------------------------------------------

TEST_F(TlsTest, ANewCertificateIsUsedWithoutARestart) {
  Start();
  EXPECT_EQ(Greet(server_->port()).serial, 10);
  Put(second_);
  const Time begun = rt::MonotonicNow();
  while (Greet(server_->port()).serial != 20) {
    ASSERT_LT(rt::MonotonicNow() - begun, Seconds(20));
  }
  EXPECT_EQ(Get().body, "ok");
  EXPECT_EQ(log_.Lines(), "info tls_certificate_reloaded cert_file=" + options_.cert_file + "\n");
}

// The clock of the files alone; no server.
constexpr Time At(int64_t ms) { return Time{} + Seconds(100) + Millis(ms); }

TEST_F(TlsTest, TheFilesAreLookedAtOnceASecondAtMost) {
  auto files = TlsFiles::Open(options_.cert_file, options_.key_file);
  ASSERT_TRUE(files);
  const std::shared_ptr<TlsPair> before = (*files)->Current(At(0));
  Put(second_);
  EXPECT_EQ((*files)->Current(At(999)), before);
  const std::shared_ptr<TlsPair> after = (*files)->Current(At(1000));
  EXPECT_NE(after, before);
  EXPECT_EQ((*files)->Current(At(5000)), after);
}

TEST_F(TlsTest, AConnectionKeepsThePairItWasGiven) {
  auto files = TlsFiles::Open(options_.cert_file, options_.key_file);
  ASSERT_TRUE(files);
  const std::shared_ptr<TlsPair> held = (*files)->Current(At(0));
  Put(second_);
  static_cast<void>((*files)->Current(At(1000)));
  files->reset();
  ASSERT_EQ(held->chain.size(), 1);
  EXPECT_NE(held->key, nullptr);
}

TEST_F(TlsTest, FilesThatCannotBeUsedLeaveTheOldPairAndSaySoOnce) {
  const std::vector<std::pair<std::string, std::function<void()>>> table = {
      {"server.crt is not a certificate",
       [&] { static_cast<void>(Write("server.crt", "half a cert")); }},
      {"server.key is not a private key", [&] { static_cast<void>(Write("server.key", "")); }},
      {"server.key is not the key of the certificate",
       [&] { static_cast<void>(Write("server.crt", second_.Cert())); }},
      {"No such file or directory", [&] { fs::remove(Path("server.key")); }},
  };
  for (const auto& [why, spoil] : table) {
    Put(first_);
    const CapturedLog log;
    auto files = TlsFiles::Open(options_.cert_file, options_.key_file);
    ASSERT_TRUE(files) << why;
    const std::shared_ptr<TlsPair> before = (*files)->Current(At(0));
    spoil();
    EXPECT_EQ((*files)->Current(At(1000)), before) << why;
    EXPECT_EQ((*files)->Current(At(2000)), before) << why;
    const std::string lines = log.Lines();
    EXPECT_THAT(lines, AllOf(StartsWith("warning tls_certificate_kept"), HasSubstr(why)));
    EXPECT_EQ(std::ranges::count(lines, '\n'), 1) << lines;

    Put(second_);
    EXPECT_NE((*files)->Current(At(3000)), before) << why;
    EXPECT_THAT(log.Lines(), HasSubstr("info tls_certificate_reloaded")) << why;
  }
}

// --- files that are wrong from the start
// ----------------------------------------------------------

TEST_F(TlsTest, FilesThatCannotBeUsedAtTheStartAreNamed) {
  const std::string cert = options_.cert_file;
  const std::string key = options_.key_file;
  const std::string junk = Write("junk", "nothing of use");
  const std::string locked = Write("locked.key", first_.KeyWithPassword());
  const std::string other = Write("other.key", second_.Key());
  const std::string folder = folder_.string();
  struct Case {
    std::string cert, key, ca, starts;
  };
  const std::vector<Case> table = {
      {Path("none.crt"), key, "",
       "cannot read " + Path("none.crt") + ": No such file or directory"},
      {cert, Path("none.key"), "",
       "cannot read " + Path("none.key") + ": No such file or directory"},
      {folder, key, "", "cannot read " + folder + ": Is a directory"},
      {junk, key, "", junk + " is not a certificate in PEM form"},
      {cert, junk, "", junk + " is not a private key in PEM form without a password"},
      {cert, locked, "", locked + " is not a private key in PEM form without a password"},
      {cert, other, "", other + " is not the key of the certificate in " + cert},
      {cert, "", "", "TLS on 127.0.0.1:0 needs a certificate and a key; only " + cert},
      {"", key, "", "TLS on 127.0.0.1:0 needs a certificate and a key; only " + key},
      {"", "", cert, "the client CA " + cert + " on 127.0.0.1:0 needs a certificate and a key"},
      {cert, key, Path("none.ca"),
       "cannot read " + Path("none.ca") + ": No such file or directory"},
      {cert, key, junk, junk + " holds no CA certificate in PEM form"},
  };
  for (const Case& c : table) {
    options_.cert_file = c.cert;
    options_.key_file = c.key;
    options_.client_ca_file = c.ca;
    EXPECT_THAT(StartError(), StartsWith(c.starts));
  }
}

// --- clients that must show a certificate
// ---------------------------------------------------------

TEST_F(TlsTest, WithAClientCaOnlyItsClientsAreServed) {
  options_.client_ca_file = Write("client-ca.crt", ca_.Cert());
  Start();
  const Identity other_ca("ca", nullptr, {.ca = true});  // the same name, another key
  const Identity client("client", &ca_, {.serial = 40, .purpose = kForClients});
  const Identity any("any", &ca_, {.serial = 41});
  const Identity stranger("client", &other_ca, {.serial = 42, .purpose = kForClients});
  const Identity expired("client", &ca_, {.serial = 43, .purpose = kForClients, .days = 0});
  const std::vector<std::tuple<std::string, const Identity*, bool>> table = {
      {"without one", nullptr, false},
      {"one for clients", &client, true},
      {"one that does not say what it is for", &any, true},
      {"one of another CA", &stranger, false},
      {"one for servers", &second_, false},
      {"one that has expired", &expired, false},
  };
  for (const auto& [what, shown, served] : table) {
    const Answer answer = Get(shown);
    EXPECT_EQ(answer.body, served ? "ok" : "") << what;
    EXPECT_EQ(answer.status, served ? 200 : 0) << what;
  }
}

}  // namespace
}  // namespace hopwise::server
