#include "sched/score.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace hopwise::sched {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

// A sum of rounded terms is off by half a part for each.
testing::AssertionResult Near(int64_t got, int64_t want, int64_t slack) {
  if (got >= want - slack && got <= want + slack) return testing::AssertionSuccess();
  return testing::AssertionFailure() << got << " is not " << want << " +- " << slack;
}

// A domain with its member nodes and its children.
struct Branch {
  std::string name;
  int32_t tier = 0;
  std::vector<std::string> nodes;
  std::vector<Branch> children;
};

// A tree and its columns, by name.
class Cluster {
 public:
  explicit Cluster(const std::vector<Branch>& roots, const std::vector<std::string>& outside = {}) {
    std::set<int32_t> tiers;
    for (const Branch& root : roots) CollectTiers(root, tiers);
    tree.tiers.assign(tiers.begin(), tiers.end());
    tree.tier_names.resize(tree.tiers.size());
    const int32_t top = tiers.empty() ? 1 : *tiers.rbegin() + 1;
    Grow({"", top, outside, roots}, DomainId());
    columns.Resize(nodes_.size());
  }

  NodeId Node(const std::string& name) const { return nodes_.at(name); }
  DomainId Domain(const std::string& name) const { return domains_.at(name); }

  // 100 pods each, cores and GiB, and `foo` when not 0.
  void Room(const std::string& node, int64_t cores, int64_t gib, int64_t foo = 0) {
    api::ResourceList room = {{"cpu", cores * 1000}};
    if (foo != 0) room.emplace_back("foo", foo);
    room.emplace_back("memory", gib * kGi);
    room.emplace_back("pods", 100);
    columns.SetAllocatable(Node(node), room);
  }
  cluster::Request Pod(int64_t cores, int64_t gib, int64_t foo = 0) {
    api::ResourceList list = {{"cpu", cores * 1000}};
    if (foo != 0) list.emplace_back("foo", foo);
    list.emplace_back("memory", gib * kGi);
    return columns.MakeRequest(list);
  }
  DomainTotals Totals(const Config& config) const {
    DomainTotals totals;
    totals.Configure(columns, config.network_topology_aware.resources);
    totals.Update(columns, tree, 1);
    return totals;
  }

  cluster::Columns columns;
  topology::Tree tree;

 private:
  static void CollectTiers(const Branch& branch, std::set<int32_t>& tiers) {
    tiers.insert(branch.tier);
    for (const Branch& child : branch.children) CollectTiers(child, tiers);
  }

  void Grow(const Branch& branch, DomainId parent) {
    const DomainId self(tree.domains.size());
    domains_[branch.name] = self;
    topology::Domain domain;
    domain.name = branch.name;
    domain.tier = branch.tier;
    domain.parent = parent;
    const auto rank = std::ranges::lower_bound(tree.tiers, branch.tier) - tree.tiers.begin();
    domain.rank = static_cast<uint16_t>(rank + 1);
    domain.lo = static_cast<uint32_t>(tree.order.size());
    for (const std::string& node : branch.nodes) {
      const NodeId id(nodes_.size());
      nodes_[node] = id;
      tree.position.push_back(static_cast<uint32_t>(tree.order.size()));
      tree.leaf_of.push_back(self);
      tree.order.push_back(id);
    }
    domain.direct = static_cast<uint32_t>(tree.order.size());
    tree.domains.push_back(domain);
    for (const Branch& child : branch.children) Grow(child, self);
    tree.domains[self.index()].end = static_cast<uint32_t>(tree.domains.size());
    tree.domains[self.index()].hi = static_cast<uint32_t>(tree.order.size());
  }

  std::map<std::string, NodeId> nodes_;
  std::map<std::string, DomainId> domains_;
};

Branch Leaf(const std::string& name, int32_t tier = 1) {
  return {name, tier, {name + "-n1", name + "-n2"}, {}};
}

Config OnlyTopology() {
  Config config;
  config.network_topology_aware.enabled = true;
  return config;
}

// Volcano's unit data (network_topology_aware_test.go) uses three trees; each leaf s holds the
// nodes s-n1 and s-n2.
//
//   T3:  tier 3             s0
//        tier 2       s1          s2
//        tier 1    s3    s4    s5    s6
Cluster T3() {
  return Cluster(
      {{"s0",
        3,
        {},
        {{"s1", 2, {}, {Leaf("s3"), Leaf("s4")}}, {"s2", 2, {}, {Leaf("s5"), Leaf("s6")}}}}},
      {"outside"});
}
//   T2:  tier 2       s0
//        tier 1    s1    s2
Cluster T2() { return Cluster({{"s0", 2, {}, {Leaf("s1"), Leaf("s2")}}}); }
//   T1:  tier 1    s1    s2
Cluster T1() { return Cluster({Leaf("s1"), Leaf("s2")}); }
//   Two trees that only the virtual root joins:
//        tier 2    s1    s2
//        tier 1    s3    s4
Cluster Apart() { return Cluster({{"s1", 2, {}, {Leaf("s3")}}, {"s2", 2, {}, {Leaf("s4")}}}); }

