// The whole of it: what holds of every plan, on random clusters; and the stories that cross stages.
#include "sched/scheduler.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::HardTier;
using testing::SoftRule;
using testing::TestCluster;

//       s1                 s2
//    /      \           /      \.
//   l1       l2        l3       l4
// a:4 b:4  c:4 d:4   e:4 f:4  g:4 h:4
constexpr const char* kPicture =
    "s1@2(l1@1(a:4 b:4) l2@1(c:4 d:4)) s2@2(l3@1(e:4 f:4) l4@1(g:4 h:4))";
const std::vector<std::string> kNodes = {"a", "b", "c", "d", "e", "f", "g", "h"};

// --- stories

TEST(Scheduler, RunsOneOfTwoGangsThatShareARoom) {
  TestCluster cluster("l1@1(a:4)");
  cluster.Add(Group("x", 3).Hard(1)).Pods("x", 3).Add(Group("y", 3).Hard(1)).Pods("y", 3);
  cluster.Run();
  EXPECT_EQ(cluster.Placed("x"), 3);
  EXPECT_EQ(cluster.Placed("y"), 0);
}

TEST(Scheduler, SmallerWorkRunsInWhatALargeGangLeaves) {
  TestCluster cluster("l1@1(a:4)");
  cluster.Add(Group("large", 5)).Pods("large", 5).Add(Group("small", 2)).Pods("small", 2);
  cluster.Run();
  EXPECT_EQ(cluster.Placed("large"), 0);
  EXPECT_EQ(cluster.Placed("small"), 2);
}

TEST(Scheduler, AMemberThatComesBackReturnsHome) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 4).Hard(1)).Pods("g", 4);
  cluster.Run();
  const std::string home = cluster.Where("g");
  cluster.Remove("g-1");
  cluster.Pod("g-1", "g", {});
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), home);
}

TEST(Scheduler, AHardMemberWaitsRatherThanLeaveHome) {
  TestCluster cluster(kPicture);
  cluster.Fill("a", 4).Fill("b", 3);
  cluster.Add(Group("g", 2).Hard(1)).Pods("g", 1, Ask{.node = "b"}).Pods("g", 1);
  cluster.Run();
  EXPECT_EQ(cluster.Where("g"), "b:1");
}

TEST(Scheduler, ASoftMemberGoesAsNearAsItCan) {
  TestCluster cluster(kPicture);
  cluster.Fill("a", 4).Fill("b", 3);
  cluster.Add(Group("g", 2).Soft()).Pods("g", 1, Ask{.node = "b"}).Pods("g", 1);
  cluster.Run();
  const std::string where = cluster.Where("g");
  EXPECT_TRUE(where == "b:1 c:1" || where == "b:1 d:1") << where;
}

TEST(Scheduler, ThreeGangsThatFitOneRackEachAllRunInOneRound) {
  TestCluster cluster("l1@1(a:4) l2@1(b:4) l3@1(c:4)");
  for (const char* gang : {"x", "y", "z"}) {
    cluster.Add(Group(gang, 4).Hard(1)).Pods(gang, 4);
  }
  cluster.Run();
  for (const char* gang : {"x", "y", "z"}) {
    EXPECT_EQ(cluster.Placed(gang), 4) << gang;
  }
}

TEST(Scheduler, AGangMayNearlyFillADomain) {
  TestCluster cluster("l1@1(a:1 b:1 c:1 d:1 e:1 f:1)");
  cluster.Add(Group("five", 5).Hard(1)).Pods("five", 5);
  cluster.Run();
  EXPECT_EQ(cluster.Placed("five"), 5);
}

TEST(Scheduler, TinyRequestsOnHugeNodesDoNotOverflow) {
  TestCluster cluster("l1@1(a:9000000000000000000 b:9000000000000000000)");
  cluster.Add(Group("g", 4).Hard(1)).Pods("g", 4);
  cluster.Run();
  EXPECT_EQ(cluster.Placed("g"), 4);
}

TEST(Scheduler, PodSlotsCountAsRoom) {
  TestCluster cluster(kPicture);
  for (const char* node : {"a", "b", "c", "d", "e", "f"}) {
    api::Node full;
    full.meta.name = node;
    full.allocatable = {{"cpu", 100'000}, {"gpu", 4}, {"pods", 1}};
    cluster.state.Apply(full);
  }
  cluster.Add(Group("g", 3).Hard(1)).Pods("g", 3);
  cluster.Run();
  EXPECT_TRUE(cluster.Where("g") == "g:3" || cluster.Where("g") == "h:3") << cluster.Where("g");
}

TEST(Scheduler, BestEffortMembersFollowTheirGang) {
  TestCluster cluster("l1@1(a:2) l2@1(b:2)");
  cluster.Add(Group("g", 3).Hard(1)).Pods("g", 2);
  api::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = "g-idle";
  pod.meta.annotations = {{"scheduling.k8s.io/group-name", "g"}};
  pod.scheduler_name = "volcano";
  pod.best_effort = true;
  cluster.state.Apply(pod);
  cluster.Run();
  EXPECT_TRUE(cluster.Where("g") == "a:3" || cluster.Where("g") == "b:3") << cluster.Where("g");
}

TEST(Scheduler, SaysNothingNewOfWhatNeverChanged) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 9).Hard(1)).Pods("g", 9);
  EXPECT_EQ(cluster.Run().gangs.size(), 1U);
  EXPECT_EQ(cluster.Run().gangs.size(), 0U);
  EXPECT_NE(cluster.scheduler->LastReport(cluster.Gang("g")), nullptr);
}

