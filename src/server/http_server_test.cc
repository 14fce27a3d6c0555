// The server as its clients see it, over real sockets of this machine. TLS has its own file.
#include "server/http_server.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rt/clock.h"
#include "server/test_client.h"

namespace hopwise::server {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr size_t kMostBody = 1000;
// More than the system takes for a connection at once: sending it takes several turns.
constexpr size_t kLarge = size_t{16} << 20U;
constexpr std::string_view kSecret = "s3cr3t";

// One line for each part of a request.
HttpResponse Echo(const HttpRequest& request) {
  HttpResponse answer;
  answer.body = request.method + " " + request.path + "\n";
  for (const auto& [key, value] : request.query) {
    answer.body += key + "=" + value + "\n";
  }
  answer.body += "authorization: " + request.authorization + "\n" + request.body;
  return answer;
}

HttpResponse Status(const HttpRequest& request) {
  HttpResponse answer;
  answer.status = std::stoi(request.query.at(0).second);
  answer.body = kSecret;
  return answer;
}

// A place where handlers wait until they are let go; then they answer at length.
class Gate {
 public:
  HttpResponse Wait() {
    ++inside_;
    inside_.notify_all();
    EXPECT_EQ(opened_.wait_for(kPatience), std::future_status::ready);
    HttpResponse answer;
    answer.body = std::string(kLarge, 'x');
    return answer;
  }
  void Open() { open_.set_value(); }
  void AwaitInside(int count) const {
    for (int now = inside_; now < count; now = inside_) {
      inside_.wait(now);
    }
  }

 private:
  std::atomic<int> inside_ = 0;
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

// A server on a free port of loopback that answers /echo, /status?=N, /text (a large one), /at
// (through the gate) and /std, whose handler has a bug.
class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    options_.address = "127.0.0.1:0";
    options_.most_body = kMostBody;
  }

  std::vector<std::pair<std::string, Handler>> Routes() {
    return {{"/echo", &Echo},
            {"/status", &Status},
            {"/at", [this](const HttpRequest&) { return gate_.Wait(); }},
            // at() of an empty list, as a handler with a bug might do.
            {"/std", [](const HttpRequest&) { return Status(HttpRequest()); }},
            {"/text", [](const HttpRequest&) {
               HttpResponse answer;
               answer.body = std::string(300'000, 'x');
               answer.content_type = "application/json";
               return answer;
             }}};
  }

  void Start() {
    auto server = HttpServer::Start(options_, Routes());
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  [[nodiscard]] std::string Url(const std::string& path) const { return server_->url() + path; }

  CapturedLog log_;
  Gate gate_;
  ServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};

// --- addresses
// ------------------------------------------------------------------------------------

TEST(ParseAddress, ReadsHostAndPort) {
  const std::vector<std::pair<std::string, std::pair<std::string, int>>> table = {
      {":8080", {"", 8080}},
      {"127.0.0.1:0", {"127.0.0.1", 0}},
      {"localhost:65535", {"localhost", 65535}},
      {"[::1]:443", {"::1", 443}},
      {"[::]:1", {"::", 1}},
      {"[fe80::1%eth0]:80", {"fe80::1%eth0", 80}},
  };
  for (const auto& [text, wanted] : table) {
    const auto got = ParseAddress(text);
    ASSERT_TRUE(got) << text;
    EXPECT_EQ(*got, wanted) << text;
  }
}

TEST(ParseAddress, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "has no port"},
      {"8080", "has no port"},
      {":", "has no port from 0 to 65535"},
      {":http", "has no port from 0 to 65535"},
      {":65536", "has no port from 0 to 65535"},
      {":-1", "has no port from 0 to 65535"},
      {":99999999999999999999", "has no port from 0 to 65535"},
      {":80 ", "has no port from 0 to 65535"},
      {"127.0.0.1", "has no port"},
      {"::1:80", "an IPv6 address needs brackets"},
      {"[::1]", "has no port after its brackets"},
      {"[::1", "has no port after its brackets"},
      {"[::1]80:1", "has no port after its brackets"},
      {"[]:80", "has no IPv6 address in its brackets"},
      {"[127.0.0.1]:80", "has no IPv6 address in its brackets"},
      {"a b:80", "has a host that cannot be one"},
      {"http://127.0.0.1:80", "has a scheme or a path"},
      {"127.0.0.1:80/metrics", "has a scheme or a path"},
  };
  for (const auto& [text, why] : table) {
    const auto got = ParseAddress(text);
    ASSERT_FALSE(got) << text;
    EXPECT_THAT(got.error().message, AllOf(StartsWith("the address \"" + text + "\""),
                                           HasSubstr(why), EndsWith("[IPv6]:port")));
  }
}