// The nodes of T3 as the unit data sizes them: (cores, GiB) 2,4 in s3; 4,4 in s4; 2,8 in s5; 4,8 in
// s6. The node outside offers nothing. `foo` by leaf on the first and on the second node.
struct Foo {
  int64_t first = 0, second = 0;
};
Cluster SizedT3(const std::map<std::string, Foo>& foo = {}) {
  Cluster cluster = T3();
  const std::map<std::string, std::pair<int64_t, int64_t>> sizes = {
      {"s3", {2, 4}}, {"s4", {4, 4}}, {"s5", {2, 8}}, {"s6", {4, 8}}};
  for (const auto& [leaf, size] : sizes) {
    const auto found = foo.find(leaf);
    const Foo amount = found == foo.end() ? Foo{} : found->second;
    cluster.Room(leaf + "-n1", size.first, size.second, amount.first);
    cluster.Room(leaf + "-n2", size.first, size.second, amount.second);
  }
  return cluster;
}

// ---- DistanceScore

struct DistanceCase {
  const char* name;
  Cluster (*tree)();
  int64_t weight;
  const char* allocated;
  std::map<std::string, int64_t> want;  // by node
};

TEST(DistanceScore, MatchesTheUnitData) {
  const std::vector<DistanceCase> cases = {
      {"T3", T3, 1, "s3", {{"s3-n1", 100'000'000}, {"s4-n1", 66'666'667}, {"s5-n1", 33'333'333}}},
      {"T3, weight 2",
       T3,
       2,
       "s3",
       {{"s3-n1", 200'000'000}, {"s4-n1", 133'333'333}, {"s5-n1", 66'666'667}}},
      {"T2", T2, 1, "s1", {{"s1-n2", 100'000'000}, {"s2-n1", 50'000'000}}},
      {"T1", T1, 1, "s1", {{"s1-n2", 100'000'000}, {"s2-n1", 0}}},
      {"only the virtual root in common", Apart, 1, "s3", {{"s4-n1", 0}}},
      {"a node outside every HyperNode", T3, 1, "s3", {{"outside", 0}}},
      {"members are spread over s1: every node of it is as near",
       T3,
       1,
       "s1",
       {{"s3-n1", 66'666'667}, {"s4-n2", 66'666'667}, {"s5-n1", 33'333'333}}},
      {"members are spread over everything", T3, 1, "", {{"s3-n1", 0}, {"outside", 0}}},
  };
  for (const DistanceCase& c : cases) {
    const Cluster cluster = c.tree();
    Config config = OnlyTopology();
    config.network_topology_aware.weight = c.weight;
    const Scorer scorer(config, cluster.columns);
    for (const auto& [node, want] : c.want) {
      EXPECT_EQ(scorer.DistanceScore(cluster.tree, cluster.Domain(c.allocated), cluster.Node(node)),
                want)
          << c.name << ", " << node;
    }
  }
}

TEST(DistanceScore, IsNothingWithoutAnAllocatedDomain) {
  const Cluster cluster = T3();
  const Scorer scorer(OnlyTopology(), cluster.columns);
  EXPECT_EQ(scorer.DistanceScore(cluster.tree, DomainId(), cluster.Node("s3-n1")), 0);
}

TEST(DistanceScore, IsNothingWithoutATree) {
  const Cluster cluster({}, {"n1"});
  const Scorer scorer(OnlyTopology(), cluster.columns);
  EXPECT_EQ(scorer.DistanceScore(cluster.tree, DomainId(0U), cluster.Node("n1")), 0);
}

//        tier 2        s1 {direct}
//        tier 1    s3
TEST(DistanceScore, TakesTheSmallestDomainWhereLeavesLieOnSeveralTiers) {
  const Cluster cluster({{"s1", 2, {"direct"}, {Leaf("s3")}}});
  const Scorer scorer(OnlyTopology(), cluster.columns);
  const auto score = [&](const char* allocated, const char* node) {
    return scorer.DistanceScore(cluster.tree, cluster.Domain(allocated), cluster.Node(node));
  };
  EXPECT_EQ(score("s1", "direct"), 100'000'000);
  EXPECT_EQ(score("s3", "direct"), 50'000'000);
}

