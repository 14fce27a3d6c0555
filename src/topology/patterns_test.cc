#include "topology/patterns.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "topology/pattern_index.h"

namespace hopwise::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// So many announced names make the table build its index for any number of patterns.
constexpr size_t kVeryMany = size_t{1} << 40;

std::vector<uint32_t> Match(const PatternTable& table, std::string_view name) {
  std::vector<uint32_t> slots;
  table.Match(name, slots);
  std::sort(slots.begin(), slots.end());
  return slots;
}

TEST(Patterns, MatchAnywhereInTheNameAsInVolcano) {
  PatternTable table;
  EXPECT_EQ(table.Add("gpu-1", 1), "");
  EXPECT_EQ(table.Add("^gpu-1[01]$", 2), "");
  EXPECT_THAT(Match(table, "gpu-1"), ElementsAre(1));
  EXPECT_THAT(Match(table, "gpu-10"), ElementsAre(1, 2));
  EXPECT_THAT(Match(table, "my-gpu-100"), ElementsAre(1));
  EXPECT_THAT(Match(table, "GPU-1"), IsEmpty()) << "letter case counts";
}

TEST(Patterns, AWrongPatternSaysWhyAndMatchesNothing) {
  PatternTable table;
  EXPECT_THAT(table.Add("gpu-[0-", 1), HasSubstr("missing ]"));
  EXPECT_THAT(table.Add("(?=x)", 2), HasSubstr("(?="));
  EXPECT_THAT(table.Add("a{1001}", 3), HasSubstr("1001")) << "as Go limits repetition";
  EXPECT_THAT(Match(table, "gpu-[0-"), IsEmpty());
  table.Prepare(kVeryMany);
  EXPECT_THAT(Match(table, "gpu-[0-"), IsEmpty());
}

TEST(Patterns, OnePatternMayServeSeveralAndLivesAsLongAsOneUsesIt) {
  PatternTable table;
  table.Add("a", 1);
  table.Add("a", 2);
  EXPECT_THAT(Match(table, "xay"), ElementsAre(1, 2));
  table.Remove("a", 1);
  EXPECT_THAT(Match(table, "xay"), ElementsAre(2));
  table.Remove("a", 2);
  EXPECT_THAT(Match(table, "xay"), IsEmpty());
  EXPECT_EQ(table.size(), 0U);
}

TEST(Patterns, AnIndexedPatternCanGoAndComeBack) {
  PatternTable table;
  table.Add("^a", 1);
  table.Add("b", 2);
  table.Prepare(kVeryMany);
  table.Remove("^a", 1);
  table.Remove("b", 2);
  EXPECT_THAT(Match(table, "ab"), IsEmpty());
  table.Add("^a", 3);
  table.Add("c", 4);
  EXPECT_THAT(Match(table, "abc"), ElementsAre(3, 4));
}

TEST(Patterns, PatternsThatComeAndGoForEverLeaveNothingBehind) {
  PatternTable table;
  for (uint32_t i = 0; i < 5'000; ++i) {
    const std::string pattern = "^n" + std::to_string(i);
    table.Add(pattern, i);
    if (i % 100 == 0) table.Prepare(kVeryMany);
    table.Remove(pattern, i);
  }
  table.Prepare(1);
  EXPECT_LT(table.size(), 2'500U);
}

// Exponential in engines that backtrack.
TEST(Patterns, NoPatternIsSlow) {
  PatternTable table;
  EXPECT_EQ(table.Add("^(a+)+$", 1), "");
  EXPECT_EQ(table.Add("(a|aa|a?)*b", 2), "");
  EXPECT_EQ(table.Add("((a*)*)*c$", 3), "");
  const std::string name = std::string(250, 'a') + "!";
  EXPECT_THAT(Match(table, name), IsEmpty());
  table.Prepare(kVeryMany);
  EXPECT_THAT(Match(table, name), IsEmpty());
}

TEST(Patterns, BoundToTheFrontIsClaimedOnlyWhenItIsSure) {
  for (const char* bound :
       {"^a", "^", "^a[|]b", "^a[]|]b", "^a[^]|]b", "^(a|b)c", "^a\\|b", "^(?:a|b)$", "^a[\\]|]"}) {
    EXPECT_TRUE(IsBoundToFront(bound)) << bound;
  }
  for (const char* free : {"a", "", "^a|b", "^(a)|b", "^*a", "^?a", "^+a", "^{0}a", "(^a)", "\\^a",
                           "^\\Qa\\E|b", "^[[:alpha:]]|b", ".*^a"}) {
    EXPECT_FALSE(IsBoundToFront(free)) << free;
  }
}

TEST(AtomSet, FindsEveryTextThatOccursInAnyCase) {
  const AtomSet atoms({"node", "ode-1", "r1", "r17", "x", "node-17"});
  std::vector<int> found;
  atoms.FindIn("Node-17-R17", found);
  EXPECT_THAT(found, ElementsAre(0, 1, 2, 3, 5));
  atoms.FindIn("", found);
  EXPECT_THAT(found, IsEmpty());
}

// Pieces that are legal in any sequence, with what tends to go wrong: alternation on top level,
// bounds in odd places, classes with odd letters, repeated bounds.
rc::Gen<std::string> AnyPattern() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          "a", "b", "1", "-", "^", "$", "|", "a*", "b?", ".", ".*", "[a1]", "[^a|]", "[]|]",
          "(a|b)", "(?:1|)", "(^a)", "\\d", "\\Q|\\E", "[[:digit:]]", "A", "(?i:A)", "ab-1", "^*")),
      [](const std::vector<std::string>& pieces) {
        std::string pattern;
        for (size_t i = 0; i < std::min<size_t>(pieces.size(), 6); ++i) pattern += pieces[i];
        return pattern;
      });
}

RC_GTEST_PROP(Patterns, TheIndexFindsWhatEachPatternFindsByItself, ()) {
  const auto patterns = *rc::gen::container<std::vector<std::string>>(AnyPattern());
  const auto names = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::element('a', 'b', '1', '-', '|', 'A')));
  PatternTable table;
  std::vector<std::unique_ptr<RE2>> alone;
  for (uint32_t i = 0; i < patterns.size(); ++i) {
    table.Add(patterns[i], i);
    alone.push_back(std::make_unique<RE2>(patterns[i], RE2::Quiet));
    if (i == patterns.size() / 2) table.Prepare(kVeryMany);  // the rest stays loose
  }
  for (const std::string& name : names) {
    std::vector<uint32_t> expected;
    for (uint32_t i = 0; i < patterns.size(); ++i) {
      if (RE2::PartialMatch(name, *alone[i])) expected.push_back(i);
    }
    RC_ASSERT(Match(table, name) == expected);
    for (uint32_t i = 0; i < patterns.size(); ++i) {
      const bool is_expected = std::binary_search(expected.begin(), expected.end(), i);
      RC_ASSERT(table.Matches(patterns[i], name) == is_expected);
    }
  }
}

}  // namespace
}  // namespace hopwise::topology
