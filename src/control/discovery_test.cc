// From what was found to what is written.
#include "control/discovery.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/hold.h"
#include "control/label_source.h"

namespace hopwise::control {
namespace {

using Lines = std::vector<std::string>;
using Kind = HyperNodeWrite::Kind;

// A cluster whose nodes tell rack and zone, and its HyperNodes.
class Fabric {
 public:
  void Put(const std::string& node, const std::string& rack, const std::string& zone) {
    labels_[node] = {{"rack", rack}, {"zone", zone}};
  }
  void Remove(const std::string& node) { labels_.erase(node); }
  void Add(const api::HyperNode& hypernode) { objects_[hypernode.meta.name] = hypernode; }
  api::HyperNode& At(const std::string& name) { return objects_.at(name); }
  [[nodiscard]] const std::map<std::string, api::HyperNode>& objects() const { return objects_; }

  [[nodiscard]] HyperNodePlan Plan() const {
    std::vector<LabelledNode> nodes;
    for (const auto& [name, labels] : labels_) {
      nodes.push_back({name, &labels});
    }
    const Discovery found = DiscoverByLabels({{"t", {"zone", "rack"}}}, nodes);
    std::vector<const api::HyperNode*> existing;
    for (const auto& [name, object] : objects_) {
      existing.push_back(&object);
    }
    return PlanHyperNodes(kLabelSource, found, existing);
  }

  // Carries the plan out write by write; after each, no node may be claimed twice.
  HyperNodePlan Reach() {
    HyperNodePlan plan = Plan();
    for (const HyperNodeWrite& write : plan.writes) {
      const std::string& name = write.object.meta.name;
      EXPECT_EQ(objects_.contains(name), write.kind != Kind::kCreate) << name;
      if (write.kind == Kind::kDelete) {
        objects_.erase(name);
      } else {
        objects_[name] = write.object;
      }
      std::map<std::string, int> claims;
      for (const auto& [each, object] : objects_) {
        for (const api::HyperNodeMember& member : object.members) {
          EXPECT_LE(++claims[*member.exact], 1) << *member.exact << " after " << name;
        }
      }
    }
    EXPECT_TRUE(Plan().writes.empty()) << "what was reached is what was wanted";
    return plan;
  }

  // "1 r1 {a b}": tier, label value, members' values.
  [[nodiscard]] Lines Words() const {
    Lines words;
    for (const auto& [name, object] : objects_) {
      Lines members;
      for (const api::HyperNodeMember& member : object.members) {
        const auto child = objects_.find(*member.exact);
        members.push_back(child == objects_.end() ? *member.exact : ValueOf(child->second));
      }
      std::ranges::sort(members);
      words.push_back(
          fmt::format("{} {} {{{}}}", object.tier, ValueOf(object), fmt::join(members, " ")));
    }
    std::ranges::sort(words);
    return words;
  }

  [[nodiscard]] std::string NameOf(const std::string& value) const {
    for (const auto& [name, object] : objects_) {
      if (ValueOf(object) == value) return name;
    }
    return "";
  }

 private:
  static std::string ValueOf(const api::HyperNode& object) {
    for (const char* key : {"rack", "zone"}) {
      if (const std::string* value = api::Find(object.meta.labels, key)) return *value;
    }
    return object.meta.name;
  }

  std::map<std::string, api::StringMap> labels_;
  std::map<std::string, api::HyperNode> objects_;
};

//       z1         z2
//     r1   r2      r3
//    a b   c d     e f
Fabric Small() {
  Fabric fabric;
  for (const auto& [node, rack, zone] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"a", "r1", "z1"},
                                                                      {"b", "r1", "z1"},
                                                                      {"c", "r2", "z1"},
                                                                      {"d", "r2", "z1"},
                                                                      {"e", "r3", "z2"},
                                                                      {"f", "r3", "z2"}}) {
    fabric.Put(node, rack, zone);
  }
  return fabric;
}

