// Leader election: one at a time, whatever the network and the processes do.
#include "kube/lease.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/json.h"
#include "base/prng.h"
#include "kube/fake_transport.h"

namespace hopwise::kube {

using json::Json;
namespace {

constexpr std::string_view kLeasePath =
    "/apis/coordination.k8s.io/v1/namespaces/hopwise-system/leases/scheduler";
constexpr std::string_view kLeasesPath =
    "/apis/coordination.k8s.io/v1/namespaces/hopwise-system/leases";

// The API server as far as one Lease goes: versions, conflicts, nothing else.
struct LeaseServer {
  std::optional<Json> lease;
  int version = 0, writes = 0;

  Response Answer(const Request& request) {
    EXPECT_TRUE(request.urgent);
    if (request.method == Method::kGet) {
      EXPECT_EQ(request.path, kLeasePath);
      return lease ? Reply(200, json::Dump(*lease)) : Reply(404);
    }
    EXPECT_EQ(request.content_type, kJsonType);
    Json body = json::ParseOrNull(request.body);
    if (request.method == Method::kPost) {
      EXPECT_EQ(request.path, kLeasesPath);
      if (lease) return Reply(409, R"({"kind":"Status","reason":"AlreadyExists"})");
    } else {
      EXPECT_EQ(request.method, Method::kPut);
      EXPECT_EQ(request.path, kLeasePath);
      if (!lease) return Reply(404);
      if (json::Text(body, {"metadata", "resourceVersion"}) != std::to_string(version)) {
        return Reply(409, R"({"kind":"Status","reason":"Conflict"})");
      }
    }
    Store(std::move(body));
    return Reply(200, json::Dump(*lease));
  }
  void Store(Json body) {
    ++writes;
    body["metadata"]["resourceVersion"] = std::to_string(++version);
    lease = std::move(body);
  }
  // Somebody else's client writes.
  void HeldBy(const std::string& holder, int64_t seconds, const std::string& renewed) {
    Json body = lease ? *lease : Json::object();
    body["metadata"]["name"] = "scheduler";
    body["spec"] = {{"holderIdentity", holder},
                    {"leaseDurationSeconds", seconds},
                    {"acquireTime", renewed},
                    {"renewTime", renewed},
                    {"leaseTransitions", 3}};
    Store(std::move(body));
  }
  [[nodiscard]] std::string Holder() const {
    return lease ? json::Text(*lease, {"spec", "holderIdentity"}) : "(absent)";
  }
};

// One process: its own clock and network, and what its elector told.
struct Candidate {
  explicit Candidate(LeaseServer& its_server, const std::string& identity, uint64_t seed = 1)
      : server(its_server), transport(seed) {
    transport.on_send = [this](const Request& request) { return server.Answer(request); };
    LeaseOptions options;
    options.ns = "hopwise-system";
    options.name = "scheduler";
    options.identity = identity;
    elector = std::make_unique<LeaderElector>(
        transport, options,
        LeaderElector::Handlers{
            .elected = [this] { Log("elected"); },
            .lost =
                [this](std::string_view why) {
                  Log("lost");
                  why_lost = why;
                },
            .observed = [this](std::string_view holder) { Log("holder=" + std::string(holder)); },
            .trouble = [this](const ApiError& error) { errors.push_back(error); }});
  }
  void Log(const std::string& what) { log.push_back(what); }
  void Start() {
    elector->Start();
    transport.Run();
  }
  [[nodiscard]] bool leading() const { return elector->leading(); }

  LeaseServer& server;
  FakeTransport transport;
  std::unique_ptr<LeaderElector> elector;
  std::vector<std::string> log;
  std::string why_lost;
  std::vector<ApiError> errors;
};

using Log = std::vector<std::string>;

TEST(Lease, AnAbsentOneIsCreatedAndHeld) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, (Log{"holder=", "holder=a_1", "elected"}));
  ASSERT_TRUE(server.lease);
  const Json& lease = *server.lease;
  EXPECT_EQ(json::Text(lease, {"apiVersion"}), "coordination.k8s.io/v1");
  EXPECT_EQ(json::Text(lease, {"kind"}), "Lease");
  EXPECT_EQ(json::Text(lease, {"metadata", "namespace"}), "hopwise-system");
  EXPECT_EQ(json::Number(lease, {"spec", "leaseDurationSeconds"}, 0), 15);
  EXPECT_EQ(json::Number(lease, {"spec", "leaseTransitions"}, 0), 0);
  const std::string now = FormatRfc3339Micro(a.transport.Wall());
  EXPECT_EQ(json::Text(lease, {"spec", "acquireTime"}), now);
  EXPECT_EQ(json::Text(lease, {"spec", "renewTime"}), now);
}

