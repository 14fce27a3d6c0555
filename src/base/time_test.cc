#include "base/time.h"

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hopwise {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kHour = 3'600'000'000'000;
constexpr int64_t kMinute = 60'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;

TEST(GoDurationTest, ReadsWhatGoReads) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},
      {"-0", 0},
      {"0s", 0},
      {"5s", 5 * kSecond},
      {"+5s", 5 * kSecond},
      {"-5s", -5 * kSecond},
      {"1478s", 1478 * kSecond},
      {"1h30m", kHour + 30 * kMinute},
      {"10.5s4m", 4 * kMinute + 10'500'000'000},
      {"-2m3.4s", -(2 * kMinute + 3'400'000'000)},
      {"1h2m3s4ms5us6ns", kHour + 2 * kMinute + 3'004'005'006},
      {"12\u00b5s", 12'000},
      {"12\u03bcs", 12'000},
      {"1.s", kSecond},
      {".5s", 500'000'000},
      {"0.3333333333333333333h", 20 * kMinute},
      {"9007199254740993ns", 9'007'199'254'740'993},
      {"0.100000000000000000000h", 6 * kMinute},
      {"9223372036854775807ns", kMax},
      {"-9223372036854775808ns", kMin},
      {"-2562047h47m16.854775808s", kMin},
      {"0.9223372036854775807s", 922'337'203},
  };
  for (const auto& [text, ns] : cases) {
    const auto duration = ParseGoDuration(text);
    ASSERT_TRUE(duration) << text;
    EXPECT_EQ(duration->ns, ns) << text;
  }
}

TEST(GoDurationTest, RefusesWhatGoRefuses) {
  for (const char* text : {"", "3", "-", "+", "s", ".", "-.", ".s", "+.s", "1d", "1h ", " 1h",
                           "1 h", "1e3s", "1hm", "1m-2s", "1\xc2s", "one"}) {
    const auto duration = ParseGoDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().code, ErrorCode::kInvalid) << text;
  }
  for (const char* text :
       {"9223372036854775808ns", "-9223372036854775809ns", "3000000h", "9223372036854775.808us",
        "99999999999999999999999s", "9223372036854775808ns9223372036854775808ns"}) {
    const auto duration = ParseGoDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().code, ErrorCode::kOverflow) << text;
  }
}

TEST(GoDurationTest, WritesAsGoWrites) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "0s"},
      {1, "1ns"},
      {1'100, "1.1\u00b5s"},
      {2'200'000, "2.2ms"},
      {300'000'000, "300ms"},
      {1'500'000'000, "1.5s"},
      {kHour + 30 * kMinute, "1h30m0s"},
      {5 * kMinute, "5m0s"},
      {4 * kMinute + 1'001'000'000, "4m1.001s"},
      {5 * kHour + 6 * kMinute + 7'001'000'000, "5h6m7.001s"},
      {-kSecond, "-1s"},
      {kMax, "2562047h47m16.854775807s"},
      {kMin, "-2562047h47m16.854775808s"},
  };
  for (const auto& [ns, text] : cases) EXPECT_EQ(FormatGoDuration({ns}), text);
}

RC_GTEST_PROP(GoDurationProperty, WhatWeWriteReadsBackTheSame, (int64_t ns)) {
  RC_ASSERT(ParseGoDuration(FormatGoDuration({ns}))->ns == ns);
}

TEST(Rfc3339Test, ReadsTimesOfAnyZone) {
  const std::pair<const char*, int64_t> cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1970-01-01T00:00:01Z", kSecond},
      {"1969-12-31T23:59:59.5Z", -500'000'000},
      {"2026-01-02T03:04:05Z", 1'767'323'045 * kSecond},
      {"2026-01-02T03:04:05.123456789123Z", 1'767'323'045 * kSecond + 123'456'789},
      {"2026-01-02T03:04:05.1Z", 1'767'323'045 * kSecond + 100'000'000},
      {"2026-01-02T05:04:05+02:00", 1'767'323'045 * kSecond},
      {"2026-01-01T21:34:05-05:30", 1'767'323'045 * kSecond},
      {"2000-02-29T00:00:00Z", 951'782'400 * kSecond},
      {"2024-02-29T23:59:59Z", 1'709'251'199 * kSecond},
  };
  for (const auto& [text, ns] : cases) {
    const auto time = ParseRfc3339(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->ns, ns) << text;
  }
}

TEST(Rfc3339Test, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "2026",
                           "2026-01-02",
                           "2026-01-02 03:04:05Z",
                           "2026-01-02t03:04:05Z",
                           "2026-01-02T03:04:05",
                           "2026-01-02T03:04:05z",
                           "2026-13-02T03:04:05Z",
                           "2026-00-02T03:04:05Z",
                           "2026-01-32T03:04:05Z",
                           "2026-01-00T03:04:05Z",
                           "2026-02-29T03:04:05Z",
                           "1900-02-29T03:04:05Z",
                           "2026-01-02T24:00:00Z",
                           "2026-01-02T03:60:05Z",
                           "2026-01-02T03:04:60Z",
                           "2026-01-02T03:04:05.Z",
                           "2026-01-02T03:04:05+0200",
                           "2026-01-02T03:04:05+24:00",
                           "2026-01-02T03:04:05Zx",
                           "26-01-02T03:04:05Z",
                           "2026-1-2T3:4:5Z",
                           "+026-01-02T03:04:05Z"}) {
    EXPECT_FALSE(ParseRfc3339(text)) << text;
  }
  EXPECT_EQ(ParseRfc3339("9999-12-31T23:59:59Z").error().code, ErrorCode::kOverflow);
  EXPECT_EQ(ParseRfc3339("0001-01-01T00:00:00Z").error().code, ErrorCode::kOverflow);
}

TEST(Rfc3339Test, WritesAsKubernetesWrites) {
  const Time time{1'767'323'045 * kSecond + 123'456'789};
  EXPECT_EQ(FormatRfc3339(time), "2026-01-02T03:04:05Z");
  EXPECT_EQ(FormatRfc3339Micro(time), "2026-01-02T03:04:05.123456Z");
  EXPECT_EQ(FormatRfc3339({-1}), "1969-12-31T23:59:59Z");
  EXPECT_EQ(FormatRfc3339({}), "");
  EXPECT_EQ(FormatRfc3339Micro({}), "");
}

RC_GTEST_PROP(Rfc3339Property, WholeMicrosecondsReadBackTheSame, ()) {
  const auto micros = *rc::gen::inRange<int64_t>(1, kMax / 1'000);
  const Time time{*rc::gen::element(micros, -micros) * 1'000};
  RC_ASSERT(ParseRfc3339(FormatRfc3339Micro(time)).value() == time);
}

}  // namespace
}  // namespace hopwise
