// Events: what is written, what is folded, what is dropped, and what survives a bad server.
#include "kube/events.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/json.h"
#include "base/log.h"
#include "base/prng.h"
#include "kube/fake_transport.h"

namespace hopwise::kube {

using json::Json;
namespace {

const ObjectReference kPod{"v1", "Pod", "ml", "worker-0", "uid-0"};
const ObjectReference kNode{"v1", "Node", "", "node-1", "uid-n"};

EventText Important(const std::string& reason, const std::string& message = "done",
                    const std::string& key = "") {
  return {.warning = false, .reason = reason, .message = message, .important = true, .key = key};
}
EventText Ordinary(const std::string& reason, const std::string& message = "so") {
  return {.warning = true, .reason = reason, .message = message, .important = false, .key = ""};
}

// A server that keeps Events by their path, and a recorder that writes to it.
struct EventsTest : testing::Test {
  EventsTest() { Make({.component = "volcano", .instance = "host-1"}); }
  void Make(EventRecorder::Options options) {
    transport.on_send = [this](const Request& request) { return Serve(request); };
    recorder = std::make_unique<EventRecorder>(transport, std::move(options));
  }
  Response Serve(const Request& request) {
    const Json body = json::ParseOrNull(request.body);
    if (request.method == Method::kPost) {
      EXPECT_EQ(request.content_type, kJsonType);
      ++posts;
      const std::string path = request.path + "/" + json::Text(body, {"metadata", "name"});
      if (!events.emplace(path, body).second) {
        return Reply(409, R"({"kind":"Status","reason":"AlreadyExists"})");
      }
      return Reply(201, request.body);
    }
    EXPECT_EQ(request.method, Method::kPatch);
    EXPECT_EQ(request.content_type, kMergePatch);
    ++patches;
    const auto at = events.find(request.path);
    if (at == events.end()) return Reply(404, R"({"kind":"Status","reason":"NotFound"})");
    at->second.merge_patch(body);
    return Reply(200, json::Dump(at->second));
  }
  [[nodiscard]] const Json& Only() const {
    EXPECT_EQ(events.size(), 1U);
    return events.begin()->second;
  }
  [[nodiscard]] int64_t CountOf(const std::string& message) const {
    for (const auto& [path, event] : events) {
      if (json::Text(event, {"message"}) == message) return json::Number(event, {"count"}, 0);
    }
    return 0;
  }

  FakeTransport transport;
  std::unique_ptr<EventRecorder> recorder;
  std::map<std::string, Json> events;
  int posts = 0, patches = 0;
};

TEST_F(EventsTest, CarryWhatKubectlShows) {
  recorder->Record(kPod, Ordinary("FailedScheduling", "0/3 nodes"));
  transport.Run();
  const Json& event = Only();
  EXPECT_TRUE(events.begin()->first.starts_with("/api/v1/namespaces/ml/events/worker-0."));
  EXPECT_EQ(json::Text(event, {"metadata", "namespace"}), "ml");
  const Json about = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"namespace", "ml"},
                      {"name", "worker-0"},
                      {"uid", "uid-0"}};
  EXPECT_EQ(*json::Get(event, {"involvedObject"}), about);
  EXPECT_EQ(json::Text(event, {"type"}), "Warning");
  EXPECT_EQ(json::Text(event, {"reason"}), "FailedScheduling");
  EXPECT_EQ(json::Text(event, {"message"}), "0/3 nodes");
  EXPECT_EQ(json::Number(event, {"count"}, 0), 1);
  EXPECT_EQ(json::Text(event, {"firstTimestamp"}), FormatRfc3339(transport.Wall()));
  EXPECT_EQ(json::Text(event, {"lastTimestamp"}), FormatRfc3339(transport.Wall()));
  EXPECT_EQ(json::Text(event, {"source", "component"}), "volcano");
  EXPECT_EQ(json::Text(event, {"reportingComponent"}), "volcano");
  EXPECT_EQ(json::Text(event, {"reportingInstance"}), "host-1");
}