TEST(Discovery, AnEmptyClusterGetsAllItsDomainsChildrenFirst) {
  Fabric fabric = Small();
  const HyperNodePlan plan = fabric.Reach();
  EXPECT_EQ(plan.writes.size(), 5U);
  EXPECT_EQ(fabric.Words(),
            (Lines{"1 r1 {a b}", "1 r2 {c d}", "1 r3 {e f}", "2 z1 {r1 r2}", "2 z2 {r3}"}));
  const api::HyperNode& rack = fabric.At(fabric.NameOf("r1"));
  EXPECT_EQ(rack.tier_name, "rack");
  EXPECT_EQ(*api::Find(rack.meta.labels, kSourceLabel), "label");
  EXPECT_TRUE(rack.meta.name.starts_with("hypernode-t-tier1-")) << rack.meta.name;
}

TEST(Discovery, NamesFollowFromTheDomainsAlone) {
  Fabric one = Small();
  one.Reach();
  Fabric other;
  other.Put("b", "r1", "z1");
  other.Reach();
  EXPECT_EQ(one.NameOf("r1"), other.NameOf("r1")) << "whatever else there is";
}

TEST(Discovery, ANodeThatMovesTouchesItsTwoRacks) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.Put("b", "r2", "z1");
  const HyperNodePlan plan = fabric.Reach();
  ASSERT_EQ(plan.writes.size(), 2U);
  EXPECT_EQ(plan.writes[0].object.meta.name, fabric.NameOf("r1")) << "who loses it comes first";
  EXPECT_EQ(fabric.Words()[1], "1 r2 {b c d}");
}

TEST(Discovery, ARackThatAppearsIsNamedByItsZone) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.Put("b", "r9", "z1");
  EXPECT_EQ(fabric.Reach().writes.size(), 3U) << "r1 loses, r9 comes, z1 gains";
  EXPECT_EQ(fabric.Words()[4], "2 z1 {r1 r2 r9}");
}

TEST(Discovery, ARackWithoutNodesGoes) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.Remove("e");
  EXPECT_EQ(fabric.Reach().writes.size(), 1U);
  fabric.Remove("f");
  EXPECT_EQ(fabric.Reach().writes.size(), 2U) << "rack and zone";
}

TEST(Discovery, ARackThatMovesToAnotherZoneIsAnotherDomainOfWhichNoNodeIsClaimedTwice) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.Put("c", "r2", "z2");
  fabric.Put("d", "r2", "z2");
  fabric.Reach();
  EXPECT_EQ(fabric.Words()[3], "2 z1 {r1}");
  EXPECT_EQ(fabric.Words()[4], "2 z2 {r2 r3}");
}

// As Volcano's discovery names them: five random characters.
TEST(Discovery, WhatAFormerDiscoveryLeftIsAdoptedByItsLabels) {
  Fabric fabric = Small();
  fabric.Reach();
  const std::string ours = fabric.NameOf("r1");
  Fabric before = Small();
  for (const auto& [name, object] : fabric.objects()) {
    api::HyperNode old = object;
    old.meta.name = name.substr(0, name.size() - 8) + "x" + name.substr(name.size() - 4);
    old.meta.uid = "uid-" + old.meta.name;
    for (api::HyperNodeMember& member : old.members) {
      if (member.type == api::MemberType::kHyperNode) {
        const std::string child = *member.exact;
        member.exact = child.substr(0, child.size() - 8) + "x" + child.substr(child.size() - 4);
      }
    }
    before.Add(old);
  }
  EXPECT_TRUE(before.Plan().writes.empty());
  before.Put("new", "r1", "z1");
  const HyperNodePlan plan = before.Reach();
  ASSERT_EQ(plan.writes.size(), 1U);
  EXPECT_NE(plan.writes[0].object.meta.name, ours);
  EXPECT_TRUE(plan.writes[0].object.meta.uid.starts_with("uid-"));
}

