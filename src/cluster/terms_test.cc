// What pods ask of the pods around them, judged on a small cluster, and the counts behind it.
//
//   zone a     zone b    (none)
//   a0  a1     b0        x
#include "cluster/terms.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "cluster/state.h"
#include "cluster/term_judge.h"
#include "cluster/test_objects.h"

namespace hopwise::cluster {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

api::LabelSelector Selects(const std::string& key, const std::string& value) {
  return {{{key, api::Operator::kIn, {value}}}};
}

api::PodAffinityTerm Beside(const std::string& app) {
  api::PodAffinityTerm term;
  term.topology_key = "zone";
  term.selector = Selects("app", app);
  return term;
}

api::SpreadConstraint Even(const std::string& app) {
  api::SpreadConstraint spread;
  spread.topology_key = "zone";
  spread.selector = Selects("app", app);
  return spread;
}

PodSpec App(const std::string& name, const std::string& app) {
  PodSpec pod(name);
  pod.Label("app", app);
  return pod;
}

api::Namespace Team(const std::string& name, const std::string& team) {
  api::Namespace ns;
  ns.meta.name = name;
  Put(ns.meta.labels, "team", team);
  return ns;
}

class TermsTest : public ::testing::Test {
 protected:
  TermsTest() {
    for (const char* name : {"a0", "a1"}) state_.Apply(NodeSpec(name).Label("zone", "a"));
    state_.Apply(NodeSpec("b0").Label("zone", "b"));
    state_.Apply(NodeSpec("x"));
  }

  // Nodes that take the pod, as judged alone; the sweep and a fresh count must agree.
  std::string Takers(const api::Pod& pod) {
    state_.Apply(pod);
    const ShapeId shape = state_.ShapeOf(state_.FindPod("ml", pod.meta.name));
    std::string takers;
    for (const char* name : {"a0", "a1", "b0", "x"}) {
      const NodeId node = state_.FindNode(name);
      const bool takes = state_.fits().Judge(node, shape) == NodeVerdict::kFits;
      EXPECT_EQ(takes, state_.fits().FitAfresh(node, shape) > 0) << name;
      EXPECT_EQ(takes, state_.fits().Get(shape, {}, 0).fit[node.index()] > 0) << name;
      if (takes) takers += takers.empty() ? name : std::string(" ") + name;
    }
    return takers;
  }
  NodeVerdict Verdict(const std::string& pod, const std::string& node) {
    const ShapeId shape = state_.ShapeOf(state_.FindPod("ml", pod));
    return state_.fits().Judge(state_.FindNode(node), shape);
  }

