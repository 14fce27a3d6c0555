// What each HyperNode's status says of it.
#include "control/hypernode_status.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "control/discovery.h"

namespace hopwise::control {
namespace {

constexpr Time kThen{1'000'000'000'000'000'000};
constexpr Time kNow{2'000'000'000'000'000'000};

// HyperNodes over nodes n0, n1, …; each write is carried out, so that what is left differs.
class Fabric {
 public:
  explicit Fabric(int nodes) {
    for (int n = 0; n < nodes; ++n) {
      forest_.UpsertNode(NodeId(static_cast<size_t>(n)), "n" + std::to_string(n), {});
    }
  }
  void Put(const std::string& name, int32_t tier, api::MemberType type,
           const std::vector<std::string>& members) {
    api::HyperNode object;
    object.meta.name = name;
    object.tier = tier;
    for (const std::string& member : members) {
      object.members.push_back({type, member, {}, {}});
    }
    Put(object);
  }
  void Put(const api::HyperNode& object) {
    objects_[object.meta.name] = object;
    forest_.UpsertHyperNode(object);
  }
  api::HyperNode& At(const std::string& name) { return objects_.at(name); }

  std::vector<SourceState> sources;  // that are asked
  // By name.
  std::map<std::string, HyperNodeStatus> Write(Time now = kNow) {
    std::vector<const api::HyperNode*> objects;
    for (const auto& [name, object] : objects_) {
      objects.push_back(&object);
    }
    std::map<std::string, HyperNodeStatus> written;
    for (const HyperNodeStatus& status : PlanStatuses(*forest_.Snapshot(), objects, sources, now)) {
      written[status.object->meta.name] = status;
      api::HyperNode& object = objects_.at(status.object->meta.name);
      object.node_count = status.node_count;
      object.conditions = status.conditions;
    }
    return written;
  }

 private:
  topology::Forest forest_;
  std::map<std::string, api::HyperNode> objects_;
};

constexpr auto kNode = api::MemberType::kNode;
constexpr auto kHyperNode = api::MemberType::kHyperNode;

//      spine
//    l0     l1
//   n0 n1  n2 n3
Fabric Small() {
  Fabric fabric(4);
  fabric.Put("l0", 1, kNode, {"n0", "n1"});
  fabric.Put("l1", 1, kNode, {"n2", "n3"});
  fabric.Put("spine", 2, kHyperNode, {"l0", "l1"});
  return fabric;
}

TEST(HyperNodeStatus, CountsDirectMembersAndIsWrittenOnce) {
  Fabric fabric = Small();
  const auto written = fabric.Write();
  ASSERT_EQ(written.size(), 3U);
  EXPECT_EQ(written.at("l0").node_count, 2);
  EXPECT_EQ(written.at("spine").node_count, 2) << "its children";
  EXPECT_EQ(written.at("l0").ready.status, "True");
  EXPECT_EQ(written.at("l0").ready.reason, "Ready");
  EXPECT_TRUE(fabric.Write().empty()) << "what stands is not written again";
}

TEST(HyperNodeStatus, ANodeThatIsNotThereDoesNotCount) {
  Fabric fabric(1);
  fabric.Put("l0", 1, kNode, {"n0", "n7"});
  EXPECT_EQ(fabric.Write().at("l0").node_count, 1);
}

TEST(HyperNodeStatus, EachFaultIsTheReasonOfItsCondition) {
  Fabric fabric = Small();
  api::HyperNode bad = {};
  bad.meta.name = "bad-pattern";
  bad.tier = 1;
  bad.members.push_back({kNode, {}, "(", {}});
  fabric.Put(bad);
  fabric.Put("clash", 1, kNode, {"n0"});
  fabric.Put("empty", 1, kNode, {"n9"});
  fabric.Put("ring-a", 3, kHyperNode, {"ring-b"});
  fabric.Put("ring-b", 3, kHyperNode, {"ring-a"});
  fabric.Put("short", 2, kHyperNode, {"l7"});
  const auto written = fabric.Write();
  const auto is = [&](const std::string& name) {
    return written.at(name).ready.status + " " + written.at(name).ready.reason;
  };
  EXPECT_EQ(is("bad-pattern"), "False BadPattern");
  EXPECT_EQ(is("clash"), "False Overlap");
  EXPECT_EQ(is("empty"), "False Empty");
  EXPECT_EQ(is("ring-a"), "False Cycle");
  EXPECT_EQ(is("ring-b"), "False Cycle");
  EXPECT_EQ(is("l0"), "True Ready");
  EXPECT_EQ(is("spine"), "True Ready");
  EXPECT_FALSE(written.at("ring-a").ready.message.empty());
}

TEST(HyperNodeStatus, AMissingChildIsToldAndTheRestStands) {
  Fabric fabric = Small();
  fabric.Put("spine", 2, kHyperNode, {"l0", "l1", "l9"});
  const auto written = fabric.Write();
  EXPECT_EQ(written.at("spine").ready.status, "True");
  EXPECT_EQ(written.at("spine").ready.reason, "MissingChild");
  EXPECT_EQ(written.at("spine").node_count, 2);
}

TEST(HyperNodeStatus, TheTimeOfTheConditionMovesWithItsStatusAlone) {
  Fabric fabric = Small();
  fabric.Write(kThen);
  fabric.Put("spine", 2, kHyperNode, {"l0", "l1", "l9"});
  fabric.At("spine").conditions = {{"Ready", "True", "Ready", "", "", kThen}};
  EXPECT_EQ(fabric.Write().at("spine").ready.last_transition, kThen) << "only the reason changed";
  fabric.Put("l0", 1, kNode, {"n9"});
  fabric.At("l0").conditions = {{"Ready", "True", "Ready", "", "", kThen}};
  const std::vector<api::Condition> conditions = fabric.Write().at("l0").conditions;
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions.front().last_transition, kNow);
}

TEST(HyperNodeStatus, ASourceThatCannotBeAskedIsToldAtTheTop) {
  Fabric fabric = Small();
  for (const char* name : {"l0", "l1", "spine"}) {
    api::HyperNode object = fabric.At(name);
    object.meta.labels = {{std::string(kSourceLabel), "ufm"}};
    fabric.Put(object);
  }
  fabric.sources = {{"ufm", "", ""}};
  for (const auto& [name, status] : fabric.Write()) {
    EXPECT_EQ(status.conditions.size(), 1U) << "nothing ever failed";
  }
  fabric.sources = {{"ufm", "Unreachable", "no answer within 30s"}};
  const auto failed = fabric.Write();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed.at("spine").conditions.back().type, kDiscovered);
  EXPECT_EQ(failed.at("spine").conditions.back().status, "False");
  EXPECT_EQ(failed.at("spine").conditions.back().message, "no answer within 30s");
  EXPECT_TRUE(fabric.Write().empty());
  fabric.sources = {{"ufm", "", ""}};
  const auto again = fabric.Write();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.at("spine").conditions.back().status, "True");
  EXPECT_EQ(again.at("spine").conditions.back().reason, kDiscovered);
}

TEST(HyperNodeStatus, WhatOthersWroteInTheConditionsStays) {
  Fabric fabric = Small();
  fabric.At("l0").conditions = {{"Theirs", "True", "X", "", "", kThen}};
  const std::vector<api::Condition> conditions = fabric.Write().at("l0").conditions;
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(conditions.front().type, "Theirs");
}

}  // namespace
}  // namespace hopwise::control