TEST_F(HttpServerTest, WithoutAHostServesIpv4AndIpv6) {
  options_.address = ":0";
  Start();
  const std::string port = std::to_string(server_->port());
  EXPECT_EQ(server_->url(), "http://127.0.0.1:" + port);
  EXPECT_EQ(Fetch("http://127.0.0.1:" + port + "/echo").status, 200);
  options_.address = "[::1]:0";
  if (HttpServer::Start(options_, {})) {  // the machine has IPv6
    EXPECT_EQ(Fetch("http://[::1]:" + port + "/echo").status, 200);
  }
}

TEST_F(HttpServerTest, OnAnAddressServesThatOneOnly) {
  options_.address = "[::1]:0";
  if (!HttpServer::Start(options_, {})) {
    GTEST_SKIP() << "no IPv6 here";
  }
  Start();
  const std::string port = std::to_string(server_->port());
  EXPECT_EQ(server_->url(), "http://[::1]:" + port);
  EXPECT_EQ(Fetch(Url("/echo")).status, 200);
  EXPECT_EQ(Fetch("http://127.0.0.1:" + port + "/echo").code, CURLE_COULDNT_CONNECT);
}

TEST_F(HttpServerTest, ANameIsLookedUp) {
  options_.address = "localhost:0";
  Start();
  EXPECT_EQ(Fetch(Url("/echo")).status, 200);
}

TEST_F(HttpServerTest, APortInUseIsAnErrorThatNamesTheAddress) {
  Start();
  options_.address = "127.0.0.1:" + std::to_string(server_->port());
  const auto second = HttpServer::Start(options_, Routes());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_EQ(second.error().message,
            "cannot listen on " + options_.address + ": Address already in use");
  EXPECT_EQ(Fetch(Url("/echo")).status, 200);
}

TEST_F(HttpServerTest, AnAddressOfAnotherMachineIsAnErrorThatNamesIt) {
  options_.address = "192.0.2.1:0";  // RFC 5737: nobody's
  const auto server = HttpServer::Start(options_, {});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().message,
            "cannot listen on 192.0.2.1:0: Cannot assign requested address");
}

TEST_F(HttpServerTest, AnAddressThatIsNoneIsAnError) {
  options_.address = "8080";
  const auto server = HttpServer::Start(options_, {});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
}

TEST_F(HttpServerTest, APortIsFreeAgainAtOnceAfterItsServerIsGone) {
  Start();
  options_.address = "127.0.0.1:" + std::to_string(server_->port());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Fetch(Url("/echo")).status, 200);
    server_.reset();
    Start();
  }
}

// --- requests and answers
// -------------------------------------------------------------------------

