#include "topology/forest.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/test_cluster.h"

namespace hopwise::topology {
namespace {

using testing::Child;
using testing::Cluster;
using ::testing::ElementsAre;
using testing::Exact;
using testing::Hyper;
using testing::InFabric;
using ::testing::IsEmpty;
using testing::Labels;
using testing::Named;
using testing::Pattern;
using ::testing::SizeIs;
using testing::With;

// --- The shape of a tree -------------------------------------------------------------------------

TEST(Forest, WithoutAnyHyperNodeThereIsTheVirtualRootAlone) {
  Cluster cluster;
  EXPECT_THAT(cluster.Look()->trees, SizeIs(1)) << "also when there are no nodes";
  cluster.Nodes({"n2", "n10", "n1"});
  EXPECT_EQ(cluster.Draw(), "n1 n2 n10");
  const auto topology = cluster.Look();
  EXPECT_THAT(topology->trees, SizeIs(1));
  EXPECT_THAT(topology->trees[0].tiers, IsEmpty());
  EXPECT_EQ(topology->trees[0].domains[0].tier, 1);
  EXPECT_EQ(topology->trees[0].domains[0].rank, 1);
  EXPECT_EQ(topology->trees[0].fabric, "");
}

//             (virtual root)  x
//        core (3)
//      /         \                      .
//  spine (2) s   leaf-10 (1): e         .
//   /     \                             .
// leaf-1  leaf-2 (1)
//  a1 a2   b1 b10
TEST(Forest, DomainsAreIntervalsOfNodesInDepthFirstOrder) {
  Cluster cluster;
  cluster.Nodes({"x", "b10", "b1", "e", "s", "a2", "a1"})
      .Add(Hyper("leaf-10", 1, {"e"}))
      .Add(Hyper("leaf-2", 1, {"b10", "b1"}))
      .Add(Hyper("leaf-1", 1, {"a1", "a2"}))
      .Add(Hyper("core", 3, {"/leaf-10", "/spine"}))
      .Add(Hyper("spine", 2, {"/leaf-2", "/leaf-1", "s"}));
  EXPECT_EQ(cluster.Draw(), "x core(leaf-10(e) spine(s leaf-1(a1 a2) leaf-2(b1 b10)))");
  EXPECT_EQ(cluster.Faults(), "");

  const Tree tree = cluster.Look()->trees[0];
  ASSERT_THAT(tree.domains, SizeIs(6));
  const Domain& spine = tree.domains[3];
  EXPECT_EQ(spine.name, "spine");
  EXPECT_EQ(spine.parent, DomainId(1U));
  EXPECT_EQ(spine.end, 6U);
  EXPECT_EQ(spine.lo, 2U);
  EXPECT_EQ(spine.direct, 3U);
  EXPECT_EQ(spine.hi, 7U);
  EXPECT_EQ(spine.node_count(), 5U);
  EXPECT_EQ(tree.domains[0].node_count(), 7U);
  EXPECT_EQ(tree.position[cluster.IdOf("s").index()], 2U);
  EXPECT_EQ(tree.leaf_of[cluster.IdOf("s").index()], DomainId(3U));
  EXPECT_EQ(tree.leaf_of[cluster.IdOf("x").index()], DomainId(0U));
}

TEST(Forest, SiblingsRootsAndNodesStandInNaturalOrder) {
  Cluster cluster;
  cluster.Nodes({"n1", "n2", "n10", "n20"})
      .Add(Hyper("rack-10", 1, {"n20", "n10"}))
      .Add(Hyper("rack-9", 1, {"n2"}))
      .Add(Hyper("rack-1", 1, {"n1"}))
      .Add(Hyper("row-10", 2, {"/rack-1"}))
      .Add(Hyper("row-9", 2, {"/rack-10", "/rack-9"}));
  EXPECT_EQ(cluster.Draw(), "row-9(rack-9(n2) rack-10(n10 n20)) row-10(rack-1(n1))");
}

TEST(Forest, TiersMayLeaveGapsAndDepthsMayDiffer) {
  Cluster cluster;
  cluster.Nodes({"a", "b"})
      .Add(Hyper("low", 0, {"a"}))
      .Add(Hyper("mid", 7, {"b"}))
      .Add(Hyper("top", 40, {"/low", "/mid"}));
  const Tree tree = cluster.Look()->trees[0];
  EXPECT_THAT(tree.tiers, ElementsAre(0, 7, 40));
  EXPECT_EQ(tree.domains[0].tier, 41);
  EXPECT_EQ(tree.domains[2].rank, 1);
  EXPECT_EQ(tree.domains[3].rank, 2);
}

TEST(Forest, TheHighestTierNumberThereIsHasARootAboveIt) {
  Cluster cluster;
  cluster.Nodes({"a"}).Add(Hyper("h", 2'147'483'647, {"a"}));
  EXPECT_EQ(cluster.Draw(), "h(a)");
  EXPECT_EQ(cluster.Look()->trees[0].root_rank(), 2);
}

TEST(Forest, AHyperNodeWithoutNodesIsAnEmptyDomainAndSaysSo) {
  Cluster cluster;
  cluster.Nodes({"a"}).Add(Hyper("gone", 1, {"no-such-node"})).Add(Hyper("none", 1, {}));
  EXPECT_EQ(cluster.Draw(), "a gone() none()");
  EXPECT_EQ(cluster.Faults(), "gone:Empty? none:Empty?");
  EXPECT_EQ(cluster.NodeCount("gone"), 0);
  EXPECT_TRUE(cluster.Look()->hypernodes[0].in_tree);
  cluster.Nodes({"no-such-node"});
  EXPECT_EQ(cluster.Draw(), "a gone(no-such-node) none()") << "the node has come";
}

// --- Membership ----------------------------------------------------------------------------------

// Case 013: prefixes and members matched twice.
TEST(Forest, APatternMatchesAnywhereAndASetCountsOnce) {
  Cluster cluster;
  cluster.Nodes({"gpu-1", "gpu-2", "gpu-10", "gpu-11", "m1", "m2"})
      .Add(Hyper("rack-1", 1, {"gpu-1", "gpu-2"}))
      .Add(With(Hyper("rack-10", 1, {}), {Pattern("^gpu-1[01]$")}))
      .Add(With(Hyper("rack-2", 1, {"m1"}), {Pattern("^m[12]$")}))
      .Add(Hyper("row", 2, {"/rack-1", "/rack-10", "/rack-2"}));
  EXPECT_EQ(cluster.Draw(), "row(rack-1(gpu-1 gpu-2) rack-2(m1 m2) rack-10(gpu-10 gpu-11))");
  EXPECT_EQ(cluster.Faults(), "");
  for (const char* rack : {"rack-1", "rack-2", "rack-10"}) EXPECT_EQ(cluster.NodeCount(rack), 2);
  EXPECT_EQ(cluster.NodeCount("row"), 3);
}

TEST(Forest, NodeCountIsExistingNodesPlusExistingChildren) {
  Cluster cluster;
  cluster.Nodes({"a", "b", "c"})
      .Add(Hyper("leaf", 1, {"a", "b"}))
      .Add(With(Hyper("mixed", 2, {"c", "c", "gone", "/leaf", "/leaf", "/missing"}), {Exact("c")}))
      .Add(Hyper("loop", 1, {"/loop", "a"}));
  EXPECT_EQ(cluster.NodeCount("leaf"), 2);
  EXPECT_EQ(cluster.NodeCount("mixed"), 2);
  EXPECT_EQ(cluster.NodeCount("loop"), 2) << "also for one that is out";
  cluster.DropNode("a");
  EXPECT_EQ(cluster.NodeCount("leaf"), 1);
  EXPECT_EQ(cluster.NodeCount("loop"), 1);
}

TEST(Forest, TheNodesNameIsItsIdentityAndTheHostnameOneMoreLabel) {
  Cluster cluster;
  cluster.Node("node-x1", {{"kubernetes.io/hostname", "x1"}})
      .Node("node-x2", {{"kubernetes.io/hostname", "x2"}})
      .Add(Hyper("by-name", 1, {"node-x1", "x2"}))
      .Add(With(Hyper("by-label", 1, {}), {Labels({{"kubernetes.io/hostname", "x2"}})}));
  EXPECT_EQ(cluster.Draw(), "by-label(node-x2) by-name(node-x1)");
}

TEST(Forest, ANodeFollowsItsLabels) {
  Cluster cluster;
  cluster.Node("a", {{"rack", "r1"}})
      .Node("b", {{"rack", "r1"}})
      .Add(With(Hyper("r1", 1, {}), {Labels({{"rack", "r1"}})}))
      .Add(With(Hyper("r2", 1, {}), {Labels({{"rack", "r2"}})}));
  EXPECT_EQ(cluster.Draw(), "r1(a b) r2()");
  cluster.Node("a", {{"rack", "r2"}});
  EXPECT_EQ(cluster.Draw(), "r1(b) r2(a)");
  EXPECT_EQ(cluster.NodeCount("r1"), 1);
  cluster.Node("a", {}).DropNode("b");
  EXPECT_EQ(cluster.Draw(), "a r1() r2()");
  EXPECT_EQ(cluster.NodeCount("r1"), 0) << "a node that leaves does not stay behind";
}

TEST(Forest, AHyperNodesNewMembersReplaceTheOldOnes) {
  Cluster cluster;
  cluster.Nodes({"a", "b", "c"}).Add(Hyper("h", 1, {"a", "b"}));
  EXPECT_EQ(cluster.Draw(), "c h(a b)");
  cluster.Add(With(Hyper("h", 1, {}), {Pattern("[bc]")}));
  EXPECT_EQ(cluster.Draw(), "a h(b c)");
  cluster.Drop("h");
  EXPECT_EQ(cluster.Draw(), "a b c");
  EXPECT_THAT(cluster.Look()->hypernodes, IsEmpty());
  cluster.Drop("h").Add(Hyper("h2", 1, {"c"}));
  EXPECT_EQ(cluster.Draw(), "a b h2(c)");
}

TEST(Forest, AHyperNodeRemovedAndMadeAgainBetweenTwoLooksIsTheNewOne) {
  Cluster cluster;
  cluster.Nodes({"a", "b"}).Add(Hyper("h", 1, {"a"}));
  EXPECT_EQ(cluster.Draw(), "b h(a)");
  cluster.Drop("h").Add(Hyper("h", 1, {"b"})).Drop("h").Add(Hyper("h", 1, {"a", "b"}));
  EXPECT_EQ(cluster.Draw(), "h(a b)");
  EXPECT_EQ(cluster.NodeCount("h"), 2);
}

TEST(Forest, ManyHyperNodesChangedAtOnceAreMatchedAsOneByOne) {
  // More than are worth a pass over the nodes each.
  Cluster cluster;
  std::string expected;
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    cluster.Node("n" + n, {{"rack", n}});
    expected += (i == 0 ? "h" : " h") + n + "(n" + n + ")";
  }
  cluster.Look();
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    cluster.Add(With(Hyper("h" + n, 1, {}),
                     {i % 2 == 0 ? Pattern("^n" + n + "$") : Labels({{"rack", n}})}));
  }
  EXPECT_EQ(cluster.Draw(), expected);
  EXPECT_EQ(cluster.Faults(), "");
}

TEST(Forest, ASlotMayBeTakenOverByAnotherName) {
  Forest forest;
  forest.UpsertHyperNode(Hyper("h", 1, {"old", "new"}));
  forest.UpsertNode(NodeId(0U), "old", {});
  EXPECT_EQ(forest.Snapshot()->trees[0].domains[1].node_count(), 1U);
  forest.RemoveNode(NodeId(0U));
  forest.UpsertNode(NodeId(0U), "other", {});
  EXPECT_EQ(forest.Snapshot()->trees[0].domains[1].node_count(), 0U);
  EXPECT_EQ(forest.Snapshot()->hypernodes[0].node_count, 0);
  forest.UpsertNode(NodeId(0U), "new", {});  // without a removal in between
  EXPECT_EQ(forest.Snapshot()->trees[0].domains[1].node_count(), 1U);
}

TEST(Forest, IdsWithoutANodeHaveNoPosition) {
  Cluster cluster;
  cluster.Nodes({"a", "b", "c"}).Add(Hyper("h", 1, {"a", "b", "c"})).DropNode("b");
  const Tree tree = cluster.Look()->trees[0];
  EXPECT_THAT(tree.position, ElementsAre(0, Tree::kNoPosition, 1));
  EXPECT_THAT(tree.leaf_of, ElementsAre(DomainId(1U), DomainId(0U), DomainId(1U)));
  EXPECT_THAT(tree.order, ElementsAre(NodeId(0U), NodeId(2U)));
}

TEST(Forest, RemovingWhatDoesNotExistChangesNothing) {
  Forest forest;
  const auto before = forest.Snapshot();
  forest.RemoveHyperNode("nobody");
  forest.RemoveNode(NodeId(9U));
  EXPECT_EQ(forest.Snapshot(), before);
}

// --- Versions ------------------------------------------------------------------------------------

TEST(Forest, APictureIsDrawnAgainOnlyWhenItWouldDiffer) {
  Cluster cluster;
  cluster.Node("a", {{"rack", "r1"}})
      .Add(With(Hyper("h", 1, {}), {Labels({{"rack", "r1"}})}))
      .Add(Hyper("up", 2, {"/h"}));
  const auto first = cluster.Look();
  EXPECT_EQ(first->version, 1U);

  cluster.Add(Hyper("up", 2, {"/h"}));
  cluster.Node("a", {{"rack", "r1"}, {"zone", "z"}});
  cluster.Add(With(Hyper("h", 1, {}), {Labels({{"rack", "r1"}})}));
  EXPECT_EQ(cluster.Look(), first) << "nothing that shows has changed";
  cluster.Add(testing::Born(Hyper("up", 2, {"/h"}), 5));
  EXPECT_EQ(cluster.Look(), first) << "a creation time that decides nothing";

  cluster.Node("a", {{"rack", "r2"}});
  EXPECT_EQ(cluster.Look()->version, 2U);
  cluster.Add(Named(Hyper("up", 2, {"/h"}), "spine"));
  EXPECT_EQ(cluster.Look()->version, 3U);
  EXPECT_EQ(cluster.Draw(first->trees[0]), "up(h(a))") << "whoever holds the old one keeps it";
}

TEST(Forest, CanBeMoved) {
  Forest forest;
  forest.UpsertNode(NodeId(0U), "a", {});
  Forest moved = std::move(forest);
  EXPECT_THAT(moved.Snapshot()->trees[0].order, ElementsAre(NodeId(0U)));
}

// --- Fabrics -------------------------------------------------------------------------------------

//   primary:  leaf-1 (1): n1 n2 n3     leaf-2 (1): n4
//   nvlink:   nvl-a (1): n1 n2         nvl-b (1): n3 n4
TEST(Forest, EachFabricIsATreeOverAllNodes) {
  Cluster cluster;
  cluster.Nodes({"n1", "n2", "n3", "n4", "n5"})
      .Add(Hyper("leaf-1", 1, {"n1", "n2", "n3"}))
      .Add(Hyper("leaf-2", 1, {"n4"}))
      .Add(InFabric(Hyper("nvl-b", 1, {"n3", "n4"}), "nvlink"))
      .Add(InFabric(Hyper("nvl-a", 1, {"n1", "n2"}), "nvlink"))
      .Add(InFabric(Hyper("side", 3, {"n5"}), "ethernet"));
  ASSERT_THAT(cluster.Look()->trees, SizeIs(3));
  EXPECT_EQ(cluster.Look()->trees[1].fabric, "ethernet");
  EXPECT_EQ(cluster.Look()->trees[2].fabric, "nvlink");
  EXPECT_EQ(cluster.Draw(0), "n5 leaf-1(n1 n2 n3) leaf-2(n4)");
  EXPECT_EQ(cluster.Draw(1), "n1 n2 n3 n4 side(n5)");
  EXPECT_EQ(cluster.Draw(2), "n5 nvl-a(n1 n2) nvl-b(n3 n4)");
  EXPECT_EQ(cluster.Faults(), "") << "fabrics may cross";
  EXPECT_THAT(cluster.Look()->trees[1].tiers, ElementsAre(3));
}

TEST(Forest, ThePrimaryFabricIsThereEvenIfNoHyperNodeIsInIt) {
  Cluster cluster;
  cluster.Nodes({"n1"}).Add(InFabric(Hyper("nvl", 1, {"n1"}), "nvlink"));
  ASSERT_THAT(cluster.Look()->trees, SizeIs(2));
  EXPECT_EQ(cluster.Draw(0), "n1");
  EXPECT_EQ(cluster.Draw(1), "nvl(n1)");
  cluster.Drop("nvl");
  EXPECT_THAT(cluster.Look()->trees, SizeIs(1));
}

TEST(Forest, TheFabricIsNamedByLabelElseByAnnotation) {
  Cluster cluster;
  api::HyperNode hypernode = Hyper("h", 1, {"n1"});
  hypernode.meta.annotations = {{"hopwise.dev/fabric", "by-annotation"}};
  cluster.Nodes({"n1"}).Add(hypernode);
  EXPECT_EQ(cluster.Look()->trees[1].fabric, "by-annotation");
  cluster.Add(InFabric(hypernode, "by-label"));
  EXPECT_EQ(cluster.Look()->trees[1].fabric, "by-label");
}

TEST(Forest, AChildOfAnotherFabricIsNoChild) {
  Cluster cluster;
  cluster.Nodes({"a", "b"})
      .Add(InFabric(Hyper("nvl", 1, {"a"}), "nvlink"))
      .Add(Hyper("spine", 2, {"/nvl", "b"}));
  EXPECT_EQ(cluster.Draw(0), "a spine(b)");
  EXPECT_EQ(cluster.Draw(1), "b nvl(a)");
  EXPECT_EQ(cluster.Faults(), "spine:MissingChild?");
  EXPECT_THAT(cluster.Messages("spine"), ::testing::HasSubstr("another fabric"));
  EXPECT_EQ(cluster.NodeCount("spine"), 2);
}

// --- Label trees ---------------------------------------------------------------------------------

TEST(LabelTree, OneDomainForEachValueInNaturalOrder) {
  Cluster cluster;
  cluster.Node("a", {{"rack", "r10"}})
      .Node("b", {{"rack", "r2"}})
      .Node("d", {{"rack", "r10"}})
      .Node("c", {});
  const Tree tree = cluster.forest().LabelTree({"rack"});
  EXPECT_EQ(cluster.Draw(tree), "c r2(b) r10(a d)");
  EXPECT_EQ(tree.fabric, "rack");
  EXPECT_THAT(tree.tiers, ElementsAre(1));
  EXPECT_THAT(tree.tier_names, ElementsAre("rack"));
  EXPECT_EQ(tree.domains[0].rank, 2);
  EXPECT_EQ(tree.domains[0].tier, 2);
  EXPECT_EQ(tree.domains[1].rank, 1);
  EXPECT_EQ(tree.domains[1].tier, 1);
  EXPECT_EQ(tree.domains[1].parent, DomainId(0U));
  EXPECT_EQ(tree.leaf_of[cluster.IdOf("d").index()], DomainId(2U));
}

TEST(LabelTree, TheSameValueUnderTwoParentsMakesTwoDomains) {
  Cluster cluster;
  cluster.Node("a", {{"block", "b1"}, {"rack", "s1"}})
      .Node("b", {{"block", "b2"}, {"rack", "s1"}})
      .Node("c", {{"rack", "s1"}});
  const Tree tree = cluster.forest().LabelTree({"block", "rack"});
  EXPECT_EQ(cluster.Draw(tree), "c b1/s1(a) b2/s1(b)");
  EXPECT_THAT(tree.tier_names, ElementsAre("block/rack"));
}

TEST(LabelTree, AnEmptyValueIsAValueAndNoKeysAreNoDomain) {
  Cluster cluster;
  cluster.Node("a", {{"rack", ""}}).Node("b", {});
  EXPECT_EQ(cluster.Draw(cluster.forest().LabelTree({"rack"})), "b (a)");
  EXPECT_EQ(cluster.Draw(cluster.forest().LabelTree({})), "a b");
  EXPECT_EQ(cluster.Draw(cluster.forest().LabelTree({"zone"})), "a b");
}

TEST(LabelTree, SeesNodesThatCameSinceTheLastSnapshot) {
  Cluster cluster;
  cluster.Node("b", {{"rack", "r1"}});
  cluster.Look();
  cluster.Node("a", {{"rack", "r1"}}).DropNode("b");
  EXPECT_EQ(cluster.Draw(cluster.forest().LabelTree({"rack"})), "r1(a)");
}

// --- Size ----------------------------------------------------------------------------------------

TEST(Forest, AHyperNodeMayHaveAHundredThousandMembers) {
  Forest forest;
  api::HyperNode all = Hyper("all", 1, {});
  for (uint32_t i = 0; i < 100'000; ++i) {
    all.members.push_back(Exact("n" + std::to_string(i)));
    forest.UpsertNode(NodeId(i), *all.members.back().exact, {});
  }
  forest.UpsertHyperNode(all);
  const auto topology = forest.Snapshot();
  EXPECT_EQ(topology->trees[0].domains[1].node_count(), 100'000U);
  EXPECT_EQ(topology->hypernodes[0].node_count, 100'000);
  EXPECT_EQ(topology->trees[0].order[99'999], NodeId(99'999U));
  forest.RemoveNode(NodeId(50'000U));
  EXPECT_EQ(forest.Snapshot()->trees[0].domains[1].node_count(), 99'999U);
}

}  // namespace
}  // namespace hopwise::topology