TEST_F(EventsTest, OfWhatHasNoNamespaceLieInDefault) {
  recorder->Record(kNode, Important("Cordoned"));
  transport.Run();
  EXPECT_TRUE(events.begin()->first.starts_with("/api/v1/namespaces/default/events/node-1."));
  EXPECT_EQ(json::Get(Only(), {"involvedObject", "namespace"}), nullptr);
  EXPECT_EQ(json::Text(Only(), {"type"}), "Normal");
}

TEST_F(EventsTest, NamesFitWhateverTheObjectsName) {
  ObjectReference about = kPod;
  about.name = std::string(230, 'a') + "-.-" + std::string(20, 'b');
  for (size_t length = about.name.size(); length > 225; --length) {
    about.name.resize(length);
    recorder->Record(about, Important("Scheduled"));
  }
  transport.Run();
  EXPECT_EQ(events.size(), 28U);
  for (const auto& [path, event] : events) {
    const std::string name = json::Text(event, {"metadata", "name"});
    EXPECT_LE(name.size(), 253U);
    EXPECT_NE(name[name.rfind('.') - 1], '-');
    EXPECT_NE(name[name.rfind('.') - 1], '.');
  }
}

TEST_F(EventsTest, MessagesAreCutAtACharacter) {
  for (size_t pad = 1020; pad <= 1024; ++pad) {
    SCOPED_TRACE(pad);
    events.clear();
    recorder->Record(kPod, Important("Scheduled", std::string(pad, 'x') + "\xe2\x82\xac and on"));
    transport.Run();
    const std::string message = json::Text(Only(), {"message"});
    EXPECT_LE(message.size(), 1024U);
    EXPECT_EQ(message, std::string(pad, 'x') + (pad <= 1021 ? "\xe2\x82\xac" : "") +
                           (pad == 1020 ? " " : ""));
  }
}

TEST_F(EventsTest, ThatAreNoUtf8AreWrittenAllTheSame) {
  recorder->Record(kPod, Important("Scheduled", "node \xff\xfe"));
  transport.Run();
  EXPECT_EQ(json::Text(Only(), {"message"}), "node \xef\xbf\xbd\xef\xbf\xbd");
}

TEST_F(EventsTest, ImportantOnesAreEachWrittenOnce) {
  for (int i = 0; i < 100; ++i) recorder->Record(kPod, Important("Evict", "the same"));
  transport.Run();
  EXPECT_EQ(posts, 100);
  EXPECT_EQ(events.size(), 100U);
  EXPECT_EQ(patches, 0);
  EXPECT_EQ(recorder->counts().written, 100U);
  EXPECT_EQ(recorder->counts().waiting, 0U);
}

TEST_F(EventsTest, AKeyMakesTheNameAndTheSameToldAgainFindsItWritten) {
  recorder->Record(kPod, Important("Scheduled", "to node-1", "uid-0/node-1"));
  transport.Run();
  const std::string path = events.begin()->first;
  // Another process, later.
  transport.Advance(Seconds(100));
  EventRecorder other(transport, {.component = "volcano", .instance = "host-2"});
  other.Record(kPod, Important("Scheduled", "to node-1", "uid-0/node-1"));
  other.Record(kPod, Important("Scheduled", "to node-2", "uid-0/node-2"));
  transport.Run();
  EXPECT_EQ(events.size(), 2U);
  EXPECT_TRUE(events.contains(path));
  EXPECT_EQ(json::Number(events[path], {"count"}, 0), 1);
  EXPECT_EQ(other.counts().written, 2U);
  EXPECT_EQ(other.counts().failed, 0U);
}

TEST_F(EventsTest, TheSameAgainCountsUp) {
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  const std::string first = json::Text(Only(), {"firstTimestamp"});
  transport.Advance(Seconds(599));
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  EXPECT_EQ(posts, 1);
  EXPECT_EQ(patches, 1);
  EXPECT_EQ(json::Number(Only(), {"count"}, 0), 2);
  EXPECT_EQ(json::Text(Only(), {"firstTimestamp"}), first);
  EXPECT_EQ(json::Text(Only(), {"lastTimestamp"}), FormatRfc3339(transport.Wall()));
  EXPECT_EQ(recorder->counts().counted_up, 1U);
}

TEST_F(EventsTest, TheSameAfterTenMinutesIsANewOne) {
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Advance(Seconds(601));
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  EXPECT_EQ(posts, 2);
  EXPECT_EQ(patches, 0);
}

