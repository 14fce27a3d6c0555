// A trial sees its own placements, and leaves no trace when it is dropped.
#include "sched/trial.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Group;
using testing::TestCluster;

//      spine
//     /     \.
//   l1       l2
//  a:8 b:4   c:8
constexpr const char* kPicture = "spine@2(l1@1(a:8 b:4) l2@1(c:8))";

struct Picture {
  std::vector<uint16_t> fit;
  std::vector<int64_t> sums;
  friend bool operator==(const Picture&, const Picture&) = default;
};

class TrialTest : public ::testing::Test {
 protected:
  TrialTest() {
    cluster_.Add(Group("g", 1))
        .Pods("g", 1, {1, 1, "", "", "", "", 0})
        .Pods("g", 1, {4, 1, "", "", "", "", 0});
    for (const char* pod : {"g-0", "g-1"}) {
      classes_.push_back(cluster_.state.ShapeOf(cluster_.PodOf(pod)));
    }
  }
  Picture Look(const Trial& trial, size_t k) const {
    const RoomView view = trial.View(k);
    return {{view.fit, view.fit + cluster_.state.node_slots()},
            {view.sums, view.sums + trial.tree().domains.size()}};
  }
  int64_t Fit(const Trial& trial, size_t k, const std::string& node) const {
    return trial.View(k).fit[cluster_.Node(node).index()];
  }

  TestCluster cluster_{kPicture};
  std::vector<ShapeId> classes_;
};

TEST_F(TrialTest, BeginsWithTheRoomOfTheState) {
  const Trial trial(cluster_.state, 0, classes_);
  EXPECT_TRUE(trial.empty());
  EXPECT_EQ(Fit(trial, 0, "a"), 8);
  EXPECT_EQ(Fit(trial, 1, "b"), 1);
  EXPECT_EQ(trial.View(0).sums[0], 20);
  EXPECT_EQ(trial.View(1).sums[0], 5);
}

TEST_F(TrialTest, TakesRoomFromEveryClass) {
  Trial trial(cluster_.state, 0, classes_);
  trial.Place(0, cluster_.Node("a"), 1);
  EXPECT_EQ(Fit(trial, 0, "a"), 7);
  EXPECT_EQ(Fit(trial, 1, "a"), 1);
  trial.Place(1, cluster_.Node("a"), 1);
  EXPECT_EQ(Fit(trial, 0, "a"), 3);
  EXPECT_EQ(trial.View(0).sums[0], 15);
}

TEST_F(TrialTest, ChangesNothingInTheState) {
  {
    Trial trial(cluster_.state, 0, classes_);
    trial.Place(1, cluster_.Node("c"), 2);
  }
  EXPECT_EQ(cluster_.state.columns().used(
                cluster_.state.columns().FindResource("gpu"))[cluster_.Node("c").index()],
            0);
  EXPECT_EQ(Fit(Trial(cluster_.state, 0, classes_), 0, "c"), 8);
}

TEST_F(TrialTest, KeepsAScopeThatAsksForIt) {
  Trial trial(cluster_.state, 0, classes_);
  {
    Trial::Scope scope(trial);
    trial.Place(0, cluster_.Node("a"), 2);
    scope.Keep();
  }
  EXPECT_EQ(Fit(trial, 0, "a"), 6);
}

TEST_F(TrialTest, AddsUpWhatItPutOnANode) {
  Trial trial(cluster_.state, 0, classes_);
  trial.Place(0, cluster_.Node("a"), 2);
  trial.Place(1, cluster_.Node("a"), 1);
  std::vector<int64_t> used(cluster_.state.columns().resource_count(), 0);
  trial.AddPlaced(cluster_.Node("a"), used);
  EXPECT_EQ(used[cluster_.state.columns().FindResource("gpu").index()], 6);
  EXPECT_EQ(used[cluster_.state.columns().pods().index()], 3);
}

// Scopes in scopes, kept and dropped at random: a dropped one leaves the views exactly as they
// were.
void Wander(Trial& trial, Prng& prng, int depth, const std::function<Picture(size_t)>& look) {
  for (int step = 0; step < 4; ++step) {
    const std::vector<Picture> before{look(0), look(1)};
    bool kept = false;
    {
      Trial::Scope scope(trial);
      for (int i = 0; i < 3; ++i) {
        const size_t k = prng.Below(2);
        const NodeId node(prng.Below(3));
        const int64_t room = trial.View(k).fit[node.index()];
        if (room > 0) {
          trial.Place(k, node, static_cast<int32_t>(prng.Between(1, room)));
        }
      }
      if (depth > 0) {
        Wander(trial, prng, depth - 1, look);
      }
      kept = prng.Chance(1, 4);
      if (kept) {
        scope.Keep();
      }
    }
    if (!kept) {
      ASSERT_EQ(look(0), before[0]);
      ASSERT_EQ(look(1), before[1]);
    }
  }
}

TEST_F(TrialTest, RollsBackToExactlyWhatWas) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    Trial trial(cluster_.state, 0, classes_);
    const Picture fresh = Look(trial, 0);
    {
      Trial::Scope all(trial);
      Wander(trial, prng, 2, [&](size_t k) { return Look(trial, k); });
    }
    ASSERT_EQ(Look(trial, 0), fresh);
    ASSERT_TRUE(trial.empty());
  }
}

TEST(TrialPorts, AllowOnePodOfTheClassOnANode) {
  TestCluster cluster("l1@1(a:8 b:8)");
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = "p";
  pod.scheduler_name = "volcano";
  pod.request = {{"gpu", 1}};
  pod.host_ports = {{"", "TCP", 80}};
  cluster.state.Apply(pod);
  Trial trial(cluster.state, 0, {cluster.state.ShapeOf(cluster.PodOf("p"))});
  EXPECT_EQ(trial.View(0).sums[0], 2);
  trial.Place(0, cluster.Node("a"), 1);
  EXPECT_EQ(trial.View(0).fit[cluster.Node("a").index()], 0);
  EXPECT_EQ(trial.View(0).sums[0], 1);
}

}  // namespace
}  // namespace hopwise::sched