TEST(TieBonus, MatchesTheUnitData) {
  const Cluster cluster = T3();
  const Scorer scorer(OnlyTopology(), cluster.columns);
  const auto with_bonus = [&](const char* node, int64_t there, int64_t all) {
    return scorer.DistanceScore(cluster.tree, cluster.Domain("s1"), cluster.Node(node)) +
           scorer.TieBonus(there, all);
  };
  // Allocated s1; members on s3-n1, s3-n2 and s4-n1, one waits. s3 and s4 share the maximum.
  EXPECT_EQ(with_bonus("s3-n1", 2, 4), 116'666'667);
  EXPECT_EQ(with_bonus("s4-n1", 1, 4), 91'666'667);
  // A subgroup of two, one of them on s4-n1.
  EXPECT_EQ(with_bonus("s3-n1", 0, 2), 66'666'667);
  EXPECT_EQ(with_bonus("s4-n1", 1, 2), 116'666'667);
  EXPECT_EQ(scorer.TieBonus(1, 0), 0);
}

// ---- HyperNodeOrder

TEST(HyperNodeOrder, MatchesTheUnitData) {
  Cluster cluster = SizedT3();
  const cluster::Request two_pods = cluster.Pod(8, 8);  // two of 4 cores and 4 GiB
  const Config config = OnlyTopology();
  const Scorer scorer(config, cluster.columns);
  const DomainTotals totals = cluster.Totals(config);
  const std::map<std::string, int64_t> want = {
      {"s0", 25'000'000}, {"s1", 58'333'333}, {"s2", 45'833'333},  {"s3", 0},
      {"s5", 0},          {"s6", 75'000'000}, {"s4", 100'000'000}, {"", 25'000'000}};
  for (const auto& [domain, score] : want) {
    EXPECT_EQ(scorer.HyperNodeOrder(totals, cluster.Domain(domain), two_pods), score) << domain;
  }
}

TEST(HyperNodeOrder, MatchesTheUnitDataWithAnExtraResource) {
  Cluster cluster = SizedT3({{"s3", {8, 0}}, {"s4", {8, 0}}, {"s5", {16, 0}}, {"s6", {16, 0}}});
  const cluster::Request two_pods = cluster.Pod(8, 8, 16);
  Config config = OnlyTopology();
  config.network_topology_aware.weight = 10;
  config.network_topology_aware.resources = {{"cpu", 3}, {"memory", 4}, {"foo", 3}};
  const Scorer scorer(config, cluster.columns);
  const DomainTotals totals = cluster.Totals(config);
  const std::map<std::string, int64_t> want = {
      {"s0", 266'666'667}, {"s1", 700'000'000}, {"s2", 450'000'000}, {"s3", 0},
      {"s4", 0},           {"s5", 0},           {"s6", 800'000'000}, {"", 266'666'667}};
  for (const auto& [domain, score] : want) {
    EXPECT_EQ(scorer.HyperNodeOrder(totals, cluster.Domain(domain), two_pods), score) << domain;
  }
}

TEST(HyperNodeOrder, CountsOnlyWhatIsRequestedAndWeighted) {
  Cluster cluster = SizedT3();
  const cluster::Request only_cpu = cluster.columns.MakeRequest({{"cpu", 4000}});
  const cluster::Request nothing = cluster.columns.MakeRequest({});
  Config config = OnlyTopology();
  const DomainTotals totals = cluster.Totals(config);
  EXPECT_EQ(Scorer(config, cluster.columns).HyperNodeOrder(totals, cluster.Domain("s4"), only_cpu),
            50'000'000);
  EXPECT_EQ(Scorer(config, cluster.columns).HyperNodeOrder(totals, cluster.Domain("s4"), nothing),
            0);

  config.network_topology_aware.resources = {{"cpu", 0}, {"memory", 1}};
  const DomainTotals unweighted = cluster.Totals(config);
  EXPECT_EQ(
      Scorer(config, cluster.columns).HyperNodeOrder(unweighted, cluster.Domain("s4"), only_cpu),
      0);
}

TEST(HyperNodeOrder, IsOffWithTheFlagOrThePlugin) {
  Cluster cluster = SizedT3();
  const cluster::Request pod = cluster.Pod(2, 4);
  Config config = OnlyTopology();
  const DomainTotals totals = cluster.Totals(config);
  const auto score = [&] {
    return Scorer(config, cluster.columns).HyperNodeOrder(totals, cluster.Domain("s4"), pod);
  };
  EXPECT_GT(score(), 0);
  config.network_topology_aware.hyper_node_order = false;
  EXPECT_EQ(score(), 0);
  config.network_topology_aware = {};
  EXPECT_EQ(score(), 0);
}