TEST(Scheduler, AGangThatIsHeldIsLeftOutUntilItIsReleased) {
  TestCluster cluster("l1@1(a:4)");
  cluster.Run();
  cluster.Add(Group("first", 3)).Pods("first", 3).Add(Group("second", 3)).Pods("second", 3);
  cluster.scheduler->Hold(cluster.Gang("first"));
  cluster.Run();
  EXPECT_EQ(cluster.Placed("first"), 0);
  EXPECT_EQ(cluster.Placed("second"), 3);
  for (const char* pod : {"second-0", "second-1", "second-2"}) {
    cluster.Remove(pod);
  }
  cluster.Run();
  EXPECT_TRUE(cluster.scheduler->JudgeAfresh().gangs.empty());
  EXPECT_EQ(cluster.Placed("first"), 0);
  cluster.scheduler->Release(cluster.Gang("first"));
  cluster.Run();
  EXPECT_EQ(cluster.Placed("first"), 3);
}

TEST(Scheduler, LocatesAGangInItsSmallestDomain) {
  TestCluster cluster(kPicture);
  cluster.Add(Group("g", 12).Soft()).Pods("g", 12);
  cluster.Run();
  const Location location = cluster.scheduler->Locate(cluster.Gang("g"));
  EXPECT_TRUE(location.known);
  EXPECT_EQ(location.tier, 2);
}

// --- what holds of every plan

// A random load: fillers and gangs of all kinds. Applied in an order of its own.
struct Load {
  std::vector<std::pair<std::string, int64_t>> fillers;
  struct Job {
    Group group{"", 0};
    std::vector<std::pair<std::string, Ask>> pods;
  };
  std::vector<Job> jobs;
};

Load Draw(Prng& prng) {
  Load load;
  for (const std::string& node : kNodes) {
    if (prng.Chance(1, 2)) {
      load.fillers.emplace_back(node, prng.Between(1, 4));
    }
  }
  for (int g = 0; g < 6; ++g) {
    Load::Job job;
    const std::string name = "g" + std::to_string(g);
    const auto size = static_cast<int32_t>(prng.Between(1, 3));
    const auto groups = static_cast<int32_t>(prng.Between(1, 3));
    job.group = Group(name, prng.Chance(1, 3) ? size : size * groups);
    job.group.Created(100 + g);
    const bool parted = prng.Chance(1, 2);
    if (parted) {
      job.group.Parts("w", size, prng.Chance(1, 2) ? 1 : 0,
                      prng.Chance(1, 2) ? HardTier(1) : SoftRule());
    }
    if (prng.Chance(2, 3)) {
      job.group.Rule(prng.Chance(1, 3) ? SoftRule()
                                       : HardTier(static_cast<int32_t>(prng.Between(1, 2))));
    }
    for (int32_t i = 0; i < size * groups; ++i) {
      Ask ask;
      ask.gpu = prng.Chance(1, 4) ? 2 : 1;
      if (parted) {
        ask.role = "w";
        ask.part = std::to_string(i / size);
      }
      job.pods.emplace_back(name + "-" + std::to_string(i), ask);
    }
    load.jobs.push_back(std::move(job));
  }
  return load;
}

void Apply(TestCluster& cluster, const Load& load, bool reversed) {
  for (const auto& [node, gpus] : load.fillers) {
    cluster.Fill(node, gpus);
  }
  for (size_t i = 0; i < load.jobs.size(); ++i) {
    const Load::Job& job = load.jobs[reversed ? load.jobs.size() - 1 - i : i];
    if (!reversed) {
      cluster.Add(job.group);
    }
    for (size_t p = 0; p < job.pods.size(); ++p) {
      const auto& [name, ask] = job.pods[reversed ? job.pods.size() - 1 - p : p];
      cluster.Pod(name, job.group.meta.name, ask);
    }
    if (reversed) {
      cluster.Add(job.group);
    }
  }
}

