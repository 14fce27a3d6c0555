// The core and those who give way: what is written of them, and what follows from the answers.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "api/json.h"
#include "daemon/core.h"
#include "daemon/test_core.h"
#include "sched/claims.h"

namespace hopwise::daemon {
namespace {

class CoreEvictions : public CoreTest {
 protected:
  CoreEvictions() {
    sched::Config config = sched::DefaultConfig();
    config.actions.emplace_back("preempt");
    core_.SetConfig(config);
    // Of the 32 GPUs 16 are anybody's for the asking.
    for (const char* name : {"a0", "a1", "b0", "b1"}) {
      const bool low = name[0] == 'a';
      api::Pod pod = MakePod(std::string("on-") + name, low ? "low" : "firm");
      pod.node_name = name;
      pod.phase = api::PodPhase::kRunning;
      pod.priority = low ? 1 : 9;
      Apply(kube::kPods, pod);
      running_[name] = pod;
    }
    for (const char* name : {"low", "firm"}) {
      api::PodGroup group = MakeGroup(name, 1);
      group.phase = "Running";
      Apply(kube::kPodGroups, group);
    }
    Lead();
    Step();
  }
  // Two members of high priority, which need both nodes of leaf-a.
  Effects Claim() {
    Apply(kube::kPodGroups, MakeGroup("high", 2));
    for (const char* name : {"high-0", "high-1"}) {
      Apply(kube::kPods, Member(name));
    }
    return Step(kFirstQuiet);
  }
  static api::Pod Member(const std::string& name) {
    api::Pod pod = MakePod(name, "high");
    pod.priority = 5;
    return pod;
  }
  static std::set<std::string> Victims(const Effects& effects) {
    std::set<std::string> names;
    for (const EvictPod& evict : effects.evictions) {
      names.insert(evict.pod.name);
    }
    return names;
  }
  void Answer(const std::string& name, kube::Failure failure) {
    kube::ApiError error;
    error.failure = failure;
    core_.EvictionEnded({{"ml", name, "uid-" + name}, error, true}, now_);
  }

  std::map<std::string, api::Pod> running_;  // by node
};

using Names = std::set<std::string>;

TEST_F(CoreEvictions, WhoGoesIsToldWhyAndForWhom) {
  const Effects effects = Claim();
  EXPECT_EQ(Victims(effects), (Names{"on-a0", "on-a1"}));
  for (const EvictPod& evict : effects.evictions) {
    EXPECT_EQ(evict.why, "preempt: ml/high (queue default, priority 5) needs its room");
    const json::Json body = json::ParseJson(evict.conditions).value();
    EXPECT_EQ(json::Text(body, {"metadata", "uid"}), evict.pod.uid);
    const json::Json& first = json::List(body, {"status", "conditions"}).at(0);
    EXPECT_EQ(json::Text(first, {"type"}), "DisruptionTarget");
    EXPECT_EQ(json::Text(first, {"reason"}), "PreemptionByScheduler");
    EXPECT_EQ(json::Text(first, {"message"}), evict.why);
  }
  EXPECT_EQ(CountEvents(effects, "Evict"), 1) << "the PodGroup's; each pod's is the evictor's";
  EXPECT_EQ(metrics_.Value("volcano_pod_preemption_victims"), 2);
  EXPECT_EQ(metrics_.Value("volcano_total_preemption_attempts"), 1);
  EXPECT_EQ(metrics_.Value("volcano_eviction_transactions_total", {{"action", "preempt"}}), 1);
}

TEST_F(CoreEvictions, WhoWaitsForThemIsNominatedAndSaysSo) {
  const Effects effects = Claim();
  EXPECT_TRUE(effects.binds.empty());
  const json::Json body = PatchOf(effects, "high-0");
  EXPECT_EQ(json::Text(body, {"status", "nominatedNodeName"}), "a0");
  const json::Json& condition = json::List(body, {"status", "conditions"}).at(0);
  EXPECT_EQ(json::Text(condition, {"status"}), "False");
  EXPECT_NE(json::Text(condition, {"message"}).find("waits for 2 pods of ml/low to go"),
            std::string::npos);
}

TEST_F(CoreEvictions, TheGangIsBoundWhenAllAreGone) {
  Claim();
  Answer("on-a0", kube::Failure::kNone);
  Answer("on-a1", kube::Failure::kNone);
  api::Pod leaving = running_["a0"];
  leaving.meta.deletion = now_;
  Apply(kube::kPods, leaving);
  Delete(kube::kPods, running_["a1"]);
  EXPECT_TRUE(Step().binds.empty()) << "one has its grace period";
  Delete(kube::kPods, leaving);
  EXPECT_EQ(NodesOf(Step()), (Names{"a0", "a1"}));
}

TEST_F(CoreEvictions, ABudgetThatForbidsOneFreesTheOthersPlace) {
  Claim();
  Answer("on-a0", kube::Failure::kThrottled);
  const Effects effects = Step();
  EXPECT_TRUE(effects.evictions.empty()) << "without it there is no room for two in one spine";
  EXPECT_EQ(core_.state().pod(core_.state().FindPod("ml", "high-0")).state,
            cluster::PodState::kPending);
  EXPECT_EQ(Victims(Step(sched::kSpare)), Names()) << "nothing has changed";
}

TEST_F(CoreEvictions, AHeldPlaceIsNotGivenBackAsAHalfBoundGangs) {
  Claim();
  const Effects late = Step(Seconds(61));
  EXPECT_TRUE(late.cancelled.empty());
  EXPECT_EQ(core_.state().pod(core_.state().FindPod("ml", "high-0")).state,
            cluster::PodState::kAssumed);
}

TEST_F(CoreEvictions, AClaimThatLastsTooLongEnds) {
  Claim();
  EXPECT_LE(core_.next_wake(), now_ + sched::kLongestClaim);
  const Effects again = Step(sched::kLongestClaim);
  EXPECT_EQ(Victims(again), (Names{"on-a0", "on-a1"})) << "they are still there: asked once more";
}

TEST_F(CoreEvictions, WhoLosesTheLeaseHoldsNothing) {
  Claim();
  core_.SetLeading(false, now_);
  EXPECT_EQ(core_.state().pod(core_.state().FindPod("ml", "high-0")).state,
            cluster::PodState::kPending);
}

class DryCoreEvictions : public CoreTest {
 protected:
  static CoreOptions Dry() {
    CoreOptions options;
    options.dry_run = true;
    return options;
  }
  DryCoreEvictions() : CoreTest(Dry()) {}
};

TEST_F(DryCoreEvictions, NobodyGoesInADryRun) {
  sched::Config config = sched::DefaultConfig();
  config.actions.emplace_back("preempt");
  core_.SetConfig(config);
  Lead();
  for (const char* name : {"a0", "a1", "b0", "b1"}) {
    api::Pod pod = MakePod(std::string("on-") + name, "");
    pod.node_name = name;
    pod.priority = 1;
    Apply(kube::kPods, pod);
  }
  api::Pod high = MakePod("high", "");
  high.priority = 5;
  Apply(kube::kPods, high);
  EXPECT_TRUE(Step(kFirstQuiet).empty());
  EXPECT_EQ(core_.state().pod(core_.state().FindPod("ml", "high")).state,
            cluster::PodState::kAssumed);
}

}  // namespace
}  // namespace hopwise::daemon
