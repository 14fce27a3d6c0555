#include "topology/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/test_cluster.h"

namespace hopwise::topology {
namespace {

using testing::Cluster;
using ::testing::ElementsAre;
using testing::Hyper;
using ::testing::IsEmpty;
using testing::Named;

//                (virtual root)  x
//        core (3)               lone (1): z
//      /         \                      .
//  spine (2)    leaf-3 (1): e
//   /     \                             .
// leaf-1  leaf-2 (1)
//  a b     c d
Tree SampleTree(Cluster& cluster) {
  cluster.Nodes({"a", "b", "c", "d", "e", "x", "z"})
      .Add(Named(Hyper("leaf-1", 1, {"a", "b"}), "leaf"))
      .Add(Named(Hyper("leaf-2", 1, {"c", "d"}), "rack"))
      .Add(Named(Hyper("leaf-3", 1, {"e"}), "leaf"))
      .Add(Named(Hyper("lone", 1, {"z"}), ""))
      .Add(Named(Hyper("spine", 2, {"/leaf-1", "/leaf-2"}), "spine"))
      .Add(Named(Hyper("core", 3, {"/spine", "/leaf-3"}), "spine"));
  return cluster.Look()->trees[0];
}

DomainId IdOf(const Tree& tree, const std::string& name) {
  for (size_t d = 0; d < tree.domains.size(); ++d) {
    if (tree.domains[d].name == name) return DomainId(d);
  }
  return {};
}

TEST(Tree, CommonDomainIsTheSmallestThatHoldsBoth) {
  Cluster cluster;
  const Tree tree = SampleTree(cluster);
  const auto common = [&](const std::string& a, const std::string& b) {
    return tree.at(tree.CommonDomain(IdOf(tree, a), IdOf(tree, b))).name;
  };
  EXPECT_EQ(common("leaf-1", "leaf-2"), "spine");
  EXPECT_EQ(common("leaf-2", "leaf-1"), "spine");
  EXPECT_EQ(common("leaf-1", "leaf-3"), "core") << "depth may be mixed";
  EXPECT_EQ(common("leaf-3", "leaf-1"), "core");
  EXPECT_EQ(common("spine", "leaf-2"), "spine") << "a domain holds itself";
  EXPECT_EQ(common("leaf-2", "core"), "core");
  EXPECT_EQ(common("leaf-1", "lone"), "") << "the virtual root at worst";
  EXPECT_EQ(common("", "leaf-1"), "");
}

TEST(Tree, ADomainContainsItselfAndWhatLiesUnderIt) {
  Cluster cluster;
  const Tree tree = SampleTree(cluster);
  EXPECT_TRUE(tree.Contains(IdOf(tree, "core"), IdOf(tree, "leaf-2")));
  EXPECT_TRUE(tree.Contains(IdOf(tree, "spine"), IdOf(tree, "spine")));
  EXPECT_FALSE(tree.Contains(IdOf(tree, "leaf-2"), IdOf(tree, "core")));
  EXPECT_FALSE(tree.Contains(IdOf(tree, "spine"), IdOf(tree, "leaf-3")));
}

TEST(Tree, RanksFollowTheTiersInUse) {
  Cluster cluster;
  const Tree tree = SampleTree(cluster);
  EXPECT_THAT(tree.tiers, ElementsAre(1, 2, 3));
  EXPECT_THAT(tree.tier_names, ElementsAre("leaf", "spine", "spine"));
  EXPECT_EQ(tree.root_rank(), 4);
  EXPECT_EQ(tree.at(DomainId(0U)).rank, 4);
  EXPECT_EQ(tree.at(DomainId(0U)).tier, 4);
  EXPECT_EQ(tree.at(IdOf(tree, "leaf-3")).rank, 1);
  EXPECT_EQ(tree.at(IdOf(tree, "core")).rank, 3);
}

TEST(Tree, ATierNameIsMetByEveryTierThatCarriesIt) {
  Cluster cluster;
  const Tree tree = SampleTree(cluster);
  EXPECT_THAT(tree.RanksNamed("leaf"), ElementsAre(1));
  EXPECT_THAT(tree.RanksNamed("rack"), ElementsAre(1)) << "also the name that lost in tier_names";
  EXPECT_THAT(tree.RanksNamed("spine"), ElementsAre(2, 3));
  EXPECT_THAT(tree.RanksNamed("pod"), IsEmpty());
  EXPECT_THAT(tree.RanksNamed(""), IsEmpty())
      << "domains without a name do not carry the empty one";
}

}  // namespace
}  // namespace hopwise::topology
