// What the fit cache says after any number of changes is what a fresh count says.
#include "cluster/fit.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "cluster/state.h"

namespace hopwise::cluster {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

api::Node MakeNode(const std::string& name, int64_t gpus) {
  api::Node node;
  node.meta.name = name;
  node.allocatable = {{"cpu", 64'000}, {"gpu", gpus}, {"pods", 110}};
  return node;
}
api::Pod MakePod(const std::string& name, int64_t gpus) {
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = name;
  pod.scheduler_name = "volcano";
  if (gpus > 0) {
    pod.request = {{"gpu", gpus}};
  }
  return pod;
}
api::HyperNode Leaf(const std::string& name, const std::string& pattern) {
  api::HyperNode leaf;
  leaf.meta.name = name;
  leaf.tier = 1;
  leaf.members.emplace_back().pattern = pattern;
  return leaf;
}

// The pod's shape, whatever it is.
ShapeId Shape(State& state, const api::Pod& pod) {
  state.Apply(pod);
  return state.ShapeOf(state.FindPod("ml", pod.meta.name));
}

// Compares the cache with a count of each node and with the sums of those counts.
void ExpectFresh(State& state, ShapeId shape) {
  const auto& trees = state.trees();
  const ShapeFit& fit = state.fits().Get(shape, trees, state.trees_version());
  for (size_t n = 0; n < state.node_slots(); ++n) {
    const NodeId node(n);
    const int64_t want = state.node(node).alive ? state.fits().FitAfresh(node, shape) : 0;
    ASSERT_EQ(fit.fit[n], std::min<int64_t>(want, kMaxFitPerNode))
        << "node " << state.node(node).name;
    ASSERT_LE(fit.fit[n], fit.max_fit);
    ASSERT_EQ(fit.fit[n] > 0, state.fits().Judge(node, shape) == NodeVerdict::kFits);
  }
  for (size_t t = 0; t < trees.size(); ++t) {
    const std::vector<int64_t> sums = state.fits().Sums(shape, trees, t);
    const std::vector<int64_t> empty = state.fits().EmptySums(shape, *trees[t]);
    for (size_t d = 0; d < trees[t]->domains.size(); ++d) {
      int64_t want = 0;
      int64_t want_empty = 0;
      for (uint32_t at = trees[t]->domains[d].lo; at < trees[t]->domains[d].hi; ++at) {
        const NodeId node = trees[t]->order[at];
        want += fit.fit[node.index()];
        want_empty += std::min<int64_t>(state.fits().FitEmpty(node, shape), kMaxFitPerNode);
      }
      ASSERT_EQ(sums[d], want) << "tree " << t << " domain " << d;
      ASSERT_EQ(empty[d], want_empty) << "tree " << t << " domain " << d;
    }
  }
}

//   left             right
//  n0 n2 n4 …      n1 n3 n5 …
class FitTest : public ::testing::Test {
 protected:
  FitTest() {
    for (int n = 0; n < 12; ++n) {
      state_.Apply(MakeNode("n" + std::to_string(n), 8));
    }
    state_.Apply(Leaf("left", "[02468]$"));
    state_.Apply(Leaf("right", "[13579]$"));
  }
  // Shapes of all kinds: small, large, selective, tolerant, with a port.
  std::vector<ShapeId> Shapes() {
    api::Pod selective = MakePod("selective", 1);
    selective.node_selector = {{"zone", "a"}};
    api::Pod tolerant = MakePod("tolerant", 1);
    tolerant.tolerations = {{"sick", "", "", true}};
    api::Pod port = MakePod("port", 1);
    port.host_ports = {{"", "TCP", 80}};
    api::Pod affine = MakePod("affine", 2);
    affine.required_node_affinity.emplace();
    affine.required_node_affinity->emplace_back().expressions.push_back(
        {"zone", api::Operator::kNotIn, {"a"}});
    std::vector<ShapeId> shapes;
    for (const api::Pod& pod : {MakePod("one", 1), MakePod("three", 3), MakePod("none", 0),
                                selective, tolerant, port, affine}) {
      shapes.push_back(Shape(state_, pod));
    }
    return shapes;
  }
  State state_;
};

TEST_F(FitTest, CountsWhatANodeTakes) {
  for (const ShapeId shape : Shapes()) {
    ExpectFresh(state_, shape);
  }
}

class Changes {
 public:
  Changes(State& state, uint64_t seed) : state_(state), prng_(seed) {}

  void Step() {
    const std::string name = "n" + std::to_string(prng_.Below(14));
    switch (prng_.Below(7)) {
      case 0:
        state_.RemoveNode(name);
        return;
      case 1:
      case 2: {
        api::Node node = MakeNode(name, prng_.Between(0, 9));
        if (prng_.Chance(1, 2)) {
          node.meta.labels = {{"zone", prng_.Chance(1, 2) ? "a" : "b"}};
        }
        if (prng_.Chance(1, 4)) {
          node.taints = {{"sick", "", "NoSchedule"}};
        }
        node.unschedulable = prng_.Chance(1, 6);
        state_.Apply(node);
        return;
      }
      case 3:
      case 4: {
        api::Pod pod = MakePod("p" + std::to_string(next_++), prng_.Between(0, 4));
        pod.node_name = name;
        pod.phase = api::PodPhase::kRunning;
        if (prng_.Chance(1, 4)) {
          pod.host_ports = {{"", "TCP", prng_.Chance(1, 2) ? 80 : 81}};
        }
        state_.Apply(pod);
        return;
      }
      case 5:
        state_.RemovePod("ml", "p" + std::to_string(prng_.Below(static_cast<uint64_t>(next_) + 1)));
        return;
      default:
        state_.Apply(Leaf("left", prng_.Chance(1, 2) ? "[02468]$" : "[0246]$"));
    }
  }

 private:
  State& state_;
  Prng prng_;
  int next_ = 0;
};

TEST_F(FitTest, FollowsEveryChangeAsIfCountedAfresh) {
  const std::vector<ShapeId> shapes = Shapes();
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Changes changes(state_, seed);
    Prng prng(seed);
    for (int step = 0; step < 40; ++step) {
      changes.Step();
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      // Not every shape is asked for at each step, so some have much to catch up with.
      ASSERT_NO_FATAL_FAILURE(ExpectFresh(state_, shapes[prng.Below(shapes.size())]));
    }
  }
}

TEST_F(FitTest, ForgetsTheLeastUsedShapeAndCountsItAgain) {
  const std::vector<ShapeId> shapes = Shapes();
  state_.fits().set_budget(3 * 12 * sizeof(uint16_t));
  for (int round = 0; round < 3; ++round) {
    for (const ShapeId shape : shapes) {
      ExpectFresh(state_, shape);
    }
  }
}

// Zones of the columns: every node full, every node empty, and one of each kind in the third.
TEST(FitByZone, WhatASweepPassesOverCountsAsAFreshLookDoes) {
  State state;
  const size_t nodes = 2 * Columns::kZone + 60;
  for (size_t n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    state.Apply(MakeNode(name, 8));
    if (n < Columns::kZone || (n >= 2 * Columns::kZone && n % 2 == 0)) {
      api::Pod pod = MakePod("on-" + name, 8);
      pod.node_name = name;
      pod.phase = api::PodPhase::kRunning;
      state.Apply(pod);
    }
  }
  for (const int64_t gpus : {1, 3, 8, 9}) {
    SCOPED_TRACE(gpus);
    const std::string name = "asks-" + std::to_string(gpus);
    ExpectFresh(state, Shape(state, MakePod(name, gpus)));
  }
  // The full zone empties: what is known of it must loosen.
  state.RemovePod("ml", "on-n7");
  ExpectFresh(state, Shape(state, MakePod("asks-2", 2)));
}

TEST_F(FitTest, SurvivesAJournalThatWasCutShort) {
  const std::vector<ShapeId> shapes = Shapes();
  ExpectFresh(state_, shapes[0]);
  for (int i = 0; i < 5'000; ++i) {
    api::Pod pod = MakePod("busy", 1 + i % 4);
    pod.node_name = "n3";
    pod.phase = api::PodPhase::kRunning;
    state_.Apply(pod);
  }
  ExpectFresh(state_, shapes[0]);
}

// A selective shape's bitmap and counts, when the node comes back under its old slot.
TEST_F(FitTest, ARevivedNodeIsJudgedByItsNewTraits) {
  const std::vector<ShapeId> shapes = Shapes();
  for (const ShapeId shape : shapes) {
    ExpectFresh(state_, shape);
  }
  state_.RemoveNode("n5");
  api::Node node = MakeNode("n5", 4);
  node.meta.labels = {{"zone", "a"}};
  state_.Apply(node);
  for (const ShapeId shape : shapes) {
    ExpectFresh(state_, shape);
  }
}

// Free amounts around the multiples of the request, on either side of the switch between comparing
// and multiplying: floor(free / amount), at most 65535.
TEST(FitBoundaries, DivisionAndComparisonRoundDown) {
  const std::vector<int64_t> amounts = {1,
                                        2,
                                        3,
                                        7,
                                        10,
                                        1000,
                                        4096,
                                        (int64_t{1} << 31) - 1,
                                        int64_t{1} << 40,
                                        kMost / 3,
                                        kMost / 2,
                                        kMost - 1,
                                        kMost};
  for (const int64_t amount : amounts) {
    State state;
    int next = 0;
    for (const int64_t times : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{4}, int64_t{5},
                                int64_t{100}, int64_t{65'535}, int64_t{65'536}}) {
      for (const int64_t off : {-1, 0, 1}) {
        if (times <= kMost / amount) {
          const int64_t free = times * amount;
          if ((off < 0 && free > 0) || off == 0 || (off > 0 && free < kMost)) {
            api::Node node = MakeNode("n" + std::to_string(next++), free + off);
            api::SetAmount(node.allocatable, "pods", kMost);
            state.Apply(node);
          }
        }
      }
    }
    SCOPED_TRACE("amount " + std::to_string(amount));
    ASSERT_NO_FATAL_FAILURE(ExpectFresh(state, Shape(state, MakePod("p", amount))));
  }
}

// The same with few pods per node, which are counted by comparing.
TEST(FitBoundaries, ComparisonsDoNotOverflow) {
  for (const int64_t amount : {kMost / 4, kMost / 4 + 1, kMost / 3, kMost / 2, kMost}) {
    State state;
    int next = 0;
    for (const int64_t has : {int64_t{0}, amount - 1, amount, kMost - 1, kMost}) {
      api::Node node = MakeNode("n" + std::to_string(next++), has);
      state.Apply(node);
    }
    SCOPED_TRACE("amount " + std::to_string(amount));
    ASSERT_NO_FATAL_FAILURE(ExpectFresh(state, Shape(state, MakePod("p", amount))));
  }
}

TEST(FitBoundaries, UsedBeyondAllocatableIsNoRoom) {
  State state;
  state.Apply(MakeNode("n0", kMost));
  for (const char* name : {"x", "y"}) {
    api::Pod pod = MakePod(name, kMost);
    pod.node_name = "n0";
    pod.phase = api::PodPhase::kRunning;
    state.Apply(pod);
  }
  const ShapeId shape = Shape(state, MakePod("p", 1));
  ASSERT_NO_FATAL_FAILURE(ExpectFresh(state, shape));
  state.Apply(MakeNode("n0", 1));
  ASSERT_NO_FATAL_FAILURE(ExpectFresh(state, shape));
}

TEST(PredicateSet, EqualDemandsHaveOneKeyAndOthersAnother) {
  PredicateSet a;
  a.selector = {{"zone", api::Operator::kIn, {"a"}}};
  PredicateSet b = a;
  EXPECT_EQ(a.Key(), b.Key());
  b.selector[0].values = {"b"};
  EXPECT_NE(a.Key(), b.Key());
  b = a;
  b.has_affinity = true;  // no term: matches nothing
  EXPECT_NE(a.Key(), b.Key());
  b = a;
  b.extra.push_back(a.selector);
  EXPECT_NE(a.Key(), b.Key());
  PredicateSet joined;
  joined.selector = {{"zon", api::Operator::kIn, {"ea"}}};
  EXPECT_NE(a.Key(), joined.Key());
}

}  // namespace
}  // namespace hopwise::cluster
