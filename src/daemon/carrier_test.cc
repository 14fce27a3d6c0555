// Batches of writes against a transport that the test answers.
#include "daemon/carrier.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/json.h"
#include "kube/fake_transport.h"

namespace hopwise::daemon {
namespace {

using kube::NoReply;
using kube::Reply;
using Lines = std::vector<std::string>;
using Verb = ObjectWrite::Verb;

class CarrierTest : public ::testing::Test {
 protected:
  CarrierTest()
      : carrier_(transport_, [this] { return leading_; },
                 {.wrote =
                      [this](uint64_t, WriteResult&& result) {
                        told_.push_back(result.write.name +
                                        (result.error.ok() ? " ok" : " failed") +
                                        (result.object.empty() ? "" : " " + result.object));
                      },
                  .ended =
                      [this](uint64_t batch, bool ok) {
                        told_.push_back(std::to_string(batch) + (ok ? " whole" : " broken"));
                      }}) {
    transport_.on_send = [this](const kube::Request& request) {
      return answer_ ? std::optional(answer_(request)) : std::nullopt;
    };
  }

  static ObjectWrite Write(Verb verb, const std::string& name) {
    ObjectWrite write;
    write.verb = verb;
    write.resource = kube::kHyperNodes;
    write.name = name;
    write.body = verb == Verb::kDelete ? "" : "{}";
    return write;
  }
  [[nodiscard]] Lines Sent() const {
    Lines lines;
    for (const auto& sent : transport_.sent()) {
      const std::string& path = sent.request.path;
      lines.push_back(std::string(kube::MethodName(sent.request.method)) + " " +
                      path.substr(path.find("hypernodes")));
    }
    return lines;
  }

  kube::FakeTransport transport_;
  std::function<kube::Response(const kube::Request&)> answer_;
  bool leading_ = true;
  Lines told_;
  Carrier carrier_;
};

TEST_F(CarrierTest, AStepBeginsWhenTheOneBeforeWentWell) {
  carrier_.Carry({7,
                  {{Write(Verb::kPatch, "a"), Write(Verb::kPatchStatus, "b")},
                   {},
                   {Write(Verb::kCreate, "c")}}});
  transport_.Run();
  EXPECT_EQ(Sent(), (Lines{"PATCH hypernodes/a", "PATCH hypernodes/b/status"}));
  transport_.Answer(transport_.sent()[0].id, Reply(200, "A"));
  transport_.Run();
  EXPECT_EQ(Sent().size(), 2U) << "one is still open";
  transport_.Answer(transport_.sent()[1].id, Reply(200, "B"));
  transport_.Run();
  EXPECT_EQ(Sent().back(), "POST hypernodes");
  EXPECT_EQ(told_, (Lines{"a ok A", "b ok B"}));
  transport_.Answer(transport_.last().id, Reply(201, "C"));
  transport_.Run();
  EXPECT_EQ(told_, (Lines{"a ok A", "b ok B", "c ok C", "7 whole"}));
  EXPECT_EQ(carrier_.under_way(), 0U);
}

TEST_F(CarrierTest, AFailureEndsTheBatchAfterItsStep) {
  answer_ = [](const kube::Request& request) {
    return request.path.ends_with("/a") ? Reply(409, R"({"kind":"Status","reason":"Conflict"})")
                                        : Reply(200, "X");
  };
  carrier_.Carry(
      {1, {{Write(Verb::kPatch, "a"), Write(Verb::kPatch, "b")}, {Write(Verb::kPatch, "c")}}});
  transport_.Advance(Seconds(60));
  EXPECT_EQ(told_, (Lines{"a failed", "b ok X", "1 broken"}));
}

TEST_F(CarrierTest, WhatMayPassIsTriedAgain) {
  int calls = 0;
  answer_ = [&](const kube::Request&) {
    ++calls;
    return calls == 1 ? Reply(500) : calls == 2 ? NoReply("cut") : Reply(200, "X");
  };
  carrier_.Carry({1, {{Write(Verb::kPatch, "a")}}});
  transport_.Advance(Seconds(30));
  EXPECT_EQ(told_, (Lines{"a ok X", "1 whole"}));
}

TEST_F(CarrierTest, ItGivesUpAfterSomeTries) {
  answer_ = [](const kube::Request&) { return Reply(503); };
  carrier_.Carry({1, {{Write(Verb::kPatch, "a")}}});
  transport_.Advance(Seconds(120));
  EXPECT_EQ(told_, (Lines{"a failed", "1 broken"}));
  EXPECT_EQ(transport_.sent().size(), static_cast<size_t>(kCarryTries));
}

TEST_F(CarrierTest, ADeletionMeansOneObjectAndNotItsSuccessor) {
  ObjectWrite write = Write(Verb::kDelete, "a");
  write.uid = "u1";
  carrier_.Carry({1, {{write}}});
  transport_.Run();
  const json::Json body = json::ParseJson(transport_.last().request.body).value();
  EXPECT_EQ(json::Text(body, {"preconditions", "uid"}), "u1");
}

struct DeleteCase {
  const char* what;
  int status;
  const char* body;
  const char* told;
};

TEST_F(CarrierTest, WhatADeletionSaysOfItsObject) {
  const DeleteCase cases[] = {
      {"it is gone", 200, R"({"kind":"Status","status":"Success"})", "a ok"},
      {"it was gone already", 404,
       R"({"kind":"Status","reason":"NotFound","details":{"name":"a"}})", "a ok"},
      {"it ends within its grace", 200,
       R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})",
       R"(a ok {"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})"},
      {"it is told as it last was", 200, R"({"metadata":{"name":"a"}})", "a ok"}};
  for (const DeleteCase& one : cases) {
    told_.clear();
    answer_ = [&](const kube::Request&) { return Reply(one.status, one.body); };
    carrier_.Carry({1, {{Write(Verb::kDelete, "a")}}});
    transport_.Run();
    EXPECT_EQ(told_, (Lines{one.told, "1 whole"})) << one.what;
  }
}

TEST_F(CarrierTest, WhoDoesNotLeadWritesNothing) {
  leading_ = false;
  carrier_.Carry({1, {{Write(Verb::kPatch, "a")}, {Write(Verb::kPatch, "b")}}});
  transport_.Advance(Seconds(60));
  EXPECT_TRUE(transport_.sent().empty());
  EXPECT_EQ(told_, (Lines{"a failed", "1 broken"}));
}

TEST_F(CarrierTest, NoMoreThanSoManyRequestsAreOpen) {
  std::vector<ObjectWrite> many;
  for (int i = 0; i < kWritesAtOnce + 5; ++i) {
    many.push_back(Write(Verb::kPatch, "h" + std::to_string(i)));
  }
  Batch batch;
  batch.id = 1;
  batch.steps.push_back(std::move(many));
  carrier_.Carry(std::move(batch));
  transport_.Run();
  EXPECT_EQ(transport_.open().size(), static_cast<size_t>(kWritesAtOnce));
  transport_.Answer(transport_.sent().front().id, Reply(200, "X"));
  transport_.Run();
  EXPECT_EQ(transport_.open().size(), static_cast<size_t>(kWritesAtOnce));
  EXPECT_EQ(transport_.sent().size(), static_cast<size_t>(kWritesAtOnce) + 1);
}

}  // namespace
}  // namespace hopwise::daemon
