// Preemption and reclaim: who goes for whom, what is held meanwhile, and when it ends.
#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/claims.h"
#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::TestCluster;

//  l1       l2
// a:4 b:4  c:4 d:4
constexpr const char* kPicture = "s1@2(l1@1(a:4 b:4) l2@1(c:4 d:4))";

Config Evicting() {
  Config config = DefaultConfig();
  config.actions = {"allocate", "backfill", "gangreclaim", "gangpreempt"};
  config.plugins.emplace_back("capacity");
  return config;
}

class Evictions : public ::testing::Test {
 protected:
  explicit Evictions(Config config = Evicting()) : cluster_(kPicture) {
    cluster_.scheduler = std::make_unique<Scheduler>(cluster_.state, std::move(config));
  }

  // Pods of so many GPUs, one after the other on these nodes.
  void Running(const std::string& gang, int32_t minimum, int32_t priority,
               const std::vector<std::string>& nodes, int64_t gpus = 4,
               const std::string& queue = "") {
    cluster_.Add(Group(gang, minimum).In(queue));
    for (const std::string& node : nodes) {
      Ask ask;
      ask.gpu = gpus;
      ask.node = node;
      ask.priority = priority;
      cluster_.Pods(gang, 1, ask);
    }
  }
  void Waiting(Group group, int count, int32_t priority, int64_t gpus = 4) {
    const std::string name = group.meta.name;
    cluster_.Add(group);
    Ask ask;
    ask.gpu = gpus;
    ask.priority = priority;
    cluster_.Pods(name, count, ask);
  }
  void MakeQueue(const std::string& name, int64_t deserved,
                 std::optional<bool> reclaimable = true) {
    api::Queue queue;
    queue.meta.name = name;
    queue.state = "Open";
    queue.deserved = {{"gpu", deserved}};
    queue.reclaimable = reclaimable;
    cluster_.state.Apply(queue);
  }
  // The names of those that are to go.
  std::set<std::string> Run(Time now = {2'000}) {
    const Plan plan = cluster_.scheduler->Run(now);
    std::set<std::string> names;
    for (const Eviction& eviction : plan.evictions) {
      names.insert(cluster_.state.pod(eviction.pod).name);
    }
    bound_ = 0;
    for (const GangReport& report : plan.gangs) {
      bound_ += report.binds.size();
    }
    EXPECT_EQ(cluster_.state.Audit(), "");
    return names;
  }

  TestCluster cluster_;
  size_t bound_ = 0;  // by the last Run
};

using Names = std::set<std::string>;

TEST_F(Evictions, TheGangIsBoundWhenTheLastOfThoseWhoLeaveIsGone) {
  Running("low", 1, 1, {"a"});
  Running("other", 1, 1, {"b"});
  Running("firm", 1, 9, {"c", "d"});
  Waiting(Group("high", 2).Hard(1), 2, 5);
  EXPECT_EQ(Run(), (Names{"low-0", "other-0"}));
  EXPECT_EQ(bound_, 0U);
  EXPECT_NE(cluster_.Why("high").find("2 pods of ml/low, ml/other"), std::string::npos)
      << cluster_.Why("high");
  cluster_.Remove("low-0");
  EXPECT_EQ(Run(), Names());
  EXPECT_EQ(bound_, 0U) << "one of two is gone";
  cluster_.Remove("other-0");
  EXPECT_EQ(Run(), Names());
  EXPECT_EQ(bound_, 2U);
  EXPECT_EQ(cluster_.Where("high"), "a:1 b:1");
}

TEST_F(Evictions, RoomThatIsBeingMadeIsNobodyElses) {
  Running("low", 1, 1, {"a"});
  Running("firm", 1, 9, {"b", "c", "d"});
  Waiting(Group("high", 1), 1, 5);
  EXPECT_EQ(Run(), Names{"low-0"});
  Waiting(Group("thief", 1), 1, 3);
  cluster_.Remove("low-0");
  Run();
  EXPECT_EQ(cluster_.Where("high"), "a:1");
  EXPECT_EQ(cluster_.Placed("thief"), 0);
}

TEST_F(Evictions, NobodyGoesForAGangThatFitsOrNeverWill) {
  Running("low", 1, 1, {"a"});
  Waiting(Group("fits", 2), 2, 5);
  Waiting(Group("giant", 3).Hard(1), 3, 5);
  EXPECT_EQ(Run(), Names());
  EXPECT_EQ(cluster_.Placed("fits"), 2);
}

TEST_F(Evictions, MembersBeyondAMinimumGoBeforeAGangBreaks) {
  Running("elastic", 1, 3, {"a", "b"});
  Running("tight", 2, 1, {"c", "d"});
  Waiting(Group("high", 1), 1, 5);
  const Names gone = Run();
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_TRUE(gone.begin()->starts_with("elastic-")) << *gone.begin();
}

TEST_F(Evictions, ABrokenGangGoesWhole) {
  Running("tight", 3, 1, {"a", "c", "d"});
  Running("firm", 1, 9, {"b"});
  Waiting(Group("high", 1), 1, 5);
  EXPECT_EQ(Run(), (Names{"tight-0", "tight-1", "tight-2"}));
}

TEST_F(Evictions, WhoIsOnTheWayOutAlreadyCostsNothing) {
  Running("low", 1, 1, {"a", "b", "c"});
  api::Pod leaving;
  leaving.meta.ns = "ml";
  leaving.meta.name = leaving.meta.uid = "leaving";
  leaving.meta.deletion = {1'900};
  leaving.scheduler_name = "default-scheduler";
  leaving.request = {{"gpu", 4}};
  leaving.node_name = "d";
  cluster_.state.Apply(leaving);
  Waiting(Group("high", 1), 1, 5);
  EXPECT_EQ(Run(), Names());
  EXPECT_NE(cluster_.Why("high").find("1 pod of ml/leaving"), std::string::npos)
      << cluster_.Why("high");
  cluster_.Remove("leaving");
  Run();
  EXPECT_EQ(cluster_.Where("high"), "d:1");
}

TEST_F(Evictions, AVictimThatMayNotGoIsLeftAloneAndAnotherFound) {
  Running("first", 1, 1, {"a"});
  Running("second", 1, 2, {"b"});
  Running("firm", 1, 9, {"c", "d"});
  Waiting(Group("high", 1), 1, 5);
  EXPECT_EQ(Run(), Names{"first-0"});
  cluster_.scheduler->NotEvicted(cluster_.PodOf("first-0"), {2'000});
  EXPECT_EQ(Run(), Names{"second-0"});
  cluster_.scheduler->NotEvicted(cluster_.PodOf("second-0"), {2'000});
  EXPECT_EQ(Run(), Names());
  EXPECT_EQ(cluster_.Placed("high"), 0);
  cluster_.Add(Group("high", 1).Created(501));
  EXPECT_EQ(Run(Time{2'000} + kSpare), Names{"first-0"}) << "asked again after a while";
}

TEST_F(Evictions, AClaimEndsWithItsGangItsNodeAndItsTime) {
  struct Row {
    const char* name;
    void (*end)(TestCluster&);
    Time now;
  };
  const auto cordon = [](TestCluster& cluster) {
    api::Node node;
    node.meta.name = "a";
    node.allocatable = {{"cpu", 100'000}, {"gpu", 4}, {"pods", 110}};
    node.unschedulable = true;
    cluster.state.Apply(node);
  };
  for (const Row& row : {Row{"gang", [](TestCluster& c) { c.Remove("high-0"); }, {2'000}},
                         Row{"node", [](TestCluster& c) { c.state.RemoveNode("a"); }, {2'000}},
                         Row{"cordoned", cordon, {2'000}},
                         Row{"time", [](TestCluster&) {}, Time{2'000} + kLongestClaim}}) {
    SCOPED_TRACE(row.name);
    TestCluster cluster("l1@1(a:4 b:4)");
    cluster.scheduler = std::make_unique<Scheduler>(cluster.state, Evicting());
    cluster.Add(Group("low", 1)).Pods("low", 1, {4, 1, "", "", "a", "", 1});
    cluster.Add(Group("firm", 1)).Pods("firm", 1, {4, 1, "", "", "b", "", 9});
    cluster.Add(Group("high", 1)).Pods("high", 1, {4, 1, "", "", "", "", 5});
    EXPECT_EQ(cluster.scheduler->Run({2'000}).evictions.size(), 1U);
    const GangId high = cluster.Gang("high");
    EXPECT_TRUE(cluster.scheduler->HoldsClaim(high));
    row.end(cluster);
    const Plan plan = cluster.scheduler->Run(row.now);
    const bool again = !plan.evictions.empty();  // what was evicted stays, so it is asked again
    EXPECT_EQ(cluster.scheduler->HoldsClaim(high), again);
    EXPECT_EQ(cluster.state.Audit(), "");
  }
}

TEST_F(Evictions, SomePodsAreNobodysVictims) {
  const auto low = [&](const std::string& name, const std::string& node, auto change) {
    api::Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = pod.meta.uid = name;
    pod.meta.annotations = {{"scheduling.k8s.io/group-name", "low"}};
    pod.scheduler_name = "volcano";
    pod.request = {{"gpu", 4}};
    pod.node_name = node;
    pod.phase = api::PodPhase::kRunning;
    change(pod);
    cluster_.state.Apply(pod);
  };
  cluster_.Add(Group("low", 1));
  low("veto", "a",
      [](api::Pod& p) { p.meta.annotations.emplace_back("volcano.sh/preemptable", "false"); });
  low("daemon", "b",
      [](api::Pod& p) { p.meta.owners.push_back({"apps/v1", "DaemonSet", "ds", "uid", true}); });
  low("critical", "c", [](api::Pod& p) { p.priority_class = "system-node-critical"; });
  low("foreign", "d", [](api::Pod& p) { p.scheduler_name = "default-scheduler"; });
  Waiting(Group("high", 1), 1, 5);
  EXPECT_EQ(Run(), Names());
}

TEST_F(Evictions, APodGroupMaySayThatItIsNotPreemptable) {
  Group firm("firm", 1);
  firm.meta.annotations = {{"volcano.sh/preemptable", "false"}};
  Running("firm", 1, 1, {"a", "b", "c", "d"});
  cluster_.Add(firm);
  Waiting(Group("high", 1), 1, 5);
  EXPECT_EQ(Run(), Names());
}

TEST_F(Evictions, WhoNeverPreemptsWaits) {
  Running("low", 1, 1, {"a", "b", "c", "d"});
  cluster_.Add(Group("meek", 1));
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = pod.meta.uid = "meek-0";
  pod.meta.annotations = {{"scheduling.k8s.io/group-name", "meek"}};
  pod.scheduler_name = "volcano";
  pod.request = {{"gpu", 4}};
  pod.priority = 5;
  pod.preemption_policy = "Never";
  cluster_.state.Apply(pod);
  EXPECT_EQ(Run(), Names());
}

TEST_F(Evictions, WithinAQueueAtItsLimitTheLesserGivesWay) {
  api::Queue queue;
  queue.meta.name = "team";
  queue.state = "Open";
  queue.capability = {{"gpu", 4}};
  cluster_.state.Apply(queue);
  Running("low", 1, 1, {"a"}, 4, "team");
  Waiting(Group("high", 1).In("team"), 1, 5);
  EXPECT_EQ(Run(), Names{"low-0"}) << "three nodes are idle, but the queue is full";
  cluster_.Remove("low-0");
  Run();
  EXPECT_EQ(cluster_.Placed("high"), 1);
}

TEST_F(Evictions, AQueueTakesBackWhatItDeservesAndNoMore) {
  MakeQueue("lender", 8);
  MakeQueue("owner", 8);
  Running("loan", 1, 1, {"a", "b", "c", "d"}, 4, "lender");
  Waiting(Group("due", 2).In("owner"), 3, 1);
  EXPECT_EQ(Run().size(), 2U);
  cluster_.Remove("loan-3");
  cluster_.Remove("loan-2");
  const Names more = Run();
  EXPECT_EQ(more, Names()) << "the third is beyond its share";
  EXPECT_EQ(cluster_.Placed("due"), 2);
}

TEST_F(Evictions, AQueueThatIsNotReclaimableKeepsWhatItHas) {
  MakeQueue("lender", 4, false);
  MakeQueue("owner", 8);
  Running("loan", 1, 1, {"a", "b", "c", "d"}, 4, "lender");
  Waiting(Group("due", 1).In("owner"), 1, 1);
  EXPECT_EQ(Run(), Names());
}

TEST_F(Evictions, WhoeverWaitsInVainIsHelpedByVictimsThatComeLater) {
  Running("firm", 1, 9, {"a", "b", "c"});
  Running("equal", 1, 5, {"d"});
  Waiting(Group("high", 1), 1, 5);
  EXPECT_EQ(Run(), Names());
  // Of equal priority until now.
  cluster_.Remove("equal-0");
  cluster_.Pod("equal-0", "equal", {4, 1, "", "", "d", "", 1});
  EXPECT_EQ(Run(), Names{"equal-0"});
}

TEST(EvictionArguments, GangsStayWholeWhereTheConfigurationSaysSo) {
  Config config = Evicting();
  config.gang_preempt.whole_gangs = false;
  TestCluster cluster("l1@1(a:4 b:4)");
  cluster.scheduler = std::make_unique<Scheduler>(cluster.state, config);
  cluster.Add(Group("low", 1)).Pods("low", 1, {4, 1, "", "", "a", "", 1});
  cluster.Pods("low", 1, {4, 1, "", "", "b", "", 1});
  cluster.Add(Group("high", 2)).Pods("high", 2, {4, 1, "", "", "", "", 5});
  EXPECT_TRUE(cluster.scheduler->Run({2'000}).evictions.empty()) << "one of two is surplus";
  cluster.Add(Group("one", 1)).Pods("one", 1, {4, 1, "", "", "", "", 5});
  EXPECT_EQ(cluster.scheduler->Run({2'000}).evictions.size(), 1U);
}

TEST(EvictionArguments, NothingIsEvictedWhereNoActionSaysSo) {
  TestCluster cluster("l1@1(a:4)");
  cluster.Add(Group("low", 1)).Pods("low", 1, {4, 1, "", "", "a", "", 1});
  cluster.Add(Group("high", 1)).Pods("high", 1, {4, 1, "", "", "", "", 5});
  EXPECT_TRUE(cluster.Run().evictions.empty());
}

// --- properties

// Gangs of a few pods on random nodes, and one that waits. All are tight.
struct Puzzle {
  struct Low {
    int32_t priority = 0;
    std::vector<std::pair<std::string, int64_t>> pods;  // node, GPUs
  };
  std::vector<Low> gangs;
  int count = 1;
  int64_t gpus = 1;
  bool hard = false;
};

Puzzle MakePuzzle(Prng& random) {
  Puzzle puzzle;
  std::vector<int64_t> free(8, 4);
  const auto gangs = static_cast<int>(random.Between(3, 7));
  for (int g = 0; g < gangs; ++g) {
    Puzzle::Low low;
    low.priority = static_cast<int32_t>(random.Below(6));
    for (int64_t i = random.Between(1, 4); i > 0; --i) {
      const auto node = random.Below(8);
      const int64_t gpus = random.Between(1, 4);
      if (gpus <= free[node]) {
        free[node] -= gpus;
        low.pods.emplace_back(std::string(1, static_cast<char>('a' + node)), gpus);
      }
    }
    if (!low.pods.empty()) {
      puzzle.gangs.push_back(std::move(low));
    }
  }
  puzzle.count = static_cast<int>(random.Between(1, 4));
  puzzle.gpus = random.Between(2, 4);
  puzzle.hard = random.Chance(1, 2);
  return puzzle;
}

//       s1                 s2
//    /      \           /      \.
//   l1       l2        l3       l4
// a:4 b:4  c:4 d:4   e:4 f:4  g:4 h:4
constexpr const char* kEight =
    "s1@2(l1@1(a:4 b:4) l2@1(c:4 d:4)) s2@2(l3@1(e:4 f:4) l4@1(g:4 h:4))";
constexpr int32_t kClaimer = 4;  // its priority

// `gone`: bits of the gangs that are not there.
std::unique_ptr<TestCluster> Build(const Puzzle& puzzle, uint32_t gone, bool evicts) {
  auto cluster = std::make_unique<TestCluster>(kEight);
  if (evicts) {
    cluster->scheduler = std::make_unique<Scheduler>(cluster->state, Evicting());
  }
  for (size_t g = 0; g < puzzle.gangs.size(); ++g) {
    const Puzzle::Low& low = puzzle.gangs[g];
    const std::string name = "low" + std::to_string(g);
    if ((gone >> g & 1U) != 0) {
      continue;
    }
    cluster->Add(Group(name, static_cast<int32_t>(low.pods.size())));
    for (const auto& [node, gpus] : low.pods) {
      cluster->Pods(name, 1, {gpus, 1, "", "", node, "", low.priority});
    }
  }
  Group claimer("claimer", puzzle.count);
  if (puzzle.hard) {
    claimer.Hard(1);
  }
  cluster->Add(claimer).Pods("claimer", puzzle.count, {puzzle.gpus, 1, "", "", "", "", kClaimer});
  return cluster;
}

std::vector<int32_t> BrokenBy(const Puzzle& puzzle, uint32_t gone) {
  std::vector<int32_t> broken;
  for (size_t g = 0; g < puzzle.gangs.size(); ++g) {
    if ((gone >> g & 1U) != 0) {
      broken.push_back(puzzle.gangs[g].priority);
    }
  }
  std::ranges::sort(broken, std::greater<>());
  return broken;
}

bool Fits(const Puzzle& puzzle, uint32_t gone) {
  const auto cluster = Build(puzzle, gone, false);
  cluster->Run();
  return cluster->Placed("claimer") == puzzle.count;
}

// The gangs that the scheduler has evicted, as bits.
uint32_t Chosen(const Puzzle& puzzle, TestCluster& cluster) {
  const Plan plan = cluster.scheduler->Run({2'000});
  uint32_t gone = 0;
  for (const Eviction& eviction : plan.evictions) {
    const std::string& name = cluster.state.gang(cluster.state.pod(eviction.pod).gang).name;
    gone |= 1U << std::stoul(name.substr(3));
  }
  size_t pods = 0;
  for (size_t g = 0; g < puzzle.gangs.size(); ++g) {
    pods += (gone >> g & 1U) != 0 ? puzzle.gangs[g].pods.size() : 0;
  }
  EXPECT_EQ(plan.evictions.size(), pods) << "a gang that breaks goes whole";
  return gone;
}

TEST(EvictionProperty, EachIsNeededAndNobodyBreaksFewerOrLesser) {
  const uint64_t seed = 20'261'201;
  Prng random(seed);
  int evicting = 0;
  int equal = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    const Puzzle puzzle = MakePuzzle(random);
    const auto cluster = Build(puzzle, 0, true);
    const uint32_t gone = Chosen(puzzle, *cluster);
    uint32_t allowed = 0;
    for (size_t g = 0; g < puzzle.gangs.size(); ++g) {
      allowed |= puzzle.gangs[g].priority < kClaimer ? 1U << g : 0;
    }
    EXPECT_EQ(gone & ~allowed, 0U) << "of higher or equal priority";
    if (gone == 0) {
      EXPECT_TRUE(Fits(puzzle, 0) || !Fits(puzzle, allowed)) << "somebody could have gone";
      continue;
    }
    ++evicting;
    ASSERT_FALSE(Fits(puzzle, 0));
    for (size_t g = 0; g < puzzle.gangs.size(); ++g) {
      if ((gone >> g & 1U) != 0) {
        for (size_t i = 0; i < puzzle.gangs[g].pods.size(); ++i) {
          cluster->Remove("low" + std::to_string(g) + "-" + std::to_string(i));
        }
        EXPECT_FALSE(Fits(puzzle, gone & ~(1U << g))) << "low" << g << " went in vain";
      }
    }
    cluster->scheduler->Run({2'001});
    EXPECT_EQ(cluster->Placed("claimer"), puzzle.count) << "they went in vain";
    EXPECT_EQ(cluster->state.Audit(), "");
    std::vector<int32_t> least = BrokenBy(puzzle, gone);
    for (uint32_t other = 1; other <= allowed; ++other) {
      if ((other & ~allowed) == 0 && BrokenBy(puzzle, other) < least && Fits(puzzle, other)) {
        least = BrokenBy(puzzle, other);
      }
    }
    equal += least == BrokenBy(puzzle, gone) ? 1 : 0;
    EXPECT_EQ(BrokenBy(puzzle, gone), least) << "worse than need be";
  }
  RecordProperty("evicting", evicting);
  EXPECT_GT(evicting, 60) << "the puzzles are too easy";
  EXPECT_EQ(equal, evicting);
}

}  // namespace
}  // namespace hopwise::sched
