// All parts of a gang at once: against every placement there is, on small random clusters.
#include "sched/split_joint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::AnchorsOn;
using testing::Ask;
using testing::Group;
using testing::Room;
using testing::TestCluster;

constexpr int64_t kPlenty = 100'000'000;

// Two classes: a GPU, and two GPUs.
std::vector<ShapeId> Classes(TestCluster& cluster) {
  cluster.Add(Group("g", 1)).Pods("g", 1, Ask{.gpu = 1}).Pods("g", 1, Ask{.gpu = 2});
  return {cluster.state.ShapeOf(cluster.PodOf("g-0")), cluster.state.ShapeOf(cluster.PodOf("g-1"))};
}

// What the objective compares first, of pods (class, group or none, node) one by one.
struct Pod {
  size_t k = 0;
  std::optional<size_t> group;  // index into the request's groups
  NodeId node;
};

class Judge {
 public:
  Judge(const TestCluster& cluster, const topology::Tree& tree, const Anchors& anchors,
        const JointRequest& request)
      : cluster_(cluster), tree_(tree), anchors_(anchors), request_(request) {}

  // none: it breaks a rule or a node.
  [[nodiscard]] std::optional<Quality> Of(const std::vector<Pod>& pods) const {
    std::map<NodeId, int64_t> used;
    std::vector<DomainId> homes;
    for (const JointGroup& group : request_.groups) {
      homes.push_back(group.home);
    }
    DomainId common = anchors_.common();
    std::vector<NodeId> nodes;
    for (const Pod& pod : pods) {
      used[pod.node] += pod.k == 0 ? 1 : 2;
      const DomainId leaf = tree_.leaf_of[pod.node.index()];
      Widen(common, leaf);
      if (pod.group) {
        Widen(homes[*pod.group], leaf);
      }
      nodes.push_back(pod.node);
    }
    Quality quality;
    for (size_t i = 0; i < homes.size(); ++i) {
      quality.group_ranks.push_back(tree_.at(homes[i]).rank);
      if (quality.group_ranks.back() > request_.groups[i].limit) {
        return std::nullopt;
      }
    }
    std::ranges::sort(quality.group_ranks, std::greater<>());
    quality.gang_rank = tree_.at(common).rank;
    const auto& gpus = cluster_.state.columns();
    const ResourceId gpu = gpus.FindResource("gpu");
    for (const auto& [node, amount] : used) {
      if (amount > gpus.free(gpu)[node.index()]) {
        return std::nullopt;
      }
    }
    if (quality.gang_rank > request_.limit) {
      return std::nullopt;
    }
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    const std::vector<int64_t> no_room(tree_.domains.size(), 0);
    quality.cells = Meter(tree_, {nullptr, no_room.data(), 0}, anchors_).Cells(nodes);
    return quality;
  }

 private:
  void Widen(DomainId& domain, DomainId leaf) const {
    domain = domain.valid() ? tree_.CommonDomain(domain, leaf) : leaf;
  }

  const TestCluster& cluster_;
  const topology::Tree& tree_;
  const Anchors& anchors_;
  const JointRequest& request_;
};

std::vector<Pod> PodsOf(const JointRequest& request) {
  std::vector<Pod> pods;
  for (size_t g = 0; g < request.groups.size(); ++g) {
    for (size_t k = 0; k < 2; ++k) {
      pods.insert(pods.end(), static_cast<size_t>(request.groups[g].pods[k]), Pod{k, g, {}});
    }
  }
  for (size_t k = 0; k < 2; ++k) {
    pods.insert(pods.end(), static_cast<size_t>(request.loose[k]), Pod{k, std::nullopt, {}});
  }
  return pods;
}

void TryAll(const Judge& judge, size_t nodes, size_t at, std::vector<Pod>& pods,
            std::optional<Quality>& best) {
  if (at == pods.size()) {
    std::optional<Quality> quality = judge.Of(pods);
    if (quality && (!best || Compare(*quality, *best) < 0)) {
      best = std::move(quality);
    }
    return;
  }
  for (size_t n = 0; n < nodes; ++n) {
    pods[at].node = NodeId(n);
    TryAll(judge, nodes, at + 1, pods, best);
  }
}

