// Metrics by name and labels, and their text form.
#include "server/metrics.h"

#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hopwise::server {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two counters, a gauge and a histogram of buckets 1 and 10, without values.
class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    metrics_.DeclareHistogram("took", "How long.", {1, 10});
    metrics_.DeclareGauge("room", "What is free.");
    metrics_.DeclareCounter("waits_total", "What waited.");
    metrics_.DeclareCounter("binds_total", "What was bound.");
  }

  Metrics metrics_;
};

TEST_F(MetricsTest, FamiliesThatNobodyUsedAreNotPrinted) { EXPECT_EQ(metrics_.Text(), ""); }

TEST_F(MetricsTest, TextIsByFamilyThenByLabelsWhateverCameFirst) {
  metrics_.Count("waits_total", 0.25);
  metrics_.Observe("took", 3, {{"stage", "bind"}});
  metrics_.Set("room", 2, {{"zone", "b"}, {"kind", "gpu"}});
  metrics_.Set("room", 0.5, {{"kind", "gpu"}, {"zone", "a"}});
  metrics_.Set("room", 1e6, {{"kind", "cpu"}, {"zone", "z"}});
  metrics_.Count("binds_total");
  metrics_.Count("binds_total", 2);
  EXPECT_EQ(metrics_.Text(),
            "# HELP binds_total What was bound.\n"
            "# TYPE binds_total counter\n"
            "binds_total 3\n"
            "# HELP room What is free.\n"
            "# TYPE room gauge\n"
            "room{kind=\"cpu\",zone=\"z\"} 1000000\n"
            "room{kind=\"gpu\",zone=\"a\"} 0.5\n"
            "room{kind=\"gpu\",zone=\"b\"} 2\n"
            "# HELP took How long.\n"
            "# TYPE took histogram\n"
            "took_count{stage=\"bind\"} 1\n"
            "took_sum{stage=\"bind\"} 3\n"
            "took_bucket{stage=\"bind\",le=\"1\"} 0\n"
            "took_bucket{stage=\"bind\",le=\"10\"} 1\n"
            "took_bucket{stage=\"bind\",le=\"+Inf\"} 1\n"
            "# HELP waits_total What waited.\n"
            "# TYPE waits_total counter\n"
            "waits_total 0.25\n");
}

TEST_F(MetricsTest, ManySeriesStandInTheSameOrderHoweverTheyWereMade) {
  Metrics other;
  other.DeclareGauge("room", "What is free.");
  for (int i = 0; i < 50; ++i) {
    metrics_.Set("room", i, {{"node", std::to_string(i)}});
    other.Set("room", 49 - i, {{"node", std::to_string(49 - i)}});
  }
  EXPECT_EQ(metrics_.Text(), other.Text());
}

TEST_F(MetricsTest, TheOrderOfLabelsDoesNotMakeAnotherSeries) {
  metrics_.Count("binds_total", 1, {{"a", "1"}, {"b", "2"}});
  metrics_.Count("binds_total", 1, {{"b", "2"}, {"a", "1"}});
  EXPECT_EQ(metrics_.Value("binds_total", {{"a", "1"}, {"b", "2"}}), 2);
}

TEST_F(MetricsTest, LabelValuesAreQuotedSoThatTheyStayOnOneLine) {
  metrics_.Set("room", 1, {{"queue", "a\"b\\c\nd"}});
  EXPECT_THAT(metrics_.Text(), HasSubstr("room{queue=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST_F(MetricsTest, ValuesBeyondNumbersHaveTheNamesOfTheFormat) {
  metrics_.Set("room", INFINITY, {{"is", "big"}});
  metrics_.Set("room", -INFINITY, {{"is", "small"}});
  metrics_.Set("room", NAN, {{"is", "unknown"}});
  EXPECT_THAT(metrics_.Text(), HasSubstr("room{is=\"big\"} +Inf\n"
                                         "room{is=\"small\"} -Inf\n"
                                         "room{is=\"unknown\"} Nan\n"));
}

TEST_F(MetricsTest, BytesOfLargeMachinesKeepAllTheirDigits) {
  metrics_.Set("room", 1125899906842624.0);  // 1 Pi
  EXPECT_THAT(metrics_.Text(), HasSubstr("room 1125899906842624\n"));
}

TEST_F(MetricsTest, ABucketHoldsItsUpperBound) {
  metrics_.Observe("took", 1);
  metrics_.Observe("took", 1.5);
  metrics_.Observe("took", 11);
  EXPECT_THAT(metrics_.Text(), HasSubstr("took_bucket{le=\"1\"} 1\n"
                                         "took_bucket{le=\"10\"} 2\n"
                                         "took_bucket{le=\"+Inf\"} 3\n"));
}

TEST_F(MetricsTest, EachLabelSetOfAHistogramCountsForItself) {
  metrics_.Observe("took", 5, {{"stage", "watch"}});
  metrics_.Observe("took", 5, {{"stage", "bind"}});
  metrics_.Observe("took", 50, {{"stage", "bind"}});
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("took_count{stage=\"bind\"} 2\ntook_sum{stage=\"bind\"} 55\n"));
  EXPECT_THAT(text, HasSubstr("took_count{stage=\"watch\"} 1\ntook_sum{stage=\"watch\"} 5\n"));
  EXPECT_LT(text.find("stage=\"bind\""), text.find("stage=\"watch\""));
}

TEST_F(MetricsTest, DroppedSeriesAreGoneAndBeginAnew) {
  const Labels queue = {{"queue", "ml"}};
  metrics_.Set("room", 7, queue);
  metrics_.Count("binds_total", 7, queue);
  metrics_.Observe("took", 7, queue);
  metrics_.Set("room", 8, {{"queue", "web"}});
  for (const char* name : {"room", "binds_total", "took"}) {
    metrics_.Drop(name, queue);
    metrics_.Drop(name, {{"queue", "never seen"}});
  }
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("ml")));
  EXPECT_EQ(metrics_.Value("room", {{"queue", "web"}}), 8);
  metrics_.Count("binds_total", 1, queue);
  EXPECT_EQ(metrics_.Value("binds_total", queue), 1);
}

