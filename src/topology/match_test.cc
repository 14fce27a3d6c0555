#include "topology/match.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "topology/test_cluster.h"

namespace hopwise::topology {
namespace {

using api::Operator;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

MemberSpec Selecting(const std::vector<api::Requirement>& requirements) {
  MemberSpec spec;
  spec.label_selectors.push_back({requirements});
  return spec;
}

std::vector<uint32_t> Match(const Matcher& matcher, std::string_view name,
                            const api::StringMap& labels) {
  std::vector<uint32_t> slots;
  matcher.Match(name, labels, slots);
  return slots;
}

TEST(Matcher, ASelectorIsMetByItsOwnLabelsOnly) {
  Matcher matcher;
  matcher.Add(1, Selecting({{"rack", Operator::kIn, {"r1", "r2"}}}));
  matcher.Add(2, Selecting({{"block", Operator::kIn, {"b1"}}, {"rack", Operator::kIn, {"r1"}}}));
  matcher.Add(3, Selecting({{"rack", Operator::kExists, {}}}));
  matcher.Add(4, Selecting({{"rack", Operator::kDoesNotExist, {}}}));
  matcher.Add(5, Selecting({}));
  matcher.Add(6, Selecting({{"rack", Operator::kNotIn, {"r1"}}}));
  EXPECT_THAT(Match(matcher, "n", {{"rack", "r1"}}), ElementsAre(1, 3, 5));
  EXPECT_THAT(Match(matcher, "n", {{"block", "b1"}, {"rack", "r1"}}), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(Match(matcher, "n", {{"rack", "r2"}}), ElementsAre(1, 3, 5, 6));
  EXPECT_THAT(Match(matcher, "n", {}), ElementsAre(4, 5, 6));
}

TEST(Matcher, WhatOneHyperNodeMatchesTwiceCountsOnce) {
  Matcher matcher;
  MemberSpec spec = Selecting({});
  spec.node_names = {"m1"};
  spec.patterns = {"^m[12]$", "m"};
  matcher.Add(7, spec);
  EXPECT_THAT(Match(matcher, "m1", {}), ElementsAre(7));
}

TEST(Matcher, WhatIsRemovedMatchesNoMore) {
  Matcher matcher;
  MemberSpec spec = Selecting({{"rack", Operator::kIn, {"r1"}}});
  spec.label_selectors.push_back({{}});
  spec.node_names = {"m1"};
  spec.patterns = {"m"};
  matcher.Add(7, spec);
  matcher.Add(8, spec);
  matcher.Remove(7, spec);
  EXPECT_THAT(Match(matcher, "m1", {{"rack", "r1"}}), ElementsAre(8));
  matcher.Remove(8, spec);
  EXPECT_THAT(Match(matcher, "m1", {{"rack", "r1"}}), IsEmpty());
}

TEST(Matcher, WrongPatternsAreReportedTheOthersServe) {
  Matcher matcher;
  MemberSpec spec;
  spec.patterns = {"(", "m"};
  const auto errors = matcher.Add(1, spec);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].pattern, "(");
  EXPECT_THAT(Match(matcher, "m1", {}), ElementsAre(1));
}

rc::Gen<api::Requirement> AnyRequirement() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::element<std::string>("a", "b"),
                     rc::gen::element(Operator::kIn, Operator::kIn, Operator::kNotIn,
                                      Operator::kExists, Operator::kDoesNotExist),
                     rc::gen::element<std::string>("1", "2"), rc::gen::arbitrary<bool>()),
      [](const auto& parts) {
        const auto& [key, op, value, both] = parts;
        std::vector<std::string> values;
        if (op == Operator::kIn || op == Operator::kNotIn) values.push_back(value);
        if (!values.empty() && both) values = {"1", "2"};
        return api::Requirement{key, op, values};
      });
}

// The index must not lose or invent a match, whatever was added and removed before.
RC_GTEST_PROP(Matcher, AgreesWithTryingEachSelector, ()) {
  Matcher matcher;
  std::map<uint32_t, MemberSpec> model;
  const auto steps = *rc::gen::inRange(0, 12);
  for (int step = 0; step < steps; ++step) {
    const auto slot = *rc::gen::inRange<uint32_t>(0, 5);
    if (const auto it = model.find(slot); it != model.end()) {
      matcher.Remove(slot, it->second);
      model.erase(it);
      continue;
    }
    MemberSpec spec =
        Selecting(*rc::gen::container<std::vector<api::Requirement>>(AnyRequirement()));
    if (*rc::gen::arbitrary<bool>()) spec.label_selectors.push_back({{*AnyRequirement()}});
    matcher.Add(slot, spec);
    model.emplace(slot, spec);
  }
  for (const api::StringMap& labels :
       {api::StringMap{}, {{"a", "1"}}, {{"a", "2"}, {"b", "1"}}, {{"b", "2"}}, {{"b", "3"}}}) {
    std::vector<uint32_t> expected;
    for (const auto& [slot, spec] : model) {
      if (matcher.Scans(spec, "n", labels)) expected.push_back(slot);
    }
    RC_ASSERT(Match(matcher, "n", labels) == expected);
  }
}

}  // namespace
}  // namespace hopwise::topology