TEST(Lease, IsRenewedEveryRetryPeriodByOneWriteAndKeepsItsAcquireTime) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  const std::string acquired = json::Text(*server.lease, {"spec", "acquireTime"});
  const size_t before = a.transport.sent().size();
  a.transport.Advance(Seconds(20));
  EXPECT_EQ(a.transport.sent().size() - before, 10U);
  EXPECT_EQ(server.writes, 11);
  EXPECT_EQ(json::Text(*server.lease, {"spec", "acquireTime"}), acquired);
  EXPECT_EQ(json::Text(*server.lease, {"spec", "renewTime"}),
            FormatRfc3339Micro(a.transport.Wall()));
  EXPECT_EQ(json::Number(*server.lease, {"spec", "leaseTransitions"}, 0), 0);
  EXPECT_EQ(a.log.size(), 3U) << "elected once";
}

TEST(Lease, RequestsTimeOutAfterHalfTheRenewDeadline) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  for (const FakeTransport::Sent& sent : a.transport.sent()) {
    EXPECT_EQ(sent.request.timeout, Seconds(5));
  }
}

TEST(Lease, KeepsWhatOthersWroteOnIt) {
  LeaseServer server;
  server.HeldBy("", 15, "2026-01-01T00:00:00.000000Z");
  (*server.lease)["metadata"]["labels"]["team"] = "ml";
  (*server.lease)["spec"]["strategy"] = "OldestEmulationVersion";
  Candidate a(server, "a_1");
  a.Start();
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(json::Text(*server.lease, {"metadata", "labels", "team"}), "ml");
  EXPECT_EQ(json::Text(*server.lease, {"spec", "strategy"}), "OldestEmulationVersion");
  EXPECT_EQ(json::Number(*server.lease, {"spec", "leaseTransitions"}, 0), 4);
}