TEST(Discovery, OfTwoThatMayStandForADomainTheOneWithMoreOfItsMembersDoes) {
  Fabric fabric;
  fabric.Put("a", "r1", "z1");
  fabric.Put("b", "r1", "z1");
  fabric.Put("c", "r1", "z2");
  for (const auto& [name, nodes] : std::vector<std::pair<std::string, Lines>>{
           {"hypernode-t-tier1-aaaaa", {"c"}}, {"hypernode-t-tier1-bbbbb", {"a", "b"}}}) {
    api::HyperNode old;
    old.meta.name = name;
    old.meta.labels = {{"rack", "r1"}, {"volcano.sh/network-topology-source", "label"}};
    old.tier = 1;
    old.tier_name = "rack";
    for (const std::string& node : nodes) {
      old.members.push_back({api::MemberType::kNode, node, {}, {}});
    }
    fabric.Add(old);
  }
  fabric.Reach();
  EXPECT_EQ(*fabric.At("hypernode-t-tier1-aaaaa").members.front().exact, "c");
  EXPECT_EQ(fabric.At("hypernode-t-tier1-bbbbb").members.size(), 2U);
}

TEST(Discovery, WhatOthersMadeIsNeverTouched) {
  Fabric fabric = Small();
  fabric.Reach();
  const std::string name = fabric.NameOf("r1");
  Fabric shared = Small();
  api::HyperNode foreign;
  foreign.meta.name = name;
  shared.Add(foreign);
  foreign.meta.name = "by-ufm";
  foreign.meta.labels = {{"rack", "r1"}, {"volcano.sh/network-topology-source", "ufm"}};
  shared.Add(foreign);
  for (const HyperNodeWrite& write : shared.Plan().writes) {
    EXPECT_NE(write.object.meta.name, name) << "the name is taken";
    EXPECT_EQ(write.kind, Kind::kCreate);
  }
}

TEST(Discovery, WhatOthersWroteOnOneOfOursStays) {
  Fabric fabric = Small();
  fabric.Reach();
  api::HyperNode& rack = fabric.At(fabric.NameOf("r1"));
  rack.meta.labels.emplace(rack.meta.labels.begin(), "a", "theirs");
  rack.meta.annotations = {{"note", "theirs"}};
  EXPECT_TRUE(fabric.Plan().writes.empty());
  fabric.Put("new", "r1", "z1");
  fabric.Reach();
  EXPECT_EQ(fabric.At(fabric.NameOf("r1")).meta.annotations.size(), 1U);
}

TEST(Discovery, WhatSomebodyBentIsPutRight) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.At(fabric.NameOf("r1")).members.pop_back();
  fabric.At(fabric.NameOf("z1")).tier = 7;
  EXPECT_EQ(fabric.Reach().writes.size(), 2U);
}

HyperNodePlan Going(size_t goes, size_t owned) {
  HyperNodePlan plan;
  plan.owned = owned;
  plan.goes = goes;
  for (size_t i = 0; i < goes; ++i) {
    HyperNodeWrite write;
    write.kind = Kind::kDelete;
    write.object.meta.name = "h" + std::to_string(i);
    plan.writes.push_back(write);
  }
  return plan;
}

constexpr Time kNow{1'000'000'000'000'000'000};

TEST(Discovery, NodesThatSwapTheirRacksAreNeverInTwo) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.Put("a", "r2", "z1");
  fabric.Put("c", "r1", "z1");
  const HyperNodePlan plan = fabric.Reach();
  EXPECT_EQ(plan.writes.size(), 4U) << "each loses, then each gains";
}

TEST(Discovery, ANodeThatChangesPlacesWithAWholeRackIsNeverInTwo) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.Put("a", "r9", "z1");
  fabric.Put("e", "r1", "z1");
  fabric.Put("f", "r1", "z1");
  fabric.Reach();
  EXPECT_EQ(fabric.Words(), (Lines{"1 r1 {b e f}", "1 r2 {c d}", "1 r9 {a}", "2 z1 {r1 r2 r9}"}));
}

TEST(Discovery, AFabricThatIsToldNoMoreIsTakenOff) {
  Fabric fabric = Small();
  fabric.Reach();
  api::HyperNode& rack = fabric.At(fabric.NameOf("r1"));
  rack.meta.labels.insert(rack.meta.labels.begin(), {"hopwise.dev/fabric", "old"});
  fabric.Reach();
  EXPECT_EQ(api::Find(fabric.At(fabric.NameOf("r1")).meta.labels, "hopwise.dev/fabric"), nullptr);
}