std::vector<Pod> Placed(const JointRequest& request, const JointAnswer& answer) {
  std::vector<Pod> pods;
  for (const JointPiece& piece : answer.pieces) {
    std::optional<size_t> group;
    for (size_t g = 0; g < request.groups.size(); ++g) {
      if (request.groups[g].sub_group == piece.sub_group) {
        group = g;
      }
    }
    for (const Slot& slot : piece.slots) {
      pods.insert(pods.end(), static_cast<size_t>(slot.count), Pod{slot.k, group, slot.node});
    }
  }
  return pods;
}

// `home`: the leaf of a member that runs, if one does; it may be of any group.
JointRequest RandomRequest(Prng& prng, const topology::Tree& tree, DomainId home) {
  JointRequest request;
  request.limit = static_cast<uint16_t>(1 + prng.Below(tree.root_rank()));
  request.loose = {static_cast<int32_t>(prng.Below(2)), static_cast<int32_t>(prng.Below(2))};
  const uint64_t groups = 1 + prng.Below(2);
  for (uint32_t g = 0; g < groups; ++g) {
    JointGroup group;
    group.sub_group = g;
    group.pods = {static_cast<int32_t>(1 + prng.Below(2)), static_cast<int32_t>(prng.Below(2))};
    group.limit = static_cast<uint16_t>(1 + prng.Below(tree.root_rank()));
    if (home.valid() && prng.Below(2) == 0) {
      group.home = home;
      group.limit = std::max(group.limit, tree.at(group.home).rank);
    }
    request.groups.push_back(std::move(group));
  }
  return request;
}

TEST(SplitJoint, NoPlacementIsBetterOnRandomSmallClusters) {
  Prng prng{20261130};
  int found = 0;
  for (int round = 0; round < 300; ++round) {
    const auto gpus = [&] { return std::to_string(prng.Below(4)); };
    const std::string picture = "s1@2(l1@1(a:" + gpus() + " b:" + gpus() + ") l2@1(c:" + gpus() +
                                ")) s2@2(l3@1(d:" + gpus() + "))";
    SCOPED_TRACE("round " + std::to_string(round) + ": " + picture);
    TestCluster cluster(picture);
    const Trial trial(cluster.state, 0, Classes(cluster));
    const topology::Tree& tree = trial.tree();
    Anchors anchors;
    if (prng.Below(3) == 0) {
      anchors.Add(tree, NodeId(prng.Below(4)));
    }
    anchors.Finish();
    const JointRequest request = RandomRequest(prng, tree, anchors.common());
    const Judge judge(cluster, tree, anchors, request);
    std::vector<Pod> pods = PodsOf(request);
    std::optional<Quality> best;
    TryAll(judge, tree.order.size(), 0, pods, best);
    const JointAnswer answer = SplitJoint(cluster.state, trial, anchors, request, kPlenty);
    ASSERT_EQ(answer.outcome, best ? SplitOutcome::kFound : SplitOutcome::kImpossible);
    if (best) {
      ++found;
      const std::vector<Pod> placed = Placed(request, answer);
      ASSERT_EQ(placed.size(), pods.size());
      const std::optional<Quality> quality = judge.Of(placed);
      ASSERT_TRUE(quality);
      EXPECT_EQ(Compare(*quality, *best), std::strong_ordering::equal);
    }
  }
  EXPECT_GT(found, 50);
}

TEST(SplitJoint, ProvesNothingWhenTheBudgetIsSpent) {
  TestCluster cluster("l1@1(a:8 b:8) l2@1(c:8 d:8)");
  const Trial trial(cluster.state, 0, Classes(cluster));
  JointRequest request;
  request.limit = trial.tree().root_rank();
  request.groups = {{0, {3, 1}, DomainId(), 1}};
  request.loose = {2, 1};
  EXPECT_EQ(SplitJoint(cluster.state, trial, AnchorsOn(Room("a:1"), {}), request, 10).outcome,
            SplitOutcome::kTooLarge);
}

TEST(SplitJoint, LeavesMoreThanItsDigitsHoldToOthers) {
  TestCluster cluster("l1@1(a:8)");
  const Trial trial(cluster.state, 0, Classes(cluster));
  JointRequest request;
  request.limit = trial.tree().root_rank();
  request.loose = {200, 0};
  EXPECT_EQ(SplitJoint(cluster.state, trial, AnchorsOn(Room("a:1"), {}), request, kPlenty).outcome,
            SplitOutcome::kTooLarge);
}

}  // namespace
}  // namespace hopwise::sched
