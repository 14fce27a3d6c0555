// Broken HyperNodes: each takes out its own branch, says why, and leaves the rest alone, in
// whatever order the objects came.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/forest.h"
#include "topology/test_cluster.h"

namespace hopwise::topology {
namespace {

using ::testing::AllOf;
using testing::Born;
using testing::Child;
using testing::Cluster;
using ::testing::HasSubstr;
using testing::Hyper;
using testing::InFabric;
using testing::Labels;
using testing::Named;
using testing::Pattern;
using testing::With;

// Expects the tree and the faults for the objects in every order, with a look in between.
void ExpectInEveryOrder(const std::vector<std::string>& nodes, std::vector<api::HyperNode> objects,
                        const std::string& tree, const std::string& faults) {
  const auto less = [](const auto& a, const auto& b) { return a.meta.name < b.meta.name; };
  std::sort(objects.begin(), objects.end(), less);
  size_t round = 0;
  do {
    Cluster cluster;
    const size_t nodes_come = round % (objects.size() + 1);
    const size_t look_after = round / (objects.size() + 1) % (objects.size() + 1);
    for (size_t i = 0; i <= objects.size(); ++i) {
      if (i == nodes_come) cluster.Nodes(nodes);
      if (i == look_after) cluster.Look();
      if (i < objects.size()) cluster.Add(objects[i]);
    }
    ASSERT_EQ(cluster.Draw(), tree) << "order " << round;
    ASSERT_EQ(cluster.Faults(), faults) << "order " << round;
    ++round;
  } while (std::next_permutation(objects.begin(), objects.end(), less));
}

// --- Case 029 ------------------------------------------------------------------------------------

//              spine (2)            and ten objects that are broken, each in its own way
//             /         \                                                              .
//    leaf-a (1)         leaf-b (1)
//      a1 a2              b1 b2
std::vector<api::HyperNode> BrokenObjects() {
  return {Hyper("leaf-a", 1, {"a1", "a2"}),
          Hyper("leaf-b", 1, {"b1", "b2"}),
          Hyper("spine", 2, {"/leaf-a", "/leaf-b"}),
          Hyper("loop-x", 2, {"/loop-y"}),
          Hyper("loop-y", 2, {"/loop-x"}),
          Hyper("selfie", 1, {"/selfie"}),
          Hyper("gone", 1, {"no-such-node"}),
          Hyper("dangling", 2, {"/leaf-missing"}),
          With(Hyper("bad-regex", 1, {}), {Pattern("gpu-[0-")}),
          Hyper("upside-down", 1, {"/spine"}),
          Hyper("twice", 1, {"a1"}),
          With(Hyper("empty-match", 1, {}), {Labels({})})};
}

void ExpectCase029(Cluster& cluster) {
  EXPECT_EQ(cluster.Draw(), "dangling() gone() spine(leaf-a(a1 a2) leaf-b(b1 b2))");
  EXPECT_EQ(cluster.Faults(),
            "bad-regex:BadPattern dangling:MissingChild? dangling:Empty? empty-match:Overlap "
            "gone:Empty? loop-x:Cycle loop-y:Cycle selfie:Cycle twice:Overlap "
            "upside-down:TierOrder");
  EXPECT_THAT(cluster.Messages("loop-x"), AllOf(HasSubstr("cycle"), HasSubstr("loop-y")));
  EXPECT_THAT(cluster.Messages("selfie"), HasSubstr("cycle"));
  EXPECT_THAT(cluster.Messages("bad-regex"), AllOf(HasSubstr("pattern"), HasSubstr("gpu-[0-")));
  EXPECT_THAT(cluster.Messages("dangling"), HasSubstr("leaf-missing"));
  EXPECT_THAT(cluster.Messages("twice"), AllOf(HasSubstr("a1"), HasSubstr("leaf-a")));
  EXPECT_THAT(cluster.Messages("upside-down"), HasSubstr("spine (tier 2)"));
  EXPECT_EQ(cluster.NodeCount("gone"), 0);
}

TEST(Case029, OneBadObjectNeverDisablesTheRest) {
  Cluster cluster;
  cluster.Nodes({"a1", "a2", "b1", "b2"});
  for (const api::HyperNode& object : BrokenObjects()) cluster.Add(object);
  ExpectCase029(cluster);
}

TEST(Case029, NorInReverseOrderNorWithLeafALast) {
  std::vector<api::HyperNode> objects = BrokenObjects();
  std::reverse(objects.begin(), objects.end());
  Cluster reversed;
  for (const api::HyperNode& object : objects) reversed.Add(object);
  reversed.Nodes({"b2", "b1", "a2", "a1"});
  ExpectCase029(reversed);

  std::rotate(objects.begin(), objects.end() - 1, objects.end());  // leaf-a is last of the reverse
  std::reverse(objects.begin(), objects.end());
  ASSERT_EQ(objects.back().meta.name, "leaf-a");
  Cluster last;
  last.Nodes({"a1", "a2", "b1", "b2"});
  for (const api::HyperNode& object : objects) {
    last.Add(object);
    last.Look();
  }
  ExpectCase029(last);
}

TEST(Case029, WhatIsMendedStandsAgain) {
  Cluster cluster;
  cluster.Nodes({"a1", "a2", "b1", "b2"});
  for (const api::HyperNode& object : BrokenObjects()) cluster.Add(object);
  cluster.Look();
  cluster.Drop("twice")
      .Drop("empty-match")
      .Drop("upside-down")
      .Drop("selfie")
      .Add(Hyper("loop-y", 1, {}))
      .Add(With(Hyper("bad-regex", 1, {}), {Pattern("gpu-[0-9]")}));
  EXPECT_EQ(cluster.Draw(),
            "bad-regex() dangling() gone() loop-x(loop-y()) "
            "spine(leaf-a(a1 a2) leaf-b(b1 b2))");
}

// --- Cycles --------------------------------------------------------------------------------------

// top -> x -> y -> x;  y -> leaf: a
TEST(Cycle, MembersAreOutAndWhatHangsBelowStandsAsARoot) {
  ExpectInEveryOrder({"a", "b"},
                     {Hyper("top", 4, {"/x", "b"}), Hyper("x", 3, {"/y"}),
                      Hyper("y", 2, {"/x", "/leaf"}), Hyper("leaf", 1, {"a"})},
                     "leaf(a) top(b)", "x:Cycle y:Cycle");
}

TEST(Cycle, ItsNodesFallToTheSoundParentOfAMember) {
  ExpectInEveryOrder({"a", "b"},
                     {Hyper("top", 3, {"/self", "b"}), Hyper("self", 1, {"/self", "a"})},
                     "top(a b)", "self:Cycle");
}

// --- Children ------------------------------------------------------------------------------------

TEST(MissingChild, IsDroppedAndNamedTheRestOfItsParentStands) {
  Cluster cluster;
  cluster.Nodes({"a"})
      .Add(Hyper("leaf", 1, {"a"}))
      .Add(Hyper("spine", 2, {"/leaf", "/lost-1", "/lost-2"}));
  EXPECT_EQ(cluster.Draw(), "spine(leaf(a))");
  EXPECT_EQ(cluster.Faults(), "spine:MissingChild?");
  EXPECT_THAT(cluster.Messages("spine"), HasSubstr("lost-1 and lost-2"));
  cluster.Add(Hyper("lost-1", 1, {})).Add(Hyper("lost-2", 1, {}));
  EXPECT_EQ(cluster.Draw(), "spine(leaf(a) lost-1() lost-2())");
}

TEST(TierOrder, TheParentIsOutTheChildStands) {
  ExpectInEveryOrder({"a", "b"},
                     {Hyper("leaf", 1, {"a"}), Hyper("same", 1, {"/leaf", "b"}),
                      Hyper("spine", 2, {"/leaf"}), Hyper("core", 3, {"/spine", "/same"})},
                     "core(b spine(leaf(a)))", "same:TierOrder");
}

// Two spines name leaf-1.
TEST(TwoParents, TheOneThatIsLinkedStands) {
  ExpectInEveryOrder({"a", "b"},
                     {Hyper("leaf-1", 1, {"a"}), Born(Hyper("spine-a", 2, {"/leaf-1", "b"}), 1),
                      Born(Hyper("spine-b", 2, {"/leaf-1"}), 2), Hyper("core", 3, {"/spine-b"})},
                     "b core(spine-b(leaf-1(a)))", "spine-a:TwoParents");
}

TEST(TwoParents, ThenTheOlderThenTheLesserName) {
  ExpectInEveryOrder({"a", "b"},
                     {Hyper("leaf-1", 1, {"a"}), Hyper("leaf-2", 1, {"b"}),
                      Born(Hyper("spine-a", 2, {"/leaf-1", "/leaf-2"}), 2),
                      Born(Hyper("spine-b", 2, {"/leaf-1"}), 1)},
                     "leaf-2(b) spine-b(leaf-1(a))", "spine-a:TwoParents");
  ExpectInEveryOrder({"a"},
                     {Hyper("leaf-1", 1, {"a"}), Hyper("spine-b", 2, {"/leaf-1"}),
                      Hyper("spine-a", 3, {"/leaf-1"})},
                     "spine-a(leaf-1(a))", "spine-b:TwoParents");
}

TEST(TwoParents, TheMessageNamesChildAndWinnerAndWhy) {
  Cluster cluster;
  cluster.Add(Hyper("leaf-1", 1, {}))
      .Add(Born(Hyper("spine-a", 2, {"/leaf-1"}), 1))
      .Add(Born(Hyper("spine-b", 2, {"/leaf-1"}), 2));
  EXPECT_EQ(cluster.Messages("spine-b"),
            "HyperNode spine-b is out: its child leaf-1 is also a child of HyperNode spine-a, "
            "which stands because it is older.\n");
}

// core names spine and, needlessly, spine's own child.
TEST(TwoParents, AParentThatNamesItsGrandchildIsOnlyTold) {
  ExpectInEveryOrder({"a"},
                     {Hyper("leaf", 1, {"a"}), Hyper("spine", 2, {"/leaf"}),
                      Hyper("core", 3, {"/spine", "/leaf"})},
                     "core(spine(leaf(a)))", "core:TwoParents?");
}

TEST(TwoParents, AClaimOfOneThatIsOutIsNoClaim) {
  ExpectInEveryOrder(
      {"a"}, {Hyper("leaf", 2, {"a"}), Hyper("early", 2, {"/leaf"}), Hyper("spine", 3, {"/leaf"})},
      "spine(leaf(a))", "early:TierOrder");
}

// --- Selectors -----------------------------------------------------------------------------------

TEST(BadPattern, TakesItsHyperNodeOutAndItsOtherNodesFallToTheParent) {
  ExpectInEveryOrder({"a", "b"},
                     {With(Hyper("leaf", 1, {"a"}), {Pattern("(")}), Hyper("spine", 2, {"/leaf"})},
                     "b spine(a)", "leaf:BadPattern");
}

TEST(BadSelector, TheMemberIsIgnoredAndNamedTheRestStands) {
  Cluster cluster;
  api::HyperNodeMember none;
  api::HyperNodeMember both = Pattern("b");
  both.exact = "c";
  api::HyperNodeMember child_by_pattern = Pattern("leaf-.*");
  child_by_pattern.type = api::MemberType::kHyperNode;
  api::HyperNodeMember child_by_label = Labels({});
  child_by_label.type = api::MemberType::kHyperNode;
  cluster.Nodes({"a", "b", "c"})
      .Add(Hyper("leaf-1", 1, {"b"}))
      .Add(With(Hyper("h", 2, {"a"}),
                {none, both, child_by_pattern, child_by_label, Pattern(""), testing::Exact("")}));
  EXPECT_EQ(cluster.Draw(), "c h(a) leaf-1(b)");
  EXPECT_EQ(cluster.Faults(),
            "h:BadSelector? h:BadSelector? h:BadSelector? h:BadSelector? "
            "h:BadSelector? h:BadSelector?");
  EXPECT_THAT(cluster.Messages("h"),
              AllOf(HasSubstr("Member 2 of HyperNode h has no selector"),
                    HasSubstr("Member 3 of HyperNode h sets more than one"),
                    HasSubstr("Member 4 of HyperNode h is a HyperNode"),
                    HasSubstr("Member 5 of HyperNode h is a HyperNode"),
                    HasSubstr("Member 6 of HyperNode h has a regexMatch without a pattern"),
                    HasSubstr("Member 7 of HyperNode h has an exactMatch without a name")));
}

// --- Overlap -------------------------------------------------------------------------------------

// A storage switch that sees every host.
TEST(Overlap, TheOneUnderASoundParentStandsThoughItIsYounger) {
  ExpectInEveryOrder(
      {"a", "b", "c"},
      {Born(Hyper("storage", 1, {"a", "b", "c"}), 1), Born(Hyper("leaf-1", 1, {"a"}), 2),
       Born(Hyper("leaf-2", 1, {"b"}), 2), Hyper("spine", 2, {"/leaf-1", "/leaf-2"})},
      "c spine(leaf-1(a) leaf-2(b))", "storage:Overlap");
}

TEST(Overlap, AmongRootsTheOlderStandsThenTheLesserName) {
  ExpectInEveryOrder({"a", "b", "c"},
                     {Born(Hyper("x", 1, {"a", "b"}), 3), Born(Hyper("y", 1, {"b", "c"}), 2)},
                     "a y(b c)", "x:Overlap");
  ExpectInEveryOrder({"a", "b", "c"}, {Hyper("x", 1, {"a", "b"}), Hyper("y", 1, {"b", "c"})},
                     "c x(a b)", "y:Overlap");
}

TEST(Overlap, AlsoBetweenTiersUnlessOneIsTheOthersAncestor) {
  ExpectInEveryOrder({"a", "b"},
                     {Born(Hyper("leaf", 1, {"a"}), 1), Born(Hyper("block", 2, {"a", "b"}), 2)},
                     "b leaf(a)", "block:Overlap");
  ExpectInEveryOrder({"a", "b"}, {Hyper("leaf", 1, {"a"}), Hyper("block", 2, {"/leaf", "a", "b"})},
                     "block(b leaf(a))", "");
}

TEST(Overlap, ThroughChildrenIsSettledAmongTheChildren) {
  // spine-1(leaf-1: a, leaf-2: b) and spine-2(leaf-3: b c): b is in leaf-2 and leaf-3.
  ExpectInEveryOrder(
      {"a", "b", "c"},
      {Hyper("leaf-1", 1, {"a"}), Hyper("leaf-2", 1, {"b"}), Hyper("leaf-3", 1, {"b", "c"}),
       Hyper("spine-1", 2, {"/leaf-1", "/leaf-2"}), Hyper("spine-2", 2, {"/leaf-3"})},
      "spine-1(leaf-1(a) leaf-2(b)) spine-2(c)", "leaf-3:Overlap");
}

TEST(Overlap, ALoserThatWouldHaveBeatenAThirdDoesNot) {
  // x beats y over b; y would have beaten z over c.
  ExpectInEveryOrder(
      {"a", "b", "c", "d"},
      {Hyper("x", 1, {"a", "b"}), Hyper("y", 1, {"b", "c"}), Hyper("z", 1, {"c", "d"})},
      "x(a b) z(c d)", "y:Overlap");
}

TEST(Overlap, ChildrenOfALoserBecomeRootsAndItsNodesFallToItsParent) {
  // mid is out over b. Its node d falls to core; its child leaf becomes a root and keeps c, which
  // core names, too: they were ancestor and descendant, so that is no new overlap.
  ExpectInEveryOrder(
      {"a", "b", "c", "d"},
      {Born(Hyper("other", 2, {"b"}), 1), Born(Hyper("core", 3, {"/mid", "/other", "a", "c"}), 2),
       Born(Hyper("mid", 2, {"b", "d", "/leaf"}), 2), Hyper("leaf", 1, {"c"})},
      "core(a d other(b)) leaf(c)", "mid:Overlap");
}

TEST(Overlap, TheMessageNamesNodeWinnerAndHowMuchElse) {
  Cluster cluster;
  cluster.Nodes({"n1", "n2", "n3", "n10"})
      .Add(Hyper("a", 1, {"n10", "n2", "n3"}))
      .Add(Hyper("b", 1, {"n10", "n2", "n3"}))
      .Add(Hyper("c", 1, {"n1"}))
      .Add(Hyper("d", 1, {"n1"}));
  EXPECT_EQ(cluster.Messages("b"),
            "HyperNode b is out: node n2 is also held by HyperNode a, which stands because it has "
            "the lesser name. 2 more of its nodes are taken, too.\n");
  EXPECT_EQ(cluster.Messages("d"),
            "HyperNode d is out: node n1 is also held by HyperNode c, which stands because it has "
            "the lesser name.\n");
}

TEST(Overlap, EndsWhenTheSharedNodeLeaves) {
  Cluster cluster;
  cluster.Nodes({"a", "b", "c"}).Add(Hyper("x", 1, {"a", "b"})).Add(Hyper("y", 1, {"b", "c"}));
  EXPECT_EQ(cluster.Faults(), "y:Overlap");
  cluster.DropNode("b");
  EXPECT_EQ(cluster.Faults(), "");
  EXPECT_EQ(cluster.Draw(), "x(a) y(c)");
}

// --- Wrong on the way ----------------------------------------------------------------------------

// leaf moves from spine-a to spine-b; the events come b first, then a.
TEST(Moves, AChildThatMovesIsWhereTheLastStateSays) {
  Cluster cluster;
  cluster.Nodes({"n"})
      .Add(Hyper("leaf", 1, {"n"}))
      .Add(Hyper("spine-a", 2, {"/leaf"}))
      .Add(Hyper("spine-b", 2, {}));
  EXPECT_EQ(cluster.Draw(), "spine-a(leaf(n)) spine-b()");
  cluster.Add(Hyper("spine-b", 2, {"/leaf"}));
  EXPECT_EQ(cluster.Draw(), "spine-a(leaf(n))");
  EXPECT_EQ(cluster.Faults(), "spine-b:TwoParents");
  cluster.Add(Hyper("spine-a", 2, {}));
  EXPECT_EQ(cluster.Draw(), "spine-a() spine-b(leaf(n))");
  EXPECT_EQ(cluster.Faults(), "spine-a:Empty?");
}

TEST(Moves, ATopologyDeletedAndMadeAgainWithOneMoreTierIsTheNewOne) {
  Cluster cluster;
  cluster.Nodes({"a", "b"}).Add(Hyper("l1", 1, {"a"})).Add(Hyper("l2", 1, {"b"}));
  EXPECT_EQ(cluster.Draw(), "l1(a) l2(b)");
  cluster.Drop("l1").Drop("l2").Add(Hyper("s", 2, {"/l1", "/l2"}));
  cluster.Look();
  cluster.Add(Hyper("l2", 1, {"b"})).Add(Hyper("l1", 1, {"a"}));
  EXPECT_EQ(cluster.Draw(), "s(l1(a) l2(b))");
  EXPECT_EQ(cluster.Faults(), "");
}

// --- Warnings ------------------------------------------------------------------------------------

TEST(NameClash, AHyperNodeNamedLikeANodeIsLegal) {
  Cluster cluster;
  cluster.Nodes({"n1"}).Add(Hyper("n1", 1, {"n1"})).Add(Hyper("up", 2, {"/n1"}));
  EXPECT_EQ(cluster.Draw(), "up(n1(n1))");
  EXPECT_EQ(cluster.Faults(), "n1:NameClash?");
}

TEST(TierNameClash, IsToldToEachObjectThatTakesPart) {
  Cluster cluster;
  cluster.Nodes({"a", "b", "c", "d"})
      .Add(Named(Hyper("h1", 1, {"a"}), "leaf"))
      .Add(Named(Hyper("h2", 1, {"b"}), "rack"))
      .Add(Named(Hyper("h3", 2, {"c"}), "leaf"))
      .Add(Named(InFabric(Hyper("h4", 1, {"d"}), "other"), "nvl"))
      .Add(Hyper("h5", 1, {"d"}));
  EXPECT_EQ(cluster.Faults(),
            "h1:TierNameClash? h1:TierNameClash? h2:TierNameClash? h3:TierNameClash?");
  EXPECT_THAT(cluster.Messages("h2"), HasSubstr("leaf and rack"));
  EXPECT_THAT(cluster.Messages("h3"), HasSubstr("1 and 2"));
  EXPECT_EQ(cluster.Look()->trees[0].tier_names[0], "leaf");
}

TEST(Faults, EveryKindHasAReasonOfItsOwn) {
  EXPECT_EQ(ReasonOf(FaultKind::kCycle), "Cycle");
  EXPECT_EQ(ReasonOf(FaultKind::kMissingChild), "MissingChild");
  EXPECT_EQ(ReasonOf(FaultKind::kTierNameClash), "TierNameClash");
}

TEST(Faults, MoreTiersThanAnyFabricHasTakeOutTheHighestOnly) {
  Cluster cluster;
  cluster.Nodes({"a"}).Add(Hyper("low", -1, {"a"}));
  for (int32_t tier = 0; tier < 4'100; ++tier)
    cluster.Add(Hyper("h" + std::to_string(tier), tier, {}));
  const auto topology = cluster.Look();
  EXPECT_EQ(topology->trees[0].tiers.size(), 4'096U);
  EXPECT_THAT(cluster.Messages("h4099"), HasSubstr("4096 lowest tiers"));
}

}  // namespace
}  // namespace hopwise::topology