TEST_F(EventsTest, AnotherTypeReasonMessageOrObjectIsAnotherEvent) {
  ObjectReference recreated = kPod;
  recreated.uid = "uid-1";
  recorder->Record(kPod, Ordinary("A", "m"));
  recorder->Record(kPod, Ordinary("B", "m"));
  recorder->Record(kPod, Ordinary("A", "n"));
  recorder->Record(recreated, Ordinary("A", "m"));
  EventText normal = Ordinary("A", "m");
  normal.warning = false;
  recorder->Record(kPod, normal);
  recorder->Record(kPod, Ordinary("A", ""));
  transport.Run();
  EXPECT_EQ(events.size(), 6U);
  EXPECT_EQ(patches, 0);
}

TEST_F(EventsTest, WhatRepeatsBeforeItIsWrittenTakesOneRequest) {
  transport.latency = Millis(100);
  Make({.instance = "h", .at_once = 1});
  recorder->Record(kNode, Important("First"));  // fills the one place
  for (int i = 0; i < 5; ++i) recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Advance(Seconds(1));
  EXPECT_EQ(posts, 2);
  EXPECT_EQ(patches, 0);
  EXPECT_EQ(CountOf("so"), 5);
}

TEST_F(EventsTest, WhatRepeatsWhileItIsBeingWrittenIsPatchedOnce) {
  transport.latency = Millis(100);
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Advance(Millis(50));
  for (int i = 0; i < 5; ++i) recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Advance(Seconds(1));
  EXPECT_EQ(posts, 1);
  EXPECT_EQ(patches, 1);
  EXPECT_EQ(json::Number(Only(), {"count"}, 0), 6);
}

TEST_F(EventsTest, ACountedOneThatTheServerForgotIsWrittenAnew) {
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  events.clear();
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  EXPECT_EQ(json::Number(Only(), {"count"}, 0), 2);
  EXPECT_EQ(posts, 2);
  EXPECT_EQ(recorder->counts().written, 1U);
  EXPECT_EQ(recorder->counts().counted_up, 1U);
}

TEST_F(EventsTest, ACountedOneThatTheServerForgotAndRefusesIsLostOnce) {
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  transport.on_send = [](const Request& request) {
    return Reply(request.method == Method::kPatch ? 404 : 403);
  };
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  const EventRecorder::Counts counts = recorder->counts();
  EXPECT_EQ(counts.failed, 2U);
  EXPECT_EQ(counts.written + counts.counted_up + counts.dropped + counts.waiting, 0U);
}

TEST_F(EventsTest, SimilarOnesAreFoldedFromTheTenthOn) {
  for (int i = 0; i < 15; ++i) {
    recorder->Record(kPod, Ordinary("FailedScheduling", "try " + std::to_string(i)));
    transport.Run();
  }
  EXPECT_EQ(events.size(), 10U) << "nine of their own, and one for the others";
  EXPECT_EQ(CountOf("(combined from similar events): try 14"), 6);
  // One that has its own Event still counts up there.
  recorder->Record(kPod, Ordinary("FailedScheduling", "try 3"));
  transport.Run();
  EXPECT_EQ(CountOf("try 3"), 2);
  // Ten minutes without any, and they stand alone again.
  transport.Advance(Seconds(601));
  recorder->Record(kPod, Ordinary("FailedScheduling", "try 99"));
  transport.Run();
  EXPECT_EQ(CountOf("try 99"), 1);
}

TEST_F(EventsTest, AnObjectGets25AndOneMoreEveryFiveMinutes) {
  for (int i = 0; i < 40; ++i) recorder->Record(kPod, Ordinary("R" + std::to_string(i)));
  transport.Run();
  EXPECT_EQ(events.size(), 25U);
  EXPECT_EQ(recorder->counts().dropped, 15U);
  recorder->Record(kPod, Important("Scheduled"));
  recorder->Record(kNode, Ordinary("Other"));
  transport.Advance(Seconds(299));
  EXPECT_EQ(events.size(), 27U) << "others, and what is important, are not held back";
  recorder->Record(kPod, Ordinary("Late"));
  transport.Advance(Seconds(1));
  EXPECT_EQ(recorder->counts().dropped, 16U);
  recorder->Record(kPod, Ordinary("Later"));
  recorder->Record(kPod, Ordinary("TooMuch"));
  transport.Run();
  EXPECT_EQ(recorder->counts().dropped, 17U);
  EXPECT_EQ(events.size(), 28U);
}