  State state_;
};

TEST_F(TermsTest, APodGoesOnlyIntoTheZoneOfThePodsThatItMustStandBeside) {
  state_.Apply(App("db", "db").On("b0"));
  PodSpec web = App("web", "web");
  web.terms.affinity = {Beside("db")};
  EXPECT_EQ(Takers(web), "b0");
  EXPECT_EQ(Verdict("web", "a0"), NodeVerdict::kPodAffinity);
  state_.RemovePod("ml", "db");
  EXPECT_EQ(Takers(web), "");
}

TEST_F(TermsTest, TheFirstOfAGroupThatKeepsTogetherGoesAnywhereWithAZone) {
  PodSpec first = App("first", "web");
  first.terms.affinity = {Beside("web")};
  EXPECT_EQ(Takers(first), "a0 a1 b0");
  state_.Apply(App("other", "web").On("a1"));
  EXPECT_EQ(Takers(first), "a0 a1");
}

TEST_F(TermsTest, APodKeepsFromThePodsThatItNames) {
  state_.Apply(App("noisy", "noisy").On("a0"));
  PodSpec quiet = App("quiet", "quiet");
  quiet.terms.anti_affinity = {Beside("noisy")};
  EXPECT_EQ(Takers(quiet), "b0 x");
  EXPECT_EQ(Verdict("quiet", "a1"), NodeVerdict::kPodAntiAffinity);
}

TEST_F(TermsTest, APodOnANodeKeepsOthersAwayThatAskForNothing) {
  PodSpec quiet = App("quiet", "quiet").On("a0");
  quiet.terms.anti_affinity = {Beside("noisy")};
  state_.Apply(quiet);
  EXPECT_EQ(Takers(App("noisy", "noisy")), "b0 x");
  EXPECT_EQ(Verdict("noisy", "a1"), NodeVerdict::kKeptAway);
  EXPECT_EQ(Takers(App("other", "other")), "a0 a1 b0 x");
  state_.RemovePod("ml", "quiet");
  EXPECT_EQ(Takers(App("noisy", "noisy")), "a0 a1 b0 x");
}

TEST_F(TermsTest, APodOfAnotherSchedulerKeepsOthersAwayToo) {
  PodSpec quiet = App("quiet", "quiet").Scheduler("default-scheduler").On("b0");
  quiet.terms.anti_affinity = {Beside("noisy")};
  state_.Apply(quiet);
  EXPECT_EQ(Takers(App("noisy", "noisy")), "a0 a1 x");
}

TEST_F(TermsTest, ANodeThatChangesItsZoneTakesItsPodsAlong) {
  state_.Apply(App("noisy", "noisy").On("a0"));
  PodSpec quiet = App("quiet", "quiet");
  quiet.terms.anti_affinity = {Beside("noisy")};
  EXPECT_EQ(Takers(quiet), "b0 x");
  state_.Apply(NodeSpec("a0").Label("zone", "b"));
  EXPECT_EQ(Takers(quiet), "a1 x");
}

TEST_F(TermsTest, ASelectorOfNamespacesFollowsTheirLabels) {
  PodSpec db = App("db", "db").On("a0");
  db.meta.ns = "shop";
  state_.Apply(db);
  PodSpec web = App("web", "web");
  web.terms.affinity = {Beside("db")};
  EXPECT_EQ(Takers(web), "") << "its own namespace is meant";
  web.terms.affinity.front().namespace_selector = Selects("team", "red");
  EXPECT_EQ(Takers(web), "") << "the namespace is unknown";
  state_.Apply(Team("shop", "red"));
  EXPECT_EQ(Takers(web), "a0 a1");
  state_.Apply(Team("shop", "blue"));
  EXPECT_EQ(Takers(web), "");
}

TEST_F(TermsTest, SpreadAllowsOneMoreThanTheZoneWithTheFewest) {
  state_.Apply(App("w0", "web").On("a0"));
  PodSpec web = App("web", "web");
  web.terms.spread = {Even("web")};
  EXPECT_EQ(Takers(web), "b0");
  EXPECT_EQ(Verdict("web", "a1"), NodeVerdict::kSpread);
  web.terms.spread.front().max_skew = 2;
  EXPECT_EQ(Takers(web), "a0 a1 b0");
  web.terms.spread.front().min_domains = 3;
  EXPECT_EQ(Takers(web), "a0 a1 b0");
  state_.Apply(App("w1", "web").On("a1"));
  EXPECT_EQ(Takers(web), "b0") << "two of three zones count as if the third were empty";
}

TEST_F(TermsTest, SpreadPassesOverPodsOnTheirWayOut) {
  state_.Apply(App("w0", "web").On("a0").Deleted());
  PodSpec web = App("web", "web");
  web.terms.spread = {Even("web")};
  EXPECT_EQ(Takers(web), "a0 a1 b0");
}

TEST_F(TermsTest, WhatIsPlacedInATrialCountsUntilItIsTakenBack) {
  PodSpec web = App("web", "web");
  web.terms.spread = {Even("web")};
  state_.Apply(web);
  TermJudge judge(state_, {state_.ShapeOf(state_.FindPod("ml", "web"))});
  const NodeId a0 = state_.FindNode("a0");
  const NodeId b0 = state_.FindNode("b0");
  judge.Place(0, a0);
  EXPECT_EQ(judge.Judge(0, a0), NodeVerdict::kSpread);
  EXPECT_EQ(judge.Judge(0, b0), NodeVerdict::kFits);
  judge.Place(0, b0);
  EXPECT_EQ(judge.Judge(0, a0), NodeVerdict::kFits);
  judge.Rollback(0);
  EXPECT_EQ(judge.Judge(0, a0), NodeVerdict::kFits);
  EXPECT_EQ(judge.Judge(0, b0), NodeVerdict::kFits);
}

TEST_F(TermsTest, TermsThatNobodyUsesAreForgottenInTime) {
  for (int i = 0; i < 1000; ++i) {
    PodSpec pod = App("pod", "app-" + std::to_string(i)).On("a0");
    pod.terms.anti_affinity = {Beside("app-" + std::to_string(i))};
    state_.Apply(pod);
  }
  EXPECT_LE(state_.terms().matcher_count(), Terms::kMostIdle + 1);
  EXPECT_EQ(state_.terms().Audit(), "");
}

// Random events, after each of which the counts are those of a recount.
class RandomTerms : public ::testing::TestWithParam<uint64_t> {
 protected:
  RandomTerms() : prng_(GetParam()) {}

