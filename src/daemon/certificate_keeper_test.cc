// The certificates of several replicas in one Secret, and the caBundle that makes them trusted.
#include "daemon/certificate_keeper.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json.h"
#include "daemon/ca_bundle.h"
#include "daemon/webhook_metrics.h"
#include "kube/credentials.h"
#include "kube/fake_transport.h"

namespace hopwise::daemon {
namespace {

using json::Json;
using kube::Reply;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An API server that keeps objects by path, with versions.
struct Server {
  std::map<std::string, Json> objects;
  int version = 0;
  int refuse = 0;  // a status for all that is asked

  kube::Response Answer(const kube::Request& request) {
    if (refuse != 0) return Reply(refuse, R"({"kind":"Status","message":"no"})");
    std::string path = request.path;
    const Json body = json::ParseOrNull(request.body);
    if (request.method == kube::Method::kPost) {
      path += "/" + json::Name(body);
      if (objects.contains(path)) return Reply(409, R"({"reason":"AlreadyExists"})");
    } else if (!objects.contains(path)) {
      return Reply(404, R"({"kind":"Status","reason":"NotFound","details":{"name":"x"}})");
    }
    Json& object = objects[path];
    if (request.method == kube::Method::kPatch) {
      object = object.patch(body);
    } else if (request.method != kube::Method::kGet) {
      const bool stale =
          request.method == kube::Method::kPut &&
          body["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"];
      if (stale) return Reply(409, R"({"reason":"Conflict"})");
      object = body;
      object["metadata"]["resourceVersion"] = std::to_string(++version);
    }
    return Reply(200, json::Dump(object));
  }
};

struct Replica {
  std::vector<server::SelfIssued> issued;
  std::vector<std::string> troubles;
  std::unique_ptr<CertificateKeeper> keeper;

  explicit Replica(kube::Transport& transport) {
    keeper = std::make_unique<CertificateKeeper>(
        transport, CertificateKeeper::Options{"hw", "tls", {{"web.hw.svc"}, Seconds(900)}},
        CertificateKeeper::Handlers{
            [this](const server::SelfIssued& next) { issued.push_back(next); },
            [this](const std::string& why) { troubles.push_back(why); }});
    keeper->Start();
  }
};

class CertificateKeeperTest : public ::testing::Test {
 protected:
  CertificateKeeperTest() {
    transport_.on_send = [this](const kube::Request& request) { return server_.Answer(request); };
    transport_.latency = Millis(1);
  }
  Server server_;
  kube::FakeTransport transport_;
};

TEST_F(CertificateKeeperTest, ReplicasThatStartTogetherPresentTheSame) {
  Replica first(transport_);
  Replica second(transport_);
  transport_.Advance(Seconds(5));
  ASSERT_EQ(first.issued.size(), 1U);
  ASSERT_EQ(second.issued.size(), 1U);
  EXPECT_EQ(first.issued.front(), second.issued.front());
  EXPECT_FALSE(first.issued.front().cert.empty());
  EXPECT_THAT(first.troubles, IsEmpty());
  EXPECT_EQ(server_.objects.size(), 1U);
}

TEST_F(CertificateKeeperTest, TheyRenewTogetherBeforeItExpires) {
  Replica first(transport_);
  Replica second(transport_);
  transport_.Advance(Seconds(590));
  EXPECT_EQ(first.issued.size(), 1U);
  transport_.Advance(Seconds(30));
  ASSERT_EQ(first.issued.size(), 2U);
  ASSERT_EQ(second.issued.size(), 2U);
  EXPECT_EQ(first.issued.back(), second.issued.back());
  EXPECT_EQ(first.issued.back().ca, first.issued.front().ca);
  EXPECT_NE(first.issued.back().cert, first.issued.front().cert);
}

TEST_F(CertificateKeeperTest, WhatIsThereAtTheStartIsTaken) {
  std::optional<Replica> first(std::in_place, transport_);
  transport_.Advance(Seconds(1));
  const server::SelfIssued before = first->issued.front();
  first.reset();
  Replica second(transport_);
  transport_.Advance(Seconds(1));
  EXPECT_EQ(second.issued.front(), before);
}

TEST_F(CertificateKeeperTest, ASecretThatIsDeletedOrSpoiltIsMadeAnew) {
  Replica one(transport_);
  transport_.Advance(Seconds(1));
  server_.objects.clear();
  transport_.Advance(kSecretLook);
  transport_.Advance(Seconds(2));
  EXPECT_EQ(one.issued.size(), 2U);
  server_.objects.begin()->second["data"]["tls.crt"] = "%%%";
  transport_.Advance(kSecretLook);
  transport_.Advance(Seconds(2));
  ASSERT_EQ(one.issued.size(), 3U);
  EXPECT_EQ(one.issued[2].ca, one.issued[1].ca);
}

TEST_F(CertificateKeeperTest, WhatIsRefusedIsToldOnceAndTriedAgain) {
  server_.refuse = 403;
  Replica one(transport_);
  transport_.Advance(Seconds(5));
  ASSERT_EQ(one.troubles.size(), 1U);
  EXPECT_THAT(one.troubles.front(), HasSubstr("secrets"));
  EXPECT_THAT(one.issued, IsEmpty());
  server_.refuse = 0;
  transport_.Advance(Seconds(2));
  EXPECT_EQ(one.troubles.back(), "");
  EXPECT_EQ(one.issued.size(), 1U);
  // A server that is away takes nothing from what was issued.
  server_.refuse = 503;
  transport_.Advance(Seconds(100));
  EXPECT_EQ(one.issued.size(), 1U);
}

TEST_F(CertificateKeeperTest, NobodyIsAskedOnceItIsGone) {
  std::optional<Replica> one(std::in_place, transport_);
  one.reset();
  transport_.Advance(Seconds(60));
  EXPECT_THAT(server_.objects, IsEmpty());
}

// --- the bundle

constexpr const char* kHooks =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hw";

class CaBundleTest : public CertificateKeeperTest {
 protected:
  CaBundleTest() { DeclareWebhookMetrics(metrics_); }