TEST_F(EventsTest, AtMostSoManyAreUnderWay) {
  transport.latency = Millis(10);
  Make({.instance = "h", .at_once = 3});
  for (int i = 0; i < 20; ++i) recorder->Record(kPod, Important("Scheduled"));
  while (recorder->counts().waiting > 0) {
    ASSERT_LE(transport.open().size(), 3U);
    ASSERT_GT(transport.open().size(), 0U);
    transport.Advance(Millis(10));
  }
  EXPECT_EQ(events.size(), 20U);
}

TEST_F(EventsTest, AFullQueueDropsTheOldestThatIsNotImportant) {
  Make({.instance = "h", .most_waiting = 3, .at_once = 1});
  transport.latency = Seconds(1);
  recorder->Record(kNode, Important("UnderWay"));
  const auto pod = [](int i) {
    ObjectReference about = kPod;
    about.name = "p" + std::to_string(i);
    return about;
  };
  for (int i = 0; i < 6; ++i) {
    recorder->Record(pod(i), Ordinary("R", std::to_string(i)));
    recorder->Record(pod(i), Important("Scheduled", "important " + std::to_string(i)));
  }
  EXPECT_EQ(recorder->counts().dropped, 3U);
  EXPECT_EQ(recorder->counts().waiting, 10U);
  transport.Advance(Seconds(30));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(CountOf(std::to_string(i)), i < 3 ? 0 : 1) << i;
    EXPECT_EQ(CountOf("important " + std::to_string(i)), 1) << i;
  }
}

// --- a bad server

TEST_F(EventsTest, APostWhoseAnswerWasLostIsRepeatedByTheSameName) {
  int requests = 0;
  transport.on_send = [&](const Request& request) {
    Response response = Serve(request);
    return ++requests == 1 ? NoReply("reset by peer") : response;
  };
  recorder->Record(kPod, Important("Scheduled"));
  transport.Advance(Seconds(5));
  EXPECT_EQ(posts, 2);
  EXPECT_EQ(events.size(), 1U);
  EXPECT_EQ(recorder->counts().written, 1U);
  EXPECT_EQ(recorder->counts().failed, 0U);
}

// The server has the first text; what was counted since then must not be lost with the answer.
TEST_F(EventsTest, WhatWasCountedWhileAnAnswerWasLostIsPatched) {
  int requests = 0;
  transport.on_send = [&](const Request& request) {
    Response response = Serve(request);
    return ++requests == 1 ? NoReply("reset by peer") : response;
  };
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Advance(Seconds(5));
  EXPECT_EQ(posts, 2);
  EXPECT_EQ(patches, 1);
  EXPECT_EQ(json::Number(Only(), {"count"}, 0), 2);
}

TEST_F(EventsTest, AServerThatIsAwayHoldsAllUpAndIsNotPressed) {
  bool away = true;
  transport.on_send = [&](const Request& request) {
    return away ? NoReply("refused") : Serve(request);
  };
  for (int i = 0; i < 1000; ++i) recorder->Record(kPod, Important("Scheduled"));
  transport.Advance(Seconds(3600));
  EXPECT_EQ(recorder->counts().waiting, 1000U) << "an hour is no reason to lose a bind's Event";
  // 16 at a time, after 0.5 s .. 30 s and up to twice that.
  EXPECT_LE(transport.sent().size(), 16U * 125U);
  away = false;
  transport.Advance(Seconds(60));
  EXPECT_EQ(events.size(), 1000U);
  EXPECT_EQ(recorder->counts().failed, 0U);
}

