// Selectors, tolerations and lists of resources.
#include "api/meta.h"

#include <limits>

#include <gtest/gtest.h>

#include "api/core.h"
#include "api/resources.h"

namespace hopwise::api {
namespace {

const StringMap kLabels = {{"app", "train"}, {"rank", "12"}, {"tier", "gold"}};

TEST(StringMapTest, FindsByKey) {
  ASSERT_NE(Find(kLabels, "rank"), nullptr);
  EXPECT_EQ(*Find(kLabels, "rank"), "12");
  EXPECT_EQ(Find(kLabels, "ran"), nullptr);
  EXPECT_EQ(Find(kLabels, "zone"), nullptr);
  EXPECT_EQ(Find({}, "app"), nullptr);
}

TEST(RequirementTest, EachOperatorOnPresentAndAbsentLabels) {
  struct Case {
    Requirement requirement;
    bool matches;
  };
  const Case cases[] = {
      {{"app", Operator::kIn, {"serve", "train"}}, true},
      {{"app", Operator::kIn, {"serve"}}, false},
      {{"app", Operator::kIn, {}}, false},
      {{"zone", Operator::kIn, {"a"}}, false},
      {{"app", Operator::kNotIn, {"serve"}}, true},
      {{"app", Operator::kNotIn, {"train"}}, false},
      {{"zone", Operator::kNotIn, {"a"}}, true},
      {{"app", Operator::kExists, {}}, true},
      {{"zone", Operator::kExists, {}}, false},
      {{"app", Operator::kDoesNotExist, {}}, false},
      {{"zone", Operator::kDoesNotExist, {}}, true},
      {{"rank", Operator::kGt, {"11"}}, true},
      {{"rank", Operator::kGt, {"12"}}, false},
      {{"rank", Operator::kLt, {"13"}}, true},
      {{"rank", Operator::kLt, {"-13"}}, false},
      {{"rank", Operator::kGt, {"+11"}}, true},
      {{"rank", Operator::kGt, {"+-11"}}, false},
      {{"rank", Operator::kGt, {"eleven"}}, false},
      {{"rank", Operator::kGt, {"1", "2"}}, false},
      {{"rank", Operator::kGt, {}}, false},
      {{"app", Operator::kGt, {"1"}}, false},
      {{"zone", Operator::kLt, {"1"}}, false},
  };
  int i = 0;
  for (const Case& c : cases) EXPECT_EQ(Matches(c.requirement, kLabels), c.matches) << i++;
}

TEST(LabelSelectorTest, AllMustHoldAndNoneMeansEverything) {
  EXPECT_TRUE(Matches(LabelSelector{}, kLabels));
  const Requirement train{"app", Operator::kIn, {"train"}};
  const Requirement silver{"tier", Operator::kIn, {"silver"}};
  EXPECT_TRUE(Matches(LabelSelector{{train}}, kLabels));
  EXPECT_FALSE(Matches(LabelSelector{{train, silver}}, kLabels));
}

TEST(TolerationTest, AsTheApiServerMatchesThem) {
  const Taint taint{"gpu", "yes", "NoSchedule"};
  struct Case {
    Toleration toleration;
    bool tolerates;
  };
  const Case cases[] = {
      {{"gpu", "yes", "NoSchedule", false}, true},
      {{"gpu", "yes", "", false}, true},
      {{"gpu", "no", "", false}, false},
      {{"gpu", "", "", true}, true},
      {{"gpu", "", "NoExecute", true}, false},
      {{"", "", "", true}, true},
      {{"", "", "NoExecute", true}, false},
      {{"cpu", "yes", "", false}, false},
      {{"", "yes", "", false}, true},
      {{"", "", "", false}, false},
  };
  int i = 0;
  for (const Case& c : cases) EXPECT_EQ(Tolerates(c.toleration, taint), c.tolerates) << i++;
}

Condition Says(const char* type, const char* status) {
  Condition condition;
  condition.type = type;
  condition.status = status;
  return condition;
}

TEST(NodeTest, OnlyAReadyConditionCanMakeANodeUnready) {
  Node node;
  EXPECT_TRUE(IsReady(node));
  node.conditions = {Says("DiskPressure", "False")};
  EXPECT_TRUE(IsReady(node));
  node.conditions.push_back(Says("Ready", "True"));
  EXPECT_TRUE(IsReady(node));
  node.conditions.back().status = "Unknown";
  EXPECT_FALSE(IsReady(node));
  node.conditions.back().status = "False";
  EXPECT_FALSE(IsReady(node));
}

TEST(OwnerTest, TheControllerIsTheOneThatSaysSo) {
  ObjectMeta meta;
  EXPECT_EQ(ControllerOf(meta), nullptr);
  meta.owners.resize(2);
  meta.owners[0].name = "n";
  meta.owners[1].name = "j";
  meta.owners[1].controller = true;
  ASSERT_NE(ControllerOf(meta), nullptr);
  EXPECT_EQ(ControllerOf(meta)->name, "j");
}

TEST(ResourceListTest, AddsAndComparesByName) {
  const ResourceList a = {{"cpu", 500}, {"memory", 10}};
  const ResourceList b = {{"cpu", 200}, {"gpu", 1}};
  EXPECT_EQ(Sum(a, b), (ResourceList{{"cpu", 700}, {"gpu", 1}, {"memory", 10}}));
  EXPECT_EQ(Max(a, b), (ResourceList{{"cpu", 500}, {"gpu", 1}, {"memory", 10}}));
  EXPECT_EQ(Sum(a, {}), a);
  EXPECT_EQ(AmountOf(a, "memory"), 10);
  EXPECT_EQ(AmountOf(a, "gpu"), 0);
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Sum({{"x", max}}, {{"x", 1}}), (ResourceList{{"x", max}}));
}

TEST(ResourceListTest, SettingKeepsTheOrder) {
  ResourceList list;
  SetAmount(list, "memory", 1);
  SetAmount(list, "cpu", 2);
  SetAmount(list, "gpu", 3);
  SetAmount(list, "cpu", 4);
  EXPECT_EQ(list, (ResourceList{{"cpu", 4}, {"gpu", 3}, {"memory", 1}}));
}

TEST(AmountTest, CpuCountsInThousandthsAndTheRestInUnits) {
  EXPECT_EQ(ParseAmount("cpu", "1500m"), 1'500);
  EXPECT_EQ(ParseAmount("cpu", "2"), 2'000);
  EXPECT_EQ(ParseAmount("memory", "1500m"), 2);
  EXPECT_EQ(ParseAmount("memory", "1Gi"), 1'073'741'824);
  EXPECT_EQ(ParseAmount("cpu", "1Ei").error().code, ErrorCode::kOverflow);
  EXPECT_EQ(ParseAmount("memory", "8Ei").error().code, ErrorCode::kOverflow);
  EXPECT_EQ(ParseAmount("memory", "7Ei"), 7 * (int64_t{1} << 60U));
  EXPECT_EQ(ParseAmount("memory", "much").error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace hopwise::api
