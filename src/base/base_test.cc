// The small parts of base: checks, results, the string pool, the generator and the log facade.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/string_pool.h"

namespace hopwise {
namespace {

TEST(CheckDeathTest, ABrokenInvariantEndsTheProcessAndNamesItself) {
  const int one = 1;
  HOPWISE_CHECK(one == 1);
  EXPECT_DEATH(HOPWISE_CHECK(one == 2), "base_test.cc:[0-9]+: broken invariant: one == 2");
}

TEST(ResultTest, AnErrorGathersItsContextOnTheWayUp) {
  const Status status = Invalid("expected a number");
  ASSERT_FALSE(status);
  const Error outer = status.error().Prefix("spec.tier").Prefix("cluster.yaml");
  EXPECT_EQ(outer.message, "cluster.yaml: spec.tier: expected a number");
  EXPECT_EQ(outer.code, ErrorCode::kInvalid);
}

TEST(StringPoolTest, EqualTextHasOneIdForAsLongAsItIsInUse) {
  StringPool pool;
  std::string text = "leaf-7";
  const StringId leaf = pool.Intern(text);
  text = "xxxxxx";
  EXPECT_EQ(pool.Intern("leaf-7"), leaf);
  EXPECT_EQ(pool.Find("leaf-7"), leaf);
  EXPECT_FALSE(pool.Find("leaf-8").valid());
  EXPECT_NE(pool.Intern(""), leaf);
  for (int i = 0; i < 10'000; ++i) pool.Intern("n" + std::to_string(i));
  EXPECT_EQ(pool.size(), 10'002U);
  EXPECT_EQ(pool.Text(leaf), "leaf-7");
  StringPool moved = std::move(pool);
  EXPECT_EQ(moved.Find("leaf-7"), leaf);
  EXPECT_EQ(moved.Text(moved.Find("n9999")), "n9999");
}

TEST(StringPoolTest, ATextWhoseLastUseWasGivenBackMakesRoomForAnother) {
  StringPool pool;
  const StringId leaf = pool.Intern("a name too long to be kept within its string: leaf-7");
  pool.Intern("spine");
  EXPECT_EQ(pool.Intern(pool.Text(leaf)), leaf);
  pool.Release(leaf);
  EXPECT_EQ(pool.Find(pool.Text(leaf)), leaf) << "one use is left";
  pool.Release(leaf);
  EXPECT_EQ(pool.used(), 1U);
  EXPECT_FALSE(pool.Find("a name too long to be kept within its string: leaf-7").valid());
  EXPECT_EQ(pool.Intern("rail"), leaf) << "the id is used again";
  EXPECT_EQ(pool.Text(leaf), "rail");
  EXPECT_EQ(pool.Text(pool.Find("spine")), "spine");
  EXPECT_EQ(pool.size(), 2U);
}

TEST(PrngTest, OneSeedIsOneSequenceEverywhere) {
  Prng a(42);
  Prng b(42);
  EXPECT_EQ(a.Next(), b.Next());
  // The first outputs of SplitMix64 for seed 1234567, as its authors' code gives them.
  Prng known(1'234'567);
  EXPECT_EQ(known.Next(), 6'457'827'717'110'365'317ULL);
  EXPECT_EQ(known.Next(), 3'203'168'211'198'807'973ULL);
  std::set<int64_t> seen;
  for (int i = 0; i < 1'000; ++i) seen.insert(a.Between(-2, 2));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2}));
}

// Puts the sink that was there before back.
class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = SetLogSink([this](const LogRecord& record) {
      lines_.push_back(std::string(LogLevelName(record.level)) + " " + FormatLogLine(record));
    });
  }
  void TearDown() override { SetLogSink(std::move(before_)); }

  std::vector<std::string> lines_;
  LogSink before_;
};

TEST_F(LogTest, ARecordIsOneLineOfKeysAndValues) {
  Log(LogLevel::kInfo, "gang_bound", {{"gang", "ml/train"}, {"pods", 8}, {"hard", true}});
  Log(LogLevel::kError, "bad_object", {{"why", std::string("a \"b\"\n")}, {"empty", ""}});
  Log(LogLevel::kWarning, "bare");
  const std::vector<std::string> expected = {
      "info gang_bound gang=ml/train pods=8 hard=true",
      "error bad_object why=\"a \\\"b\\\"\\n\" empty=\"\"",
      "warning bare",
  };
  EXPECT_EQ(lines_, expected);
}

TEST_F(LogTest, BelowTheThresholdNothingReachesTheSink) {
  EXPECT_FALSE(LogEnabled(LogLevel::kDebug));
  Log(LogLevel::kDebug, "noise");
  EXPECT_TRUE(lines_.empty());
  SetLogSink(nullptr);
  EXPECT_FALSE(LogEnabled(LogLevel::kError));
  Log(LogLevel::kError, "unheard");
}

}  // namespace
}  // namespace hopwise