TEST(Lease, OfAnotherIsTakenOnlyWhenItStoodStillForItsWholeDurationByOurClock) {
  LeaseServer server;
  // Whatever the world's clocks say: this one looks long expired.
  server.HeldBy("b_1", 30, "2001-01-01T00:00:00.000000Z");
  Candidate a(server, "a_1");
  a.Start();
  a.transport.Advance(Seconds(25));
  server.HeldBy("b_1", 30, "2001-01-01T00:00:25.000000Z");  // renewed after all
  a.transport.Advance(Millis(29'999));
  EXPECT_FALSE(a.leading());
  a.transport.Advance(Seconds(10));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, (Log{"holder=b_1", "holder=a_1", "elected"}));
  EXPECT_EQ(json::Number(*server.lease, {"spec", "leaseTransitions"}, 0), 4);
}

TEST(Lease, ThatIsReleasedIsTakenAtTheNextLook) {
  LeaseServer server;
  server.HeldBy("b_1", 15, "x");
  Candidate a(server, "a_1");
  a.Start();
  server.HeldBy("", 1, "y");
  a.transport.Advance(Millis(4400));
  EXPECT_TRUE(a.leading());
}

TEST(Lease, IsLookedAtAfterOneToTwoPointTwoRetryPeriods) {
  LeaseServer server;
  server.HeldBy("b_1", 3600, "x");
  Candidate a(server, "a_1", 7);
  a.Start();
  a.transport.Advance(Seconds(300));
  Duration least = Seconds(100);
  Duration most;
  for (size_t i = 1; i < a.transport.sent().size(); ++i) {
    const Duration gap = a.transport.sent()[i].at - a.transport.sent()[i - 1].at;
    least = std::min(least, gap);
    most = std::max(most, gap);
  }
  EXPECT_GE(least, Seconds(2));
  EXPECT_LE(most, Millis(4400));
  EXPECT_GT(most, Seconds(3)) << "with jitter";
}

TEST(Lease, RemainingCountsFromTheStartOfTheLastRenewal) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.transport.latency = Millis(700);
  a.elector->Start();
  EXPECT_EQ(a.elector->remaining(), Duration{});
  a.transport.Advance(Millis(1400));  // read, then written: sent at 0.7 s
  EXPECT_EQ(a.elector->remaining(), Millis(14'300));
  a.transport.Advance(Millis(500));
  EXPECT_EQ(a.elector->remaining(), Millis(13'800));
}

TEST(Lease, IsGivenUpWhenNoRenewalGotThroughWithinTheDeadline) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  a.transport.on_send = [](const Request&) { return Reply(500, "etcd has no leader"); };
  a.transport.Advance(Millis(9'999));
  EXPECT_TRUE(a.leading());
  a.transport.Advance(Millis(1));
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(a.log.back(), "lost");
  EXPECT_NE(a.why_lost.find("within 10s"), std::string::npos) << a.why_lost;
  EXPECT_NE(a.why_lost.find("etcd has no leader"), std::string::npos) << a.why_lost;
  EXPECT_FALSE(a.errors.empty());
  // It stands again as anybody else, and says so when it wins.
  a.transport.on_send = [&](const Request& request) { return server.Answer(request); };
  a.transport.Advance(Seconds(5));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log.back(), "elected");
}

TEST(Lease, WhoeverRestsStandsNoMore) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  a.elector->Rest();
  EXPECT_FALSE(a.leading());
  const size_t sent = a.transport.sent().size();
  a.transport.Advance(Seconds(60));
  EXPECT_EQ(a.transport.sent().size(), sent);
  EXPECT_EQ(server.Holder(), "a_1") << "it is not given back";
  bool released = false;
  a.elector->Release([&] { released = true; });
  a.transport.Advance(Seconds(1));
  EXPECT_TRUE(released);
  EXPECT_EQ(server.Holder(), "");
}

TEST(Lease, ARequestThatHangsIsFollowedByAnotherBeforeTheDeadline) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  int requests = 0;
  a.transport.on_send = [&](const Request& request) -> std::optional<Response> {
    if (++requests == 1) return std::nullopt;
    return server.Answer(request);
  };
  a.transport.Advance(Seconds(60));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log.size(), 3U) << "never lost";
}

TEST(Lease, AnotherHolderEndsOurTurnAtOnce) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  server.HeldBy("b_1", 15, "x");
  a.transport.Advance(Seconds(2));
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(a.log, (Log{"holder=", "holder=a_1", "elected", "holder=b_1", "lost"}));
  EXPECT_NE(a.why_lost.find("\"b_1\""), std::string::npos);
}

TEST(Lease, AConflictThatIsNobodysTurnIsReadAndWrittenAgain) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  Json labelled = *server.lease;
  labelled["metadata"]["labels"]["x"] = "y";
  server.Store(labelled);
  a.transport.Advance(Seconds(2));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(json::Text(*server.lease, {"metadata", "labels", "x"}), "y");
  EXPECT_EQ(a.log.size(), 3U);
  server.lease.reset();  // deleted under us
  a.transport.Advance(Seconds(2));
  EXPECT_EQ(server.Holder(), "a_1");
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(std::count(a.log.begin(), a.log.end(), "lost"), 0);
}

TEST(Lease, ALostAnswerToARenewalIsNoLostTurn) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  bool once = false;
  a.transport.on_send = [&](const Request& request) -> std::optional<Response> {
    Response response = server.Answer(request);
    if (std::exchange(once, true)) return response;
    return NoReply("reset by peer");
  };
  a.transport.Advance(Seconds(20));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log.size(), 3U);
}

