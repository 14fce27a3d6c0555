#include "base/quantity.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/int128.h"

namespace hopwise {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

struct ValueCase {
  std::string text;
  int64_t units, milli;
};

TEST(QuantityTest, ReadsWhatApimachineryReads) {
  const ValueCase cases[] = {
      {"0", 0, 0},
      {"00", 0, 0},
      {"-0", 0, 0},
      {"+7", 7, 7'000},
      {"-7", -7, -7'000},
      {"007", 7, 7'000},
      {"1.", 1, 1'000},
      {".5", 1, 500},
      {"0.5", 1, 500},
      {"2.50", 3, 2'500},
      // decimal suffixes
      {"1n", 1, 1},
      {"1000000n", 1, 1},
      {"1000001n", 1, 2},
      {"1u", 1, 1},
      {"1500u", 1, 2},
      {"100m", 1, 100},
      {"1500m", 2, 1'500},
      {"2000m", 2, 2'000},
      {"1k", 1'000, 1'000'000},
      {"1.5k", 1'500, 1'500'000},
      {"3M", 3'000'000, 3'000'000'000},
      {"3G", 3'000'000'000, 3'000'000'000'000},
      {"3T", 3'000'000'000'000, 3'000'000'000'000'000},
      {"3P", 3'000'000'000'000'000, 3'000'000'000'000'000'000},
      // binary suffixes, with fractions
      {"1Ki", 1'024, 1'024'000},
      {"0.1Ki", 103, 102'400},
      {"1.5Gi", 1'610'612'736, 1'610'612'736'000},
      {"64Gi", 68'719'476'736, 68'719'476'736'000},
      {"1Pi", 1'125'899'906'842'624, 1'125'899'906'842'624'000},
      {".0009765625Ki", 1, 1'000},
      {".00097656251Ki", 2, 1'001},
      // exponents; e and E mean the same when digits follow
      {"1e3", 1'000, 1'000'000},
      {"12E2", 1'200, 1'200'000},
      {"1e+3", 1'000, 1'000'000},
      {"5e-1", 1, 500},
      {"15E-4", 1, 2},
      {"1e0", 1, 1'000},
      {"0e99999", 0, 0},
      // rounding is away from zero, also for the negative
      {"-1500m", -2, -1'500},
      {"-0.0001", -1, -1},
      {"0.0000000000001", 1, 1},
      {"1e-400", 1, 1},
      {"-1e-9999999", -1, -1},
  };
  for (const ValueCase& c : cases) {
    const auto quantity = ParseQuantity(c.text);
    ASSERT_TRUE(quantity) << c.text;
    EXPECT_EQ(quantity->units, c.units) << c.text;
    EXPECT_EQ(quantity->milli, c.milli) << c.text;
    EXPECT_FALSE(quantity->units_saturated || quantity->milli_saturated) << c.text;
  }
}

TEST(QuantityTest, RefusesWhatIsNoQuantity) {
  for (const char* text : {"",
                           " ",
                           "1 ",
                           " 1",
                           "+",
                           "-",
                           ".",
                           "+.",
                           "k",
                           "Ki",
                           "1e",
                           "1E+",
                           "1e-",
                           "1K",
                           "1KI",
                           "1ki",
                           "1mi",
                           "1i",
                           "1g",
                           "0.1am",
                           "1.1.M",
                           "1+1M",
                           "aoeu",
                           ".5i",
                           "-3.i",
                           "1e3k",
                           "1eE3",
                           "1e3.5",
                           "1,5",
                           "1_000",
                           "0x10",
                           "١",
                           "1e+-3",
                           "1e 3",
                           "--1",
                           "+-1",
                           "1ee3",
                           "1E3Ki",
                           "Infinity",
                           "NaN",
                           "1e99999999999999999999"}) {
    const auto quantity = ParseQuantity(text);
    ASSERT_FALSE(quantity) << text;
    EXPECT_EQ(quantity.error().code, ErrorCode::kInvalid) << text;
  }
  EXPECT_FALSE(ParseQuantity(std::string_view("1\0", 2)));
}

TEST(QuantityTest, ExaAndExponentShareALetter) {
  EXPECT_EQ(ParseQuantity("1E")->units, 1'000'000'000'000'000'000);
  EXPECT_EQ(ParseQuantity("1E3")->units, 1'000);
  EXPECT_EQ(ParseQuantity("1Ei")->units, int64_t{1} << 60U);
}

TEST(QuantityTest, WhatDoesNotFitSticksAtTheEndAndSaysSo) {
  struct Case {
    std::string text;
    int64_t units;
    bool units_saturated, milli_saturated;
  };
  const Case cases[] = {
      {"9223372036854775807", kMax, false, true},
      {"9223372036854775808", kMax, true, true},
      {"9223372036854775807.1", kMax, true, true},
      {"7Ei", 7 * (int64_t{1} << 60U), false, true},
      {"8Ei", kMax, true, true},
      {"7.9999999999999999999Ei", kMax, true, true},
      {"10E", kMax, true, true},
      {"-10E", -kMax, true, true},
      {"1e19", kMax, true, true},
      {"1e9223372036854775807", kMax, true, true},
      {std::string(100'000, '9') + "Ei", kMax, true, true},
      {"0." + std::string(100'000, '0') + "1e100001", 1, false, false},
      {"0.0001e22", 1'000'000'000'000'000'000, false, true},
  };
  for (const Case& c : cases) {
    const auto quantity = ParseQuantity(c.text);
    ASSERT_TRUE(quantity) << c.text.substr(0, 40);
    EXPECT_EQ(quantity->units, c.units) << c.text.substr(0, 40);
    EXPECT_EQ(quantity->units_saturated, c.units_saturated) << c.text.substr(0, 40);
    EXPECT_EQ(quantity->milli_saturated, c.milli_saturated) << c.text.substr(0, 40);
  }
}

TEST(QuantityTest, ManyZerosChangeNothing) {
  const std::string zeros(50'000, '0');
  EXPECT_EQ(ParseQuantity(zeros + "5")->units, 5);
  EXPECT_EQ(ParseQuantity("5." + zeros)->units, 5);
  EXPECT_EQ(ParseQuantity("5." + zeros + "1")->units, 6);
  EXPECT_EQ(ParseQuantity(zeros + "." + zeros)->units, 0);
}

TEST(QuantityTest, WritesEachResourceInItsUnit) {
  EXPECT_EQ(FormatQuantity("cpu", 0), "0");
  EXPECT_EQ(FormatQuantity("cpu", 1'500), "1500m");
  EXPECT_EQ(FormatQuantity("cpu", 2'000), "2");
  EXPECT_EQ(FormatQuantity("cpu", -250), "-250m");
  EXPECT_EQ(FormatQuantity("memory", 0), "0");
  EXPECT_EQ(FormatQuantity("memory", 1'000), "1000");
  EXPECT_EQ(FormatQuantity("memory", 8LL << 30U), "8Gi");
  EXPECT_EQ(FormatQuantity("memory", (8LL << 30U) + (512LL << 20U)), "8704Mi");
  EXPECT_EQ(FormatQuantity("memory", -1'024), "-1Ki");
  EXPECT_EQ(FormatQuantity("memory", kMin), "-8Ei");
  EXPECT_EQ(FormatQuantity("hugepages-2Mi", 4LL << 20U), "4Mi");
  EXPECT_EQ(FormatQuantity("ephemeral-storage", 1LL << 40U), "1Ti");
  EXPECT_EQ(FormatQuantity("nvidia.com/gpu", 1'024), "1024");
  EXPECT_EQ(FormatQuantity("pods", 110), "110");
}

RC_GTEST_PROP(QuantityProperty, WhatWeWriteReadsBackTheSame, ()) {
  const auto amount = *rc::gen::inRange<int64_t>(-(int64_t{1} << 62U), int64_t{1} << 62U);
  RC_ASSERT(ParseQuantity(FormatQuantity("memory", amount))->units == amount);
  const auto pages = static_cast<int64_t>(*rc::gen::inRange<int32_t>(0, 1 << 20)) * 2'097'152;
  RC_ASSERT(ParseQuantity(FormatQuantity("hugepages-2Mi", pages))->units == pages);
  const int64_t milli = amount / 4'096;
  RC_ASSERT(ParseQuantity(FormatQuantity("cpu", milli))->milli == milli);
}

RC_GTEST_PROP(QuantityProperty, ALargerNumberIsNeverASmallerAmount, ()) {
  const auto a = *rc::gen::inRange<int64_t>(0, int64_t{1} << 40U);
  const auto b = *rc::gen::inRange<int64_t>(a, (int64_t{1} << 40U) + 1);
  const std::string suffix = *rc::gen::elementOf(
      std::vector<std::string>{"n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi",
                               "Ti", "Pi", "Ei", "e-7", "e5"});
  const auto small = ParseQuantity(std::to_string(a) + suffix);
  const auto large = ParseQuantity(std::to_string(b) + suffix);
  RC_ASSERT(small->units <= large->units);
  RC_ASSERT(small->milli <= large->milli);
  RC_ASSERT(ParseQuantity("-" + std::to_string(a) + suffix)->units == -small->units);
}

// An independent computation in 128 bits, for numbers small enough for it.
RC_GTEST_PROP(QuantityProperty, BinaryFractionsRoundUpExactly, ()) {
  const auto thousandths = *rc::gen::inRange<int64_t>(0, 8'000'000);
  const auto shift = static_cast<unsigned>(*rc::gen::inRange(1, 5)) * 10U;
  const std::string suffixes[] = {"", "Ki", "Mi", "Gi", "Ti"};
  std::string fraction = std::to_string(1'000 + thousandths % 1'000).substr(1);
  const std::string text =
      std::to_string(thousandths / 1'000) + "." + fraction + suffixes[shift / 10];
  const Uint128 product = static_cast<Uint128>(thousandths) << shift;
  RC_ASSERT(ParseQuantity(text)->units == static_cast<int64_t>((product + 999) / 1'000));
  RC_ASSERT(ParseQuantity(text)->milli == static_cast<int64_t>(product));
}

RC_GTEST_PROP(QuantityProperty, AnyTextIsReadOrRefusedWithoutHarm, ()) {
  const std::string text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("0123456789999.+-eEinumkKMGTP")));
  const auto quantity = ParseQuantity(text);
  if (quantity && !quantity->units_saturated && !quantity->milli_saturated) {
    RC_ASSERT((quantity->units == 0) == (quantity->milli == 0));
  }
}

TEST(SaturatingTest, SticksAtTheEnds) {
  EXPECT_EQ(SaturatingAdd(kMax, 1), kMax);
  EXPECT_EQ(SaturatingAdd(kMin, -1), kMin);
  EXPECT_EQ(SaturatingAdd(kMax, kMin), -1);
  EXPECT_EQ(SaturatingSub(kMin, 1), kMin);
  EXPECT_EQ(SaturatingSub(kMax, -1), kMax);
  EXPECT_EQ(SaturatingSub(0, kMin), kMax);
  EXPECT_EQ(SaturatingSub(-1, kMin), kMax);
  EXPECT_EQ(SaturatingMul(kMax, 2), kMax);
  EXPECT_EQ(SaturatingMul(kMax, -2), kMin);
  EXPECT_EQ(SaturatingMul(kMin, -1), kMax);
  EXPECT_EQ(SaturatingMul(kMin, 0), 0);
  EXPECT_EQ(SaturatingMul(-3, 5), -15);
}

}  // namespace
}  // namespace hopwise