  [[nodiscard]] std::string BundleOf(size_t i) {
    return json::Text(server_.objects[kHooks]["webhooks"][i], {"clientConfig", "caBundle"});
  }
  server::Metrics metrics_;
  CaBundle bundle_{transport_, {"hw"}, metrics_};
};

TEST_F(CaBundleTest, EachWebhookOfTheConfigurationGetsIt) {
  server_.objects[kHooks] = {{"webhooks",
                              {{{"name", "a"}, {"clientConfig", Json::object()}},
                               {{"name", "b"}, {"clientConfig", {{"caBundle", "b2xk"}}}}}}};
  bundle_.Set("new");
  transport_.Advance(Seconds(1));
  EXPECT_EQ(BundleOf(0), kube::EncodeBase64("new"));
  EXPECT_EQ(BundleOf(1), kube::EncodeBase64("new"));
  const size_t sent = transport_.sent().size();
  transport_.Advance(kBundleLook);
  for (size_t i = sent; i < transport_.sent().size(); ++i) {
    EXPECT_EQ(transport_.sent()[i].request.method, kube::Method::kGet) << "nothing to write";
  }
}

TEST_F(CaBundleTest, WhatSomebodyTakesOutIsPutInAgain) {
  server_.objects[kHooks] = {{"webhooks", {{{"name", "a"}, {"clientConfig", Json::object()}}}}};
  bundle_.Set("ca");
  transport_.Advance(Seconds(1));
  server_.objects[kHooks]["webhooks"][0]["clientConfig"].erase("caBundle");
  transport_.Advance(kBundleLook);
  transport_.Advance(Seconds(1));
  EXPECT_EQ(BundleOf(0), kube::EncodeBase64("ca"));
}

TEST_F(CaBundleTest, AConfigurationThatIsNotThereIsAwaited) {
  bundle_.Set("ca");
  transport_.Advance(Seconds(1));
  server_.objects[kHooks] = {{"webhooks", {{{"name", "a"}, {"clientConfig", Json::object()}}}}};
  transport_.Advance(kBundleLook);
  transport_.Advance(Seconds(1));
  EXPECT_EQ(BundleOf(0), kube::EncodeBase64("ca"));
}

}  // namespace
}  // namespace hopwise::daemon