TEST(Lease, AnAnswerAfterTheDeadlineMakesNobodyLeader) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  a.transport.latency = Millis(4'900);
  a.transport.Advance(Seconds(2));  // the renewal is sent; its answer is 4.9 s away
  a.transport.Jump(Seconds(12));    // the process is stopped, and wakes
  EXPECT_EQ(a.elector->remaining(), Duration{}) << "at once, before anything has run";
  EXPECT_FALSE(a.leading());
  a.transport.Run();
  EXPECT_EQ(a.log.back(), "lost");
  EXPECT_FALSE(a.leading());
  // A new turn is told as one.
  a.transport.latency = Duration{};
  a.transport.Advance(Seconds(20));
  EXPECT_EQ(a.log.back(), "elected");
}

TEST(Lease, ALeaderThatSleptPastItsDeadlineKnowsBeforeItsTimersRun) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  a.transport.Jump(Millis(10'001));
  EXPECT_EQ(a.elector->remaining(), Duration{});
  server.HeldBy("b_1", 15, "x");
  a.transport.Run();
  EXPECT_EQ(a.log[3], "lost");
  EXPECT_FALSE(a.leading());
}

TEST(Lease, ACandidateThatSleptThroughItsElectionIsNotElected) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.transport.latency = Seconds(1);
  a.elector->Start();
  a.transport.Advance(Millis(1'500));  // the creation is sent
  a.transport.Jump(Seconds(20));
  a.transport.Run();
  EXPECT_FALSE(a.leading());
  a.transport.Advance(Seconds(10));
  EXPECT_TRUE(a.leading()) << "by a write of its own";
  EXPECT_EQ(std::count(a.log.begin(), a.log.end(), "elected"), 1);
}

TEST(Release, GivesTheLeaseBackForTheNextOne) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  bool done = false;
  a.elector->Release([&] { done = true; });
  EXPECT_FALSE(done) << "not from within the call";
  EXPECT_FALSE(a.leading());
  a.transport.Run();
  EXPECT_TRUE(done);
  EXPECT_EQ(server.Holder(), "");
  EXPECT_EQ(json::Number(*server.lease, {"spec", "leaseDurationSeconds"}, 0), 1);
  a.transport.Advance(Seconds(60));
  EXPECT_EQ(server.Holder(), "") << "and does not take it again";
  EXPECT_EQ(a.transport.timers(), 0U);
  EXPECT_EQ(a.log.back(), "elected") << "what is given is not lost";
}

TEST(Release, LeavesAnothersLeaseAlone) {
  LeaseServer server;
  server.HeldBy("b_1", 15, "x");
  Candidate a(server, "a_1");
  a.Start();
  bool done = false;
  a.elector->Release([&] { done = true; });
  a.transport.Run();
  EXPECT_TRUE(done);
  EXPECT_EQ(server.Holder(), "b_1");
}

TEST(Release, OfOneThatWasNeverStartedIsDoneToo) {
  LeaseServer server;
  Candidate a(server, "a_1");
  bool done = false;
  a.elector->Release([&] { done = true; });
  a.transport.Run();
  EXPECT_TRUE(done);
  EXPECT_TRUE(a.transport.sent().empty());
}

// A write is under way whose answer nobody will hear: the server takes it all the same.
TEST(Release, GivesBackWhatAWriteUnderWayMayHaveTaken) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.transport.on_send = [&](const Request& request) -> std::optional<Response> {
    Response response = server.Answer(request);
    if (request.method == Method::kPost) return std::nullopt;
    return response;
  };
  a.Start();
  ASSERT_EQ(server.Holder(), "a_1");
  bool done = false;
  a.elector->Release([&] { done = true; });
  a.transport.Run();
  EXPECT_TRUE(done);
  EXPECT_EQ(server.Holder(), "");
}

TEST(Release, EndsWithinTheRenewDeadlineWhenNobodyAnswers) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  a.transport.on_send = {};
  bool done = false;
  a.elector->Release([&] { done = true; });
  a.transport.Advance(Seconds(10));
  EXPECT_TRUE(done);
}

TEST(Release, BearsConflicts) {
  LeaseServer server;
  Candidate a(server, "a_1");
  a.Start();
  server.Store(*server.lease);
  bool done = false;
  a.elector->Release([&] { done = true; });
  a.transport.Run();
  EXPECT_TRUE(done);
  EXPECT_EQ(server.Holder(), "");
}

