// The HyperNode controller against a server of the test: what is planned when, and what follows
// from answers, failures and the watch.
#include "daemon/topology_controller.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/decode.h"
#include "api/json.h"
#include "daemon/controller_metrics.h"

namespace hopwise::daemon {
namespace {

using json::Json;
using Lines = std::vector<std::string>;
using Verb = ObjectWrite::Verb;

constexpr const char* kConf = R"(
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      t:
      - nodeLabel: zone
      - nodeLabel: rack
)";

constexpr Duration kAlmostPlanQuiet{kPlanQuiet.ns - Millis(1).ns};

// A server that keeps HyperNodes, and a controller whose writes reach it when the test says so.
class TopologyControllerTest : public ::testing::Test {
 protected:
  TopologyControllerTest() : core_(metrics_) {
    DeclareControllerMetrics(metrics_);
    Configure(kConf);
    core_.SetSynced(true, now_);
    core_.SetLeading(true, now_);
  }

  void Configure(const std::string& text) {
    const auto report = control::ReadControllerConfig(text);
    ASSERT_TRUE(report.errors.empty()) << report.errors.front();
    core_.SetConfig(report.config, now_);
  }
  void PutNode(const std::string& name, const std::string& rack, const std::string& zone) {
    Json labels = Json::object();
    if (!rack.empty()) {
      labels["rack"] = rack;
    }
    if (!zone.empty()) {
      labels["zone"] = zone;
    }
    Watch(kube::kNodes, {{"apiVersion", "v1"},
                         {"kind", "Node"},
                         {"metadata", {{"name", name}, {"labels", labels}}}});
  }
  void Watch(const kube::Resource& resource, const Json& object) {
    kube::WatchEvent event;
    event.decoded = *api::DecodeObject(json::Dump(object));
    core_.Observe(resource, std::move(event), now_);
  }

  // What Step wants after `pause`, as "POST", "PATCH a", "STATUS a", "DELETE a"; steps by " | ".
  Lines Step(Duration pause = Seconds(1)) {
    now_ = now_ + pause;
    ControllerEffects effects = core_.Step(now_);
    Lines lines;
    for (Batch& batch : effects.batches) {
      std::string line;
      for (const auto& step : batch.steps) {
        Lines words;
        for (const ObjectWrite& write : step) {
          words.push_back(VerbOf(write.verb) + (write.verb == Verb::kCreate
                                                    ? std::string()
                                                    : " " + ValueOf(write.name)));
        }
        std::ranges::sort(words);
        line += (line.empty() ? "" : " | ") + fmt::format("{}", fmt::join(words, ", "));
      }
      lines.push_back(std::move(line));
      batches_.push_back(std::move(batch));
    }
    for (const Tell& event : effects.events) {
      events_.push_back(event.text.reason);
    }
    return lines;
  }
  // Carries out all batches that are under way. The watch tells nothing of it.
  void Answer() {
    for (const Batch& batch : std::exchange(batches_, {})) {
      for (const auto& step : batch.steps) {
        for (const ObjectWrite& write : step) {
          core_.Wrote({write, {}, Serve(write)}, now_);
        }
      }
      core_.Ended(batch.id, true, now_);
    }
  }
  void FailAll(kube::Failure failure) {
    for (const Batch& batch : std::exchange(batches_, {})) {
      kube::ApiError error;
      error.failure = failure;
      core_.Wrote({batch.steps.front().front(), error, ""}, now_);
      core_.Ended(batch.id, false, now_);
    }
  }
  // Until nothing is wanted any more; how many writes that took.
  int Settle() {
    int writes = 0;
    for (int i = 0; i < 10; ++i) {
      Step();
      for (const Batch& batch : batches_) {
        for (const auto& step : batch.steps) {
          writes += static_cast<int>(step.size());
        }
      }
      Answer();
    }
    return writes;
  }

  std::string Serve(const ObjectWrite& write) {
    if (write.verb == Verb::kDelete) {
      objects_.erase(write.name);
      return "";
    }
    Json change = json::ParseJson(write.body).value();
    const std::string name =
        write.verb == Verb::kCreate ? json::Text(change, {"metadata", "name"}) : write.name;
    Json& object = objects_[name];
    if (write.verb == Verb::kCreate) {
      object = change;
      json::Set(object, {"metadata", "uid"}, "uid-" + name);
    } else {
      change["metadata"].erase("resourceVersion");
      object.merge_patch(change);
    }
    json::Set(object, {"metadata", "resourceVersion"}, std::to_string(++version_));
    return json::Dump(object);
  }

