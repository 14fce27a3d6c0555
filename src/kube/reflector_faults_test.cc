// Whatever the server and the wire do: what the reflector told adds up to what the server has.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "kube/fake_transport.h"
#include "kube/reflector.h"
#include "kube/reflector_server.h"
#include "kube/reflector_view.h"

namespace hopwise::kube {
namespace {

// Every place at which a connection can break, for the streaming list and the events after it.
TEST(ReflectorCuts, AStreamMayBreakAtAnyByte) {
  const std::string stream_text =
      EventLine("ADDED", PodGroupText("ml/a", "uid-1", 3, 1)) +
      EventLine("ADDED", PodGroupText("ml/b", "uid-2", 3, 2)) + Bookmark(3, true) +
      EventLine("MODIFIED", PodGroupText("ml/a", "uid-1", 4, 8)) +
      EventLine("DELETED", PodGroupText("ml/b", "uid-2", 5, 2)) +
      EventLine("ADDED", PodGroupText("ml/b", "uid-3", 6, 4)) + Bookmark(6);
  for (size_t cut = 0; cut <= stream_text.size(); ++cut) {
    // By a clean end, by an error, or by silence.
    for (const int how : {0, 1, 2}) {
      FakeTransport transport;
      Server server(transport);
      server.Set("ml/a", 1);
      server.Set("ml/b", 2);
      View view;
      const auto serve = transport.on_stream;
      int streams = 0;
      transport.on_stream = [&](Transport::Id id, const Request& request) {
        if (++streams > 1) return serve(id, request);
        transport.Feed(id, stream_text.substr(0, cut));
        if (how == 0) transport.End(id);
        if (how == 1) transport.End(id, NoReply("reset by peer"));
      };
      Reflector reflector(transport, kPodGroups, {}, view.Handlers());
      reflector.Start();
      transport.Run();
      server.Set("ml/a", 8);
      server.Remove("ml/b");
      server.Set("ml/b", 4);
      ASSERT_EQ(server.version, 6);
      transport.Advance(Seconds(300));
      ASSERT_EQ(view.contents, server.contents) << "cut after " << cut << " bytes, way " << how;
      ASSERT_TRUE(reflector.synced());
    }
  }
}

TEST(ReflectorCuts, PiecesOfEverySizeAreTheSameStream) {
  std::vector<std::string> whole;
  for (size_t split = 0; split < 200; ++split) {
    FakeTransport transport;
    Server server(transport);
    server.split = split;
    View view;
    for (int i = 0; i < 5; ++i) server.Set("ml/" + std::to_string(i), i);
    Reflector reflector(transport, kPodGroups, {}, view.Handlers());
    reflector.Start();
    transport.Run();
    server.Set("ml/0", 9);
    server.Remove("ml/1");
    transport.Run();
    ASSERT_EQ(view.contents, server.contents);
    if (split == 0) whole = view.log;
    ASSERT_EQ(view.log, whole) << "pieces of " << split;
    ASSERT_EQ(server.streams, 1);
  }
}

// One random step of the world: mostly changes, sometimes a fault.
void Step(Prng& prng, Server& server, FakeTransport& transport) {
  const std::string key = "ml/" + std::to_string(prng.Below(6));
  switch (prng.Below(20)) {
    case 0:
      return server.CutAll();
    case 1:
      return server.CutWithin(key, static_cast<size_t>(prng.Below(250)));
    case 2:
      return server.Compact();
    case 3:
      return server.SayErrorToAll(410, "Expired");
    case 4:
      return server.SayErrorToAll(500, "InternalError");
    case 5: {
      Response busy = Reply(429, "");
      busy.retry_after = Seconds(prng.Between(0, 20));
      server.failures.push_back(std::move(busy));
      return server.CutAll();
    }
    case 6:
      for (int i = 0; i < 3; ++i) {
        server.failures.push_back(Reply(static_cast<int>(prng.Between(500, 504)), "<html>"));
      }
      return;
    case 7:
      server.failures.push_back(NoReply("reset by peer"));
      return server.CutAll();
    case 8:
      server.failures.push_back(Reply(200, "{\"kind\":\"PodGroupList\",\"items\":["));
      return;
    case 9:
      return server.GoSilent();
    case 10:
      return server.SetServed(!server.served);
    case 11:
      server.streaming = prng.Chance(1, 2);
      server.split = static_cast<size_t>(prng.Below(90));
      return;
    case 12:
      if (!prng.Chance(1, 4)) return;
      // Down for longer than the longest back-off, as one that starts anew is.
      server.down = true;
      server.LoseData();
      transport.Advance(Seconds(70));
      server.down = false;
      return;
    case 13:
    case 14:
      return server.Remove(key);
    default:
      if (server.served) server.Set(key, static_cast<int>(prng.Below(100)));
  }
}

TEST(ReflectorUnderFaults, TheViewEqualsTheServerAfterAnySequenceOfThem) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    FakeTransport transport(seed);
    transport.latency = Millis(prng.Between(0, 1) * prng.Between(1, 300));
    Server server(transport);
    View view;
    for (int i = 0; i < 5; ++i) server.Set("ml/" + std::to_string(i), i);
    Reflector reflector(transport, kPodGroups,
                        {.selector = "",
                         .streaming_list = prng.Chance(3, 4),
                         .batch = static_cast<size_t>(prng.Between(1, 4))},
                        view.Handlers());
    reflector.Start();
    for (int step = 0; step < 60; ++step) {
      Step(prng, server, transport);
      transport.Advance(Millis(prng.Chance(1, 2) ? 0 : prng.Between(1, 5000)));
      ASSERT_FALSE(testing::Test::HasFatalFailure());
    }
    server.failures.clear();
    if (!server.served) server.SetServed(true);
    server.Set("ml/last", 1);
    transport.Advance(Seconds(900));
    ASSERT_EQ(view.contents, server.contents);
    ASSERT_TRUE(reflector.synced());
    ASSERT_EQ(reflector.known(), server.contents.size());
    ASSERT_TRUE(view.errors.empty() || view.errors.back().ok()) << view.errors.back().message;
  }
}

}  // namespace
}  // namespace hopwise::kube
