// Requests, streams and timers against a server whose every byte is written by the test.
#include "kube/curl_transport.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/test_client.h"
#include "kube/test_server.h"
#include "rt/clock.h"

namespace hopwise::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Write = TestServer::Write;

constexpr std::string_view kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string Chunk(std::string_view text) {
  char size[16];
  std::snprintf(size, sizeof(size), "%zx\r\n", text.size());
  return size + std::string(text) + "\r\n";
}

CurlOptions Connections(int most) {
  CurlOptions options;
  options.connections = most;
  return options;
}

// A stream as the test sees it.
struct Watched {
  std::mutex mutex;
  std::string text;
  std::promise<Response> done;
  Transport::Id id = 0;
  std::string Text() {
    const std::lock_guard lock(mutex);
    return text;
  }
};
std::shared_ptr<Watched> Watch(Client& client, const Request& request) {
  auto watched = std::make_shared<Watched>();
  client.transport().Run([&] {
    watched->id = client.transport().Stream(
        request,
        [watched](std::string_view piece) {
          const std::lock_guard lock(watched->mutex);
          watched->text += piece;
        },
        [watched](Response&& response) { watched->done.set_value(std::move(response)); });
  });
  return watched;
}

TEST(Send, CarriesMethodPathHeadersAndBody) {
  Seen last;
  TestServer server([&](const Seen& seen, const Write& write) {
    last = seen;
    return write(Answer(201, "made"));
  });
  Client client(server);
  for (const Method method :
       {Method::kGet, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete, Method::kGet}) {
    for (const std::string& body :
         {std::string(), std::string("{\"a\":1}"), std::string(70'000, 'x')}) {
      if (method == Method::kGet && !body.empty()) {
        continue;
      }
      Request request;
      request.method = method;
      request.path = "/api/v1/pods?labelSelector=a%3Db";
      request.body = body;
      request.content_type = body.empty() ? "" : std::string(kMergePatch);
      const Response response = client.Ask(request);
      EXPECT_EQ(response.status, 201);
      EXPECT_EQ(response.body, "made");
      EXPECT_EQ(response.error, "");
      EXPECT_EQ(last.method, MethodName(method));
      EXPECT_EQ(last.path, request.path);
      EXPECT_EQ(last.body, body);
      EXPECT_EQ(last.headers["content-type"], request.content_type);
      EXPECT_EQ(last.headers["accept"], "application/json");
      EXPECT_EQ(last.headers["user-agent"], "hopwise");
      EXPECT_EQ(last.headers.count("expect"), 0U);
      EXPECT_EQ(last.headers.count("authorization"), 0U);
    }
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(Send, UnpacksGzip) {
  // `printf hello | gzip -9n`
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00"
      "\x00\x00",
      25);
  TestServer server([&](const Seen& seen, const Write& write) {
    EXPECT_EQ(seen.headers.at("accept-encoding"), "gzip");
    return write(Answer(200, packed, "Content-Encoding: gzip\r\n"));
  });
  Client client(server);
  EXPECT_EQ(client.Ask(Get("/list")).body, "hello");
}

TEST(Send, HandsOnEveryStatusAndFollowsNoRedirect) {
  TestServer server([](const Seen& seen, const Write& write) {
    return write(Answer(std::stoi(seen.path.substr(1)), "why", "Location: /200\r\n"));
  });
  Client client(server);
  for (const int status : {200, 301, 302, 307, 401, 403, 404, 409, 422, 500, 503}) {
    const Response response = client.Ask(Get("/" + std::to_string(status)));
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.body, "why");
    EXPECT_EQ(response.ok(), status == 200);
  }
  EXPECT_EQ(server.paths().size(), 11U);
}

TEST(Send, ReadsRetryAfterWhereItHasAMeaning) {
  TestServer server([](const Seen& seen, const Write& write) {
    const std::string value = seen.path.substr(5);
    const std::string header = value.empty() ? "" : "retry-after: " + value + "\r\n";
    return write(Answer(std::stoi(seen.path.substr(1, 3)), "", header));
  });
  Client client(server);
  EXPECT_EQ(client.Ask(Get("/429/7")).retry_after, Seconds(7));
  EXPECT_EQ(client.Ask(Get("/503/1")).retry_after, Seconds(1));
  EXPECT_EQ(client.Ask(Get("/429/")).retry_after, Duration{});
  EXPECT_EQ(client.Ask(Get("/200/7")).retry_after, Duration{});
  EXPECT_EQ(client.Ask(Get("/429/soon")).retry_after, Duration{});
  EXPECT_EQ(client.Ask(Get("/429/99999999999999999999")).retry_after, Duration{});
  EXPECT_EQ(client.Ask(Get("/429/999999999999")).retry_after, Seconds(3600));
}

TEST(Send, UsesConnectionsAgain) {
  TestServer server(Always(Answer(200, "{}")));
  Client client(server, Connections(4));
  std::vector<std::future<Response>> futures;
  for (int i = 0; i < 200; ++i) {
    futures.push_back(client.Start(Get("/" + std::to_string(i))));
  }
  for (auto& future : futures) {
    EXPECT_EQ(Client::Await(future).status, 200);
  }
  EXPECT_LE(server.connections(), 4);
  EXPECT_EQ(client.Counts().sent, 200U);
  EXPECT_EQ(client.Counts().failed, 0U);
  EXPECT_EQ(client.Counts().in_flight, 0U);
  EXPECT_EQ(client.Counts().waiting, 0U);
}

// The server closes each connection after its answer, without saying so.
TEST(Send, NoticesThatAnIdleConnectionWasClosed) {
  TestServer server([](const Seen&, const Write& write) {
    write(Answer(200, "{}"));
    return false;
  });
  Client client(server);
  Request post;
  post.method = Method::kPost;
  post.body = "{}";
  post.content_type = kJsonType;
  for (int i = 0; i < 20; ++i) {
    const Response response = client.Ask(i % 2 == 0 ? Get("/") : post);
    EXPECT_EQ(response.status, 200) << i << ": " << response.error;
  }
  EXPECT_EQ(server.connections(), 20);
}

TEST(Send, SaysWhyThereIsNoAnswer) {
  std::string gone;
  {
    const TestServer server(Always(""));
    gone = server.url();
  }
  Client client(AccessTo(gone));
  const Response refused = client.Ask(Get("/"));
  EXPECT_EQ(refused.status, 0);
  EXPECT_THAT(refused.error, HasSubstr(gone));
  EXPECT_THAT(refused.error, HasSubstr("cannot connect"));
  EXPECT_THAT(refused.error, HasSubstr("refused"));
  EXPECT_EQ(client.Counts().failed, 1U);

  Client nowhere(AccessTo("http://no-such-host.invalid:1"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(nowhere.Ask(Get("/")).error, HasSubstr("no-such-host.invalid"))
        << "again with a handle that met no address";
  }
}

TEST(Send, ABrokenAnswerIsNone) {
  TestServer server([](const Seen& seen, const Write& write) {
    if (seen.path == "/silent") {
      return false;
    }
    write(seen.path == "/length" ? "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
                                 : std::string(kChunked) + "5\r\nha");
    return false;
  });
  Client client(server);
  for (const char* path : {"/silent", "/length", "/chunk"}) {
    const Response response = client.Ask(Get(path));
    EXPECT_EQ(response.status, 0) << path;
    EXPECT_EQ(response.body, "") << path;
    EXPECT_THAT(response.error, HasSubstr("broke before the answer was complete")) << path;
  }
}

TEST(Send, GivesUpAfterItsTimeOut) {
  Gate gate;
  TestServer server([&](const Seen& seen, const Write& write) {
    if (seen.path == "/body") {
      write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    }
    gate.Wait();
    return false;
  });
  Client client(server);
  for (const char* path : {"/headers", "/body"}) {
    Request request = Get(path);
    request.timeout = Millis(100);
    const Response response = client.Ask(request);
    EXPECT_EQ(response.status, 0);
    EXPECT_THAT(response.error, HasSubstr("no complete answer within 100ms"));
  }
  gate.Open();
}

TEST(Send, GoesThroughTheProxyOfTheKubeconfig) {
  TestServer proxy(Always(Answer(200, "through")));
  Access access = AccessTo("http://10.255.255.1:6443");
  access.proxy_url = proxy.url();
  Client client(access);
  EXPECT_EQ(client.Ask(Get("/version")).body, "through");
  EXPECT_THAT(proxy.paths(), ElementsAre("http://10.255.255.1:6443/version"));
}

TEST(Stream, ArrivesPieceByPieceHoweverItIsCut) {
  const std::string text = "{\"type\":\"ADDED\"}\n{\"type\":\"BOOKMARK\"}\n";
  std::string wire(kChunked);
  for (size_t at = 0; at < text.size(); at += 5) {
    wire += Chunk(text.substr(at, 5));
  }
  wire += "0\r\n\r\n";
  TestServer server([&](const Seen& seen, const Write& write) {
    const size_t step = std::stoul(seen.path.substr(1));
    for (size_t at = 0; at < wire.size(); at += step) {
      write(std::string_view(wire).substr(at, step));
    }
    return true;
  });
  Client client(server);
  for (const std::string step : {"1", "2", "3", "7", "1000"}) {
    const auto watched = Watch(client, Get("/" + step));
    auto done = watched->done.get_future();
    const Response response = Client::Await(done);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "");
    EXPECT_EQ(response.error, "");
    EXPECT_EQ(watched->Text(), text);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(Stream, EachPieceIsToldWhenItComesAndAnEndBeforeItsTimeIsAnError) {
  Gate first;
  TestServer server([&](const Seen&, const Write& write) {
    write(std::string(kChunked) + Chunk("one"));
    first.Wait();
    write(Chunk("two"));
    return false;
  });
  Client client(server);
  const auto watched = Watch(client, Get("/"));
  EXPECT_TRUE(Eventually([&] { return watched->Text() == "one"; }));
  first.Open();
  auto done = watched->done.get_future();
  const Response response = Client::Await(done);
  EXPECT_EQ(watched->Text(), "onetwo");
  EXPECT_EQ(response.status, 0);
  EXPECT_THAT(response.error, HasSubstr("broke"));
}

TEST(Stream, AnAnswerThatIsNoStreamComesWhole) {
  TestServer server(Always(Answer(410, "{\"kind\":\"Status\"}")));
  Client client(server);
  const auto watched = Watch(client, Get("/"));
  auto done = watched->done.get_future();
  const Response response = Client::Await(done);
  EXPECT_EQ(response.status, 410);
  EXPECT_EQ(response.body, "{\"kind\":\"Status\"}");
  EXPECT_EQ(watched->Text(), "");
}

TEST(Stream, ItsTimeOutIsForTheHeadersAlone) {
  Gate over;
  TestServer server([&](const Seen& seen, const Write& write) {
    if (seen.path == "/begins") {
      write(kChunked);
    }
    over.Wait();
    write(Chunk("late") + "0\r\n\r\n");
    return true;
  });
  Client client(server);
  Request begins = Get("/begins");
  Request silent = Get("/silent");
  begins.timeout = silent.timeout = Millis(150);
  const auto living = Watch(client, begins);
  const auto dead = Watch(client, silent);
  auto dead_done = dead->done.get_future();
  const Response none = Client::Await(dead_done);
  EXPECT_EQ(none.status, 0);
  EXPECT_THAT(none.error, HasSubstr("within 150ms"));
  over.Open();
  auto living_done = living->done.get_future();
  EXPECT_EQ(Client::Await(living_done).status, 200);
  EXPECT_EQ(living->Text(), "late");
}

// Two places, held; what comes next waits, but for streams and what is urgent.
TEST(Pool, RequestsWaitForAPlaceInOrderAndUrgentOnesAndStreamsDoNot) {
  Gate gate;
  TestServer server([&](const Seen& seen, const Write& write) {
    if (seen.path.starts_with("/held")) {
      gate.Wait();
    }
    return write(Answer(200, ""));
  });
  Client client(server, Connections(2));
  std::vector<std::future<Response>> futures;
  for (const char* path : {"/held1", "/held2", "/a", "/b", "/c", "/d"}) {
    futures.push_back(client.Start(Get(path)));
  }
  EXPECT_TRUE(Eventually([&] { return server.paths().size() == 2; }));
  Request lease = Get("/lease");
  lease.urgent = true;
  EXPECT_EQ(client.Ask(lease).status, 200);
  const auto watched = Watch(client, Get("/watch"));
  auto stream = watched->done.get_future();
  EXPECT_EQ(Client::Await(stream).status, 200);
  EXPECT_EQ(client.Counts().in_flight, 2U);
  EXPECT_EQ(client.Counts().waiting, 4U);
  EXPECT_EQ(server.paths().size(), 4U) << "none of the waiting ones has come";
  gate.Open();
  for (auto& future : futures) {
    EXPECT_EQ(Client::Await(future).status, 200);
  }
  EXPECT_EQ(client.Counts().in_flight, 0U);
}

TEST(Pool, WithOnePlaceAllIsInOrder) {
  TestServer server(Always(Answer(200, "")));
  Client client(server, Connections(1));
  std::vector<std::future<Response>> futures;
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    expected.push_back("/" + std::to_string(i));
    futures.push_back(client.Start(Get(expected.back())));
  }
  for (auto& future : futures) {
    Client::Await(future);
  }
  EXPECT_EQ(server.paths(), expected);
  EXPECT_EQ(server.connections(), 1);
}

TEST(Pool, TheRateIsLimitedButNotForUrgentOnes) {
  TestServer server(Always(Answer(200, "")));
  CurlOptions options;
  options.qps = 20;
  options.burst = 2;
  Client client(server, options);
  const Time begin = rt::MonotonicNow();
  std::vector<std::future<Response>> futures;
  for (int i = 0; i < 6; ++i) {
    futures.push_back(client.Start(Get("/normal")));
  }
  for (int i = 0; i < 30; ++i) {
    Request lease = Get("/lease");
    lease.urgent = true;
    EXPECT_EQ(client.Ask(lease).status, 200);
  }
  for (auto& future : futures) {
    EXPECT_EQ(Client::Await(future).status, 200);
  }
  // Two at once, four more at 50 ms each.
  EXPECT_GE(rt::MonotonicNow() - begin, Millis(190));
  EXPECT_EQ(client.Counts().throttled, 4U);
}

TEST(Cancel, NothingIsCalledAnyMore) {
  Gate gate;
  TestServer server([&](const Seen& seen, const Write& write) {
    if (seen.path == "/held") {
      gate.Wait();
    }
    return write(Answer(200, ""));
  });
  Client client(server, Connections(1));
  CurlTransport& transport = client.transport();
  std::atomic<int> called = 0;
  const auto count = [&](Response&&) { ++called; };
  Transport::Id held = 0;
  transport.Run([&] { held = transport.Send(Get("/held"), count); });
  EXPECT_TRUE(Eventually([&] { return server.paths().size() == 1; }));
  transport.Run([&] {
    const Transport::Id waiting = transport.Send(Get("/waiting"), count);
    const Transport::Id timer = transport.After(Millis(1), [&] { ++called; });
    transport.Cancel(waiting);
    transport.Cancel(timer);
    transport.Cancel(held);
    transport.Cancel(held);
    transport.Cancel(0);
    transport.Cancel(987654);
  });
  // The place of the cancelled one is free.
  EXPECT_EQ(client.Ask(Get("/next")).status, 200);
  EXPECT_EQ(client.Counts().in_flight, 0U);
  EXPECT_EQ(client.Counts().waiting, 0U);
  gate.Open();
  EXPECT_EQ(called, 0);
  EXPECT_THAT(server.paths(), ElementsAre("/held", "/next"));
}

TEST(Cancel, AStreamMayCancelItselfAndOthersFromItsPiece) {
  TestServer server([](const Seen&, const Write& write) {
    write(kChunked);
    for (int i = 0; i < 1000 && write(Chunk("piece")); ++i) {
    }
    return false;
  });
  Client client(server);
  CurlTransport& transport = client.transport();
  auto pieces = std::make_shared<std::atomic<int>>(0);
  auto ends = std::make_shared<std::atomic<int>>(0);
  auto ids = std::make_shared<std::vector<Transport::Id>>();
  transport.Run([&] {
    for (int i = 0; i < 2; ++i) {
      ids->push_back(transport.Stream(
          Get("/"),
          [&transport, ids, pieces](std::string_view) {
            ++*pieces;
            for (const Transport::Id id : *ids) {
              transport.Cancel(id);
            }
          },
          [ends](Response&&) { ++*ends; }));
    }
  });
  EXPECT_TRUE(Eventually([&] { return *pieces > 0; }));
  EXPECT_TRUE(Eventually([&] { return client.Counts().in_flight == 0; }));
  EXPECT_EQ(*pieces, 1);
  EXPECT_EQ(*ends, 0);
}

TEST(Cancel, WithinDoneAndNewRequestsFromThere) {
  TestServer server(Always(Answer(200, "")));
  Client client(server);
  CurlTransport& transport = client.transport();
  std::promise<int> over;
  // Lives on the loop only.
  struct {
    Transport::Id id = 0;
    int done = 0;
  } state;
  std::function<void(Response&&)> next = [&](Response&& response) {
    EXPECT_EQ(response.status, 200);
    transport.Cancel(state.id);  // over already
    if (++state.done == 5) {
      over.set_value(state.done);
      return;
    }
    const int before = state.done;
    state.id = transport.Send(Get("/"), next);
    EXPECT_EQ(state.done, before) << "done is never called from within Send";
  };
  transport.Run([&] { state.id = transport.Send(Get("/"), next); });
  auto future = over.get_future();
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(future.get(), 5);
}

TEST(Loop, RunsWhatManyThreadsPostInEachOnesOrder) {
  TestServer server(Always(Answer(200, "")));
  Client client(server);
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  std::vector<int> last(kThreads, -1);
  std::thread::id loop;
  client.transport().Run([&] { loop = std::this_thread::get_id(); });
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        client.transport().Post([&, t, i] {
          EXPECT_EQ(last[t] + 1, i);
          last[t] = i;
          EXPECT_EQ(std::this_thread::get_id(), loop);
        });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  client.transport().Run([&] { EXPECT_THAT(last, testing::Each(kEach - 1)); });
}

TEST(Loop, TimersComeInOrderAndNotTooEarly) {
  TestServer server(Always(Answer(200, "")));
  Client client(server);
  CurlTransport& transport = client.transport();
  std::promise<void> over;
  std::string order;
  transport.Run([&] {
    const Time begin = transport.Now();
    transport.After(Millis(60), [&, begin] {
      EXPECT_GE(transport.Now() - begin, Millis(60));
      order += 'c';
      over.set_value();
    });
    transport.After(Millis(20), [&] { order += 'b'; });
    const Transport::Id never = transport.After(Millis(30), [&] { order += 'x'; });
    transport.After(Duration{-5}, [&, never] {
      order += 'a';
      transport.Cancel(never);
    });
  });
  auto future = over.get_future();
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  transport.Run([&] { EXPECT_EQ(order, "abc"); });
  EXPECT_NE(transport.Random(), transport.Random());
  EXPECT_GT(transport.Wall(), ParseRfc3339("2026-01-01T00:00:00Z").value());
}

TEST(Loop, ATimerThatAsksForItselfAgainAtOnceHoldsNothingUp) {
  TestServer server(Always(Answer(200, "")));
  Client client(server);
  CurlTransport& transport = client.transport();
  std::function<void()> again = [&] { transport.After(Duration{}, again); };
  transport.Run([&] { again(); });
  EXPECT_EQ(client.Ask(Get("/")).status, 200);
  client.Destroy();
}

// With a stream open and nothing to do it sleeps: a timer says when the time is over.
TEST(Loop, CostsNothingWhenIdle) {
  Gate gate;
  TestServer server([&](const Seen&, const Write& write) {
    write(std::string(kChunked) + Chunk("x"));
    gate.Wait();
    return false;
  });
  Client client(server);
  const auto watched = Watch(client, Get("/"));
  EXPECT_TRUE(Eventually([&] { return watched->Text() == "x"; }));
  std::promise<void> over;
  const Duration before = rt::CpuUsed();
  client.transport().Run([&] { client.transport().After(Millis(500), [&] { over.set_value(); }); });
  over.get_future().wait();
  EXPECT_LT(Duration{rt::CpuUsed().ns - before.ns}, Millis(50));
  gate.Open();
}

TEST(Loop, EndsWithRequestsStreamsTimersAndCallsUnderWay) {
  Gate gate;
  TestServer server([&](const Seen& seen, const Write& write) {
    if (seen.path == "/watch") {
      write(std::string(kChunked) + Chunk("x"));
    }
    gate.Wait();
    return false;
  });
  Client client(server, Connections(2));
  std::atomic<int> called = 0;
  // Told when what the callbacks hold is destroyed.
  const auto held = std::make_shared<int>(0);
  const auto watched = Watch(client, Get("/watch"));
  EXPECT_TRUE(Eventually([&] { return watched->Text() == "x"; }));
  client.transport().Run([&] {
    for (int i = 0; i < 5; ++i) {
      client.transport().Send(Get("/held"), [&called, held](Response&&) { ++called; });
    }
    client.transport().After(Seconds(3600), [&called, held] { ++called; });
  });
  EXPECT_TRUE(Eventually([&] { return server.paths().size() == 3; }));
  client.Destroy();
  EXPECT_EQ(called, 0);
  EXPECT_EQ(held.use_count(), 1);
  gate.Open();
}

}  // namespace
}  // namespace hopwise::kube