  static std::string VerbOf(Verb verb) {
    return verb == Verb::kCreate        ? "POST"
           : verb == Verb::kPatch       ? "PATCH"
           : verb == Verb::kPatchStatus ? "STATUS"
                                        : "DELETE";
  }
  // "r1" for the rack's HyperNode.
  [[nodiscard]] std::string ValueOf(const std::string& name) const {
    const auto at = objects_.find(name);
    if (at == objects_.end()) {
      return name;
    }
    const std::string rack = json::Label(at->second, "rack");
    const std::string zone = json::Label(at->second, "zone");
    return !rack.empty() ? rack : !zone.empty() ? zone : name;
  }
  [[nodiscard]] std::string NameOf(const std::string& value) const {
    for (const auto& [name, object] : objects_) {
      if (ValueOf(name) == value) {
        return name;
      }
    }
    return "";
  }

  server::Metrics metrics_;
  TopologyController core_;
  Time now_ = Time{} + Seconds(1'800'000'000);
  std::map<std::string, Json> objects_;
  int version_ = 100;
  std::vector<Batch> batches_;
  Lines events_;
};

//      z1
//    r1  r2
//   a b   c
TEST_F(TopologyControllerTest, ChildrenAreMadeBeforeTheirParentsAndCountedAfterwards) {
  PutNode("a", "r1", "z1");
  PutNode("b", "r1", "z1");
  PutNode("c", "r2", "z1");
  EXPECT_EQ(Step(), (Lines{"POST, POST | POST"}));
  EXPECT_EQ(Step(), Lines{}) << "the batch is under way";
  Answer();
  EXPECT_EQ(Step(), (Lines{"STATUS r1, STATUS r2, STATUS z1"}));
  Answer();
  EXPECT_EQ(Step(), Lines{});
  EXPECT_FALSE(core_.next_wake().set());
}

TEST_F(TopologyControllerTest, ChangesAreGatheredForAShortWhile) {
  Settle();
  PutNode("a", "r1", "z1");
  EXPECT_EQ(core_.next_wake(), now_ + kPlanQuiet);
  EXPECT_EQ(Step(kAlmostPlanQuiet), Lines{});
  PutNode("b", "r1", "z1");
  EXPECT_EQ(Step(kAlmostPlanQuiet), Lines{});
  PutNode("c", "r2", "z1");
  EXPECT_EQ(Step(kAlmostPlanQuiet), Lines{});
  PutNode("d", "r2", "z1");
  EXPECT_EQ(Step(kMostPlanQuiet), (Lines{"POST, POST | POST"}));
}

TEST_F(TopologyControllerTest, ChangesWithoutAnEndAreNotWaitedFor) {
  Settle();
  Lines lines;
  Time began = now_;
  for (int n = 0; lines.empty(); ++n) {
    PutNode("n" + std::to_string(n), "r1", "z1");
    lines = Step(Millis(5));
  }
  EXPECT_LE((now_ - began).ns, kMostPlanQuiet.ns + Millis(5).ns);
}

TEST_F(TopologyControllerTest, ANodeThatMovesIsFourWrites) {
  PutNode("a", "r1", "z1");
  PutNode("b", "r1", "z1");
  PutNode("c", "r2", "z1");
  Settle();
  PutNode("b", "r2", "z1");
  EXPECT_EQ(Step(), (Lines{"PATCH r1 | PATCH r2"}));
  Answer();
  EXPECT_EQ(Step(), (Lines{"STATUS r1, STATUS r2"}));
}

TEST_F(TopologyControllerTest, AHeartbeatOfANodeIsNoChange) {
  PutNode("a", "r1", "z1");
  Settle();
  PutNode("a", "r1", "z1");
  EXPECT_FALSE(core_.next_wake().set());
}

TEST_F(TopologyControllerTest, WhatTheWatchTellsLateIsPassedOver) {
  PutNode("a", "r1", "z1");
  Settle();
  Json old = objects_.at(NameOf("r1"));
  json::Set(old, {"metadata", "resourceVersion"}, "99");
  old["spec"]["members"] = Json::array();
  Watch(kube::kHyperNodes, old);
  EXPECT_EQ(Settle(), 0);
}

TEST_F(TopologyControllerTest, WhatSomebodyBentIsPutRight) {
  PutNode("a", "r1", "z1");
  Settle();
  Json bent = objects_.at(NameOf("r1"));
  json::Set(bent, {"metadata", "resourceVersion"}, "900");
  bent["spec"]["tier"] = 7;
  Watch(kube::kHyperNodes, bent);
  EXPECT_EQ(Step(), (Lines{"PATCH r1"}));
}

TEST_F(TopologyControllerTest, AFailedBatchIsPlannedAnewAfterAPause) {
  PutNode("a", "r1", "z1");
  Step();
  FailAll(kube::Failure::kForbidden);
  EXPECT_EQ(metrics_.Value("hopwise_controller_write_failures_total",
                           {{"resource", "hypernodes.topology.volcano.sh"}}),
            1);
  EXPECT_EQ(Step({kBatchPause.ns - Millis(1).ns}), Lines{});
  EXPECT_EQ(Step(Millis(1)), (Lines{"POST | POST"}));
  FailAll(kube::Failure::kConflict);
  const Duration longer{2 * kConflictPause.ns};  // the same was wanted before
  EXPECT_EQ(Step({longer.ns - Millis(1).ns}), Lines{});
  EXPECT_EQ(Step(Millis(1)), (Lines{"POST | POST"}));
}

// A finalizer, a pruned field, a webhook: what is written does not stay.
TEST_F(TopologyControllerTest, WhatTheServerDoesNotKeepIsWrittenLessAndLessOften) {
  PutNode("a", "r1", "z1");
  Settle();
  int batches = 0;
  for (int second = 0; second < 300; ++second) {
    Json bent = objects_.at(NameOf("r1"));
    json::Set(bent, {"metadata", "resourceVersion"}, std::to_string(++version_));
    bent["spec"]["tierName"] = "";
    Watch(kube::kHyperNodes, bent);
    batches += static_cast<int>(Step().size());
    Answer();
  }
  EXPECT_LT(batches, 15);
  EXPECT_GT(batches, 4);
}

TEST_F(TopologyControllerTest, WhatIsNotThereAnyMoreIsMadeAnew) {
  PutNode("a", "r1", "z1");
  Settle();
  PutNode("b", "r1", "z1");
  EXPECT_EQ(Step(), (Lines{"PATCH r1"}));
  FailAll(kube::Failure::kNotFound);
  const Lines next = Step(kMostBatchPause);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_TRUE(next.front().starts_with("POST")) << next.front();
}

TEST_F(TopologyControllerTest, ASourceThatIsTakenOutWhileItWritesAndPutBackWritesOneBatchAtATime) {
  PutNode("a", "r1", "z1");
  EXPECT_EQ(Step(), (Lines{"POST | POST"}));
  Configure("networkTopologyDiscovery: []");
  EXPECT_EQ(Step(), Lines{});
  Configure(kConf);
  EXPECT_EQ(Step(), Lines{}) << "the first batch is still under way";
  Answer();
  EXPECT_EQ(Step(), (Lines{"STATUS r1, STATUS z1"}));
}

TEST_F(TopologyControllerTest, WhoDoesNotLeadOrHasNotSeenAllPlansNothing) {
  PutNode("a", "r1", "z1");
  core_.SetLeading(false, now_);
  EXPECT_EQ(Step(), Lines{});
  EXPECT_FALSE(core_.next_wake().set());
  core_.SetLeading(true, now_);
  core_.SetSynced(false, now_);
  EXPECT_EQ(Step(), Lines{});
  core_.SetSynced(true, now_);
  EXPECT_EQ(Step(), (Lines{"POST | POST"}));
}

TEST_F(TopologyControllerTest, ASourceThatFindsNothingIsHeldThenBelieved) {
  PutNode("a", "r1", "z1");
  Settle();
  events_.clear();
  PutNode("a", "", "");
  EXPECT_EQ(Step(), Lines{});
  EXPECT_EQ(events_, (Lines{"DiscoveryHeld"}));
  EXPECT_EQ(metrics_.Value("hopwise_discovery_held", {{"source", "label"}}), 1);
  EXPECT_EQ(Step(), Lines{});
  EXPECT_EQ(events_, (Lines{"DiscoveryHeld"})) << "once";
  EXPECT_EQ(Step(Seconds(600)), (Lines{"DELETE z1 | DELETE r1"}));
  EXPECT_EQ(metrics_.Value("hopwise_discovery_held", {{"source", "label"}}), 0);
}

TEST_F(TopologyControllerTest, ASourceThatIsOffKeepsWhatItMade) {
  PutNode("a", "r1", "z1");
  Settle();
  Configure("networkTopologyDiscovery: []");
  PutNode("a", "r2", "z1");
  EXPECT_EQ(Settle(), 0);
}

TEST_F(TopologyControllerTest, WhatIsWrongWithAHyperNodeIsToldOnIt) {
  Watch(kube::kHyperNodes,
        {{"apiVersion", "topology.volcano.sh/v1alpha1"},
         {"kind", "HyperNode"},
         {"metadata", {{"name", "void"}, {"uid", "u"}, {"resourceVersion", "5"}}},
         {"spec", {{"tier", 1}}}});
  objects_["void"] = Json::object();
  EXPECT_EQ(Step(), (Lines{"STATUS void"}));
  EXPECT_EQ(events_, (Lines{"Empty"}));
}

}  // namespace
}  // namespace hopwise::daemon
