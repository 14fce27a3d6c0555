// Certificates over the years: what is made, when it is made anew, and that whoever trusts the CAs
// always finds one that it can trust.
#include "server/self_issued.h"

#include <string>

#include <gmock/gmock.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <gtest/gtest.h>

#include "server/tls_pair.h"

namespace hopwise::server {
namespace {

constexpr Time kStart{1'800'000'000LL * 1'000'000'000};
constexpr Duration kDay = Seconds(86'400);
const IssueTerms kTerms = {{"web.ns.svc", "127.0.0.1"}, Duration{kDay.ns * 90}};

Time After(int64_t days) { return kStart + Duration{kDay.ns * days}; }

SelfIssued Made(const SelfIssued& before, Time now, const IssueTerms& terms = kTerms) {
  const Result<SelfIssued> next = Renew(before, terms, now);
  EXPECT_TRUE(next.has_value()) << next.error().message;
  return *next;
}

size_t CountOf(const std::string& pem) {
  size_t count = 0;
  for (size_t at = 0; (at = pem.find("-----BEGIN CERTIFICATE-----", at)) != std::string::npos;) {
    ++count;
    ++at;
  }
  return count;
}

// As a client that trusts `ca` and asks for `name` at `now`.
bool Trusts(const std::string& ca, const std::string& cert, const std::string& name, Time now) {
  gnutls_x509_trust_list_t trust = nullptr;
  gnutls_x509_crt_t read = nullptr;
  const auto datum = [](const std::string& text) {
    return gnutls_datum_t{reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
                          static_cast<unsigned>(text.size())};
  };
  const gnutls_datum_t ca_text = datum(ca);
  const gnutls_datum_t cert_text = datum(cert);
  static time_t clock = 0;
  clock = now.ns / 1'000'000'000;
  gnutls_global_set_time_function([](time_t* out) {
    if (out != nullptr) *out = clock;
    return clock;
  });
  gnutls_x509_trust_list_init(&trust, 0);
  gnutls_x509_trust_list_add_trust_mem(trust, &ca_text, nullptr, GNUTLS_X509_FMT_PEM, 0, 0);
  gnutls_x509_crt_init(&read);
  gnutls_x509_crt_import(read, &cert_text, GNUTLS_X509_FMT_PEM);
  unsigned status = 0;
  const int rc = gnutls_x509_trust_list_verify_crt(trust, &read, 1, 0, &status, nullptr);
  const bool named = gnutls_x509_crt_check_hostname(read, name.c_str()) != 0;
  const bool for_servers =
      gnutls_x509_crt_check_key_purpose(read, GNUTLS_KP_TLS_WWW_SERVER, 0) != 0;
  gnutls_x509_crt_deinit(read);
  gnutls_x509_trust_list_deinit(trust, 1);
  gnutls_global_set_time_function(time);
  return rc == 0 && status == 0 && named && for_servers;
}

TEST(SelfIssued, WhatIsMadeFirstCanBeTrustedAndServed) {
  const SelfIssued made = Made({}, kStart);
  EXPECT_EQ(CountOf(made.ca), 1U);
  EXPECT_TRUE(Trusts(made.ca, made.cert, "web.ns.svc", kStart));
  EXPECT_TRUE(Trusts(made.ca, made.cert, "127.0.0.1", kStart));
  EXPECT_FALSE(Trusts(made.ca, made.cert, "other.ns.svc", kStart));
  EXPECT_FALSE(Trusts(made.ca, made.cert, "web.ns.svc", After(91)));
  const auto pair = MakePair(made.cert, made.key, "cert", "key");
  EXPECT_TRUE(pair.has_value()) << pair.error().message;
  EXPECT_EQ(ExpiryOf(made.cert), After(90));
  EXPECT_EQ(ExpiryOf(made.ca), After(900));
}

TEST(SelfIssued, NothingChangesWhileAThirdIsLeft) {
  const SelfIssued made = Made({}, kStart);
  EXPECT_EQ(Made(made, kStart), made);
  EXPECT_EQ(Made(made, After(59)), made);
}

TEST(SelfIssued, AnotherCertificateOfTheSameCaComesInTime) {
  const SelfIssued made = Made({}, kStart);
  const SelfIssued next = Made(made, After(61));
  EXPECT_EQ(next.ca, made.ca);
  EXPECT_NE(next.cert, made.cert);
  EXPECT_NE(next.key, made.key);
  EXPECT_TRUE(Trusts(made.ca, next.cert, "web.ns.svc", After(61)));
  EXPECT_EQ(ExpiryOf(next.cert), After(61 + 90));
}

TEST(SelfIssued, ANewCaIsTrustedBeforeItSigns) {
  SelfIssued made = Made({}, kStart);
  int64_t day = 0;
  while (CountOf(made.ca) == 1 && day < 2000) {
    const SelfIssued next = Made(made, After(++day));
    if (next.ca == made.ca) made = next;
    if (next.ca != made.ca) {
      EXPECT_EQ(next.cert, made.cert) << "it waits";
      made = next;
    }
    ASSERT_TRUE(Trusts(made.ca, made.cert, "web.ns.svc", After(day))) << day;
  }
  EXPECT_EQ(CountOf(made.ca), 2U);
  EXPECT_EQ(day, 900 - 90 + 1);
  const Time told = After(day);
  EXPECT_EQ(Made(made, told + Seconds(5)), made) << "not everybody has heard of it";
  const SelfIssued next = Made(made, told + kTrustSpreads);
  EXPECT_EQ(next.ca, made.ca);
  EXPECT_NE(next.cert, made.cert);
  EXPECT_TRUE(Trusts(made.ca, next.cert, "web.ns.svc", told + kTrustSpreads));
  EXPECT_EQ(Made(next, told + Seconds(60)), next);
}

TEST(SelfIssued, OtherNamesNeedAnotherCertificate) {
  const SelfIssued made = Made({}, kStart);
  const IssueTerms terms = {{"web.ns.svc", "10.0.0.7"}, kTerms.validity};
  const SelfIssued next = Made(made, kStart, terms);
  EXPECT_EQ(next.ca, made.ca);
  EXPECT_TRUE(Trusts(made.ca, next.cert, "10.0.0.7", kStart));
}

TEST(SelfIssued, WhatCannotBeUsedIsMadeAnew) {
  const SelfIssued made = Made({}, kStart);
  const SelfIssued other = Made({}, kStart);
  const auto broken = [&](auto change) {
    SelfIssued bad = made;
    change(bad);
    const SelfIssued next = Made(bad, kStart);
    EXPECT_TRUE(Trusts(next.ca, next.cert, "web.ns.svc", kStart));
    EXPECT_TRUE(MakePair(next.cert, next.key, "cert", "key").has_value());
    return next;
  };
  EXPECT_EQ(broken([](SelfIssued& s) { s.cert = "no certificate"; }).ca, made.ca);
  EXPECT_EQ(broken([](SelfIssued& s) { s.key.clear(); }).ca, made.ca);
  EXPECT_EQ(broken([&](SelfIssued& s) { s.key = other.key; }).ca, made.ca);
  EXPECT_EQ(broken([&](SelfIssued& s) { s.cert = other.cert; }).ca, made.ca);
  EXPECT_NE(broken([](SelfIssued& s) { s.ca = "-----BEGIN CERTIFICATE-----\n"; }).ca, made.ca);
  EXPECT_NE(broken([&](SelfIssued& s) { s.ca_key = other.ca_key; }).ca, made.ca);
  const SelfIssued late = Made(made, After(1000));
  EXPECT_TRUE(Trusts(late.ca, late.cert, "web.ns.svc", After(1000)));
  EXPECT_EQ(CountOf(late.ca), 1U) << "an expired CA is no use";
}

}  // namespace
}  // namespace hopwise::server
