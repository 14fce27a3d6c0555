#include "server/metrics.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/check.h"

namespace hopwise::server {
namespace {

// The library's labels are a map, so that their order is by name whoever gives them.
prometheus::Labels Sorted(const Labels& labels) {
  prometheus::Labels sorted(labels.begin(), labels.end());
  HOPWISE_CHECK(sorted.size() == labels.size());  // no name twice
  return sorted;
}

// The library throws on names that the format does not allow; names are ours, so that is a bug.
template <class Call>
decltype(auto) Checked(const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    CheckFailed(__FILE__, __LINE__, "names of metrics and labels are valid");
  }
}

// One family and its series. `make` are what a new series is made of, beside its labels.
template <class Metric>
class Series {
 public:
  explicit Series(prometheus::Family<Metric>& family) : family_(&family) {}

  template <class... Make>
  Metric& At(const Labels& labels, const Make&... make) {
    prometheus::Labels key = Sorted(labels);
    const auto at = series_.find(key);
    if (at != series_.end()) {
      return *at->second;
    }
    Metric& made = Checked([&]() -> Metric& { return family_->Add(key, make...); });
    series_.emplace(std::move(key), &made);
    return made;
  }

  [[nodiscard]] const Metric* Find(const Labels& labels) const {
    const auto at = series_.find(Sorted(labels));
    return at == series_.end() ? nullptr : at->second;
  }

  void Drop(const Labels& labels) {
    const auto at = series_.find(Sorted(labels));
    if (at != series_.end()) {
      family_->Remove(at->second);
      series_.erase(at);
    }
  }

  void KeepOnly(const std::set<prometheus::Labels>& keep) {
    for (auto at = series_.begin(); at != series_.end();) {
      if (keep.contains(at->first)) {
        ++at;
      } else {
        family_->Remove(at->second);
        at = series_.erase(at);
      }
    }
  }

 private:
  prometheus::Family<Metric>* family_;
  std::map<prometheus::Labels, Metric*> series_;
};

struct HistogramSeries {
  Series<prometheus::Histogram> series;
  std::vector<double> buckets;
};

template <class Map>
auto& Declared(Map& families, const std::string& name) {
  const auto at = families.find(name);
  HOPWISE_CHECK(at != families.end());  // declared, and as this type
  return at->second;
}

bool ByLabels(const prometheus::ClientMetric& a, const prometheus::ClientMetric& b) {
  return a.label < b.label;
}

}  // namespace

struct Metrics::Impl {
  // Guards all: a series must not go while another thread adds to it.
  mutable std::mutex mutex;
  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Throw};
  std::map<std::string, Series<prometheus::Counter>> counters;
  std::map<std::string, Series<prometheus::Gauge>> gauges;
  std::map<std::string, HistogramSeries> histograms;

  // The family of a name that was not declared before.
  template <class Builder>
  auto& New(Builder builder, const std::string& name, const std::string& help) {
    HOPWISE_CHECK(!counters.contains(name) && !gauges.contains(name) && !histograms.contains(name));
    HOPWISE_CHECK(help.find('\n') == std::string::npos);  // the library writes it as it is
    return Checked([&]() -> auto& { return builder.Name(name).Help(help).Register(registry); });
  }
};

std::vector<double> ExponentialRange(double least, double most, int count) {
  HOPWISE_CHECK(count >= 1 && least > 0 && (count == 1 || most > least));
  const double factor = count == 1 ? 1 : std::pow(most / least, 1.0 / (count - 1));
  std::vector<double> buckets;
  for (int i = 0; i < count; ++i) {
    buckets.push_back(least * std::pow(factor, i));
  }
  return buckets;
}

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::DeclareCounter(const std::string& name, const std::string& help) {
  const std::lock_guard lock(impl_->mutex);
  impl_->counters.emplace(name, impl_->New(prometheus::BuildCounter(), name, help));
}

void Metrics::DeclareGauge(const std::string& name, const std::string& help) {
  const std::lock_guard lock(impl_->mutex);
  impl_->gauges.emplace(name, impl_->New(prometheus::BuildGauge(), name, help));
}

void Metrics::DeclareHistogram(const std::string& name, const std::string& help,
                               std::vector<double> buckets) {
  const std::lock_guard lock(impl_->mutex);
  // Each above the one before: the library does not look.
  HOPWISE_CHECK(std::ranges::adjacent_find(buckets, std::ranges::greater_equal()) == buckets.end());
  auto& family = impl_->New(prometheus::BuildHistogram(), name, help);
  impl_->histograms.emplace(
      name, HistogramSeries{Series<prometheus::Histogram>(family), std::move(buckets)});
}

void Metrics::Count(const std::string& name, double by, const Labels& labels) {
  HOPWISE_CHECK(by >= 0);  // a counter never falls
  const std::lock_guard lock(impl_->mutex);
  Declared(impl_->counters, name).At(labels).Increment(by);
}

void Metrics::Set(const std::string& name, double value, const Labels& labels) {
  const std::lock_guard lock(impl_->mutex);
  Declared(impl_->gauges, name).At(labels).Set(value);
}

void Metrics::Observe(const std::string& name, double value, const Labels& labels) {
  const std::lock_guard lock(impl_->mutex);
  HistogramSeries& histogram = Declared(impl_->histograms, name);
  histogram.series.At(labels, histogram.buckets).Observe(value);
}

void Metrics::Drop(const std::string& name, const Labels& labels) {
  const std::lock_guard lock(impl_->mutex);
  if (const auto counter = impl_->counters.find(name); counter != impl_->counters.end()) {
    counter->second.Drop(labels);
  } else if (const auto gauge = impl_->gauges.find(name); gauge != impl_->gauges.end()) {
    gauge->second.Drop(labels);
  } else {
    Declared(impl_->histograms, name).series.Drop(labels);
  }
}

void Metrics::SetAll(const std::string& name,
                     const std::vector<std::pair<Labels, double>>& series) {
  const std::lock_guard lock(impl_->mutex);
  auto& gauges = Declared(impl_->gauges, name);
  std::set<prometheus::Labels> named;
  for (const auto& [labels, value] : series) {
    gauges.At(labels).Set(value);
    named.insert(Sorted(labels));
  }
  gauges.KeepOnly(named);
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families;
  {
    const std::lock_guard lock(impl_->mutex);
    families = impl_->registry.Collect();
  }
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  std::ranges::sort(families, {}, &prometheus::MetricFamily::name);
  for (prometheus::MetricFamily& family : families) {
    std::ranges::sort(family.metric, ByLabels);
  }
  return prometheus::TextSerializer().Serialize(families);
}

double Metrics::Value(const std::string& name, const Labels& labels) const {
  const std::lock_guard lock(impl_->mutex);
  if (const auto at = impl_->counters.find(name); at != impl_->counters.end()) {
    const prometheus::Counter* counter = at->second.Find(labels);
    return counter == nullptr ? 0 : counter->Value();
  }
  const prometheus::Gauge* gauge = Declared(impl_->gauges, name).Find(labels);
  return gauge == nullptr ? 0 : gauge->Value();
}

}  // namespace hopwise::server