// All that is placed, by gang: the rank of its smallest domain and how many members.
std::map<std::string, std::pair<int, int>> QualityOf(TestCluster& cluster) {
  std::map<std::string, std::pair<int, int>> out;
  for (size_t g = 0; g < cluster.state.gang_slots(); ++g) {
    const cluster::Gang& gang = cluster.state.gang(GangId(g));
    if (gang.alive && gang.source == cluster::GangSource::kPodGroup) {
      const Location location = cluster.scheduler->Locate(GangId(g));
      out[gang.name] = {location.known ? location.tier : 0, cluster.Placed(gang.name)};
    }
  }
  return out;
}
std::string Everything(const TestCluster& cluster) {
  std::string text;
  for (size_t p = 0; p < cluster.state.pod_slots(); ++p) {
    const cluster::PodRecord& pod = cluster.state.pod(PodId(p));
    text += pod.name + "@" + (pod.node.valid() ? cluster.state.node(pod.node).name : "-") + " ";
  }
  return text;
}

void ExpectNoNodeOverFull(const TestCluster& cluster) {
  const cluster::Columns& columns = cluster.state.columns();
  for (size_t r = 0; r < columns.resource_count(); ++r) {
    for (size_t n = 0; n < columns.node_slots(); ++n) {
      ASSERT_LE(columns.used(ResourceId(r))[n], columns.allocatable(ResourceId(r))[n])
          << cluster.state.node(NodeId(n)).name << " " << columns.ResourceName(ResourceId(r));
    }
  }
}

DomainId CommonOf(const TestCluster& cluster, const topology::Tree& tree,
                  const std::vector<PodId>& pods) {
  DomainId common;
  for (const PodId id : pods) {
    if (cluster.state.pod(id).node.valid()) {
      const DomainId leaf = tree.leaf_of[cluster.state.pod(id).node.index()];
      common = common.valid() ? tree.CommonDomain(common, leaf) : leaf;
    }
  }
  return common;
}

void ExpectRulesHeld(TestCluster& cluster) {
  const topology::Tree& tree = *cluster.state.trees()[0];
  for (size_t g = 0; g < cluster.state.gang_slots(); ++g) {
    const cluster::Gang& gang = cluster.state.gang(GangId(g));
    const auto placed = std::ranges::count_if(
        gang.pods, [&](PodId id) { return cluster.state.pod(id).node.valid(); });
    if (!gang.alive || gang.source != cluster::GangSource::kPodGroup || placed == 0) {
      continue;
    }
    ASSERT_GE(placed, gang.min_member) << "half a gang: " << gang.name;
    if (gang.rule.mode == cluster::TopologyRule::Mode::kHard) {
      ASSERT_LE(tree.at(CommonOf(cluster, tree, gang.pods)).rank, *gang.rule.highest_tier)
          << gang.name;
    }
    for (const cluster::SubGroup& group : gang.sub_groups) {
      const cluster::SubGroupPolicy& policy = gang.policies[group.policy];
      const DomainId common = CommonOf(cluster, tree, group.pods);
      if (common.valid()) {
        const auto here = std::ranges::count_if(
            group.pods, [&](PodId id) { return cluster.state.pod(id).node.valid(); });
        ASSERT_GE(here, policy.size) << "half a group: " << group.name;
        if (policy.rule.mode == cluster::TopologyRule::Mode::kHard) {
          ASSERT_LE(tree.at(common).rank, *policy.rule.highest_tier) << group.name;
        }
      }
    }
  }
}

TEST(SchedulerProperties, NoNodeOverFullNoRuleBrokenNeverHalfAGang) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    TestCluster cluster(kPicture);
    Apply(cluster, Draw(prng), false);
    cluster.Run();
    ASSERT_NO_FATAL_FAILURE(ExpectNoNodeOverFull(cluster));
    ASSERT_NO_FATAL_FAILURE(ExpectRulesHeld(cluster));
    ASSERT_EQ(cluster.state.Audit(), "");
    // Members die, others take their place.
    for (int i = 0; i < 6; ++i) {
      const std::string name = "g" + std::to_string(prng.Below(6)) + "-0";
      const cluster::PodRecord old = cluster.state.pod(cluster.PodOf(name));
      Ask ask;
      for (const auto& [key, value] : old.labels) {
        (cluster.state.Text(key) == "role" ? ask.role : ask.part) = cluster.state.Text(value);
      }
      cluster.Remove(name);
      cluster.Pod(name, cluster.state.gang(old.gang).name, ask);
      cluster.Run();
      ASSERT_NO_FATAL_FAILURE(ExpectNoNodeOverFull(cluster));
    }
  }
}

TEST(SchedulerProperties, TheSameInputGivesTheSamePlan) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Prng prng(seed);
    const Load load = Draw(prng);
    TestCluster once(kPicture);
    TestCluster again(kPicture);
    Apply(once, load, false);
    Apply(again, load, false);
    once.Run();
    again.Run();
    ASSERT_EQ(Everything(once), Everything(again)) << "seed " << seed;
  }
}

TEST(SchedulerProperties, AnotherOrderOfArrivalGivesTheSameQuality) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    const Load load = Draw(prng);
    TestCluster once(kPicture);
    TestCluster again(kPicture);
    Apply(once, load, false);
    Apply(again, load, true);
    once.Run();
    again.Run();
    ASSERT_EQ(QualityOf(once), QualityOf(again)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hopwise::sched