TEST(Trouble, ANamespaceThatDoesNotExistIsTold) {
  LeaseServer server;
  Candidate a(server, "a_1");
  bool there = false;
  a.transport.on_send = [&](const Request& request) {
    if (request.method == Method::kPost && !there) {
      return Reply(404,
                   R"({"kind":"Status","reason":"NotFound","details":{"name":"hopwise-system"},)"
                   R"("message":"namespaces \"hopwise-system\" not found"})");
    }
    return server.Answer(request);
  };
  a.Start();
  ASSERT_EQ(a.errors.size(), 1U);
  EXPECT_NE(a.errors[0].message.find("namespaces \"hopwise-system\" not found"), std::string::npos)
      << a.errors[0].message;
  there = true;
  a.transport.Advance(Seconds(10));
  EXPECT_TRUE(a.leading());
  EXPECT_TRUE(a.errors.back().ok()) << "that it is over is told too";
}

TEST(Handlers, MayDestroyTheElector) {
  for (const std::string where : {"elected", "lost", "observed", "trouble", "released"}) {
    SCOPED_TRACE(where);
    LeaseServer server;
    FakeTransport transport;
    bool fail = where == "trouble";
    transport.on_send = [&](const Request& request) {
      return fail ? Reply(500) : server.Answer(request);
    };
    std::unique_ptr<LeaderElector> elector;
    int after_end = 0;
    const auto act = [&](const std::string& handler) {
      if (elector == nullptr) ++after_end;
      if (handler == where) elector.reset();
    };
    elector = std::make_unique<LeaderElector>(
        transport, LeaseOptions{.ns = "hopwise-system", .name = "scheduler", .identity = "a"},
        LeaderElector::Handlers{.elected = [&] { act("elected"); },
                                .lost = [&](std::string_view) { act("lost"); },
                                .observed = [&](std::string_view) { act("observed"); },
                                .trouble = [&](const ApiError&) { act("trouble"); }});
    elector->Start();
    transport.Advance(Seconds(5));
    if (where == "released") elector->Release([&] { act("released"); });
    fail = true;
    transport.Advance(Seconds(30));
    EXPECT_EQ(elector, nullptr);
    EXPECT_EQ(after_end, 0);
    EXPECT_EQ(transport.timers(), 0U);
  }
}

// --- several processes

struct Fault {
  bool paused = false, cut_off = false, answers_lost = false;
};

// Steps of 0.1 s for 200 s of faults: pauses, cuts, lost and slow answers.
void Play(Prng& prng, std::vector<std::unique_ptr<Candidate>>& all, bool faults, int steps) {
  std::vector<Fault> state(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i]->transport.on_send = [&, i](const Request& request) -> std::optional<Response> {
      if (state[i].cut_off) return NoReply("no route to host");
      Response response = all[i]->server.Answer(request);
      if (state[i].answers_lost) return std::nullopt;
      return response;
    };
  }
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (faults && prng.Chance(1, 40)) {
        state[i] = {.paused = prng.Chance(1, 4),
                    .cut_off = prng.Chance(1, 4),
                    .answers_lost = prng.Chance(1, 4)};
        all[i]->transport.latency = Millis(prng.Chance(1, 3) ? prng.Between(0, 6000) : 5);
      }
      if (state[i].paused) {
        all[i]->transport.Jump(Millis(100));
      } else {
        all[i]->transport.Advance(Millis(100));
      }
      int leaders = 0;
      for (const auto& candidate : all) leaders += candidate->leading() ? 1 : 0;
      ASSERT_LE(leaders, 1) << "at step " << step;
    }
  }
}

