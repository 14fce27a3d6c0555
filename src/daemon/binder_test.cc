// Binds and patches against a transport that the test answers.
#include "daemon/binder.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/json.h"
#include "daemon/writer.h"
#include "kube/fake_transport.h"

namespace hopwise::daemon {
namespace {

using kube::NoReply;
using kube::Reply;

constexpr const char* kConflict =
    R"({"kind":"Status","reason":"Conflict","message":"pod a is already assigned"})";

class BinderTest : public ::testing::Test {
 protected:
  BinderTest()
      : events_(transport_, {}),
        binder_(
            transport_, events_, [this] { return lease_; },
            [this](const BindResult& result) { ended_.push_back(result); }, {}) {
    // Events are written, whatever else happens.
    transport_.on_send = [this](const kube::Request& request) -> std::optional<kube::Response> {
      if (request.path.find("/events") != std::string::npos) {
        return Reply(201, "{}");
      }
      return answer_ ? std::optional(answer_(request)) : std::nullopt;
    };
  }

  static BindPod Pod(const std::string& name) { return {{"ml", name, "uid-" + name}, "n1"}; }
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
  std::vector<BindResult> ended_;
  kube::EventRecorder events_;
  Binder binder_;
};

TEST_F(BinderTest, SendsOneBindingWithTheUidAndWritesOneEvent) {
  answer_ = [](const kube::Request&) { return Reply(201, "{}"); };
  binder_.Bind(Pod("a"));
  transport_.Advance(Seconds(1));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_TRUE(ended_[0].error.ok());
  EXPECT_EQ(CountSent("/api/v1/namespaces/ml/pods/a/binding"), 1);
  EXPECT_EQ(CountSent("/api/v1/namespaces/ml/events"), 1);
  const json::Json body = json::ParseJson(transport_.sent().front().request.body).value();
  EXPECT_EQ(json::Text(body, {"metadata", "uid"}), "uid-a");
  EXPECT_EQ(json::Text(body, {"target", "name"}), "n1");
}

TEST_F(BinderTest, PassingFailuresAreTriedAgainByItself) {
  int calls = 0;
  answer_ = [&](const kube::Request&) {
    ++calls;
    return calls == 1 ? Reply(500) : calls == 2 ? NoReply("cut") : Reply(201, "{}");
  };
  binder_.Bind(Pod("a"));
  transport_.Advance(Seconds(10));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_TRUE(ended_[0].error.ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(BinderTest, WaitsAsLongAsTheServerAsks) {
  kube::Response busy = Reply(429);
  busy.retry_after = Seconds(7);
  answer_ = [&](const kube::Request&) {
    return CountSent("/binding") > 1 ? Reply(201, "{}") : busy;
  };
  binder_.Bind(Pod("a"));
  transport_.Advance(Millis(6'999));
  EXPECT_EQ(CountSent("/binding"), 1);
  transport_.Advance(Millis(1));
  EXPECT_EQ(CountSent("/binding"), 2);
  EXPECT_EQ(ended_.size(), 1U);
}

TEST_F(BinderTest, GivesUpAfterSomeTriesAndSaysWhy) {
  answer_ = [](const kube::Request&) { return Reply(500); };
  binder_.Bind(Pod("a"));
  transport_.Advance(Seconds(60));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_TRUE(ended_[0].sent);
  EXPECT_EQ(ended_[0].error.failure, kube::Failure::kServer);
  EXPECT_EQ(CountSent("/binding"), kBindTries);
  EXPECT_EQ(CountSent("/events"), 0);
}

TEST_F(BinderTest, ABindWhoseAnswerWasLostCountsWhenThePodIsWhereItShouldBe) {
  answer_ = [](const kube::Request& request) {
    return request.method == kube::Method::kPost
               ? Reply(409, kConflict)
               : Reply(200, R"({"metadata":{"uid":"uid-a"},"spec":{"nodeName":"n1"}})");
  };
  binder_.Bind(Pod("a"));
  transport_.Advance(Seconds(1));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_TRUE(ended_[0].error.ok());
  EXPECT_EQ(CountSent("/events"), 1);
}

TEST_F(BinderTest, AConflictIsAFailureWhenThePodIsElsewhereOrAnother) {
  const std::string pods[] = {R"({"metadata":{"uid":"uid-a"},"spec":{"nodeName":"n2"}})",
                              R"({"metadata":{"uid":"other"},"spec":{"nodeName":"n1"}})",
                              R"({"metadata":{"uid":"uid-a"},"spec":{}})"};
  for (const std::string& pod : pods) {
    SCOPED_TRACE(pod);
    ended_.clear();
    answer_ = [&](const kube::Request& request) {
      return request.method == kube::Method::kPost ? Reply(409, kConflict) : Reply(200, pod);
    };
    binder_.Bind(Pod("a"));
    transport_.Advance(Seconds(1));
    ASSERT_EQ(ended_.size(), 1U);
    EXPECT_EQ(ended_[0].error.failure, kube::Failure::kConflict);
  }
  EXPECT_EQ(CountSent("/events"), 0);
}

TEST_F(BinderTest, NothingIsSentWhileTheLeaseIsShorterThanABindMayTake) {
  answer_ = [](const kube::Request&) { return Reply(201, "{}"); };
  lease_ = kBindTimeout;
  binder_.Bind(Pod("a"));
  transport_.Advance(Seconds(1));
  EXPECT_EQ(CountSent("/binding"), 0);
  lease_ = Duration{kBindTimeout.ns + 1};  // it was renewed
  transport_.Advance(Seconds(1));
  EXPECT_EQ(CountSent("/binding"), 1);
}

TEST_F(BinderTest, WithoutALeaseBindsAreGivenBackUnsent) {
  lease_ = {};
  binder_.Bind(Pod("a"));
  binder_.Bind(Pod("b"));
  transport_.Advance(Seconds(1));
  ASSERT_EQ(ended_.size(), 2U);
  EXPECT_FALSE(ended_[0].sent);
  EXPECT_TRUE(transport_.sent().empty());
}

TEST_F(BinderTest, ACancelledBindThatWaitsIsNotSent) {
  for (int i = 0; i < 20; ++i) {
    binder_.Bind(Pod("p" + std::to_string(i)));
  }
  transport_.Run();
  EXPECT_EQ(CountSent("/binding"), BinderOptions().at_once);
  binder_.Cancel("uid-p19");
  answer_ = [](const kube::Request&) { return Reply(201, "{}"); };
  for (const auto& sent : transport_.open()) {
    transport_.Answer(sent.id, Reply(201, "{}"));
  }
  transport_.Advance(Seconds(1));
  EXPECT_EQ(CountSent("pods/p19/binding"), 0);
  EXPECT_EQ(ended_.size(), 20U);
  EXPECT_FALSE(ended_[0].sent);
}

TEST_F(BinderTest, ACancelledBindUnderWayIsHeardOfAndTheNextOneWaitsForIt) {
  BindPod first = Pod("a");
  binder_.Bind(first);
  transport_.Run();
  const auto sent = transport_.last().id;
  binder_.Cancel("uid-a");
  BindPod second = first;
  second.node = "n2";
  binder_.Bind(second);
  transport_.Run();
  EXPECT_EQ(CountSent("/binding"), 1);
  transport_.Answer(sent, Reply(201, "{}"));
  transport_.Advance(Seconds(1));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].node, "n1") << "it happened";
  EXPECT_EQ(CountSent("/binding"), 1) << "and so the other is not sent";
}

TEST_F(BinderTest, AfterACancelledBindThatFailedTheNextOneIsSent) {
  binder_.Bind(Pod("a"));
  transport_.Run();
  const auto sent = transport_.last().id;
  binder_.Cancel("uid-a");
  BindPod second = Pod("a");
  second.node = "n2";
  binder_.Bind(second);
  answer_ = [](const kube::Request&) { return Reply(201, "{}"); };
  transport_.Answer(sent, Reply(500));
  transport_.Advance(Seconds(1));
  ASSERT_EQ(ended_.size(), 2U);
  EXPECT_FALSE(ended_[0].error.ok());
  EXPECT_EQ(ended_[1].node, "n2");
  EXPECT_TRUE(ended_[1].error.ok());
}

TEST_F(BinderTest, ABindWaitsUntilNothingOlderIsWrittenOfItsPod) {
  std::function<void()> settled;
  BinderOptions options;
  options.settle = [&](const ObjectName&, std::function<void()> then) {
    settled = std::move(then);
  };
  Binder patient(
      transport_, events_, [] { return Seconds(10); },
      [this](const BindResult& result) { ended_.push_back(result); }, options);
  answer_ = [](const kube::Request&) { return Reply(201, "{}"); };
  patient.Bind(Pod("a"));
  transport_.Run();
  EXPECT_EQ(CountSent("/binding"), 0);
  settled();
  transport_.Run();
  EXPECT_EQ(CountSent("/binding"), 1);
  patient.Bind(Pod("b"));
  patient.Cancel("uid-b");
  ASSERT_EQ(ended_.size(), 2U);
  EXPECT_FALSE(ended_[1].sent);
  settled();
  transport_.Run();
  EXPECT_EQ(CountSent("/binding"), 1) << "it was cancelled meanwhile";
}

TEST_F(BinderTest, APodCancelledAndBoundAgainWhileItWaitsIsSentOnce) {
  transport_.on_send = nullptr;
  for (int i = 0; i < 16; ++i) {
    binder_.Bind(Pod("busy" + std::to_string(i)));
  }
  binder_.Bind(Pod("a"));
  binder_.Cancel("uid-a");
  binder_.Bind(Pod("a"));
  transport_.Run();
  const auto open = transport_.open();
  for (size_t i = 0; i < 4; ++i) {
    transport_.Answer(open[i].id, Reply(201, "{}"));
  }
  transport_.Run();
  EXPECT_EQ(CountSent("/pods/a/binding"), 1);
}

TEST_F(BinderTest, AnAnswerThatComesWhenItIsGoneIsPassedOver) {
  {
    Binder gone(
        transport_, events_, [] { return Seconds(10); },
        [](const BindResult&) { ADD_FAILURE() << "told"; }, {});
    gone.Bind(Pod("a"));
    transport_.Run();
  }
  ASSERT_EQ(transport_.open().size(), 1U);
  transport_.Answer(transport_.open().front().id, Reply(500));
  transport_.Advance(Seconds(10));
  EXPECT_EQ(CountSent("/binding"), 1) << "and not tried again";
}

class WriterTest : public ::testing::Test {
 protected:
  WriterTest()
      : writer_(
            transport_, [this] { return may_write_; },
            [this](const Patch& patch, const kube::ApiError& error) {
              ended_.emplace_back(patch.body, error.failure);
            },
            [](const std::string&, const kube::ApiError&) {}) {}
  static Patch To(const std::string& name, const std::string& body) {
    return {kube::kPods, {"ml", name, ""}, "status", kube::kMergePatch, body};
  }
  std::vector<std::string> Bodies() const {
    std::vector<std::string> bodies;
    for (const auto& sent : transport_.sent()) {
      bodies.push_back(sent.request.body);
    }
    return bodies;
  }

  kube::FakeTransport transport_;
  bool may_write_ = true;
  std::vector<std::pair<std::string, kube::Failure>> ended_;
  Writer writer_;
};

TEST_F(WriterTest, WritesOfOneObjectFollowEachOtherAndTheNewestReplacesThoseThatWait) {
  for (const char* body : {"1", "2", "3"}) {
    writer_.Write(To("a", body));
  }
  transport_.Run();
  EXPECT_EQ(Bodies(), (std::vector<std::string>{"1"}));
  transport_.Answer(transport_.last().id, Reply(200, "{}"));
  transport_.Run();
  EXPECT_EQ(Bodies(), (std::vector<std::string>{"1", "3"}));
}

TEST_F(WriterTest, SettledIsAnObjectOnceItsLastWriteWasAnswered) {
  std::vector<std::string> settled;
  const auto settle = [&](const std::string& name) {
    writer_.Settle(kube::kPods, {"ml", name, ""}, "status",
                   [&settled, name] { settled.push_back(name); });
  };
  settle("untouched");
  writer_.Write(To("a", "under way"));
  writer_.Write(To("a", "waits"));
  settle("a");
  EXPECT_EQ(settled, (std::vector<std::string>{"untouched"}));
  transport_.Run();
  transport_.Answer(transport_.last().id, Reply(503));
  transport_.Advance(Seconds(30));
  EXPECT_EQ(settled, (std::vector<std::string>{"untouched", "a"}));
  EXPECT_EQ(Bodies(), (std::vector<std::string>{"under way"})) << "nothing older follows";
}

TEST_F(WriterTest, WhatWaitsForItsTurnIsDroppedWhenItsObjectIsSettled) {
  for (int i = 0; i < 8; ++i) {
    writer_.Write(To("busy" + std::to_string(i), "1"));
  }
  writer_.Write(To("a", "old"));
  bool settled = false;
  writer_.Settle(kube::kPods, {"ml", "a", ""}, "status", [&] { settled = true; });
  EXPECT_TRUE(settled);
  writer_.Write(To("a", "new"));
  transport_.on_send = [](const kube::Request&) { return std::optional(Reply(200, "{}")); };
  for (const auto& sent : transport_.open()) {
    transport_.Answer(sent.id, Reply(200, "{}"));
  }
  transport_.Advance(Seconds(1));
  EXPECT_EQ(Bodies().size(), 9U);
  EXPECT_EQ(Bodies().back(), "new");
}

TEST_F(WriterTest, AServerSideApplyNamesItsManager) {
  writer_.Write({kube::kPods, {"ml", "a", ""}, "", kube::kApplyPatch, "{}"});
  transport_.Run();
  const kube::Request& request = transport_.last().request;
  EXPECT_EQ(request.path, "/api/v1/namespaces/ml/pods/a?fieldManager=hopwise-scheduler&force=true");
  EXPECT_EQ(request.content_type, "application/apply-patch+yaml");
}

TEST_F(WriterTest, PassingFailuresAreTriedAgainOthersAreTold) {
  std::vector<int> answers = {503, 200, 409};
  transport_.on_send = [&](const kube::Request&) {
    const int status = answers.front();
    answers.erase(answers.begin());
    return std::optional(Reply(status, "{}"));
  };
  writer_.Write(To("a", "1"));
  transport_.Advance(Seconds(5));
  writer_.Write(To("b", "2"));
  transport_.Advance(Seconds(5));
  EXPECT_EQ(ended_, (std::vector<std::pair<std::string, kube::Failure>>{
                        {"1", kube::Failure::kNone}, {"2", kube::Failure::kConflict}}));
}

TEST_F(WriterTest, WhoDoesNotLeadWritesNothing) {
  may_write_ = false;
  writer_.Write(To("a", "1"));
  transport_.Advance(Seconds(1));
  EXPECT_TRUE(transport_.sent().empty());
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].second, kube::Failure::kUnreachable);
}

TEST_F(WriterTest, AnAnswerThatComesWhenItIsGoneIsPassedOver) {
  {
    Writer gone(
        transport_, [] { return true; },
        [](const Patch&, const kube::ApiError&) { ADD_FAILURE() << "told"; },
        [](const std::string&, const kube::ApiError&) { ADD_FAILURE() << "told"; });
    gone.Write(To("a", "1"));
    gone.CreateQueue("root");
    transport_.Run();
  }
  ASSERT_EQ(transport_.open().size(), 2U);
  for (const auto& sent : transport_.open()) {
    transport_.Answer(sent.id, Reply(201, "{}"));
  }
  transport_.Advance(Seconds(10));
}

}  // namespace
}  // namespace hopwise::daemon
