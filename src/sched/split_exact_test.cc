// The exact split against every split there is, on all small trees.
#include "sched/split_exact.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "sched/quality.h"
#include "sched/test_room.h"

namespace hopwise::sched {
namespace {

using testing::Room;

constexpr int64_t kPlenty = 1'000'000'000;

struct Cost {
  std::vector<int64_t> groups;  // completed per rank, from the highest down
  std::vector<int32_t> cells;
  std::vector<int64_t> damage;
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

Anchors None() { return testing::AnchorsOn(Room("a:1"), {}); }

// Groups that are complete per rank when every domain completes all it can; the lowest `wanted`.
// Empty when there are fewer.
std::vector<int64_t> CountGroups(const topology::Tree& tree, const std::vector<NodeCount>& split,
                                 const SplitRequest& request) {
  std::vector<int64_t> waiting(tree.domains.size(), 0);
  std::vector<int64_t> by_rank(size_t{tree.root_rank()} + 1, 0);
  for (const NodeCount& n : split) {
    waiting[tree.leaf_of[n.node.index()].index()] += n.count;
  }
  for (size_t d = tree.domains.size(); d-- > 0;) {
    if (tree.domains[d].rank <= request.group_rank) {
      by_rank[tree.domains[d].rank] += waiting[d] / request.group_size;
      waiting[d] %= request.group_size;
    }
    if (d > 0) {
      waiting[tree.domains[d].parent.index()] += waiting[d];
    }
  }
  int64_t missing = request.groups;
  for (int64_t& count : by_rank) {
    count = std::min(count, missing);
    missing -= count;
  }
  std::ranges::reverse(by_rank);
  return missing == 0 ? by_rank : std::vector<int64_t>();
}

class BruteForce {
 public:
  BruteForce(const Room& room, const Anchors& anchors)
      : room_(room), meter_(room.tree, room.View(), anchors) {}

  [[nodiscard]] Cost CostOf(const std::vector<NodeCount>& split,
                            const SplitRequest& request) const {
    std::vector<NodeId> nodes;
    for (const NodeCount& n : split) {
      nodes.push_back(n.node);
    }
    return {CountGroups(room_.tree, split, request), meter_.Cells(nodes), meter_.Damage(split)};
  }

  // Calls `visit` with every way to place up to `most` pods.
  template <class Visit>
  void Each(int64_t most, const Visit& visit) const {
    std::vector<NodeCount> split;
    EachFrom(0, most, split, 0, visit);
  }

 private:
  template <class Visit>
  void EachFrom(size_t node, int64_t most, std::vector<NodeCount>& split, int64_t total,
                const Visit& visit) const {
    if (node == room_.fit.size()) {
      visit(split, total);
      return;
    }
    EachFrom(node + 1, most, split, total, visit);
    for (int32_t count = 1; count <= room_.fit[node] && total + count <= most; ++count) {
      split.push_back({NodeId(node), count});
      EachFrom(node + 1, most, split, total + count, visit);
      split.pop_back();
    }
  }