TEST(ManyCandidates, OneAtATimeLeadsUnderAnySequenceOfFaults) {
  int elections = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    LeaseServer server;
    std::vector<std::unique_ptr<Candidate>> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<Candidate>(server, "c" + std::to_string(i),
                                                seed * 10 + static_cast<uint64_t>(i)));
      all.back()->elector->Start();
    }
    Play(prng, all, true, 2000);
    if (HasFatalFailure()) return;
    for (const auto& candidate : all) {
      candidate->transport.latency = Millis(5);
      std::string last = "lost";
      for (const std::string& entry : candidate->log) {
        if (entry != "elected" && entry != "lost") continue;
        ASSERT_NE(entry, last) << "each turn begins and ends once";
        last = entry;
        elections += entry == "elected" ? 1 : 0;
      }
    }
    Play(prng, all, false, 400);
    if (HasFatalFailure()) return;
    int leaders = 0;
    for (const auto& candidate : all) leaders += candidate->leading() ? 1 : 0;
    ASSERT_EQ(leaders, 1) << "once all is well somebody leads";
  }
  EXPECT_GT(elections, 300) << "the faults were some";
}

// --- another's Lease

struct Finding {
  bool done = false;
  std::string holder;
  ApiError error;
};

TEST(AnothersLease, IsActiveOnlyWhenItMovesWhileWeLook) {
  struct Case {
    std::string name, holder, renewed_later, holder_later, found;
  };
  const std::vector<Case> table = {{"renewed", "v_1", "2", "v_1", "v_1"},
                                   {"handed over", "v_1", "1", "v_2", "v_2"},
                                   {"stands still", "v_1", "1", "v_1", ""},
                                   {"released while we look", "v_1", "2", "", ""},
                                   {"released before", "", "2", "v_1", ""}};
  for (const Case& c : table) {
    SCOPED_TRACE(c.name);
    LeaseServer server;
    server.HeldBy(c.holder, 15, "1");
    FakeTransport transport;
    transport.on_send = [&](const Request& request) { return server.Answer(request); };
    Finding finding;
    FindActiveHolder(transport, "hopwise-system", "scheduler", Seconds(5),
                     [&](std::string holder, const ApiError& error) {
                       finding = {true, std::move(holder), error};
                     });
    transport.Run();
    if (!c.holder.empty()) {
      transport.Advance(Millis(14'999));
      EXPECT_FALSE(finding.done) << "its own duration is longer than ours";
    }
    server.HeldBy(c.holder_later, 15, c.renewed_later);
    transport.Advance(Millis(1));
    ASSERT_TRUE(finding.done);
    EXPECT_EQ(finding.holder, c.found);
    EXPECT_TRUE(finding.error.ok());
  }
}

TEST(AnothersLease, ThatIsAbsentIsNobodysAndAnErrorIsTold) {
  LeaseServer server;
  FakeTransport transport;
  Response answer = Reply(404);
  transport.on_send = [&](const Request&) { return answer; };
  Finding finding;
  const auto look = [&] {
    finding = {};
    FindActiveHolder(transport, "hopwise-system", "scheduler", Seconds(5),
                     [&](std::string holder, const ApiError& error) {
                       finding = {true, std::move(holder), error};
                     });
    transport.Run();
  };
  look();
  EXPECT_TRUE(finding.done);
  EXPECT_TRUE(finding.error.ok());
  answer = Reply(403);
  look();
  EXPECT_TRUE(finding.done);
  EXPECT_EQ(finding.error.failure, Failure::kForbidden);
}

// Whatever stands in the Lease: no crash, no leadership by accident.
TEST(Lease, OfAnyShapeIsBorne) {
  for (const std::string& body :
       {std::string("{}"), std::string("[]"), std::string("null"), std::string("{\"spec\":[]}"),
        std::string(R"({"metadata":5,"spec":{"holderIdentity":7,"leaseDurationSeconds":"x"}})"),
        std::string(
            R"({"spec":{"holderIdentity":"b","leaseDurationSeconds":9223372036854775807}})"),
        std::string("not json")}) {
    SCOPED_TRACE(body);
    LeaseServer server;
    Candidate a(server, "a_1");
    a.transport.on_send = [&](const Request& request) -> std::optional<Response> {
      if (request.method == Method::kGet) return Reply(200, body);
      return Reply(409);
    };
    a.Start();
    a.transport.Advance(Seconds(60));
    EXPECT_FALSE(a.leading());
  }
}

}  // namespace
}  // namespace hopwise::kube