TEST_F(HttpServerTest, AHandlerSeesTheWholeRequest) {
  Start();
  const Answer answer = Fetch(Url("/echo?pod=a%2Fb&wide&empty="),
                              {.method = "POST",
                               .body = "{\"x\":1}",
                               .headers = {"Authorization: Bearer t", "X-Other: 1"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST /echo\npod=a/b\nwide=\nempty=\nauthorization: Bearer t\n{\"x\":1}");
  EXPECT_EQ(Fetch(Url("/echo")).body, "GET /echo\nauthorization: \n");
}

TEST_F(HttpServerTest, ABodyInChunksIsPutTogether) {
  Start();
  Wire wire(server_->port());
  ASSERT_TRUE(
      wire.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                "3\r\none\r\n"));
  ASSERT_TRUE(wire.Send("5\r\n, two\r\n0\r\n\r\n"));
  EXPECT_THAT(wire.ReadTo("two"), EndsWith("one, two"));
}

TEST_F(HttpServerTest, AnAnswerHasItsTypeAndAllOfItsBody) {
  Start();
  const Answer answer = Fetch(Url("/text"));
  EXPECT_THAT(answer.headers, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(answer.body, std::string(300'000, 'x'));
}

TEST_F(HttpServerTest, HeadIsAnsweredAsGetWithoutTheBody) {
  Start();
  Wire wire(server_->port());
  ASSERT_TRUE(wire.Send("HEAD /text HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(wire.ReadToClose(),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Length: 300000\r\n"),
                    EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, PathsCountAsAWhole) {
  Start();
  for (const char* path : {"/", "/ech", "/echo/", "/echo/x", "/ECHO", "//echo", "/../echo"}) {
    const Answer answer = Fetch(Url(path));
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.body, "Nothing is served at this path.\n") << path;
  }
}

TEST_F(HttpServerTest, OtherMethodsAreRefusedAndToldWhichThereAre) {
  Start();
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"}) {
    const Answer answer = Fetch(Url("/echo"), {.method = method});
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.body, "This path answers GET, HEAD and POST only.\n") << method;
    EXPECT_THAT(answer.headers, HasSubstr("Allow: GET, HEAD, POST\r\n")) << method;
  }
}

TEST_F(HttpServerTest, OneConnectionServesManyRequests) {
  Start();
  Wire wire(server_->port());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(wire.Send("GET /echo?n=" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(wire.ReadTo("authorization"), HasSubstr("n=" + std::to_string(i) + "\n"));
  }
}

TEST_F(HttpServerTest, ARefusedRequestsBodyIsNotTakenForTheNextRequest) {
  Start();
  const std::string inner = "GET /echo?smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string length = std::to_string(inner.size());
  for (const std::string start : {"DELETE /echo", "POST /nowhere", "GET /nowhere", "BREW /echo"}) {
    for (const std::string& kind : {"Content-Length: " + length + "\r\n\r\n",
                                    std::string("Transfer-Encoding: chunked\r\n\r\n")}) {
      Wire wire(server_->port());
      ASSERT_TRUE(wire.Send(start + " HTTP/1.1\r\nHost: x\r\n" + kind + inner));
      EXPECT_THAT(wire.ReadToClose(), AllOf(StartsWith("HTTP/1.1 40"), Not(HasSubstr("smuggled"))))
          << start << " " << kind;
      EXPECT_TRUE(wire.closed()) << start << " " << kind;
    }
  }
}

// --- limits
// ---------------------------------------------------------------------------------------

TEST_F(HttpServerTest, ABodyOfTheLimitIsTakenAndOneByteMoreIsNot) {
  Start();
  const std::string most(kMostBody, 'b');
  EXPECT_THAT(Fetch(Url("/echo"), {.method = "POST", .body = most}).body, EndsWith("\n" + most));
  const Answer over = Fetch(Url("/echo"), {.method = "POST", .body = most + "b"});
  EXPECT_EQ(over.status, 413);
  EXPECT_EQ(over.body, "The body may have at most 1000 bytes.\n");
}

TEST_F(HttpServerTest, ABodyThatSaysItIsTooLargeIsRefusedBeforeItIsSent) {
  Start();
  for (const char* length : {"1001", "18446744073709551615"}) {
    Wire wire(server_->port());
    ASSERT_TRUE(wire.Send(
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::string(length) + "\r\n\r\n"));
    EXPECT_THAT(wire.ReadToClose(), StartsWith("HTTP/1.1 413 ")) << length;
    EXPECT_TRUE(wire.closed());
  }
}

TEST_F(HttpServerTest, ABodyWithoutALengthIsCounted) {
  Start();
  const Ask chunked = {.method = "POST",
                       .body = std::string(kMostBody + 1, 'b'),
                       .headers = {"Transfer-Encoding: chunked"}};
  EXPECT_EQ(Fetch(Url("/echo"), chunked).status, 413);
}

TEST_F(HttpServerTest, ABodyWithoutAnEndIsCutOff) {
  Start();
  Wire wire(server_->port());
  ASSERT_TRUE(wire.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "64\r\n" + std::string(100, 'b') + "\r\n";
  int sent = 0;
  while (sent < 100'000 && wire.Send(chunk)) {
    ++sent;
  }
  EXPECT_LT(sent, 100'000);
}

TEST_F(HttpServerTest, AHeaderOfAnySizeIsNot) {
  Start();
  const Answer answer = Fetch(Url("/echo"), {.headers = {"X-Large: " + std::string(100'000, 'h')}});
  EXPECT_THAT(answer.status, testing::AnyOf(431, 413, 0));
  EXPECT_EQ(Fetch(Url("/echo")).status, 200);
}

TEST_F(HttpServerTest, WhatIsNotHttpDoesNoHarm) {
  options_.idle_timeout_s = 1;  // some of it looks like a request that has not ended
  Start();
  const std::vector<std::string> table = {
      "\x16\x03\x01\x02",
      "\x16\x03\x01\x02\r\n\r\n",
      "GET\r\n\r\n",
      std::string(64, '\0') + "\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  };
  std::vector<std::unique_ptr<Wire>> wires;
  for (const std::string& text : table) {
    wires.push_back(std::make_unique<Wire>(server_->port()));
    ASSERT_TRUE(wires.back()->Send(text));
  }
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_THAT(wires[i]->ReadToClose(), Not(HasSubstr("200 OK"))) << i;
    EXPECT_TRUE(wires[i]->closed()) << i;
  }
  EXPECT_EQ(Fetch(Url("/echo")).status, 200);
}

TEST_F(HttpServerTest, ASilentClientIsLeftAfterTheIdleTime) {
  options_.idle_timeout_s = 1;
  Start();
  const std::vector<std::string> table = {
      "", "GET /ec", "GET /echo HTTP/1.1\r\nHost:",
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"};
  const Time begun = rt::MonotonicNow();
  std::vector<std::unique_ptr<Wire>> wires;
  for (const std::string& text : table) {
    wires.push_back(std::make_unique<Wire>(server_->port()));
    ASSERT_TRUE(wires.back()->Send(text));
  }
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_THAT(wires[i]->ReadToClose(), Not(HasSubstr("200 OK"))) << table[i];
    EXPECT_TRUE(wires[i]->closed()) << table[i];
  }
  EXPECT_GE(rt::MonotonicNow() - begun, Millis(900));
  EXPECT_LE(rt::MonotonicNow() - begun, Seconds(10));
}

TEST_F(HttpServerTest, AConnectionBeyondTheLimitWaitsForItsTurn) {
  options_.most_connections = 2;
  Start();
  const std::string request = "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n";
  auto first = std::make_unique<Wire>(server_->port());
  ASSERT_TRUE(first->Send(request));
  ASSERT_THAT(first->ReadTo("authorization"), HasSubstr("200 OK"));
  Wire second(server_->port());
  ASSERT_TRUE(second.Send(request));
  ASSERT_THAT(second.ReadTo("authorization"), HasSubstr("200 OK"));

  Wire third(server_->port());
  ASSERT_TRUE(third.Send(request));
  EXPECT_THAT(third.ReadTo("authorization", std::chrono::milliseconds(300)), IsEmpty());
  EXPECT_FALSE(third.closed());
  first.reset();
  EXPECT_THAT(third.ReadTo("authorization"), HasSubstr("200 OK"));
}

// --- handlers that go wrong
// -----------------------------------------------------------------------

TEST_F(HttpServerTest, AnExceptionIsAnAnswer500AndALineThatRepeatsNothingOfTheRequest) {
  Start();
  const Answer answer = Fetch(Url("/std?token=" + std::string(kSecret)),
                              {.method = "POST", .body = std::string(kSecret)});
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body, "The request could not be answered. The log says more.\n");
  EXPECT_THAT(log_.Lines(), AllOf(HasSubstr("error http_handler_failed path=/std method=POST"),
                                  Not(HasSubstr(kSecret))));
  EXPECT_EQ(Fetch(Url("/echo")).status, 200);
}

TEST_F(HttpServerTest, AnAnswerOf5xxIsLoggedWithoutItsBody) {
  Start();
  EXPECT_EQ(Fetch(Url("/status?=404")).status, 404);
  EXPECT_THAT(log_.Lines(), IsEmpty());
  EXPECT_EQ(Fetch(Url("/status?=503")).status, 503);
  EXPECT_THAT(log_.Lines(), IsEmpty()) << "what a probe hears while all is not ready";
  const Answer answer = Fetch(Url("/status?=502"));
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(answer.body, kSecret);
  EXPECT_EQ(log_.Lines(), "warning http_answer path=/status method=GET status=502\n");
}

TEST_F(HttpServerTest, AStatusThatIsNoneIs500) {
  Start();
  for (const char* status : {"0", "100", "600", "-1"}) {
    EXPECT_EQ(Fetch(Url("/status?=" + std::string(status))).status, 500) << status;
  }
}

// --- several at once, and the end
// -----------------------------------------------------------------

TEST_F(HttpServerTest, ASlowHandlerDoesNotHoldUpOtherConnections) {
  Start();
  std::thread slow([&] { EXPECT_EQ(Fetch(Url("/at")).status, 200); });
  gate_.AwaitInside(1);
  EXPECT_EQ(Fetch(Url("/echo")).status, 200);
  gate_.Open();
  slow.join();
}

TEST_F(HttpServerTest, ManyClientsEachGetTheirOwnAnswer) {
  Start();
  std::atomic<int> right = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 16; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 25; ++i) {
        const std::string own = std::to_string(c) + "-" + std::to_string(i);
        const Answer answer =
            Fetch(Url("/echo?own=" + own), {.method = "POST", .body = "body " + own});
        right += answer.body == "POST /echo\nown=" + own + "\nauthorization: \nbody " + own;
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(right, 16 * 25);
}

TEST_F(HttpServerTest, GoingAwayAnswersWhatIsUnderWayFirst) {
  Start();
  std::thread client([&] {
    const Answer answer = Fetch(Url("/at"));
    EXPECT_EQ(answer.code, CURLE_OK);
    EXPECT_EQ(answer.body.size(), kLarge);
    EXPECT_THAT(answer.headers, HasSubstr("Connection: close\r\n"));
  });
  gate_.AwaitInside(1);
  Wire witness(server_->port());
  const std::string request = "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_TRUE(witness.Send(request));
  ASSERT_THAT(witness.ReadTo("authorization"), HasSubstr("200 OK"));
  std::thread end([&] { server_.reset(); });
  // The server says that it closes: it has begun to go away, and waits for the other request.
  std::string said;
  while (!witness.closed() && said.find("Connection: close") == std::string::npos) {
    ASSERT_TRUE(witness.Send(request));
    said = witness.ReadTo("authorization");
  }
  EXPECT_THAT(said, HasSubstr("Connection: close"));
  gate_.Open();
  end.join();
  client.join();
  EXPECT_THAT(log_.Lines(), IsEmpty());
}

TEST_F(HttpServerTest, AClientThatStopsHalfwayDoesNotKeepTheServer) {
  options_.idle_timeout_s = 1;
  Start();
  Wire wire(server_->port());
  ASSERT_TRUE(
      wire.Send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                "Content-Length: 10\r\n\r\n"));
  ASSERT_THAT(wire.ReadTo("100 Continue"), HasSubstr("100 Continue"));
  server_.reset();
  EXPECT_THAT(wire.ReadToClose(), Not(HasSubstr("200 OK")));
  EXPECT_TRUE(wire.closed());
}

TEST_F(HttpServerTest, NobodyIsServedAfterTheEnd) {
  Start();
  const std::string url = Url("/echo");
  server_.reset();
  EXPECT_EQ(Fetch(url).code, CURLE_COULDNT_CONNECT);
}

using HttpServerDeathTest = HttpServerTest;
TEST_F(HttpServerDeathTest, TwoHandlersForOnePathAreABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(HttpServer::Start(options_, {{"/a", &Echo}, {"/a", &Echo}})),
               "routes");
}

}  // namespace
}  // namespace hopwise::server