TEST(HyperNodeOrder, StandsTheLargestAmounts) {
  Cluster cluster = T1();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char* node : {"s1-n1", "s1-n2", "s2-n1", "s2-n2"}) {
    cluster.columns.SetAllocatable(cluster.Node(node), {{"cpu", kMost}, {"memory", kMost}});
  }
  Config config = OnlyTopology();
  config.network_topology_aware.weight = kMaxWeight;
  config.network_topology_aware.resources = {{"cpu", kMaxWeight}, {"memory", kMaxWeight}};
  const cluster::Request pod = cluster.columns.MakeRequest({{"cpu", kMost}, {"memory", kMost}});
  EXPECT_EQ(Scorer(config, cluster.columns)
                .HyperNodeOrder(cluster.Totals(config), cluster.Domain("s1"), pod),
            100 * kPoint * kMaxWeight);
}

// ---- Pods without a topology rule

TEST(NormalPodScore, MatchesTheUnitData) {
  Cluster cluster = SizedT3();
  const cluster::Request pod = cluster.Pod(2, 4);
  const Config config = OnlyTopology();
  const Scorer scorer(config, cluster.columns);
  const DomainTotals totals = cluster.Totals(config);
  const std::map<std::string, int64_t> want = {{"s3-n1", 25'835'592},   // printed 25.8
                                               {"s4-n1", 21'601'174},   // 21.6
                                               {"s5-n1", 19'907'407},   // 19.9
                                               {"s6-n1", 15'672'990}};  // 15.7
  for (const auto& [node, score] : want) {
    // Each of the four terms is rounded.
    EXPECT_TRUE(
        Near(scorer.NormalPodScore(cluster.tree, totals, cluster.Node(node), pod), score, 2))
        << node;
  }
}

TEST(NormalPodScore, MatchesTheUnitDataWithFadingZero) {
  Cluster cluster = SizedT3({{"s3", {8, 8}}, {"s4", {8, 8}}, {"s5", {16, 16}}, {"s6", {16, 16}}});
  const cluster::Request pod = cluster.Pod(2, 4, 8);
  Config config = OnlyTopology();
  config.network_topology_aware.weight = 10;
  config.network_topology_aware.fading_milli = 0;
  config.network_topology_aware.resources = {{"cpu", 1}, {"memory", 4}, {"foo", 3}};
  const Scorer scorer(config, cluster.columns);
  DomainTotals totals = cluster.Totals(config);
  const auto score = [&](const char* node) {
    return scorer.NormalPodScore(cluster.tree, totals, cluster.Node(node), pod);
  };
  EXPECT_EQ(score("s3-n1"), 500'000'000);
  EXPECT_EQ(score("s4-n1"), 468'750'000);
  EXPECT_EQ(score("s5-n1"), 281'250'000);
  EXPECT_EQ(score("s6-n1"), 250'000'000);

  cluster.columns.Use(cluster.Node("s3-n1"), pod);
  cluster.columns.Use(cluster.Node("s3-n2"), pod);
  totals.Update(cluster.columns, cluster.tree, 1);
  EXPECT_EQ(score("s3-n1"), 0);
}

TEST(NormalPodScore, IsOffWhenAskedTo) {
  Cluster cluster = SizedT3();
  const cluster::Request pod = cluster.Pod(2, 4);
  Config config = OnlyTopology();
  const DomainTotals totals = cluster.Totals(config);
  const auto all_off = [&] {
    const Scorer scorer(config, cluster.columns);
    return !scorer.scores_normal_pods() &&
           scorer.NormalPodScore(cluster.tree, totals, cluster.Node("s3-n1"), pod) == 0 &&
           scorer.TierTerm(cluster.tree, totals, cluster.Domain("s3"), pod) == 0 &&
           scorer.MissingTerm(cluster.tree, 1) == 0 && scorer.UnusedTerm(cluster.tree) == 0;
  };
  EXPECT_FALSE(all_off());
  config.network_topology_aware.normal_pod = false;
  EXPECT_TRUE(all_off());
  config = OnlyTopology();
  config.network_topology_aware.scores_nodes = false;
  EXPECT_TRUE(all_off());
  config = OnlyTopology();
  config.network_topology_aware.weight = 0;
  EXPECT_TRUE(all_off());
  EXPECT_FALSE(Scorer(Config(), cluster.columns).scores_normal_pods());
}

