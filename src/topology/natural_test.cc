#include "topology/natural.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hopwise::topology {
namespace {

int Sign(int value) { return (value > 0) - (value < 0); }

TEST(NaturalOrder, NumbersInNamesCompareAsNumbers) {
  std::vector<std::string> names = {"leaf-10", "leaf-2", "leaf-1", "leaf-b", "leaf-a", "leaf"};
  std::sort(names.begin(), names.end(), NaturalLess());
  EXPECT_EQ(names,
            (std::vector<std::string>{"leaf", "leaf-1", "leaf-2", "leaf-10", "leaf-a", "leaf-b"}));
}

TEST(NaturalOrder, EveryNumberOfANameCounts) {
  EXPECT_LT(NaturalCompare("pod2-rack10-n1", "pod10-rack2-n1"), 0);
  EXPECT_LT(NaturalCompare("pod2-rack2-n9", "pod2-rack10-n1"), 0);
  EXPECT_LT(NaturalCompare("10.0.0.9", "10.0.0.10"), 0);
}

TEST(NaturalOrder, NumbersLongerThanAnyIntegerTypeStillCompare) {
  EXPECT_LT(NaturalCompare("n99999999999999999999999998", "n99999999999999999999999999"), 0);
  EXPECT_LT(NaturalCompare("n99999999999999999999999999", "n100000000000000000000000000"), 0);
}

TEST(NaturalOrder, NamesThatDifferInLeadingZerosOnlyAreToldApartByText) {
  EXPECT_LT(NaturalCompare("n01", "n1"), 0);
  EXPECT_LT(NaturalCompare("n01-b", "n1-c"), 0);
  EXPECT_LT(NaturalCompare("n1-b", "n01-c"), 0) << "what follows the number comes first";
  EXPECT_LT(NaturalCompare("n0", "n00"), 0);
  EXPECT_EQ(NaturalCompare("n007", "n007"), 0);
}

TEST(NaturalOrder, AnEmptyNameComesFirst) {
  EXPECT_LT(NaturalCompare("", "0"), 0);
  EXPECT_EQ(NaturalCompare("", ""), 0);
}

// Names over a tiny alphabet, so that equal runs and leading zeros are frequent.
rc::Gen<std::string> AnyName() {
  return rc::gen::container<std::string>(rc::gen::element('a', '-', '0', '1', '2'));
}

RC_GTEST_PROP(NaturalOrder, IsTotalAndOnlyEqualTextIsEqual, ()) {
  const std::string a = *AnyName();
  const std::string b = *AnyName();
  RC_ASSERT(Sign(NaturalCompare(a, b)) == -Sign(NaturalCompare(b, a)));
  RC_ASSERT((NaturalCompare(a, b) == 0) == (a == b));
}

RC_GTEST_PROP(NaturalOrder, IsTransitive, ()) {
  const std::string a = *AnyName();
  const std::string b = *AnyName();
  const std::string c = *AnyName();
  RC_PRE(NaturalCompare(a, b) < 0 && NaturalCompare(b, c) < 0);
  RC_ASSERT(NaturalCompare(a, c) < 0);
}

}  // namespace
}  // namespace hopwise::topology