TEST_F(EventsTest, AnOrdinaryOneIsTriedTwelveTimes) {
  for (const Response& answer : {NoReply("refused"), Reply(500), Reply(429), Reply(401)}) {
    SCOPED_TRACE(answer.status);
    transport.Forget();
    Make({});
    transport.on_send = [&](const Request&) { return answer; };
    recorder->Record(kPod, Ordinary("FailedScheduling"));
    transport.Advance(Seconds(3600));
    EXPECT_EQ(transport.sent().size(), 12U);
    EXPECT_EQ(recorder->counts().failed, 1U);
    EXPECT_EQ(recorder->counts().waiting, 0U);
  }
}

TEST_F(EventsTest, AnImportantOneThatTheServerCannotWriteIsTriedTwelveTimes) {
  transport.on_send = [&](const Request&) { return Reply(500); };
  recorder->Record(kPod, Important("Scheduled"));
  transport.Advance(Seconds(3600));
  EXPECT_EQ(transport.sent().size(), 12U);
  EXPECT_EQ(recorder->counts().failed, 1U);
}

TEST_F(EventsTest, OneThatMeetsAnErrorDoesNotHoldUpTheOthers) {
  transport.on_send = [&](const Request& request) {
    return request.body.find("poison") != std::string::npos ? Reply(500) : Serve(request);
  };
  recorder->Record(kPod, Important("Scheduled", "poison"));
  for (int i = 0; i < 100; ++i) recorder->Record(kPod, Important("Scheduled", "fine"));
  transport.Run();
  EXPECT_EQ(events.size(), 100U);
  EXPECT_EQ(recorder->counts().waiting, 1U);
}

