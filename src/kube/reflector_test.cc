// What the reflector asks, tells and does about each kind of failure.
#include "kube/reflector.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kube/fake_transport.h"
#include "kube/reflector_server.h"
#include "kube/reflector_view.h"

namespace hopwise::kube {
namespace {

constexpr std::string_view kPath = "/apis/scheduling.volcano.sh/v1beta1/podgroups?";

// A server with two groups, a reflector of it, and what it told.
struct ReflectorTest : testing::Test {
  void Start(Reflector::Options options = {}) {
    reflector =
        std::make_unique<Reflector>(transport, kPodGroups, std::move(options), view.Handlers());
    server.Set("ml/a", 1);
    server.Set("ml/b", 2);
    reflector->Start();
    transport.Run();
  }
  // Long enough for every back-off, the watchdog and what follows it.
  void Settle() { transport.Advance(Seconds(600)); }
  [[nodiscard]] std::string LastPath() const { return transport.last().request.path; }

  FakeTransport transport;
  Server server{transport};
  View view;
  std::unique_ptr<Reflector> reflector;
};

TEST_F(ReflectorTest, ListsByAStreamAndGoesOnWithIt) {
  Start();
  EXPECT_TRUE(reflector->synced());
  EXPECT_EQ(view.synced, 1);
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(server.streams, 1);
  EXPECT_EQ(server.page_requests, 0);
  const std::string path = transport.last().request.path;
  EXPECT_TRUE(path.starts_with(kPath)) << path;
  const int timeout = std::stoi(ParameterOf(path, "timeoutSeconds"));
  EXPECT_GE(timeout, 300);
  EXPECT_LE(timeout, 600);
  server.Set("ml/c", 3);
  server.Remove("ml/a");
  transport.Run();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(reflector->known(), 2U);
  EXPECT_EQ(server.streams, 1);
  EXPECT_EQ(view.troubles, 0);
}

TEST_F(ReflectorTest, ListsInPagesWhenTheServerRefusesToStream) {
  server.streaming = false;
  for (const char* key : {"ml/c", "ml/d", "ml/e"}) server.Set(key, 3);
  Start();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(view.synced, 1);
  EXPECT_EQ(server.page_requests, 3);
  EXPECT_EQ(ParameterOf(LastPath(), "resourceVersion"), std::to_string(server.version));
  server.SayErrorToAll(410, "Expired");
  Settle();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(view.synced, 2);
  EXPECT_EQ(server.page_requests, 6) << "the refusal is remembered";
  EXPECT_EQ(view.troubles, 0) << "a refused streaming list is no trouble";
}

TEST_F(ReflectorTest, ListsInPagesWhenTheStreamBeginsWithSomethingElse) {
  transport.on_stream = [&](Transport::Id id, const Request& request) {
    if (ParameterOf(request.path, "sendInitialEvents").empty()) return;
    transport.Feed(id, R"({"kind":"PodGroupList","items":[]})"
                       "\n");
  };
  Start();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(server.page_requests, 1);
}

TEST_F(ReflectorTest, ListsInPagesFromTheStartWhenTold) {
  Start({.selector = "fieldSelector=metadata.name%3Dx", .streaming_list = false});
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(transport.sent()[0].request.path,
            std::string(kPath) + "limit=500&fieldSelector=metadata.name%3Dx");
  EXPECT_NE(LastPath().find("&fieldSelector=metadata.name%3Dx"), std::string::npos);
}

TEST_F(ReflectorTest, ListsAnewWhenAPagesTokenExpires) {
  for (const char* key : {"ml/c", "ml/d", "ml/e"}) server.Set(key, 3);
  transport.latency = Millis(100);
  Start({.selector = "", .streaming_list = false});
  transport.Advance(Millis(150));  // the first page came
  server.Remove("ml/a");
  server.Compact();
  Settle();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(view.synced, 1);
  EXPECT_EQ(reflector->lists(), 2U);
  EXPECT_EQ(view.log.front(), "+ml/a");
  EXPECT_EQ(view.log.back(), "-ml/a/uid-4") << "told with the first list, absent from the second";
}

TEST_F(ReflectorTest, GoesByPagesOnceWhenTheStreamingListBreaksOff) {
  int streams = 0;
  const auto serve = transport.on_stream;
  transport.on_stream = [&](Transport::Id id, const Request& request) {
    if (++streams > 1) return serve(id, request);
    transport.Feed(id, EventLine("ADDED", PodGroupText("ml/a", "uid-1", 1, 1)));
    transport.End(id);
  };
  Start();
  EXPECT_EQ(view.synced, 0);
  EXPECT_EQ(view.troubles, 1);
  Settle();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_GT(server.page_requests, 0);
  EXPECT_TRUE(view.errors.back().ok()) << "all is well again";
  const int pages = server.page_requests;
  server.SayErrorToAll(410, "Expired");
  Settle();
  EXPECT_EQ(view.synced, 2);
  EXPECT_EQ(server.page_requests, pages) << "streamed again";
}

TEST_F(ReflectorTest, WatchesOnAtOnceFromTheLastVersionWhenAWatchEnds) {
  Start();
  transport.Advance(Seconds(61));  // a bookmark
  server.Set("ml/c", 3);
  transport.Run();
  server.CutAll();
  transport.Run();
  EXPECT_EQ(server.streams, 2);
  EXPECT_EQ(ParameterOf(LastPath(), "resourceVersion"), std::to_string(server.version));
  EXPECT_EQ(ParameterOf(LastPath(), "sendInitialEvents"), "");
  EXPECT_EQ(reflector->lists(), 1U);
  EXPECT_EQ(view.troubles, 0);
}

TEST_F(ReflectorTest, ListsAnewAtOnceWhenAWatchBreaks) {
  Start();
  transport.Advance(Seconds(61));  // it was well
  server.BreakAll();
  server.Remove("ml/a");
  transport.Run();
  EXPECT_EQ(reflector->lists(), 2U);
  EXPECT_EQ(view.contents, server.contents);
  server.BreakAll();
  transport.Run();
  EXPECT_EQ(reflector->lists(), 2U) << "not at once when it keeps happening";
  Settle();
  EXPECT_EQ(reflector->lists(), 3U);
}

TEST_F(ReflectorTest, ListsAnewAtOnceWhenAServerThatDiedCameBackWithoutItsData) {
  Start();
  server.version += 100;
  server.Set("ml/c", 3);
  transport.Advance(Seconds(61));
  server.BreakAll();
  server.LoseData();
  server.Set("ml/new", 1);
  transport.Run();
  EXPECT_EQ(view.contents, server.contents);
}

TEST_F(ReflectorTest, TellsOfNamesThatPassedToOthersWhicheverWayItLists) {
  for (const bool streaming : {true, false}) {
    SCOPED_TRACE(streaming ? "a stream" : "pages");
    server.streaming = streaming;
    view = {};
    server.LoseData();
    Start();
    for (const char* key : {"ml/c", "ml/d", "ml/e"}) server.Set(key, 3);
    transport.Advance(Seconds(61));
    server.BreakAll();
    server.LoseData();
    for (const char* key : {"ml/a", "ml/b", "ml/c", "ml/d", "ml/e"}) server.Set(key, 4);
    Settle();
    EXPECT_EQ(view.contents, server.contents);
    EXPECT_EQ(view.troubles, 0);
    reflector.reset();
  }
}

TEST_F(ReflectorTest, TakesTheVersionFromBookmarksAndDeletionsToo) {
  Start();
  server.Remove("ml/a");
  transport.Run();
  server.version += 100;  // other kinds' changes
  transport.Advance(Seconds(60));
  server.Compact();
  server.CutAll();
  transport.Run();
  EXPECT_EQ(ParameterOf(LastPath(), "resourceVersion"), std::to_string(server.version));
  EXPECT_EQ(reflector->lists(), 1U) << "the bookmark's version was still in the history";
}

TEST_F(ReflectorTest, DoesNotHurryAfterWatchesThatEndAtOnce) {
  Start();
  transport.Advance(Seconds(2));
  transport.on_stream = [&](Transport::Id id, const Request&) { transport.End(id); };
  server.CutAll();
  const size_t before = transport.sent().size();
  transport.Advance(Seconds(60));
  // At once, then after 0.8, 1.6, 3.2, 6.4, 12.8, 25.6 s or up to twice that.
  EXPECT_LE(transport.sent().size() - before, 8U);
  EXPECT_GE(transport.sent().size() - before, 5U);
}

TEST_F(ReflectorTest, ListsAnewAtOnceWhenItsVersionExpired) {
  Start();
  transport.Advance(Seconds(10));
  server.Remove("ml/a");
  server.SayErrorToAll(410, "Expired");
  transport.Run();
  EXPECT_EQ(reflector->lists(), 2U);
  EXPECT_EQ(view.synced, 2);
  EXPECT_TRUE(reflector->synced());
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(view.troubles, 0);
}

TEST_F(ReflectorTest, DoesNotListInALoopWhenEveryVersionIsExpired) {
  Start();
  transport.Advance(Seconds(10));
  const auto serve = transport.on_stream;
  transport.on_stream = [&](Transport::Id id, const Request& request) {
    serve(id, request);
    transport.Feed(id, EventLine("ERROR", StatusText(410, "Expired")));
  };
  server.SayErrorToAll(410, "Expired");
  transport.Advance(Seconds(60));
  EXPECT_LE(reflector->lists(), 9U);
  EXPECT_GE(reflector->lists(), 6U);
}

TEST_F(ReflectorTest, BacksOffAfterAnErrorInTheStreamAndWatchesOn) {
  Start();
  transport.Advance(Seconds(10));
  const size_t before = transport.sent().size();
  server.SayErrorToAll(500, "InternalError");
  transport.Run();
  EXPECT_EQ(transport.sent().size(), before) << "not at once";
  ASSERT_EQ(view.troubles, 1);
  EXPECT_EQ(view.errors[0].failure, Failure::kServer);
  transport.Advance(Millis(1600));
  EXPECT_EQ(transport.sent().size(), before + 1);
  EXPECT_EQ(reflector->lists(), 1U);
  server.Set("ml/c", 3);
  transport.Run();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_TRUE(view.errors.back().ok()) << "well again with the first event";
}

TEST_F(ReflectorTest, SaysThatAllIsWellWhenAQuietWatchHasOutlivedItsTimeOut) {
  Start();
  transport.on_stream = {};
  server.SayErrorToAll(500, "InternalError");
  transport.Advance(Millis(1600));
  EXPECT_FALSE(view.errors.back().ok());
  transport.Begin(transport.last().id);
  transport.Advance(kRequestTimeout);
  EXPECT_TRUE(view.errors.back().ok());
}

TEST_F(ReflectorTest, ObeysRetryAfterOfListAndWatch) {
  Response busy = Reply(429, StatusText(429, "TooManyRequests"));
  busy.retry_after = Seconds(50);
  server.failures = {busy};
  Start();
  EXPECT_EQ(view.errors.at(0).failure, Failure::kThrottled);
  transport.Advance(Millis(49'999));
  EXPECT_EQ(transport.sent().size(), 1U);
  transport.Advance(Millis(1));
  EXPECT_EQ(view.synced, 1);
  transport.Advance(Seconds(10));
  server.failures = {busy};
  server.CutAll();
  transport.Advance(Millis(49'999));
  EXPECT_EQ(transport.sent().size(), 3U);
  transport.Advance(Millis(1));
  EXPECT_EQ(transport.sent().size(), 4U);
  EXPECT_EQ(reflector->lists(), 2U) << "the watch went on without a list";
}

TEST_F(ReflectorTest, NamesVerbAndResourceWhenItMayNotListOrWatch) {
  server.failures = {Reply(403, StatusText(403, "Forbidden", R"(User \"u\" cannot watch)"))};
  Start();
  ASSERT_EQ(view.errors.size(), 1U);
  EXPECT_EQ(view.errors[0].failure, Failure::kForbidden);
  EXPECT_NE(view.errors[0].message.find("grant the verb \"watch\" on \"podgroups\""),
            std::string::npos);
  server.streaming = false;
  server.failures = {Reply(422, ""), Reply(403, "no")};
  Settle();
  EXPECT_NE(view.errors.at(1).message.find("grant the verb \"list\" on \"podgroups\""),
            std::string::npos);
  EXPECT_EQ(view.contents, server.contents) << "tried again until it may";
}

TEST_F(ReflectorTest, KeepsAskingForAKindThatDoesNotExistYet) {
  server.served = false;
  Start();
  EXPECT_EQ(view.errors.at(0).failure, Failure::kNoSuchKind);
  EXPECT_FALSE(reflector->synced());
  transport.Advance(Seconds(100));
  EXPECT_EQ(transport.sent().size(), 11U) << "once each " << kMissingRetry.ns << " ns";
  EXPECT_EQ(view.synced, 0);
  server.served = true;
  transport.Advance(kMissingRetry);
  EXPECT_TRUE(reflector->synced());
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_TRUE(view.errors.back().ok());
}

TEST_F(ReflectorTest, TellsTheObjectsOfAVanishedKindAsDeleted) {
  Start();
  transport.Advance(Seconds(10));
  server.GoSilent();  // not even the deletions are seen
  server.SetServed(false);
  Settle();
  EXPECT_TRUE(view.contents.empty());
  EXPECT_FALSE(reflector->synced());
  EXPECT_EQ(view.errors.back().failure, Failure::kNoSuchKind);
  server.SetServed(true);
  server.Set("ml/z", 1);
  Settle();
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_TRUE(reflector->synced());
}

TEST_F(ReflectorTest, DoesNotEmptyTheViewForOneOddAnswer) {
  Start();
  transport.Advance(Seconds(10));
  server.failures = {Reply(404, "404 page not found")};
  server.CutAll();
  Settle();
  EXPECT_EQ(view.contents, server.contents);
  for (const std::string& entry : view.log) EXPECT_EQ(entry[0], '+') << entry;
}

TEST_F(ReflectorTest, LeavesAWatchThatIsSilentForThreeMinutes) {
  Start();
  transport.Advance(Seconds(60));  // a bookmark: the last byte
  server.GoSilent();
  server.Set("ml/c", 3);
  transport.Advance(Millis(179'999));
  EXPECT_EQ(server.streams, 1);
  transport.Advance(Seconds(2));
  EXPECT_EQ(server.streams, 2);
  EXPECT_EQ(view.contents, server.contents);
  ASSERT_EQ(view.troubles, 2);
  EXPECT_EQ(view.errors[0].failure, Failure::kUnreachable);
  EXPECT_NE(view.errors[0].message.find("silent for 3m0s"), std::string::npos);
  EXPECT_TRUE(view.errors[1].ok());
}

TEST_F(ReflectorTest, BytesKeepAWatchAliveEvenWithinALine) {
  Start();
  const Transport::Id stream = transport.last().id;
  server.GoSilent();
  const std::string line = EventLine("ADDED", PodGroupText("ml/c", "u", 50, 1));
  for (const char c : line) {
    transport.Advance(Seconds(170));
    transport.Feed(stream, std::string(1, c));
  }
  transport.Run();
  EXPECT_EQ(view.contents.at("ml/c").uid, "u");
  EXPECT_EQ(server.streams, 1);
}

TEST_F(ReflectorTest, ListsAnewAfterItFoundNobodyThere) {
  Start();
  transport.Advance(Seconds(10));
  server.down = true;
  server.LoseData();
  transport.Advance(Seconds(20));
  EXPECT_EQ(view.errors.at(0).failure, Failure::kUnreachable);
  EXPECT_EQ(view.contents.size(), 2U) << "nothing is told of a server that is away";
  server.down = false;
  server.Set("ml/b", 5);           // another b, and versions lower than ours
  transport.Advance(Seconds(70));  // no need of the watchdog
  EXPECT_EQ(view.contents, server.contents);
  EXPECT_EQ(reflector->known(), 1U);
}

TEST_F(ReflectorTest, TellsWhoseNameWasTakenAsDeletedFirst) {
  Start();
  transport.Advance(Seconds(10));
  server.GoSilent();
  server.Remove("ml/a");
  server.Set("ml/a", 9);
  Settle();
  EXPECT_EQ(view.contents, server.contents);
  const std::vector<std::string> tail(view.log.begin() + 2, view.log.begin() + 4);
  EXPECT_EQ(tail, (std::vector<std::string>{"-ml/a/uid-1", "+ml/a"}));
}

TEST_F(ReflectorTest, PassesOverADeletionOfWhoeverHadTheNameBefore) {
  Start();
  const Transport::Id stream = transport.last().id;
  transport.Feed(stream, EventLine("DELETED", PodGroupText("ml/a", "older", 40, 1)));
  transport.Feed(stream, EventLine("DELETED", PodGroupText("ml/never", "x", 41, 1)));
  transport.Run();
  EXPECT_EQ(view.contents, server.contents);
}

TEST_F(ReflectorTest, ALineThatIsNoJsonEndsTheWatchAndNothingIsLost) {
  for (const std::string& broken :
       {std::string("garbage"), std::string("{\"type\":\"ADDED\",\"object\":{"), std::string("[]"),
        std::string("{\"type\":\"ADDED\"}"), std::string("{\"type\":3,\"object\":{}}"),
        std::string("{\"type\":\"ADDED\",\"object\":[]}"), std::string("\xff\xfe"),
        EventLine("ADDED", PodGroupText("ml/x", "u", 9, 1)).substr(0, 120),
        std::string("{\"type\":\"ADDED\",\"object\":{}} more")}) {
    SCOPED_TRACE(broken);
    FakeTransport wire;
    Server its_server(wire);
    its_server.Set("ml/a", 1);
    View its_view;
    Reflector its(wire, kPodGroups, {}, its_view.Handlers());
    its.Start();
    wire.Advance(Seconds(5));
    const Transport::Id stream = wire.last().id;
    wire.Feed(stream, broken + "\n");
    its_server.Set("ml/b", 1);  // reaches the watcher behind the broken line
    wire.Run();
    EXPECT_FALSE(its_view.contents.contains("ml/b")) << "what follows is not trusted";
    wire.Advance(Seconds(5));
    EXPECT_EQ(its_view.contents, its_server.contents);
    EXPECT_EQ(its.lists(), 1U) << "watched on from the last good version";
  }
}

TEST_F(ReflectorTest, ALineWithoutAnEndIsGivenUp) {
  Start();
  const Transport::Id stream = transport.last().id;
  const std::string piece(size_t{1} << 20U, 'x');
  for (int i = 0; i < 66; ++i) {
    transport.Feed(stream, piece);
    transport.Run();
  }
  EXPECT_TRUE(transport.sent().front().cancelled);
  server.Set("ml/c", 1);
  Settle();
  EXPECT_EQ(view.contents, server.contents);
}

TEST_F(ReflectorTest, AnObjectThatDoesNotDecodeIsToldAndItsOldVersionKept) {
  Start();
  const Transport::Id stream = transport.last().id;
  std::string bad = PodGroupText("ml/a", "uid-1", 60, 1);
  bad.replace(bad.find("\"minMember\":1"), 13, "\"minMember\":[]");
  transport.Feed(stream, EventLine("MODIFIED", bad));
  transport.Run();
  ASSERT_EQ(view.bad.size(), 1U);
  EXPECT_TRUE(view.bad[0].starts_with("PodGroup ml/a: spec.minMember: ")) << view.bad[0];
  EXPECT_TRUE(view.contents.contains("ml/a"));
  // Its version counts all the same, and its deletion is told.
  transport.Advance(Seconds(2));
  transport.Feed(stream, EventLine("DELETED", bad));
  transport.Run();
  EXPECT_FALSE(view.contents.contains("ml/a"));
  transport.End(stream);
  transport.on_stream = {};
  transport.Run();
  EXPECT_EQ(ParameterOf(LastPath(), "resourceVersion"), "60");
}

TEST_F(ReflectorTest, ABadObjectOfAListIsLeftOutAndNotTakenForDeleted) {
  Start({.selector = "", .streaming_list = false});
  const std::string good_a = PodGroupText("ml/a", "uid-1", 70, 4);
  std::string bad_b = PodGroupText("ml/b", "uid-2", 70, 1);
  bad_b.replace(bad_b.find("\"minMember\":1"), 13, "\"minMember\":{}");
  std::string bad_new = PodGroupText("ml/new", "uid-3", 70, 1);
  bad_new.replace(bad_new.find("\"minMember\":1"), 13, "\"minMember\":{}");
  transport.on_send = [&](const Request&) {
    return Reply(200, R"({"kind":"PodGroupList","apiVersion":"scheduling.volcano.sh/v1beta1",)"
                      R"("metadata":{"resourceVersion":"70"},"items":[)" +
                          bad_b + "," + good_a + "," + bad_new + "]}");
  };
  server.SayErrorToAll(410, "Expired");
  transport.Advance(Seconds(5));
  EXPECT_EQ(view.bad.size(), 2U);
  EXPECT_EQ(view.contents, (Contents{{"ml/a", {"uid-1", 4}}, {"ml/b", {"uid-2", 2}}}));
}

TEST_F(ReflectorTest, TellsAListInBatches) {
  for (int i = 0; i < 25; ++i) server.Set("ml/n" + std::to_string(i), 1);
  std::vector<size_t> sizes;
  Reflector::Handlers handlers = view.Handlers();
  handlers.events = [&](std::vector<WatchEvent>&& events) {
    sizes.push_back(events.size());
    EXPECT_FALSE(reflector->synced());
  };
  reflector = std::make_unique<Reflector>(
      transport, kPodGroups,
      Reflector::Options{.selector = "", .streaming_list = false, .batch = 10}, handlers);
  server.page = 100;
  reflector->Start();
  transport.Run();
  EXPECT_EQ(sizes, (std::vector<size_t>{10, 10, 5}));
  EXPECT_TRUE(reflector->synced());
}

TEST_F(ReflectorTest, NothingIsToldAfterAStopFromWithinAnyHandler) {
  // Which handler stops it, or destroys it altogether.
  for (const std::string where : {"events", "synced", "trouble", "bad"}) {
    for (const bool destroy : {false, true}) {
      SCOPED_TRACE(where + (destroy ? ", destroyed" : ", stopped"));
      FakeTransport wire;
      int calls = 0;
      std::unique_ptr<Reflector> its;
      const auto act = [&](const std::string& handler) {
        EXPECT_TRUE(calls == 0) << "told after its end: " << handler;
        if (handler != where) return;
        ++calls;
        destroy ? its.reset() : its->Stop();
      };
      its = std::make_unique<Reflector>(
          wire, kPodGroups, Reflector::Options{.selector = "", .streaming_list = true, .batch = 1},
          Reflector::Handlers{.events = [&](std::vector<WatchEvent>&&) { act("events"); },
                              .synced = [&] { act("synced"); },
                              .trouble = [&](const ApiError&) { act("trouble"); },
                              .bad = [&](std::string_view) { act("bad"); }});
      its->Start();
      const Transport::Id stream = wire.last().id;
      std::string bad = PodGroupText("ml/x", "u", 3, 1);
      bad.replace(bad.find("\"minMember\":1"), 13, "\"minMember\":{}");
      wire.Feed(stream, EventLine("ADDED", bad) +
                            EventLine("ADDED", PodGroupText("ml/y", "u", 3, 1)) +
                            EventLine("ADDED", PodGroupText("ml/z", "u", 3, 1)) +
                            Bookmark(4, true) + EventLine("ERROR", StatusText(500, "x")));
      wire.Advance(Seconds(1000));
      EXPECT_EQ(calls, 1);
      EXPECT_EQ(wire.timers(), 0U);
      EXPECT_TRUE(wire.open().empty());
    }
  }
}

TEST_F(ReflectorTest, ListsAnewAfterAStopAndTellsWhatWentMissing) {
  Start();
  reflector->Stop();
  server.Remove("ml/a");
  Settle();
  EXPECT_TRUE(view.contents.contains("ml/a"));
  reflector->Start();
  transport.Run();
  EXPECT_EQ(view.contents, server.contents);
}

}  // namespace
}  // namespace hopwise::kube
