// Requests as the API server and others send them, and what is answered.
#include "daemon/admission_desk.h"

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"
#include "api/json.h"
#include "daemon/webhook_metrics.h"
#include "kube/credentials.h"

namespace hopwise::daemon {
namespace {

using json::Json;
using ::testing::HasSubstr;

constexpr std::string_view kJobSpec =
    R"({"queue":"team","minAvailable":1,"tasks":[{"name":"a","replicas":1,"template":{"spec":)"
    R"({"containers":[{"name":"c","image":"i"}]}}}]})";

class AdmissionDeskTest : public ::testing::Test {
 protected:
  AdmissionDeskTest() { DeclareWebhookMetrics(metrics_); }

  void See(const kube::Resource& resource, const std::string& text, bool deleted = false) {
    Result<api::Decoded> decoded = api::DecodeObject(text);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    std::vector<kube::WatchEvent> events(1);
    events[0].type = deleted ? kube::WatchEvent::Type::kDeleted : kube::WatchEvent::Type::kApplied;
    events[0].decoded = std::move(*decoded);
    desk_.Observe(resource, std::move(events));
  }
  static std::string Queue(std::string_view name) {
    return fmt::format(R"({{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue",)"
                       R"("metadata":{{"name":"{}"}}}})",
                       name);
  }
  static std::string Review(std::string_view group, std::string_view resource,
                            std::string_view object, std::string_view operation = "CREATE") {
    return fmt::format(
        R"({{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u",)"
        R"("operation":"{}","namespace":"ml","resource":{{"group":"{}","resource":"{}"}},)"
        R"("object":{}}}}})",
        operation, group, resource, object);
  }
  static std::string JobReview() {
    return Review("batch.volcano.sh", "jobs",
                  fmt::format(R"({{"metadata":{{"name":"j"}},"spec":{}}})", kJobSpec));
  }
  server::HttpResponse Post(std::string_view path, const std::string& body,
                            const std::string& method = "POST") {
    server::HttpRequest request;
    request.method = method;
    request.body = body;
    return desk_.Answer(*control::FindAdmissionService(path), request);
  }
  bool Allows(std::string_view path, const std::string& body) {
    const server::HttpResponse response = Post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::Flag(json::ParseOrNull(response.body), {"response", "allowed"}, false);
  }
  [[nodiscard]] double Counted(const std::string& path, const std::string& operation,
                               const std::string& verdict) const {
    return metrics_.Value(kAdmissionReviews,
                          {{"path", path}, {"operation", operation}, {"verdict", verdict}});
  }

  server::Metrics metrics_;
  AdmissionDesk desk_{{}, metrics_};
};

