// What a benchmark says at its end: one line per target (a ratio or a count, which gates) and per
// figure (an absolute time or rate, for reading), as `./dev bench` reads them:
//   TARGET <name> <measured> <limit> <ok|short>
//   FIGURE <name> <measured> <limit|-> <ok|short|->
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace hopwise::bench {

class Report {
 public:
  // Better is less, unless the name says otherwise. A measure that is missing (NaN) is short.
  void Target(const std::string& name, double measured, double limit) {
    Add("TARGET", name, measured, limit, measured <= limit);
  }
  void TargetAtLeast(const std::string& name, double measured, double limit) {
    Add("TARGET", name, measured, limit, measured >= limit);
  }
  void Figure(const std::string& name, double measured, double limit) {
    Add("FIGURE", name, measured, limit, measured <= limit);
  }
  void FigureAtLeast(const std::string& name, double measured, double limit) {
    Add("FIGURE", name, measured, limit, measured >= limit);
  }
  void Figure(const std::string& name, double measured) {
    lines_.push_back("FIGURE " + name + " " + Number(measured) + " - -");
  }

  void Print() const {
    std::printf("\n");
    for (const std::string& line : lines_) {
      std::printf("%s\n", line.c_str());
    }
    std::fflush(stdout);
  }

 private:
  static std::string Number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, std::fabs(value) < 100 ? "%.3f" : "%.0f", value);
    return text;
  }
  void Add(const char* kind, const std::string& name, double measured, double limit, bool ok) {
    lines_.push_back(std::string(kind) + " " + name + " " + Number(measured) + " " + Number(limit) +
                     (ok ? " ok" : " short"));
  }

  std::vector<std::string> lines_;
};

// Times in microseconds by name of the measure.
class Samples {
 public:
  void Add(const std::string& name, double us) { samples_[name].push_back(us); }

  [[nodiscard]] double Min(const std::string& name) const {
    const auto at = samples_.find(name);
    return at == samples_.end() ? std::numeric_limits<double>::quiet_NaN()
                                : *std::ranges::min_element(at->second);
  }
  [[nodiscard]] double Max(const std::string& name) const {
    const auto at = samples_.find(name);
    return at == samples_.end() ? std::numeric_limits<double>::quiet_NaN()
                                : *std::ranges::max_element(at->second);
  }
  [[nodiscard]] double Median(const std::string& name) const {
    const auto at = samples_.find(name);
    if (at == samples_.end()) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    std::vector<double> sorted = at->second;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  // Puts the least and the middle sample beside google-benchmark's mean.
  void Tabulate(const std::string& name, benchmark::State& table) const {
    if (samples_.contains(name)) {
      table.counters["min_us"] = Min(name);
      table.counters["median_us"] = Median(name);
    }
  }

 private:
  std::map<std::string, std::vector<double>> samples_;
};

// Microseconds of processor time that a call takes. What is measured here neither waits nor has
// threads, so this is the time it takes on an idle machine; other work on it does not count.
template <class Call>
double TimeUs(Call&& call) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  };
  const double start = now();
  std::forward<Call>(call)();
  return now() - start;
}

}  // namespace hopwise::bench