TEST_F(EventsTest, RetryAfterIsObeyed) {
  Response busy = Reply(429);
  busy.retry_after = Seconds(40);
  bool first = true;
  transport.on_send = [&](const Request& request) {
    return std::exchange(first, false) ? busy : Serve(request);
  };
  recorder->Record(kPod, Important("Scheduled"));
  transport.Advance(Millis(39'999));
  EXPECT_EQ(posts, 0);
  transport.Advance(Millis(1));
  EXPECT_EQ(posts, 1);
}

TEST_F(EventsTest, ARefusalIsFinalAndLoggedOnceForEachKind) {
  std::vector<std::string> log;
  const LogSink before = SetLogSink(
      [&](const LogRecord& record) { log.push_back(FormatLogLine(record)); }, LogLevel::kInfo);
  int number = 0;
  transport.on_send = [&](const Request&) {
    switch (++number % 3) {
      case 0:
        return Reply(403,
                     R"({"kind":"Status","reason":"Forbidden","message":"User \"u\" may not"})");
      case 1:
        return Reply(404, R"({"kind":"Status","reason":"NotFound","details":{"name":"ml"}})");
      default:
        return Reply(422, R"({"kind":"Status","reason":"Invalid"})");
    }
  };
  for (int i = 0; i < 30; ++i) recorder->Record(kPod, Important("Scheduled"));
  transport.Advance(Seconds(600));
  SetLogSink(before);
  EXPECT_EQ(number, 30);
  EXPECT_EQ(recorder->counts().failed, 30U);
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(std::count_if(log.begin(), log.end(),
                          [](const std::string& line) {
                            return line.find("grant the verb") != std::string::npos;
                          }),
            1);
}

TEST_F(EventsTest, WhatWasGivenUpBeginsAnew) {
  transport.on_send = [](const Request&) { return Reply(403); };
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  transport.on_send = [this](const Request& request) { return Serve(request); };
  recorder->Record(kPod, Ordinary("FailedScheduling"));
  transport.Run();
  EXPECT_EQ(json::Number(Only(), {"count"}, 0), 1);
}

// --- the end

TEST_F(EventsTest, FlushWaitsForTheLastOneOrTheLimit) {
  transport.latency = Seconds(1);
  int done = 0;
  recorder->Flush(Seconds(5), [&] { ++done; });
  EXPECT_EQ(done, 0) << "never from within the call";
  transport.Run();
  EXPECT_EQ(done, 1);
  for (int i = 0; i < 20; ++i) recorder->Record(kPod, Important("Scheduled"));
  recorder->Flush(Seconds(5), [&] { ++done; });
  transport.Advance(Millis(1'999));
  EXPECT_EQ(done, 1);
  transport.Advance(Millis(1));
  EXPECT_EQ(done, 2);
  EXPECT_EQ(events.size(), 20U);
  transport.on_send = {};
  recorder->Record(kPod, Important("Scheduled"));
  recorder->Flush(Seconds(5), [&] { recorder.reset(), ++done; });
  transport.Advance(Seconds(5));
  EXPECT_EQ(done, 3);
  transport.Advance(Seconds(100));
  EXPECT_EQ(transport.timers(), 0U);
}

TEST_F(EventsTest, StandBackWhileSomethingMoreUrgentIsUnderWayButNotTooFar) {
  bool urgent = true;
  EventRecorder::Options options;
  options.yields = [&] { return urgent; };
  Make(std::move(options));
  transport.on_send = nullptr;  // nothing is answered
  const auto record = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      recorder->Record(kPod, Important("Scheduled", "done", std::to_string(i)));
    }
    transport.Run();
  };
  record(kMostBehind - 1);
  EXPECT_EQ(transport.open().size(), static_cast<size_t>(kAtOnceBehind));
  urgent = false;
  transport.Answer(transport.open().front().id, Reply(201, "{}"));
  transport.Run();
  EXPECT_EQ(transport.open().size(), static_cast<size_t>(EventRecorder::Options().at_once));
}

TEST_F(EventsTest, NothingIsSentAfterItsEnd) {
  transport.on_send = [](const Request&) { return Reply(500); };
  recorder->Record(kPod, Important("Scheduled"));
  transport.Run();
  recorder.reset();
  const size_t before = transport.sent().size();
  transport.Advance(Seconds(600));
  EXPECT_EQ(transport.sent().size(), before);
}

// Random records against a server that loses requests and answers: in the end every important one
// is there exactly once, and every other is there, counted, dropped or failed.
TEST_F(EventsTest, AccountForEveryRecordUnderAnySequenceOfFaults) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    events.clear();
    transport.Forget();
    transport.latency = Millis(prng.Between(0, 50));
    Make({.instance = "h",
          .most_waiting = static_cast<size_t>(prng.Between(1, 20)),
          .at_once = static_cast<int>(prng.Between(1, 5))});
    bool faults = true;
    transport.on_send = [&](const Request& request) -> std::optional<Response> {
      if (faults && prng.Chance(1, 5)) return NoReply("lost on the way");
      if (faults && prng.Chance(1, 20)) return Reply(429);
      if (faults && prng.Chance(1, 20)) return Reply(503);
      Response response = Serve(request);
      if (faults && prng.Chance(1, 5)) return NoReply("answer lost");
      return response;
    };
    uint64_t important = 0;
    uint64_t ordinary = 0;
    for (int i = 0; i < 200; ++i) {
      ObjectReference about = kPod;
      about.name = "p" + std::to_string(prng.Below(4));
      if (prng.Chance(1, 2)) {
        recorder->Record(about, Important("Scheduled", std::to_string(++important)));
      } else {
        ++ordinary;
        recorder->Record(about, Ordinary("FailedScheduling", std::to_string(prng.Below(12))));
      }
      transport.Advance(Millis(prng.Between(0, 300)));
    }
    faults = false;
    transport.Advance(Seconds(600));
    ASSERT_EQ(recorder->counts().waiting, 0U);
    std::map<std::string, int> scheduled;
    int64_t counted = 0;
    for (const auto& [path, event] : events) {
      if (json::Text(event, {"reason"}) == "Scheduled") {
        ++scheduled[json::Text(event, {"message"})];
      } else {
        counted += json::Number(event, {"count"}, 0);
      }
    }
    ASSERT_EQ(scheduled.size(), important);
    for (const auto& [message, times] : scheduled) ASSERT_EQ(times, 1) << message;
    const EventRecorder::Counts counts = recorder->counts();
    ASSERT_EQ(counts.written + counts.counted_up + counts.dropped + counts.failed,
              important + ordinary);
    // What was dropped or given up may have been counted up before.
    ASSERT_LE(counted, static_cast<int64_t>(ordinary));
    if (counts.dropped == 0 && counts.failed == 0) {
      ASSERT_EQ(counted, static_cast<int64_t>(ordinary));
    }
  }
}

}  // namespace
}  // namespace hopwise::kube
