// Evictions against a transport that the test answers.
#include "daemon/evictor.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "api/json.h"
#include "kube/fake_transport.h"

namespace hopwise::daemon {
namespace {

using kube::NoReply;
using kube::Reply;

class EvictorTest : public ::testing::Test {
 protected:
  EvictorTest()
      : events_(transport_, {}),
        evictor_(
            transport_, events_, [this] { return lease_; },
            [this](const EvictionResult& result) { ended_.push_back(result); }, Seconds(5)) {
    // Events are written, whatever else happens.
    transport_.on_send = [this](const kube::Request& request) -> std::optional<kube::Response> {
      if (request.path.find("/events") != std::string::npos) {
        return Reply(201, "{}");
      }
      return answer_ ? std::optional(answer_(request)) : std::nullopt;
    };
  }

  int CountSent(std::string_view part) const {
    int count = 0;
    for (const auto& sent : transport_.sent()) {
      count += sent.request.path.find(part) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  kube::FakeTransport transport_;
  std::function<kube::Response(const kube::Request&)> answer_;
  Duration lease_ = Seconds(10);
  std::vector<EvictionResult> ended_;
  kube::EventRecorder events_;
  Evictor evictor_;
};

TEST_F(EvictorTest, AnEvictionThatABudgetForbidsIsLeftToWhoeverWantedIt) {
  answer_ = [](const kube::Request&) { return Reply(429); };
  evictor_.Evict({{"ml", "a", "uid-a"}, "so", ""});
  transport_.Advance(Seconds(60));
  EXPECT_EQ(CountSent("/eviction"), 1);
}

TEST_F(EvictorTest, AnEvictionHasTheUidAsPreconditionAndOneEvent) {
  int calls = 0;
  answer_ = [&](const kube::Request&) { return ++calls == 1 ? Reply(500) : Reply(201, "{}"); };
  evictor_.Evict({{"ml", "a", "uid-a"}, "its gang was not completed", ""});
  transport_.Advance(Seconds(10));
  EXPECT_EQ(CountSent("/pods/a/eviction"), 2);
  EXPECT_EQ(CountSent("/events"), 1);
  const json::Json body = json::ParseJson(transport_.sent().back().request.body).value();
  EXPECT_EQ(json::Text(body, {"deleteOptions", "preconditions", "uid"}), "uid-a");
}

TEST_F(EvictorTest, WhyAPodIsEvictedIsWrittenBeforeItGoes) {
  transport_.on_send = nullptr;
  evictor_.Evict({{"ml", "a", "uid-a"}, "its gang was not completed", ""});
  transport_.Run();
  EXPECT_EQ(CountSent("/events"), 1);
  EXPECT_EQ(CountSent("/eviction"), 0) << "while the Event may still be lost";
  transport_.Answer(transport_.open().front().id, Reply(201, "{}"));
  transport_.Run();
  EXPECT_EQ(CountSent("/eviction"), 1);
}

TEST_F(EvictorTest, APodThatIsBeingEvictedIsNotEvictedAgain) {
  transport_.on_send = nullptr;
  for (int i = 0; i < 3; ++i) {
    evictor_.Evict({{"ml", "a", "uid-a"}, "its gang was not completed", ""});
    transport_.Run();
  }
  ASSERT_EQ(transport_.sent().size(), 1U) << "the Event";
  transport_.Answer(transport_.open().front().id, Reply(201, "{}"));
  transport_.Run();
  transport_.Answer(transport_.open().front().id, Reply(404));
  transport_.Run();
  EXPECT_EQ(CountSent("/eviction"), 1) << "it is gone";
  evictor_.Evict({{"ml", "a", "uid-a"}, "its gang was not completed", ""});
  transport_.Run();
  EXPECT_EQ(CountSent("/events"), 2);
}

TEST_F(EvictorTest, APodIsEvictedThoughItsEventIsRefused) {
  transport_.on_send = [](const kube::Request& request) {
    return std::optional(request.path.ends_with("/events") ? Reply(403, "{}") : Reply(201, "{}"));
  };
  evictor_.Evict({{"ml", "a", "uid-a"}, "its gang was not completed", ""});
  transport_.Advance(Seconds(1));
  EXPECT_EQ(CountSent("/eviction"), 1);
}

TEST_F(EvictorTest, AnEvictionWhoseAnswerWasLostIsToldToo) {
  for (const int second : {404, 409}) {
    int calls = 0;
    answer_ = [&](const kube::Request&) { return ++calls == 1 ? NoReply("cut") : Reply(second); };
    const std::string name = "a" + std::to_string(second);
    evictor_.Evict({{"ml", name, "uid-" + name}, "its gang was not completed", ""});
    transport_.Advance(Seconds(10));
  }
  EXPECT_EQ(CountSent("/events"), 2);
}

TEST_F(EvictorTest, WhatBecameOfEachIsToldOnce) {
  struct Row {
    const char* name;
    int status;
    kube::Failure failure;
    int tries;
  };
  for (const Row& row :
       {Row{"goes", 201, kube::Failure::kNone, 1}, Row{"gone", 404, kube::Failure::kNone, 1},
        Row{"another-of-its-name", 409, kube::Failure::kNone, 1},
        Row{"budget", 429, kube::Failure::kThrottled, 1},
        Row{"not-ours-to-evict", 403, kube::Failure::kForbidden, 1},
        Row{"server-down", 500, kube::Failure::kServer, kEvictTries}}) {
    SCOPED_TRACE(row.name);
    ended_.clear();
    answer_ = [&](const kube::Request&) { return Reply(row.status, "{}"); };
    evictor_.Evict({{"ml", row.name, row.name}, "so", ""});
    EXPECT_EQ(evictor_.under_way(), 1U);
    transport_.Advance(Seconds(60));
    ASSERT_EQ(ended_.size(), 1U);
    EXPECT_EQ(ended_[0].pod.name, row.name);
    EXPECT_EQ(ended_[0].error.failure, row.failure);
    EXPECT_TRUE(ended_[0].sent);
    EXPECT_EQ(CountSent(std::string(row.name) + "/eviction"), row.tries);
    EXPECT_EQ(evictor_.under_way(), 0U);
  }
}

TEST_F(EvictorTest, WhoeverMayHaveLostTheLeaseEvictsNobody) {
  lease_ = Seconds(5);
  evictor_.Evict({{"ml", "a", "uid-a"}, "so", "{}"});
  transport_.Advance(Seconds(60));
  EXPECT_EQ(CountSent("/status") + CountSent("/eviction"), 0);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_FALSE(ended_[0].sent);
}

TEST_F(EvictorTest, ConditionsAreWrittenBetweenTheEventAndTheEviction) {
  answer_ = [](const kube::Request&) { return Reply(201, "{}"); };
  evictor_.Evict({{"ml", "a", "uid-a"}, "so", R"({"status":{}})"});
  transport_.Advance(Seconds(1));
  std::vector<std::string> paths;
  for (const auto& sent : transport_.sent()) {
    paths.push_back(sent.request.path);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"/api/v1/namespaces/ml/events",
                                             "/api/v1/namespaces/ml/pods/a/status",
                                             "/api/v1/namespaces/ml/pods/a/eviction"}));
  EXPECT_EQ(transport_.sent()[1].request.body, R"({"status":{}})");
  EXPECT_EQ(transport_.sent()[1].request.content_type, kube::kStrategicPatch);
}

TEST_F(EvictorTest, APodIsEvictedThoughItsConditionsAreRefused) {
  answer_ = [](const kube::Request& request) {
    return request.path.ends_with("/status") ? Reply(422, "{}") : Reply(201, "{}");
  };
  evictor_.Evict({{"ml", "a", "uid-a"}, "so", "{}"});
  transport_.Advance(Seconds(1));
  EXPECT_EQ(CountSent("/eviction"), 1);
}

TEST_F(EvictorTest, AnAnswerThatComesWhenItIsGoneIsPassedOver) {
  {
    Evictor gone(
        transport_, events_, [] { return Seconds(10); },
        [](const EvictionResult&) { ADD_FAILURE() << "told"; }, Seconds(5));
    gone.Evict({{"ml", "b", "uid-b"}, "so", ""});
    transport_.Run();
  }
  ASSERT_EQ(transport_.open().size(), 1U);
  transport_.Answer(transport_.open().front().id, Reply(500));
  transport_.Advance(Seconds(10));
  EXPECT_EQ(CountSent("/eviction"), 1) << "and not tried again";
}

}  // namespace
}  // namespace hopwise::daemon
