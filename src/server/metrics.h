// Prometheus metrics by name and labels, over prometheus-cpp's core. From any thread.
//
// A family is declared once, with its help and, for a histogram, its buckets; series come with
// their first use. Text() is the exposition format, families and series in a fixed order.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hopwise::server {

using Labels = std::vector<std::pair<std::string, std::string>>;

// count buckets from `least` to `most`, each the same factor above the one before:
// prometheus.ExponentialBucketsRange of the Go client, which Volcano uses.
std::vector<double> ExponentialRange(double least, double most, int count);

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Declaring twice, or using what was not declared as that type, is a bug (CHECK).
  void DeclareCounter(const std::string& name, const std::string& help);
  void DeclareGauge(const std::string& name, const std::string& help);
  void DeclareHistogram(const std::string& name, const std::string& help,
                        std::vector<double> buckets);

  void Count(const std::string& name, double by = 1, const Labels& labels = {});
  void Set(const std::string& name, double value, const Labels& labels = {});
  void Observe(const std::string& name, double value, const Labels& labels = {});
  // Forgets the series: a queue or a job is gone. Unknown ones are passed over.
  void Drop(const std::string& name, const Labels& labels);
  // A gauge family as a whole: series not named here go.
  void SetAll(const std::string& name, const std::vector<std::pair<Labels, double>>& series);

  [[nodiscard]] std::string Text() const;
  // A counter's or gauge's value, 0 when there is no such series. For tests.
  [[nodiscard]] double Value(const std::string& name, const Labels& labels = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopwise::server