  const Room& room_;
  Meter meter_;
};

// Every tree over `nodes` nodes with HyperNodes of tier 1, or of tiers 1 and 2: bits say where a
// new domain begins. Amounts are written later.
std::vector<std::string> AllTrees(size_t nodes) {
  std::vector<std::string> out;
  for (uint32_t leaf_bits = 0; leaf_bits < 1U << (nodes - 1); ++leaf_bits) {
    // spine_bits may only begin a domain where a leaf begins.
    for (uint32_t spine_bits = 0; spine_bits < 2U << (nodes - 1); ++spine_bits) {
      const bool spines = spine_bits < 1U << (nodes - 1);
      if ((spines && (spine_bits & ~leaf_bits) != 0) ||
          (!spines && spine_bits != 1U << (nodes - 1))) {
        continue;
      }
      std::string text = spines ? "s0@2(l0@1(" : "l0@1(";
      for (size_t n = 0; n < nodes; ++n) {
        const uint32_t bit = n == 0 ? 0 : 1U << (n - 1);
        if ((leaf_bits & bit) != 0) {
          text += spines && (spine_bits & bit) != 0 ? ")) s" + std::to_string(n) + "@2(" : ") ";
          text += "l" + std::to_string(n) + "@1(";
        }
        text += "n" + std::to_string(n) + ":0 ";
      }
      out.push_back(text + (spines ? "))" : ")"));
    }
  }
  return out;
}

// All amounts below `base` per node; within a leaf only ascending ones, the others are mirror
// images.
template <class Visit>
void EachRoom(size_t nodes, uint32_t base, const Visit& visit) {
  uint32_t codes = 1;
  for (size_t n = 0; n < nodes; ++n) {
    codes *= base;
  }
  for (const std::string& picture : AllTrees(nodes)) {
    Room room(picture);
    for (uint32_t code = 0; code < codes; ++code) {
      bool ascending = true;
      for (uint32_t n = 0, rest = code; n < nodes; ++n, rest /= base) {
        room.fit[n] = static_cast<uint16_t>(rest % base);
        ascending &= n == 0 || room.tree.leaf_of[n] != room.tree.leaf_of[n - 1] ||
                     room.fit[n] >= room.fit[n - 1];
      }
      if (ascending) {
        room.SumUp();
        visit(room, picture + " code " + std::to_string(code));
      }
    }
  }
}

std::vector<NodeCount> Flat(const Split& split) {
  std::map<NodeId, int32_t> counts;
  for (const GroupSplit& group : split.groups) {
    for (const NodeCount& n : group.nodes) {
      counts[n.node] += n.count;
    }
  }
  for (const NodeCount& n : split.loose) {
    counts[n.node] += n.count;
  }
  std::vector<NodeCount> out;
  for (const auto& [node, count] : counts) {
    out.push_back({node, count});
  }
  return out;
}

void CheckLoose(const Room& room, const Anchors& anchors, const std::string& what) {
  constexpr int64_t kLargestGang = 6;
  const BruteForce brute(room, anchors);
  std::map<int64_t, Cost> best;
  brute.Each(kLargestGang, [&](const std::vector<NodeCount>& split, int64_t total) {
    Cost cost = brute.CostOf(split, {});
    const auto [at, fresh] = best.try_emplace(total, cost);
    at->second = std::min(at->second, cost);
  });
  for (int64_t pods = 1; pods <= kLargestGang; ++pods) {
    SplitRequest request;
    request.domain = DomainId(0U);
    request.loose = pods;
    const SplitAnswer answer =
        SplitExact(room.tree, room.View(), anchors, request, nullptr, kPlenty);
    ASSERT_EQ(answer.outcome == SplitOutcome::kFound, best.contains(pods))
        << what << " pods " << pods;
    if (best.contains(pods)) {
      ASSERT_EQ(brute.CostOf(answer.split.loose, {}), best[pods]) << what << " pods " << pods;
      // The greedy split is never worse at the first level.
      const Cost greedy =
          brute.CostOf(SplitGreedy(room.tree, room.View(), anchors, DomainId(0U), pods), {});
      ASSERT_EQ(greedy.cells.front(), best[pods].cells.front()) << what << " pods " << pods;
    }
  }
}

TEST(SplitExact, NoSplitOfAGangIsBetterOnAnySmallTree) {
  for (const auto& [nodes, base] : {std::pair{1, 4U}, {2, 4U}, {3, 4U}, {4, 4U}, {5, 3U}}) {
    EachRoom(static_cast<size_t>(nodes), base,
             [](const Room& room, const std::string& what) { CheckLoose(room, None(), what); });
  }
}

TEST(SplitExact, UsesWhatTheGangHoldsAlreadyForFree) {
  for (size_t anchor = 0; anchor < 4; ++anchor) {
    EachRoom(4, 3, [&](const Room& room, const std::string& what) {
      Anchors anchors;
      anchors.Add(room.tree, NodeId(anchor));
      anchors.Finish();
      CheckLoose(room, anchors, what + " anchor " + std::to_string(anchor));
    });
  }
}

void CheckGroups(const Room& room, const SplitRequest& request, const std::string& what) {
  const Anchors none = None();
  const BruteForce brute(room, none);
  const int64_t pods = int64_t{request.groups} * request.group_size + request.loose;
  bool fits = false;
  Cost best;
  brute.Each(pods, [&](const std::vector<NodeCount>& split, int64_t total) {
    Cost cost = total == pods ? brute.CostOf(split, request) : Cost();
    if (!cost.groups.empty() && (!fits || cost < best)) {
      fits = true;
      best = std::move(cost);
    }
  });
  const SplitAnswer answer = SplitExact(room.tree, room.View(), none, request, nullptr, kPlenty);
  ASSERT_EQ(answer.outcome == SplitOutcome::kFound, fits) << what;
  if (!fits) {
    return;
  }
  ASSERT_EQ(brute.CostOf(Flat(answer.split), request), best) << what;
  ASSERT_EQ(answer.split.groups.size(), static_cast<size_t>(request.groups)) << what;
  for (const GroupSplit& group : answer.split.groups) {
    int32_t count = 0;
    for (const NodeCount& n : group.nodes) {
      ASSERT_TRUE(room.tree.Contains(group.domain, room.tree.leaf_of[n.node.index()])) << what;
      count += n.count;
    }
    ASSERT_EQ(count, request.group_size) << what;
    ASSERT_LE(room.tree.at(group.domain).rank, request.group_rank) << what;
  }
}

TEST(SplitExact, NoSplitOfGroupsIsBetterOnAnySmallTree) {
  EachRoom(4, 3, [](const Room& room, const std::string& what) {
    for (const auto& [groups, size, loose] :
         {std::tuple{1, 2, 0}, {2, 2, 0}, {2, 2, 1}, {3, 2, 0}, {1, 3, 2}, {2, 3, 0}}) {
      for (uint16_t rank = 1; rank <= room.tree.root_rank(); ++rank) {
        SplitRequest request;
        request.domain = DomainId(0U);
        request.groups = groups;
        request.group_size = size;
        request.group_rank = rank;
        request.loose = loose;
        CheckGroups(room, request,
                    what + " groups " + std::to_string(groups) + "x" + std::to_string(size) + "+" +
                        std::to_string(loose) + " rank " + std::to_string(rank));
      }
    }
  });
}

//        core
//      /      \.
//   spine-a   spine-b
//   /  \       /  \.
//  l1  l2     l3  l4
//  3    1     2    2
TEST(SplitExact, LooksBelowTheFirstLevel) {
  const Room room("core@3(spine-a@2(l1@1(a:3) l2@1(b:1)) spine-b@2(l3@1(c:2) l4@1(d:2)))");
  SplitRequest request;
  request.domain = room.Domain("core");
  request.loose = 3;
  const SplitAnswer answer = SplitExact(room.tree, room.View(), None(), request, nullptr, kPlenty);
  ASSERT_EQ(answer.split.loose.size(), 1U);
  EXPECT_EQ(room.Name(answer.split.loose[0].node), "a");
}

TEST(SplitExact, BreaksTiesByTheHigherScore) {
  const Room room("l1@1(a:1 b:1 c:1)");
  SplitRequest request;
  request.domain = DomainId(0U);
  request.loose = 1;
  const SplitAnswer answer = SplitExact(
      room.tree, room.View(), None(), request,
      [&](NodeId n) { return room.Name(n) == "b" ? 5 : 1; }, kPlenty);
  EXPECT_EQ(room.Name(answer.split.loose.at(0).node), "b");
}

TEST(SplitExact, ProvesNothingWhenTheBudgetIsSpent) {
  const Room room("l1@1(a:3 b:3 c:3) l2@1(d:3 e:3)");
  SplitRequest request;
  request.domain = DomainId(0U);
  request.loose = 9;
  EXPECT_EQ(SplitExact(room.tree, room.View(), None(), request, nullptr, 20).outcome,
            SplitOutcome::kTooLarge);
}

TEST(SplitExact, OfMoreThanTheRoomIsImpossible) {
  const Room room("l1@1(a:3)");
  SplitRequest request;
  request.domain = DomainId(0U);
  request.loose = 4;
  EXPECT_EQ(SplitExact(room.tree, room.View(), None(), request, nullptr, kPlenty).outcome,
            SplitOutcome::kImpossible);
}

}  // namespace
}  // namespace hopwise::sched
