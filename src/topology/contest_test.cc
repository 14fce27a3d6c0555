#include "topology/contest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hopwise::topology {
namespace {

using Items = std::vector<std::vector<uint32_t>>;

bool Never(uint32_t, uint32_t) { return false; }

Time Born(int64_t second) { return {second * 1'000'000'000}; }

// "b<a(older)": b lost to a, by what.
std::string Show(const std::vector<Claimant>& claimants, const std::vector<Loss>& losses) {
  std::string text;
  for (const Loss& loss : losses) {
    text += claimants[loss.loser].name + "<" + claimants[loss.winner].name + "(" +
            std::string(TextOf(loss.merit)) + ") ";
  }
  return text;
}

TEST(Contest, OneLinkedToAParentStandsAgainstAnOlderOne) {
  const std::vector<Claimant> c = {{"a", Born(1), {}}, {"b", Born(2), {2}}, {"p", Born(3), {}}};
  EXPECT_EQ(Show(c, Decide(c, {{0, 1}}, Never)), "a<b(is linked to a parent) ");
}

TEST(Contest, AmongEquallyLinkedTheOlderStands) {
  const std::vector<Claimant> c = {{"a", Born(2), {}}, {"b", Born(1), {}}};
  EXPECT_EQ(Show(c, Decide(c, {{0, 1}}, Never)), "a<b(is older) ");
}

TEST(Contest, AmongEquallyOldTheLesserNameStands) {
  const std::vector<Claimant> c = {{"b", Born(1), {}}, {"a", Born(1), {}}};
  EXPECT_EQ(Show(c, Decide(c, {{0, 1}}, Never)), "b<a(has the lesser name) ");
}

TEST(Contest, WithoutACreationTimeAnObjectIsTheYoungest) {
  const std::vector<Claimant> c = {{"a", {}, {}}, {"b", Born(9), {}}};
  EXPECT_EQ(Show(c, Decide(c, {{0, 1}}, Never)), "a<b(is older) ");
}

TEST(Contest, WhoLosesOneItemGivesAllBack) {
  // a beats b on item 0, so c, whom only b would have beaten, keeps item 1.
  const std::vector<Claimant> c = {{"a", Born(1), {}}, {"b", Born(2), {}}, {"c", Born(3), {}}};
  EXPECT_EQ(Show(c, Decide(c, {{0, 1}, {1, 2}}, Never)), "b<a(is older) ");
}

TEST(Contest, CompatibleClaimantsShareAnItem) {
  const std::vector<Claimant> c = {{"a", Born(1), {}}, {"b", Born(2), {}}, {"c", Born(3), {}}};
  const auto only_ab = [](uint32_t x, uint32_t y) { return x + y == 1; };
  EXPECT_EQ(Show(c, Decide(c, {{0, 1, 2}}, only_ab)), "c<a(is older) ");
}

TEST(Contest, AParentThatLosesLinksItsChildrenNoMore) {
  // p loses item 0 to q. So its child a no longer comes before the older b.
  const std::vector<Claimant> c = {
      {"a", Born(4), {2}}, {"b", Born(3), {}}, {"p", Born(2), {}}, {"q", Born(1), {}}};
  EXPECT_EQ(Show(c, Decide(c, {{2, 3}, {0, 1}}, Never)), "a<b(is older) p<q(is older) ");
}

TEST(Contest, TheOrderOfClaimantsAndOfItemsDecidesNothing) {
  const std::vector<Claimant> c = {
      {"a", Born(4), {2}}, {"b", Born(3), {}}, {"p", Born(2), {}}, {"q", Born(1), {}}};
  const std::string expected = Show(c, Decide(c, {{2, 3}, {0, 1}, {1, 3}}, Never));
  for (const Items& items : {Items{{3, 2}, {1, 0}, {3, 1}}, Items{{1, 3}, {0, 1}, {2, 3}}}) {
    EXPECT_EQ(Show(c, Decide(c, items, Never)), expected);
  }
}

TEST(Contest, ALossCountsTheItemsAndNamesTheFirst) {
  const std::vector<Claimant> c = {{"a", Born(1), {}}, {"b", Born(2), {}}};
  const std::vector<Loss> losses = Decide(c, {{1}, {0, 1}, {0}, {0, 1}}, Never);
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].item, 1U);
  EXPECT_EQ(losses[0].items, 2U);
}

}  // namespace
}  // namespace hopwise::topology
