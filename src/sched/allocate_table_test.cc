// What allocation must do with running and waiting members under rules: Volcano's own table of
// cases (pkg/scheduler/actions/allocate/allocate_test.go), in our words. Where its outcome rests on
// a rule that is dropped (an unknown tier name, a missing common ancestor) the outcome here is what
// the rule says; the row tells so.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/test_cluster.h"

namespace hopwise::sched {
namespace {

using testing::Ask;
using testing::Group;
using testing::HardTier;
using testing::SoftRule;
using testing::TestCluster;

using Rule = std::optional<api::NetworkTopology>;

struct Parts {
  std::string role;
  int32_t size = 1, min_groups = 0;
  Rule rule;
};
struct Pods {
  int count = 1;
  std::string role = {}, part = {};
  std::string node = {};  // "": waits
  int64_t gpu = 1;
};
struct Case {
  std::string name;
  std::string fabric;
  int32_t minimum = 1;
  Rule rule;
  std::vector<Parts> policies;
  std::vector<Pods> pods;
  int binds = 0;
  std::string where = {};  // all members then; "" = not looked at
};

// A node takes one pod unless it says more.
//          s2                       s3
//        /    \               /     |     \.
//      s0      s1           s0      s1     s2
//    n1  n2  n3  n4       n1 n2   n3 n4    n5
constexpr const char* kTwoLeaves = "s2@2(s0@1(n1:1 n2:1) s1@1(n3:1 n4:1))";
constexpr const char* kThreeLeaves = "s3@2(s0@1(n1:1 n2:1) s1@1(n3:1 n4:1) s2@1(n5:1))";
// Two trees: no HyperNode holds both leaves.
constexpr const char* kApart = "s0@1(n1:1 n2:1) s1@1(n3:1 n4:1)";
constexpr const char* kThreeTiers = "s6@3(s4@2(s0@1(n1:1 n2:1) s1@1(n3:1)) s5@2(s2@1(n5:1 n6:1)))";

api::NetworkTopology Named(const std::string& name) {
  return {api::TopologyMode::kHard, std::nullopt, name};
}

void Check(const Case& c) {
  SCOPED_TRACE(c.name);
  TestCluster cluster(c.fabric);
  Group group("g", c.minimum);
  group.topology = c.rule;
  for (const Parts& parts : c.policies) {
    group.Parts(parts.role, parts.size, parts.min_groups, parts.rule);
  }
  cluster.Add(group);
  for (const Pods& pods : c.pods) {
    Ask ask{.gpu = pods.gpu, .role = pods.role, .part = pods.part, .node = pods.node};
    cluster.Pods("g", pods.count, ask);
  }
  size_t binds = 0;
  for (const GangReport& report : cluster.Run().gangs) {
    binds += report.binds.size();
  }
  EXPECT_EQ(binds, static_cast<size_t>(c.binds)) << cluster.Where("g") << " " << cluster.Why("g");
  if (!c.where.empty()) {
    EXPECT_EQ(cluster.Where("g"), c.where);
  }
}

TEST(AllocateTable, SoftGangs) {
  const std::vector<Case> cases = {
      {"three pods fit only across leaves", kTwoLeaves, 3, SoftRule(), {}, {{3}}, 3},
      {"surplus follows", kTwoLeaves, 1, SoftRule(), {}, {{2}}, 2},
      {"the member that is missing comes near",
       kTwoLeaves,
       2,
       SoftRule(),
       {},
       {{1, "", "", "n1"}, {1}},
       1,
       "n1:1 n2:1"},
      {"also with two running, in the next leaf",
       kTwoLeaves,
       3,
       SoftRule(),
       {},
       {{1, "", "", "n1"}, {1, "", "", "n2"}, {1}},
       1},
      {"in three tiers the near leaf before the far one",
       kThreeTiers,
       3,
       SoftRule(),
       {},
       {{1, "", "", "n1"}, {1, "", "", "n2"}, {1}},
       1,
       "n1:1 n2:1 n3:1"},
  };
  for (const Case& c : cases) {
    Check(c);
  }
}

TEST(AllocateTable, HardGangs) {
  const std::vector<Case> cases = {
      {"three pods in leaves of two", kTwoLeaves, 3, HardTier(1), {}, {{3}}, 0},
      {"the same where the spine is allowed", kTwoLeaves, 3, HardTier(2), {}, {{3}}, 3},
      {"several leaves possible: one is taken", kTwoLeaves, 2, HardTier(1), {}, {{2}}, 2},
      {"surplus stays in the leaf", kTwoLeaves, 1, HardTier(1), {}, {{3}}, 2},
      {"the missing member comes to the spine of its mates",
       kTwoLeaves,
       2,
       HardTier(2),
       {},
       {{1, "", "", "n1"}, {1}},
       1,
       "n1:1 n2:1"},
      {"the leaf of its mate is full",
       kTwoLeaves,
       3,
       HardTier(1),
       {},
       {{1, "", "", "n1"}, {1, "", "", "n2"}, {1}},
       0},
      // Volcano leaves its virtual root out of the common ancestor and so binds one pod wherever it
      // likes. Here the mate's tree has no free node and the rule ends at its top: nothing is
      // bound.
      {"no HyperNode holds the mates and the free node",
       kApart,
       3,
       HardTier(2),
       {},
       {{1, "", "", "n1"}, {1, "", "", "n2"}, {1}},
       0},
      {"no HyperNode holds both leaves, but the mate's has room",
       kApart,
       2,
       HardTier(2),
       {},
       {{1, "", "", "n1"}, {1}},
       1,
       "n1:1 n2:1"},
      {"more members than nodes", kTwoLeaves, 5, HardTier(2), {}, {{5}}, 0},
      {"four pods fill two leaves whole",
       "s3@2(s0@1(n1:1 n2:1) s1@1(n3:1 n4:1) s2@1(n5:1 n6:1))",
       4,
       HardTier(2),
       {},
       {{4}},
       4},
      {"two sizes share a leaf of which half is free",
       "s2@2(s0@1(n1:1 n2:2) s1@1(n3:1 n4:1))",
       2,
       HardTier(1),
       {},
       {{1}, {1, "", "", "", 2}},
       2,
       "n1:1 n2:1"},
  };
  for (const Case& c : cases) {
    Check(c);
  }
}

// In Volcano a rule with an unknown tier name lapses once members run, and one pod is bound. A hard
// rule never lapses here.
TEST(AllocateTable, TierNames) {
  const std::vector<std::pair<std::string, int>> cases = {{"leaf", 0}, {"spine", 1}, {"row", 0}};
  for (const auto& [name, binds] : cases) {
    SCOPED_TRACE(name);
    TestCluster cluster(kTwoLeaves);
    for (const auto& [hypernode, tier, tier_name, members] :
         {std::tuple("s0", 1, "leaf", std::vector<std::string>{"n1", "n2"}),
          {"s1", 1, "leaf", {"n3", "n4"}}}) {
      api::HyperNode object;
      object.meta.name = hypernode;
      object.tier = tier;
      object.tier_name = tier_name;
      for (const std::string& member : members) {
        object.members.emplace_back().exact = member;
      }
      cluster.state.Apply(object);
    }
    api::HyperNode spine;
    spine.meta.name = "s2";
    spine.tier = 2;
    spine.tier_name = "spine";
    for (const char* leaf : {"s0", "s1"}) {
      spine.members.emplace_back().exact = leaf;
      spine.members.back().type = api::MemberType::kHyperNode;
    }
    cluster.state.Apply(spine);
    cluster.Add(Group("g", 3).Rule(Named(name)));
    cluster.Pods("g", 1, Ask{.node = "n1"}).Pods("g", 1, Ask{.node = "n2"}).Pods("g", 1);
    cluster.Run();
    EXPECT_EQ(cluster.Placed("g"), 2 + binds) << cluster.Why("g");
  }
}

TEST(AllocateTable, SubGroups) {
  const std::vector<Case> cases = {
      {"hard gang, soft groups: enough room",
       kTwoLeaves,
       3,
       HardTier(2),
       {{"t", 3, 1, SoftRule()}},
       {{3, "t", "0"}},
       3},
      {"hard gang, soft groups: surplus follows",
       kTwoLeaves,
       1,
       HardTier(1),
       {{"t", 1, 1, SoftRule()}},
       {{1, "t", "0"}, {1, "t", "1"}},
       2},
      {"hard gang, soft groups: the missing member",
       kTwoLeaves,
       2,
       HardTier(2),
       {{"t", 2, 1, SoftRule()}},
       {{1, "t", "0", "n1"}, {1, "t", "0"}},
       1,
       "n1:1 n2:1"},
      {"soft gang, a hard pair and a single",
       "s2@2(s0@1(n1:1 n2:1) s1@1(n3:1))",
       3,
       SoftRule(),
       {{"pair", 2, 1, HardTier(1)}, {"one", 1, 1, HardTier(1)}},
       {{2, "pair", "0"}, {1, "one", "0"}},
       3,
       "n1:1 n2:1 n3:1"},
      {"soft gang, a hard group larger than any leaf",
       kTwoLeaves,
       3,
       SoftRule(),
       {{"t", 3, 1, HardTier(1)}},
       {{3, "t", "0"}},
       0},
      {"hard gang, a single and a hard pair",
       "s2@2(s0@1(n1:1 n2:1) s1@1(n3:1))",
       3,
       HardTier(2),
       {{"one", 1, 1, HardTier(1)}, {"pair", 2, 1, HardTier(1)}},
       {{1, "one", "0"}, {2, "pair", "0"}},
       3,
       "n1:1 n2:1 n3:1"},
      {"a policy without a rule",
       kTwoLeaves,
       2,
       std::nullopt,
       {{"t", 2, 1, std::nullopt}},
       {{2, "t", "0"}},
       2},
  };
  for (const Case& c : cases) {
    Check(c);
  }
}

TEST(AllocateTable, MinimumsOfSubGroups) {
  const std::vector<Case> cases = {
      {"a single and two pairs: the single takes the odd leaf",
       kThreeLeaves,
       5,
       HardTier(2),
       {{"one", 1, 1, HardTier(1)}, {"pair", 2, 2, HardTier(1)}},
       {{1, "one", "0"}, {2, "pair", "0"}, {2, "pair", "1"}},
       5},
      {"of two pairs one is needed and one fits",
       "s2@2(s0@1(n1:1 n2:1) s1@1(n3:1))",
       3,
       HardTier(2),
       {{"one", 1, 1, HardTier(1)}, {"pair", 2, 1, HardTier(1)}},
       {{1, "one", "0"}, {2, "pair", "0"}, {2, "pair", "1"}},
       3},
      {"two singles of four and one pair of two are needed, four nodes",
       kTwoLeaves,
       3,
       HardTier(2),
       {{"one", 1, 2, HardTier(1)}, {"pair", 2, 1, HardTier(1)}},
       {{1, "one", "0"},
        {1, "one", "1"},
        {1, "one", "2"},
        {1, "one", "3"},
        {2, "pair", "0"},
        {2, "pair", "1"}},
       4},
      {"two pairs and a single on four nodes",
       kTwoLeaves,
       3,
       HardTier(2),
       {{"one", 1, 1, HardTier(1)}, {"pair", 2, 2, HardTier(1)}},
       {{1, "one", "0"}, {2, "pair", "0"}, {2, "pair", "1"}},
       0},
  };
  for (const Case& c : cases) {
    Check(c);
  }
}

TEST(AllocateTable, MembersThatCameBack) {
  const std::vector<Case> cases = {
      {"both of a pair miss, room in their leaf",
       "s2@2(s0@1(n1:1 n2:1 n5:1) s1@1(n3:1 n4:1))",
       4,
       HardTier(2),
       {{"t", 2, 2, HardTier(1)}},
       {{1, "t", "0", "n1"}, {1, "t", "0"}, {1, "t", "1", "n3"}, {1, "t", "1"}},
       2},
      {"one of one pair misses",
       kTwoLeaves,
       4,
       HardTier(2),
       {{"t", 2, 2, HardTier(1)}},
       {{1, "t", "0", "n1"}, {1, "t", "0"}, {1, "t", "1", "n3"}, {1, "t", "1", "n4"}},
       1,
       "n1:1 n2:1 n3:1 n4:1"},
      {"a whole pair and one of another miss",
       "s3@2(s0@1(n1:1 n2:1) s1@1(n3:1 n4:1) s2@1(n5:1 n6:1))",
       6,
       HardTier(2),
       {{"t", 2, 3, HardTier(1)}},
       {{1, "t", "0", "n1"},
        {1, "t", "0"},
        {2, "t", "1"},
        {1, "t", "2", "n5"},
        {1, "t", "2", "n6"}},
       3},
      {"different sizes: both fit beside their mate",
       "s2@2(s0@1(n1:1 n2:2 n3:1) s1@1(n4:4))",
       3,
       HardTier(1),
       {},
       {{1, "", "", "n1"}, {1, "", "", "", 2}, {1}},
       2,
       "n1:1 n2:1 n3:1"},
      {"different sizes: the larger does not",
       "s2@2(s0@1(n1:1 n2:1 n3:1) s1@1(n4:4))",
       3,
       HardTier(1),
       {},
       {{1, "", "", "n1"}, {1, "", "", "", 2}, {1}},
       0},
      {"groups that may span leaves",
       kTwoLeaves,
       4,
       HardTier(2),
       {{"t", 2, 2, HardTier(2)}},
       {{1, "t", "0", "n1"}, {1, "t", "0"}, {1, "t", "1", "n2"}, {1, "t", "1"}},
       2},
  };
  for (const Case& c : cases) {
    Check(c);
  }
}

}  // namespace
}  // namespace hopwise::sched