TEST(Discovery, WhatIsBeingDeletedIsNotDeletedAgain) {
  Fabric fabric = Small();
  fabric.Reach();
  fabric.At(fabric.NameOf("r2")).meta.deletion = Time{1};
  fabric.Remove("c");
  fabric.Remove("d");
  const HyperNodePlan plan = fabric.Plan();
  EXPECT_TRUE(std::ranges::none_of(
      plan.writes, [](const HyperNodeWrite& write) { return write.kind == Kind::kDelete; }));
}

TEST(Hold, MoreThanTheShareOrAllIsHeld) {
  for (const auto& [goes, owned, held] :
       std::vector<std::tuple<size_t, size_t, bool>>{{0, 0, false},
                                                     {0, 4, false},
                                                     {2, 4, false},
                                                     {3, 4, true},
                                                     {1, 1, true},
                                                     {1, 2, false}}) {
    Hold hold({});
    EXPECT_EQ(hold.Judge(Going(goes, owned), kNow, "").held, held) << goes << " of " << owned;
  }
  Hold lenient({.most_deleted_percent = 100});
  EXPECT_FALSE(lenient.Judge(Going(3, 4), kNow, "").held);
  EXPECT_TRUE(lenient.Judge(Going(4, 4), kNow, "").held) << "nothing was found at all";
}

TEST(Hold, WhatIsSaidLongEnoughIsBelieved) {
  Hold hold({.believed_after = Seconds(60)});
  const Hold::Verdict first = hold.Judge(Going(3, 4), kNow, "");
  EXPECT_TRUE(first.held);
  EXPECT_EQ(first.until, kNow + Seconds(60));
  EXPECT_NE(first.why.find("would delete 3 of 4 HyperNodes"), std::string::npos) << first.why;
  EXPECT_TRUE(hold.Judge(Going(3, 4), kNow + Seconds(59), "").held);
  EXPECT_FALSE(hold.Judge(Going(3, 4), kNow + Seconds(60), "").held);
}

TEST(Hold, ABreakBeginsItAnew) {
  Hold hold({.believed_after = Seconds(60)});
  hold.Judge(Going(3, 4), kNow, "");
  hold.Judge(Going(0, 4), kNow + Seconds(30), "");
  EXPECT_TRUE(hold.Judge(Going(3, 4), kNow + Seconds(61), "").held);
}

TEST(Hold, APersonConfirmsThisDeletionAndNoOther) {
  Hold hold({});
  const std::string token = hold.Judge(Going(3, 4), kNow, "").token;
  EXPECT_TRUE(hold.Judge(Going(4, 4), kNow, token).held);
  EXPECT_FALSE(hold.Judge(Going(3, 4), kNow, token).held);
}

TEST(Hold, AnotherDeletionBeginsItAnew) {
  Hold hold({.believed_after = Seconds(60)});
  hold.Judge(Going(3, 4), kNow, "");
  EXPECT_TRUE(hold.Judge(Going(4, 4), kNow + Seconds(59), "").held);
  EXPECT_TRUE(hold.Judge(Going(4, 4), kNow + Seconds(118), "").held);
  EXPECT_FALSE(hold.Judge(Going(4, 4), kNow + Seconds(119), "").held);
}

// Carried out in several tries, because somebody else writes meanwhile.
TEST(Hold, WhatWasBelievedIsNotHeldHalfWay) {
  Hold hold({.believed_after = Seconds(60)});
  hold.Judge(Going(4, 4), kNow, "");
  EXPECT_FALSE(hold.Judge(Going(4, 4), kNow + Seconds(60), "").held);
  EXPECT_FALSE(hold.Judge(Going(3, 3), kNow + Seconds(61), "").held);
  hold.Judge(Going(0, 0), kNow + Seconds(62), "");
  EXPECT_TRUE(hold.Judge(Going(3, 4), kNow + Seconds(63), "").held) << "a new one is";
}

}  // namespace
}  // namespace hopwise::control