TEST_F(AdmissionDeskTest, WhatIsNoReviewIsAnsweredWithWhatIsWrong) {
  desk_.SetSynced();
  const std::vector<std::tuple<std::string, std::string, int, const char*>> cases = {
      {"GET", "", 405, "by POST"},
      {"POST", "", 400, "is not JSON"},
      {"POST", "<xml/>", 400, "is not JSON"},
      {"POST", R"({"kind":"Pod"})", 400, "no AdmissionReview"},
      {"POST", Review("", "pods", "{}"), 400, "correct the webhook's rules"},
      {"POST", std::string(200'000, '['), 400, "levels deep"},
  };
  for (const auto& [method, body, status, words] : cases) {
    const server::HttpResponse response = Post("/jobs/validate", body, method);
    EXPECT_EQ(response.status, status);
    EXPECT_THAT(response.body, HasSubstr(words));
  }
  EXPECT_EQ(Counted("/jobs/validate", "", "bad_request"), 5);
  EXPECT_EQ(Counted("/jobs/validate", "CREATE", "bad_request"), 1);
}

TEST_F(AdmissionDeskTest, BeforeItHasSeenTheClusterItLeavesTheVerdictToTheFailurePolicy) {
  EXPECT_EQ(Post("/jobs/validate", JobReview()).status, 503);
  EXPECT_EQ(Counted("/jobs/validate", "CREATE", "not_ready"), 1);
  desk_.SetSynced();
  EXPECT_EQ(Post("/jobs/validate", JobReview()).status, 200);
}

TEST_F(AdmissionDeskTest, QueuesComeChangeAndGo) {
  desk_.SetSynced();
  EXPECT_FALSE(Allows("/jobs/validate", JobReview()));
  See(kube::kQueues, Queue("team"));
  EXPECT_TRUE(Allows("/jobs/validate", JobReview()));
  See(kube::kQueues, Queue("team"), true);
  EXPECT_FALSE(Allows("/jobs/validate", JobReview()));
  EXPECT_EQ(Counted("/jobs/validate", "CREATE", "refused"), 2);
  EXPECT_EQ(Counted("/jobs/validate", "CREATE", "allowed"), 1);
}

TEST_F(AdmissionDeskTest, AQueueThatIsYoungerThanWhatWasSeenIsAskedFor) {
  desk_.SetSynced();
  std::vector<std::string> asked;
  desk_.SetFetchQueue([&](const std::string& name) -> std::optional<api::Queue> {
    asked.push_back(name);
    if (name != "team") return std::nullopt;
    api::Queue queue;
    queue.meta.name = name;
    return queue;
  });
  EXPECT_TRUE(Allows("/jobs/validate", JobReview()));
  EXPECT_THAT(asked, ::testing::ElementsAre("team"));
  See(kube::kQueues, Queue("team"));
  EXPECT_TRUE(Allows("/jobs/validate", JobReview()));
  EXPECT_EQ(asked.size(), 1U) << "what was seen is not asked for";
}

TEST_F(AdmissionDeskTest, ANamespacesQueueIsFilledIn) {
  desk_.SetSynced();
  const std::string group =
      Review("scheduling.volcano.sh", "podgroups", R"({"metadata":{"name":"g"},"spec":{}})");
  const std::string plain = R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ml"}})";
  See(kube::kNamespaces, R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ml",)"
                         R"("annotations":{"scheduling.volcano.sh/queue-name":"team"}}})");
  const Json filled = json::ParseOrNull(Post("/podgroups/mutate", group).body);
  EXPECT_EQ(json::Text(filled, {"response", "patchType"}), "JSONPatch");
  EXPECT_EQ(kube::DecodeBase64(json::Text(filled, {"response", "patch"})).value_or(""),
            R"([{"op":"add","path":"/spec/queue","value":"team"}])");
  See(kube::kNamespaces, plain);
  const Json same = json::ParseOrNull(Post("/podgroups/mutate", group).body);
  EXPECT_EQ(json::Get(same, {"response", "patch"}), nullptr);
}

TEST_F(AdmissionDeskTest, AHyperNodeIsJudgedAgainstThoseThatThereAre) {
  desk_.SetSynced();
  const auto hypernode = [](std::string_view name) {
    return fmt::format(
        R"({{"apiVersion":"topology.volcano.sh/v1alpha1","kind":"HyperNode","metadata":)"
        R"({{"name":"{}"}},"spec":{{"tier":1,"members":[{{"type":"Node","selector":)"
        R"({{"exactMatch":{{"name":"n0"}}}}}}]}}}})",
        name);
  };
  See(kube::kNodes, R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n0"}})");
  See(kube::kHyperNodes, hypernode("a"));
  const std::string review = Review("topology.volcano.sh", "hypernodes", hypernode("b"));
  EXPECT_THAT(Post("/hypernodes/validate", review).body, HasSubstr("(Overlap)"));
  EXPECT_EQ(Counted("/hypernodes/validate", "CREATE", "warned"), 1);
  See(kube::kHyperNodes, hypernode("a"), true);
  EXPECT_THAT(Post("/hypernodes/validate", review).body, ::testing::Not(HasSubstr("warnings")));
  See(kube::kNodes, R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n0"}})", true);
  EXPECT_THAT(Post("/hypernodes/validate", review).body, HasSubstr("(Empty)"));
}

TEST_F(AdmissionDeskTest, ManyAreAnsweredWhileTheClusterChanges) {
  desk_.SetSynced();
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) EXPECT_EQ(Post("/jobs/validate", JobReview()).status, 200);
    });
  }
  for (int i = 0; i < 200; ++i) {
    See(kube::kQueues, Queue(i % 2 == 0 ? "team" : "other"), i % 3 == 0);
    desk_.SetConfig({});
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hopwise::daemon