TEST_F(MetricsTest, SetAllLeavesWhatItNamesAndNothingElse) {
  metrics_.Set("room", 1, {{"queue", "old"}});
  metrics_.Set("room", 1, {{"queue", "kept"}});
  metrics_.SetAll("room", {{{{"queue", "kept"}}, 2}, {{{"queue", "new"}}, 3}});
  EXPECT_EQ(metrics_.Text(),
            "# HELP room What is free.\n"
            "# TYPE room gauge\n"
            "room{queue=\"kept\"} 2\n"
            "room{queue=\"new\"} 3\n");
  metrics_.SetAll("room", {});
  EXPECT_EQ(metrics_.Text(), "");
}

TEST_F(MetricsTest, AValueNobodySetIsZeroAndIsNotMadeByLooking) {
  EXPECT_EQ(metrics_.Value("room", {{"queue", "ml"}}), 0);
  EXPECT_EQ(metrics_.Value("binds_total"), 0);
  EXPECT_EQ(metrics_.Text(), "");
}

TEST_F(MetricsTest, ThreadsCountDropAndPrintAtOnceAndNothingIsLost) {
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Labels own = {{"thread", std::to_string(t)}};
      for (int i = 0; i < kEach; ++i) {
        metrics_.Count("binds_total");
        metrics_.Observe("took", i, own);
        metrics_.Set("room", i, own);
        metrics_.Drop("room", own);
        metrics_.SetAll("room", {{{{"all", "1"}}, 1}});
        if (i % 50 == 0) {
          EXPECT_THAT(metrics_.Text(), HasSubstr("binds_total "));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(metrics_.Value("binds_total"), 4 * kEach);
  EXPECT_THAT(metrics_.Text(), HasSubstr("took_count{thread=\"3\"} 500\n"));
}

TEST(ExponentialRange, RunsFromTheLeastToTheMostByOneFactor) {
  const std::vector<double> buckets = ExponentialRange(1, 5000, 20);
  ASSERT_EQ(buckets.size(), 20);
  EXPECT_EQ(buckets.front(), 1);
  EXPECT_NEAR(buckets.back(), 5000, 1e-6);
  for (size_t i = 1; i < buckets.size(); ++i) {
    EXPECT_NEAR(buckets[i] / buckets[i - 1], std::pow(5000, 1.0 / 19), 1e-9);
  }
}

TEST(ExponentialRange, OfOneIsTheLeast) { EXPECT_EQ(ExponentialRange(3, 9, 1), std::vector{3.0}); }

// Mistakes in our own code: each ends the process instead of printing what nobody can read.
struct Misuse {
  const char* name;
  void (*act)(Metrics&);
};
class MetricsDeathTest : public testing::TestWithParam<Misuse> {};

TEST_P(MetricsDeathTest, IsABug) {
  Metrics metrics;
  metrics.DeclareCounter("c", "A counter.");
  metrics.DeclareGauge("g", "A gauge.");
  metrics.DeclareHistogram("h", "A histogram.", {1});
  EXPECT_DEATH(GetParam().act(metrics), "metrics");
}

INSTANTIATE_TEST_SUITE_P(
    Misuses, MetricsDeathTest,
    testing::Values(
        Misuse{"DeclaredTwice", [](Metrics& m) { m.DeclareCounter("c", "Again."); }},
        Misuse{"DeclaredAsAnotherType", [](Metrics& m) { m.DeclareGauge("h", "Again."); }},
        Misuse{"NameWithABlank", [](Metrics& m) { m.DeclareGauge("a b", "Bad."); }},
        Misuse{"HelpOfTwoLines", [](Metrics& m) { m.DeclareGauge("x", "One.\nTwo."); }},
        Misuse{"BucketsThatFall", [](Metrics& m) { m.DeclareHistogram("x", "Bad.", {2, 1}); }},
        Misuse{"BucketsThatRepeat", [](Metrics& m) { m.DeclareHistogram("x", "Bad.", {1, 1}); }},
        Misuse{"CountOfAnUnknown", [](Metrics& m) { m.Count("x"); }},
        Misuse{"CountOfAGauge", [](Metrics& m) { m.Count("g"); }},
        Misuse{"CountBackwards", [](Metrics& m) { m.Count("c", -1); }},
        Misuse{"SetOfACounter", [](Metrics& m) { m.Set("c", 1); }},
        Misuse{"ObserveOfACounter", [](Metrics& m) { m.Observe("c", 1); }},
        Misuse{"SetAllOfACounter", [](Metrics& m) { m.SetAll("c", {}); }},
        Misuse{"DropOfAnUnknown", [](Metrics& m) { m.Drop("x", {}); }},
        Misuse{"ValueOfAHistogram", [](Metrics& m) { static_cast<void>(m.Value("h")); }},
        Misuse{"LabelTwice", [](Metrics& m) { m.Set("g", 1, {{"a", "1"}, {"a", "2"}}); }},
        Misuse{"LabelWithABlank", [](Metrics& m) { m.Set("g", 1, {{"a b", "1"}}); }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hopwise::server