// A node outside the topology counts as packed on every tier but the virtual root's.
TEST(NormalPodScore, PrefersNodesOutside) {
  Cluster cluster = SizedT3();
  cluster.Room("outside", 24, 48);  // root: 48 cores, 96 GiB
  const cluster::Request pod = cluster.Pod(2, 4);
  const Config config = OnlyTopology();
  const Scorer scorer(config, cluster.columns);
  const DomainTotals totals = cluster.Totals(config);
  // (1 + 0.8 + 0.64 + 0.512/24) / 2.952
  EXPECT_TRUE(Near(scorer.NormalPodScore(cluster.tree, totals, cluster.Node("outside"), pod),
                   83'378'500, 2));
}

// Tier numbers 1 and 3 in use, so 2 is missing for every node and the virtual root is 4:
//        tier 3    b
//        tier 1    a {n1}
struct FadingCase {
  int64_t fading_milli;
  int32_t low, high;
  int64_t want, want_unused;
};

TEST(NormalPodScore, CountsUnusedTierNumbers) {
  const std::vector<FadingCase> cases = {
      {500, 1, 3, 63'333'333, 26'666'667},   // (0.5 + 0.5·1 + 0.25/2 + 0.125/2) / 1.875
      {1000, 1, 3, 62'500'000, 25'000'000},  // (0.5 + 1 + 0.5 + 0.5) / 4
      {2000, 1, 3, 56'666'667, 13'333'333},  // (0.5 + 2 + 4/2 + 8/2) / 15
      {0, 1, 3, 50'000'000, 0},              // the lowest tier alone
      {0, 0, 1, 50'000'000, 0},              // a lowest tier of 0 divides by nothing
      {500, 0, 2, 63'333'333, 26'666'667},   // nor does it change what counts
      {0, 5, 7, 50'000'000, 0},
      {1000, 1, 2, 50'000'000, 0},
      {999, 1, 2'000'000'000, 99'950'000, 99'900'000},  // far apart: still exact and quick
      {1001, 1, 2'000'000'000, 99'900'150, 99'800'300},
  };
  for (const FadingCase& c : cases) {
    Cluster cluster({{"b", c.high, {}, {{"a", c.low, {"n1"}, {}}}}});
    cluster.Room("n1", 4, 8);
    const cluster::Request pod = cluster.Pod(2, 4);
    Config config = OnlyTopology();
    config.network_topology_aware.fading_milli = c.fading_milli;
    const Scorer scorer(config, cluster.columns);
    const DomainTotals totals = cluster.Totals(config);
    EXPECT_TRUE(
        Near(scorer.NormalPodScore(cluster.tree, totals, cluster.Node("n1"), pod), c.want, 100))
        << "fading " << c.fading_milli << ", tiers " << c.low << " and " << c.high;
    EXPECT_TRUE(Near(scorer.UnusedTerm(cluster.tree), c.want_unused, 100))
        << "fading " << c.fading_milli << ", tiers " << c.low << " and " << c.high;
  }
}

// A node that is a direct member of b has no domain on tier 1:
//        tier 2    b {n2}
//        tier 1    a {n1}
TEST(NormalPodScore, CountsMissingTiersOfANode) {
  Cluster cluster({{"b", 2, {"n2"}, {{"a", 1, {"n1"}, {}}}}});
  cluster.Room("n1", 4, 8);
  cluster.Room("n2", 4, 8);
  const cluster::Request pod = cluster.Pod(2, 4);
  Config config = OnlyTopology();
  config.network_topology_aware.fading_milli = 500;
  const Scorer scorer(config, cluster.columns);
  const DomainTotals totals = cluster.Totals(config);
  EXPECT_EQ(scorer.MissingTerm(cluster.tree, 1), 57'142'857);  // 1/1.75
  EXPECT_TRUE(
      Near(scorer.NormalPodScore(cluster.tree, totals, cluster.Node("n2"), pod), 67'857'143, 2));
  EXPECT_TRUE(
      Near(scorer.NormalPodScore(cluster.tree, totals, cluster.Node("n1"), pod), 39'285'714, 2));
}

// ---- DomainTotals

TEST(DomainTotals, AddHoldsUntilTheNextUpdate) {
  Cluster cluster = SizedT3();
  const cluster::Request pod = cluster.Pod(2, 4);
  DomainTotals totals = cluster.Totals(OnlyTopology());
  ASSERT_EQ(totals.resource_count(), 2U);  // cpu, memory
  EXPECT_EQ(totals.allocatable(0, cluster.Domain("s1")), 12'000);
  EXPECT_EQ(totals.allocatable(1, cluster.Domain("s0")), 48 * kGi);

  totals.Add(cluster.tree, cluster.Domain("s3"), pod, 3);
  totals.Add(cluster.tree, cluster.Domain("s3"), pod, -1);
  for (const char* domain : {"s3", "s1", "s0", ""}) {
    EXPECT_EQ(totals.used(0, cluster.Domain(domain)), 4'000) << domain;
  }
  EXPECT_EQ(totals.used(0, cluster.Domain("s4")), 0);

  // The decision arrives in the columns: it counts once.
  cluster.columns.Use(cluster.Node("s3-n1"), pod);
  totals.Update(cluster.columns, cluster.tree, 1);
  EXPECT_EQ(totals.used(0, cluster.Domain("s3")), 2'000);
  EXPECT_EQ(totals.used(0, cluster.Domain("")), 2'000);
}

TEST(DomainTotals, PicksUpAResourceThatAppearsLater) {
  Cluster cluster = T1();
  cluster.Room("s1-n1", 4, 8);
  Config config = OnlyTopology();
  config.network_topology_aware.resources.emplace_back("foo", 1);
  DomainTotals totals = cluster.Totals(config);
  EXPECT_EQ(totals.resource_count(), 2U);
  cluster.Room("s1-n1", 4, 8, 16);
  totals.Update(cluster.columns, cluster.tree, 1);
  ASSERT_EQ(totals.resource_count(), 3U);
  EXPECT_EQ(totals.allocatable(2, cluster.Domain("s1")), 16);
}

void ExpectSums(const Cluster& cluster, const DomainTotals& totals) {
  for (size_t i = 0; i < totals.resource_count(); ++i) {
    const ResourceId r = totals.weights()[i].first;
    for (size_t d = 0; d < cluster.tree.domains.size(); ++d) {
      const topology::Domain& domain = cluster.tree.domains[d];
      int64_t allocatable = 0, used = 0;
      for (uint32_t p = domain.lo; p < domain.hi; ++p) {
        allocatable += cluster.columns.allocatable(r)[cluster.tree.order[p].index()];
        used += cluster.columns.used(r)[cluster.tree.order[p].index()];
      }
      ASSERT_EQ(totals.allocatable(i, DomainId(d)), allocatable) << domain.name;
      ASSERT_EQ(totals.used(i, DomainId(d)), used) << domain.name;
    }
  }
}

TEST(DomainTotals, FollowsTheJournal) {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng prng(seed);
    Cluster cluster = SizedT3();
    DomainTotals totals = cluster.Totals(OnlyTopology());
    for (int step = 0; step < 300; ++step) {
      const NodeId node(static_cast<size_t>(prng.Below(cluster.columns.node_slots())));
      const cluster::Request pod = cluster.Pod(prng.Between(1, 4), prng.Between(1, 4));
      if (prng.Chance(1, 5)) {
        cluster.columns.SetAllocatable(node, {{"cpu", prng.Between(0, 64'000)}});
      } else {
        cluster.columns.Use(node, pod);
      }
      if (prng.Chance(1, 3)) totals.Add(cluster.tree, cluster.tree.leaf_of[node.index()], pod, 1);
      if (prng.Chance(1, 100)) {  // more than the journal keeps
        for (int i = 0; i < 5000; ++i) cluster.columns.Use(node, pod);
      }
      if (!prng.Chance(1, 4)) continue;
      totals.Update(cluster.columns, cluster.tree, prng.Chance(1, 20) ? 2 : 1);
      ExpectSums(cluster, totals);
    }
  }
}

TEST(DomainTotals, StartsOverForAnotherTree) {
  Cluster cluster = SizedT3();
  DomainTotals totals = cluster.Totals(OnlyTopology());
  Cluster other = T1();
  other.Room("s2-n1", 7, 7);
  totals.Update(other.columns, other.tree, 1);
  ExpectSums(other, totals);
  EXPECT_EQ(totals.allocatable(0, other.Domain("s2")), 7'000);
}

// ---- NodeScore

// One node with 4 cores, 8 GiB and, where asked for, GPUs; 1 core and 2 GiB are used.
struct OneNode {
  explicit OneNode(int64_t gpus = 0) {
    columns.Resize(1);
    api::ResourceList room = {{"cpu", 4000}, {"memory", 8 * kGi}};
    if (gpus != 0) room.emplace_back("nvidia.com/gpu", gpus);
    room.emplace_back("pods", 110);
    columns.SetAllocatable(node, room);
    columns.Use(node, columns.MakeRequest({{"cpu", 1000}, {"memory", 2 * kGi}}));
  }
  int64_t Score(const Config& config, const api::ResourceList& list,
                const std::vector<int64_t>* extra = nullptr) {
    return Scorer(config, columns).NodeScore(node, columns.MakeRequest(list), extra);
  }

  cluster::Columns columns;
  NodeId node{0U};
};

Config OnlyBinpack(int64_t weight, const ResourceWeights& resources) {
  Config config;
  config.binpack = {true, weight, resources};
  return config;
}

Config OnlyNodeOrder(int64_t least, int64_t most, int64_t balanced) {
  Config config;
  config.node_order = {true, least, most, balanced};
  return config;
}

const api::ResourceList kOneCoreOneGib = {{"cpu", 1000}, {"memory", kGi}};

TEST(Binpack, IsTheWeightedMeanOfWhatIsUsed) {
  OneNode one;
  // (2/4 + 3/8)/2
  EXPECT_EQ(one.Score(OnlyBinpack(1, {{"cpu", 1}, {"memory", 1}}), kOneCoreOneGib), 43'750'000);
  // (5·2/4 + 3/8)/6
  EXPECT_EQ(one.Score(OnlyBinpack(10, {{"cpu", 5}, {"memory", 1}}), kOneCoreOneGib), 479'166'667);
  // Only what is requested counts.
  EXPECT_EQ(one.Score(OnlyBinpack(1, {{"cpu", 1}, {"memory", 1}}), {{"cpu", 3000}}), 100'000'000);
  EXPECT_EQ(one.Score(OnlyBinpack(1, {{"cpu", 1}, {"memory", 1}}), {}), 0);
  EXPECT_EQ(one.Score(OnlyBinpack(1, {{"cpu", 0}, {"memory", 0}}), kOneCoreOneGib), 0);
  EXPECT_EQ(one.Score(OnlyBinpack(0, {{"cpu", 1}, {"memory", 1}}), kOneCoreOneGib), 0);
}

TEST(Binpack, CountsListedResources) {
  OneNode one(8);
  const api::ResourceList pod = {{"cpu", 1000}, {"memory", kGi}, {"nvidia.com/gpu", 4}};
  // (2/4 + 3/8 + 6·4/8)/8
  EXPECT_EQ(one.Score(OnlyBinpack(1, {{"cpu", 1}, {"memory", 1}, {"nvidia.com/gpu", 6}}), pod),
            48'437'500);
  EXPECT_EQ(one.Score(OnlyBinpack(1, {{"cpu", 1}, {"memory", 1}}), pod), 43'750'000);
}

TEST(Binpack, IsNothingWhenAWeightedResourceOverflows) {
  OneNode one;
  const ResourceWeights both = {{"cpu", 1}, {"memory", 1}};
  EXPECT_EQ(one.Score(OnlyBinpack(1, both), {{"cpu", 3001}, {"memory", kGi}}), 0);
  EXPECT_EQ(one.Score(OnlyBinpack(1, both), {{"cpu", 1000}, {"memory", 7 * kGi}}), 0);
  // Without weight it does not count.
  EXPECT_EQ(
      one.Score(OnlyBinpack(1, {{"cpu", 0}, {"memory", 1}}), {{"cpu", 3001}, {"memory", 2 * kGi}}),
      50'000'000);
  // A resource that the node lacks overflows.
  EXPECT_EQ(one.Score(OnlyBinpack(1, {{"cpu", 1}, {"foo", 1}}), {{"cpu", 1000}, {"foo", 1}}), 0);
}

TEST(NodeScore, AddsATrialToWhatIsUsed) {
  OneNode one;
  std::vector<int64_t> extra(one.columns.resource_count(), 0);
  extra[one.columns.FindResource("cpu").index()] = 1000;
  const Config config = OnlyBinpack(1, {{"cpu", 1}, {"memory", 1}});
  EXPECT_EQ(one.Score(config, kOneCoreOneGib, &extra), 56'250'000);  // (3/4 + 3/8)/2
  const std::vector<int64_t> shorter;
  EXPECT_EQ(one.Score(config, kOneCoreOneGib, &shorter), 43'750'000);
}

TEST(NodeOrder, LeastAllocated) {
  OneNode one;
  const Config config = OnlyNodeOrder(1, 0, 0);
  EXPECT_EQ(one.Score(config, kOneCoreOneGib), 56'250'000);  // (2/4 + 5/8)/2
  // A resource that overflows gives 0, the other its share.
  EXPECT_EQ(one.Score(config, {{"cpu", 9000}, {"memory", kGi}}), 31'250'000);
  // A pod without requests counts as 100m and 200Mi: (2.9/4 + (6·1024 − 200)/8192)/2.
  EXPECT_EQ(one.Score(config, {}), 72'529'297);
  EXPECT_EQ(one.Score(config, {{"cpu", 1000}}), 61'279'297);
  EXPECT_EQ(one.Score(OnlyNodeOrder(3, 0, 0), kOneCoreOneGib), 168'750'000);
}

TEST(NodeOrder, MostAllocated) {
  OneNode one;
  const Config config = OnlyNodeOrder(0, 1, 0);
  EXPECT_EQ(one.Score(config, kOneCoreOneGib), 43'750'000);
  // What overflows counts as full.
  EXPECT_EQ(one.Score(config, {{"cpu", 9000}, {"memory", kGi}}), 68'750'000);
}

TEST(NodeOrder, LeavesOutWhatTheNodeLacks) {
  OneNode one;
  one.columns.SetAllocatable(one.node, {{"cpu", 4000}});
  EXPECT_EQ(one.Score(OnlyNodeOrder(1, 0, 0), kOneCoreOneGib), 50'000'000);
  EXPECT_EQ(one.Score(OnlyNodeOrder(0, 1, 0), kOneCoreOneGib), 50'000'000);
  EXPECT_EQ(one.Score(OnlyNodeOrder(0, 0, 1), kOneCoreOneGib), 100'000'000);
  one.columns.SetAllocatable(one.node, {});
  EXPECT_EQ(one.Score(OnlyNodeOrder(1, 1, 0), kOneCoreOneGib), 0);
}

TEST(NodeOrder, BalancedAllocation) {
  OneNode one;
  const Config config = OnlyNodeOrder(0, 0, 1);
  EXPECT_EQ(one.Score(config, kOneCoreOneGib), 93'750'000);  // 1 − (4/8 − 3/8)/2
  EXPECT_EQ(one.Score(config, {{"cpu", 1000}, {"memory", 2 * kGi}}), 100'000'000);
  EXPECT_EQ(one.Score(config, {{"cpu", 1000}}), 87'500'000);                   // 1 − (4/8 − 2/8)/2
  EXPECT_EQ(one.Score(config, {{"cpu", 9000}, {"memory", kGi}}), 68'750'000);  // at most 1
  EXPECT_EQ(one.Score(config, {}), 0);  // a best-effort pod is not drawn anywhere
}

TEST(NodeOrder, BalancedAllocationCountsRequestedGpus) {
  OneNode one(8);
  const Config config = OnlyNodeOrder(0, 0, 1);
  // 4/8, 3/8, 4/8: the deviation is √(1/288).
  EXPECT_EQ(one.Score(config, {{"cpu", 1000}, {"memory", kGi}, {"nvidia.com/gpu", 4}}), 94'107'443);
  EXPECT_EQ(one.Score(config, kOneCoreOneGib), 93'750'000);
}

TEST(NodeScore, SumsTheEnabledTerms) {
  OneNode one;
  Config config = OnlyNodeOrder(1, 2, 1);
  config.binpack.enabled = true;
  EXPECT_EQ(one.Score(config, kOneCoreOneGib),
            56'250'000 + 2 * 43'750'000 + 93'750'000 + 43'750'000);
  EXPECT_EQ(one.Score(Config(), kOneCoreOneGib), 0);
}

// The order in which resources were first named and weights listed never shows.
TEST(NodeScore, DoesNotDependOnTheOrderOfResources) {
  OneNode one(8);
  OneNode other(8);
  other.columns = cluster::Columns();
  for (const char* name : {"nvidia.com/gpu", "memory", "foo", "cpu"}) other.columns.Resource(name);
  other.columns.Resize(1);
  other.columns.SetAllocatable(
      other.node, {{"cpu", 4000}, {"memory", 8 * kGi}, {"nvidia.com/gpu", 8}, {"pods", 110}});
  other.columns.Use(other.node, other.columns.MakeRequest({{"cpu", 1000}, {"memory", 2 * kGi}}));

  Config config = OnlyNodeOrder(3, 1, 7);
  config.binpack = {true, 3, {{"cpu", 7}, {"memory", 11}, {"nvidia.com/gpu", 13}}};
  Config reversed = config;
  std::ranges::reverse(reversed.binpack.resources);
  const api::ResourceList pod = {{"cpu", 1700}, {"memory", 3 * kGi}, {"nvidia.com/gpu", 3}};
  EXPECT_EQ(one.Score(config, pod), other.Score(reversed, pod));
  EXPECT_EQ(one.Score(config, pod), one.Score(config, pod));
}

// A scorer outlives the arrival of new resources.
TEST(NodeScore, SeesResourcesThatAppearLater) {
  OneNode one;
  const Scorer scorer(OnlyBinpack(1, {{"foo", 1}}), one.columns);
  EXPECT_EQ(scorer.NodeScore(one.node, one.columns.MakeRequest(kOneCoreOneGib), nullptr), 0);
  one.columns.SetAllocatable(one.node, {{"foo", 10}});
  EXPECT_EQ(scorer.NodeScore(one.node, one.columns.MakeRequest({{"foo", 4}}), nullptr), 40'000'000);
}

}  // namespace
}  // namespace hopwise::sched
