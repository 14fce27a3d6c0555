// What node labels make of a fabric.
#include "control/label_source.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hopwise::control {
namespace {

struct Node {
  std::string name;
  api::StringMap labels;
};

// Node "n1" with label values by key; the keys are given in order.
Node MakeNode(const std::string& name, const api::StringMap& labels) {
  Node node = {name, labels};
  node.labels.emplace_back("kubernetes.io/hostname", name);
  std::ranges::sort(node.labels);
  return node;
}

const LabelType kFabric = {"fabric", {"zone", "rack", "kubernetes.io/hostname"}};

Discovery Discover(const std::vector<Node>& nodes,
                   const std::vector<LabelType>& types = {kFabric}) {
  std::vector<LabelledNode> views;
  for (const Node& node : nodes) {
    views.push_back({node.name, &node.labels});
  }
  return DiscoverByLabels(types, views);
}

// "2 zone=z1 {rack=r1 rack=r2}": tier, label and members of each domain, sorted.
std::vector<std::string> Words(const Discovery& discovery) {
  std::vector<std::string> words;
  const auto called = [&](const Domain& domain) {
    return domain.labels.front().first + "=" + domain.labels.front().second;
  };
  for (const Domain& domain : discovery.domains) {
    std::vector<std::string> members = domain.nodes;
    for (const size_t child : domain.children) {
      members.push_back(called(discovery.domains[child]));
    }
    std::ranges::sort(members);
    words.push_back(
        fmt::format("{} {} {{{}}}", domain.tier, called(domain), fmt::join(members, " ")));
  }
  std::ranges::sort(words);
  return words;
}

using Lines = std::vector<std::string>;

//      z1          z2
//    r1  r2        r3
//   a b   c         d
TEST(LabelSource, EachLabelIsATierOfItsOwn) {
  const Discovery found = Discover({MakeNode("a", {{"rack", "r1"}, {"zone", "z1"}}),
                                    MakeNode("b", {{"rack", "r1"}, {"zone", "z1"}}),
                                    MakeNode("c", {{"rack", "r2"}, {"zone", "z1"}}),
                                    MakeNode("d", {{"rack", "r3"}, {"zone", "z2"}})});
  EXPECT_EQ(Words(found), (Lines{"1 rack=r1 {a b}", "1 rack=r2 {c}", "1 rack=r3 {d}",
                                 "2 zone=z1 {rack=r1 rack=r2}", "2 zone=z2 {rack=r3}"}));
  EXPECT_EQ(found.domains.front().tier_name, "rack");
  EXPECT_EQ(found.domains.front().prefix, "hypernode-fabric-tier1-");
  EXPECT_TRUE(found.warnings.empty());
}

TEST(LabelSource, TheSameValueUnderTwoParentsMakesTwoDomains) {
  const Discovery found = Discover({MakeNode("a", {{"rack", "r1"}, {"zone", "z1"}}),
                                    MakeNode("b", {{"rack", "r1"}, {"zone", "z2"}})});
  EXPECT_EQ(Words(found), (Lines{"1 rack=r1 {a}", "1 rack=r1 {b}", "2 zone=z1 {rack=r1}",
                                 "2 zone=z2 {rack=r1}"}));
  EXPECT_NE(found.domains[0].identity, found.domains[1].identity);
}

TEST(LabelSource, ANodeWithoutTheLowestLabelIsInNoDomain) {
  EXPECT_EQ(Words(Discover({MakeNode("a", {{"rack", "r1"}, {"zone", "z1"}}),
                            MakeNode("b", {{"zone", "z1"}}), MakeNode("c", {}),
                            MakeNode("d", {{"rack", ""}, {"zone", "z1"}})})),
            (Lines{"1 rack=r1 {a}", "2 zone=z1 {rack=r1}"}));
}

TEST(LabelSource, AChainThatEndsEarlyJoinsTheOneDomainOfItsValue) {
  const Discovery found =
      Discover({MakeNode("a", {{"rack", "r1"}, {"zone", "z1"}}), MakeNode("b", {{"rack", "r1"}}),
                MakeNode("c", {{"rack", "r2"}})});
  EXPECT_EQ(Words(found), (Lines{"1 rack=r1 {a b}", "1 rack=r2 {c}", "2 zone=z1 {rack=r1}"}));
  EXPECT_TRUE(found.warnings.empty());
}

TEST(LabelSource, AChainThatEndsEarlyWhereSeveralGoOnGetsADomainOfItsOwnAndAWarning) {
  const Discovery found =
      Discover({MakeNode("a", {{"rack", "r1"}, {"zone", "z1"}}),
                MakeNode("b", {{"rack", "r1"}, {"zone", "z2"}}), MakeNode("c", {{"rack", "r1"}})});
  EXPECT_EQ(Words(found), (Lines{"1 rack=r1 {a}", "1 rack=r1 {b}", "1 rack=r1 {c}",
                                 "2 zone=z1 {rack=r1}", "2 zone=z2 {rack=r1}"}));
  EXPECT_EQ(found.warnings,
            (Lines{"1 nodes of rack \"r1\" tell no zone, and this rack lies in several: they get a "
                   "domain of their own"}));
}

TEST(LabelSource, AMiddleTierThatEndsEarlyJoinsToo) {
  const LabelType deep = {"deep", {"region", "zone", "rack"}};
  EXPECT_EQ(Words(Discover({MakeNode("a", {{"rack", "r1"}, {"region", "g"}, {"zone", "z1"}}),
                            MakeNode("b", {{"rack", "r2"}, {"zone", "z1"}})},
                           {deep})),
            (Lines{"1 rack=r1 {a}", "1 rack=r2 {b}", "2 zone=z1 {rack=r1 rack=r2}",
                   "3 region=g {zone=z1}"}));
}

TEST(LabelSource, TypesAreFabricsOfTheirOwn) {
  const LabelType link = {"NVLink domain", {"clique", "kubernetes.io/hostname"}};
  const Discovery found =
      Discover({MakeNode("a", {{"clique", "q"}, {"rack", "r1"}, {"zone", "z1"}})}, {kFabric, link});
  EXPECT_EQ(Words(found), (Lines{"1 clique=q {a}", "1 rack=r1 {a}", "2 zone=z1 {rack=r1}"}));
  EXPECT_EQ(found.domains.back().prefix, "hypernode-nvlink-domain-tier1-");
  EXPECT_TRUE(found.domains.front().marks.empty());
  EXPECT_EQ(found.domains.back().marks, (api::StringMap{{"hopwise.dev/fabric", "nvlink-domain"}}));
}

TEST(LabelSource, ChildrenStandBeforeTheirParents) {
  const Discovery found = Discover({MakeNode("a", {{"rack", "r1"}, {"zone", "z1"}})});
  for (size_t d = 0; d < found.domains.size(); ++d) {
    for (const size_t child : found.domains[d].children) {
      EXPECT_LT(child, d);
    }
  }
}

TEST(LabelSource, TheOrderOfTheNodesIsNoMatter) {
  std::vector<Node> nodes;
  for (int i = 0; i < 40; ++i) {
    const std::string rack = "r" + std::to_string(i % 7);
    nodes.push_back(MakeNode("n" + std::to_string(i), {{"rack", rack}, {"zone", "z"}}));
  }
  const Lines forth = Words(Discover(nodes));
  std::ranges::reverse(nodes);
  EXPECT_EQ(Words(Discover(nodes)), forth);
}

TEST(LabelSource, TypesThatCannotBeReadAreRefusedWithTheirName) {
  const std::vector<std::pair<std::vector<LabelType>, std::string>> cases = {
      {{}, "networkTopologyTypes names no type"},
      {{{"t", {}}}, "networkTopologyTypes.t: no node label above kubernetes.io/hostname"},
      {{{"t", {"kubernetes.io/hostname"}}},
       "networkTopologyTypes.t: no node label above kubernetes.io/hostname"},
      {{{"t", {"rack", "rack"}}}, "networkTopologyTypes.t: nodeLabel rack stands twice"},
      {{{"t", {"rack", ""}}}, "networkTopologyTypes.t: an entry without nodeLabel"},
      {{{"t", {"kubernetes.io/hostname", "rack"}}},
       "networkTopologyTypes.t: kubernetes.io/hostname is the node itself and must stand last"},
      {{{"abcdefghijklmnopqrstu", {"rack"}}},
       "networkTopologyTypes.abcdefghijklmnopqrstu: the name has 21 characters, at most 20 go"},
      {{{"!", {"rack"}}}, "networkTopologyTypes: \"!\" has no letter or digit to be named by"},
      {{{"a b", {"rack"}}, {"A-B", {"zone"}}},
       "networkTopologyTypes.A-B: another type is named a-b too"},
  };
  for (const auto& [types, message] : cases) {
    EXPECT_EQ(CheckLabelTypes(types), message);
  }
  EXPECT_EQ(CheckLabelTypes({kFabric}), "");
}

}  // namespace
}  // namespace hopwise::control