  std::string Pick(const std::vector<std::string>& texts) {
    return texts[prng_.Below(texts.size())];
  }

  api::PodAffinityTerm Term() {
    api::PodAffinityTerm term = Beside(Pick({"x", "y", "z"}));
    term.topology_key = Pick({"zone", "rack"});
    if (prng_.Chance(1, 8)) term.selector = api::LabelSelector{};
    if (prng_.Chance(1, 8)) term.selector.reset();
    if (prng_.Chance(1, 3)) term.namespace_selector = Selects("team", Pick({"red", "blue"}));
    if (prng_.Chance(1, 4)) term.namespaces = {Pick({"ml", "shop"})};
    return term;
  }

  PodSpec Pod() {
    PodSpec pod = App("p" + std::to_string(prng_.Below(12)), Pick({"x", "y", "z"}));
    pod.meta.ns = Pick({"ml", "shop"});
    if (prng_.Chance(2, 3)) pod.On(Pick({"n0", "n1", "n2", "n3", "gone"}));
    if (prng_.Chance(1, 8)) pod.Deleted();
    if (prng_.Chance(1, 10)) pod.Phase(api::PodPhase::kSucceeded);
    if (prng_.Chance(1, 4)) pod.Scheduler("default-scheduler");
    if (prng_.Chance(1, 3)) pod.terms.affinity.push_back(Term());
    if (prng_.Chance(1, 6)) pod.terms.affinity.push_back(Term());
    if (prng_.Chance(1, 3)) pod.terms.anti_affinity.push_back(Term());
    if (prng_.Chance(1, 3)) pod.terms.spread.push_back(Even(Pick({"x", "y"})));
    return pod;
  }

  void Step(State& state) {
    switch (prng_.Below(8)) {
      case 0: {
        NodeSpec node("n" + std::to_string(prng_.Below(4)));
        if (prng_.Chance(3, 4)) node.Label("zone", Pick({"a", "b"}));
        if (prng_.Chance(3, 4)) node.Label("rack", Pick({"r", "s", "t"}));
        if (prng_.Chance(1, 4)) node.Taint("t", "NoSchedule");
        return state.Apply(node);
      }
      case 1:
        return state.RemoveNode("n" + std::to_string(prng_.Below(4)));
      case 2: {
        const std::string name = Pick({"ml", "shop"});
        if (prng_.Chance(1, 3)) return state.RemoveNamespace(name);
        return state.Apply(Team(name, Pick({"red", "blue"})));
      }
      case 3: {
        const std::string ns = Pick({"ml", "shop"});
        return state.RemovePod(ns, "p" + std::to_string(prng_.Below(12)));
      }
      default:
        return state.Apply(Pod());
    }
  }

  // Looks at every waiting pod, in each of the ways that must agree.
  void Judge(State& state) {
    for (size_t p = 0; p < state.pod_slots(); ++p) {
      if (!state.pod(PodId(p)).alive || state.pod(PodId(p)).state != PodState::kPending) continue;
      const ShapeId shape = state.ShapeOf(PodId(p));
      const std::vector<uint16_t> swept = state.fits().Get(shape, {}, 0).fit;
      for (size_t n = 0; n < state.node_slots(); ++n) {
        if (!state.node(NodeId(n)).alive) continue;
        const bool fits = state.fits().Judge(NodeId(n), shape) == NodeVerdict::kFits;
        ASSERT_EQ(fits, swept[n] > 0) << state.node(NodeId(n)).name;
        ASSERT_EQ(fits, state.fits().FitAfresh(NodeId(n), shape) > 0) << state.node(NodeId(n)).name;
      }
    }
  }

  Prng prng_;
};

TEST_P(RandomTerms, CountsAreARecountsAfterEveryEvent) {
  State state;
  for (int step = 0; step < 300; ++step) {
    Step(state);
    ASSERT_EQ(state.terms().Audit(), "") << "seed " << GetParam() << " step " << step;
    ASSERT_NO_FATAL_FAILURE(Judge(state)) << "seed " << GetParam() << " step " << step;
    ASSERT_EQ(state.Audit(), "") << "seed " << GetParam() << " step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTerms, ::testing::Range<uint64_t>(1, 31));

}  // namespace
}  // namespace hopwise::cluster
