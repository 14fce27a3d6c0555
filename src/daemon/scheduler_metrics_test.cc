// What is declared, and what docs/reference/metrics.md says of it.
#include "daemon/scheduler_metrics.h"

#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/controller_metrics.h"

namespace hopwise::daemon {
namespace {

using testing::HasSubstr;

// Tests run in the root of the repository.
constexpr const char* kPage = "docs/reference/metrics.md";
constexpr const char* kControllerPage = "docs/reference/controller.md";

using TypeByName = std::map<std::string, std::string>;

std::string TypeName(MetricDeclaration::Type type) {
  switch (type) {
    case MetricDeclaration::Type::kCounter:
      return "counter";
    case MetricDeclaration::Type::kGauge:
      return "gauge";
    case MetricDeclaration::Type::kHistogram:
      return "histogram";
  }
  return "";
}

TypeByName TypesOf(const std::vector<MetricDeclaration>& declarations) {
  TypeByName types;
  for (const MetricDeclaration& metric : declarations) {
    types.emplace(metric.name, TypeName(metric.type));
  }
  return types;
}

TypeByName Declared() { return TypesOf(SchedulerMetricDeclarations()); }

// "| `name`, `name` | type | … |": the names of a row's first cell, with its second.
void AddRow(std::string_view line, TypeByName& types) {
  const size_t names_end = line.find(" | ");
  const size_t type_end = line.find(" | ", names_end + 1);
  if (!line.starts_with("| `") || type_end == std::string_view::npos) {
    return;
  }
  const std::string type(line.substr(names_end + 3, type_end - names_end - 3));
  if (type != "counter" && type != "gauge" && type != "histogram") {
    return;  // another table
  }
  std::string_view names = line.substr(0, names_end);
  for (size_t at = names.find('`'); at != std::string_view::npos; at = names.find('`')) {
    const size_t end = names.find('`', at + 1);
    const auto [where, is_new] = types.emplace(names.substr(at + 1, end - at - 1), type);
    EXPECT_TRUE(is_new) << where->first << " stands on the page twice";
    names.remove_prefix(end + 1);
  }
}

TypeByName Documented(const char* path) {
  TypeByName types;
  std::ifstream page(path);
  EXPECT_TRUE(page) << path;
  for (std::string line; std::getline(page, line);) {
    AddRow(line, types);
  }
  return types;
}

TEST(SchedulerMetrics, ThePageNamesWhatIsDeclaredAndNothingElse) {
  const TypeByName declared = Declared();
  ASSERT_GT(declared.size(), 50);
  EXPECT_EQ(Documented(kPage), declared);
}

TEST(ControllerMetrics, ThePageNamesWhatIsDeclaredAndNothingElse) {
  EXPECT_EQ(Documented(kControllerPage), TypesOf(ControllerMetricDeclarations()));
}

TEST(SchedulerMetrics, EveryNameSaysWhoseItIsAndWhatItMeans) {
  for (const MetricDeclaration& metric : SchedulerMetricDeclarations()) {
    EXPECT_TRUE(metric.name.starts_with("volcano_") || metric.name.starts_with("hopwise_"))
        << metric.name;
    EXPECT_TRUE(metric.help.ends_with('.')) << metric.name;
    EXPECT_EQ(metric.buckets.empty(), metric.type != MetricDeclaration::Type::kHistogram)
        << metric.name;
  }
}

TEST(SchedulerMetrics, EachCanBeUsedAsItsTypeAndIsPrinted) {
  server::Metrics metrics;
  DeclareSchedulerMetrics(metrics);
  EXPECT_EQ(metrics.Text(), "");
  for (const auto& [name, type] : Declared()) {
    if (type == "counter") {
      metrics.Count(name);
    } else if (type == "gauge") {
      metrics.Set(name, 1);
    } else {
      metrics.Observe(name, 1);
    }
    EXPECT_THAT(metrics.Text(), HasSubstr("# TYPE " + name + " " + type + "\n"));
  }
}

// The range and the number of buckets that Volcano's dashboards reckon with.
TEST(SchedulerMetrics, VolcanosHistogramsHaveVolcanosBuckets) {
  struct Range {
    double least, most;
    size_t count;
  };
  const std::map<std::string, Range> table = {
      {"volcano_e2e_scheduling_latency_milliseconds", {1, 5000, 20}},
      {"volcano_open_session_duration_milliseconds", {1, 5000, 20}},
      {"volcano_e2e_job_scheduling_latency_milliseconds", {100, 120000, 30}},
      {"volcano_plugin_scheduling_latency_milliseconds", {0.1, 100, 15}},
      {"volcano_action_scheduling_latency_milliseconds", {1, 2000, 20}},
      {"volcano_task_scheduling_latency_milliseconds", {50, 60000, 30}},
      {"volcano_scheduling_stage_duration_milliseconds", {0.1, 500, 20}},
  };
  size_t seen = 0;
  for (const MetricDeclaration& metric : SchedulerMetricDeclarations()) {
    if (!metric.name.starts_with("volcano_") || metric.buckets.empty()) {
      continue;
    }
    ++seen;
    const Range& range = table.at(std::string(metric.name));
    EXPECT_EQ(metric.buckets.size(), range.count) << metric.name;
    EXPECT_NEAR(metric.buckets.front(), range.least, range.least * 1e-9) << metric.name;
    EXPECT_NEAR(metric.buckets.back(), range.most, range.most * 1e-9) << metric.name;
  }
  EXPECT_EQ(seen, table.size());
}

}  // namespace
}  // namespace hopwise::daemon
