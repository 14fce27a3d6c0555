// What the state holds per node and pod, and how fast their JSON is read.
//
// All allocations of this program are counted, with the sizes that the allocator really gave.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include "api/decode.h"
#include "base/check.h"
#include "cluster/state.h"
#include "cluster_builder.h"
#include "json_text.h"
#include "report.h"

namespace {

int64_t live_bytes = 0;

void* Counted(void* block) {
  if (block == nullptr) {
    std::abort();
  }
  live_bytes += static_cast<int64_t>(malloc_usable_size(block));
  return block;
}

void Uncounted(void* block) {
  live_bytes -= static_cast<int64_t>(malloc_usable_size(block));
  std::free(block);
}

void* Aligned(size_t size, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  return Counted(std::aligned_alloc(to, (size + to - 1) / to * to));
}

}  // namespace

void* operator new(size_t size) { return Counted(std::malloc(size)); }
void* operator new[](size_t size) { return Counted(std::malloc(size)); }
void* operator new(size_t size, std::align_val_t to) { return Aligned(size, to); }
void* operator new[](size_t size, std::align_val_t to) { return Aligned(size, to); }
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return Counted(std::malloc(size));
}
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return Counted(std::malloc(size));
}
void operator delete(void* block) noexcept { Uncounted(block); }
void operator delete[](void* block) noexcept { Uncounted(block); }
void operator delete(void* block, size_t /*size*/) noexcept { Uncounted(block); }
void operator delete[](void* block, size_t /*size*/) noexcept { Uncounted(block); }
void operator delete(void* block, std::align_val_t /*to*/) noexcept { Uncounted(block); }
void operator delete[](void* block, std::align_val_t /*to*/) noexcept { Uncounted(block); }
void operator delete(void* block, size_t /*size*/, std::align_val_t /*to*/) noexcept {
  Uncounted(block);
}
void operator delete[](void* block, size_t /*size*/, std::align_val_t /*to*/) noexcept {
  Uncounted(block);
}

namespace hopwise::bench {
namespace {

constexpr size_t kNodes = 100'000;
constexpr size_t kPods = 200'000;
constexpr size_t kPage = 500;  // items in a List, as a client asks for them

Samples samples;
double node_bytes = std::nan(""), pod_bytes = std::nan(""), group_bytes = std::nan("");

// Everything read so far: bytes of text and microseconds.
struct Reading {
  double bytes = 0, us = 0;
  [[nodiscard]] double MegabytesPerSecond() const { return us > 0 ? bytes / us : std::nan(""); }
};
Reading nodes_read, pods_read, nodes_applied, pods_applied;

using Page = std::string (*)(size_t first, size_t count);

// Reads page after page; the text is made beforehand and not timed. What is read goes to `visit`.
template <class Visit>
void ReadAll(size_t total, Page page, Reading& reading, Visit&& visit) {
  api::Decoder decoder;
  for (size_t first = 0; first < total; first += kPage) {
    std::string text = page(first, kPage);
    reading.bytes += static_cast<double>(text.size());
    size_t read = 0;
    reading.us += TimeUs([&] {
      const auto list = decoder.DecodeList(text, [&](size_t, Result<api::Decoded>&& item) {
        HOPWISE_CHECK(item.has_value());
        visit(item->object);
        ++read;
      });
      HOPWISE_CHECK(list.has_value());
    });
    HOPWISE_CHECK(read == kPage);
  }
}

void Read(benchmark::State& table, size_t total, Page page, Reading* reading) {
  for (auto _ : table) {
    const double before = reading->us;
    ReadAll(total, page, *reading, [](api::Object& object) { benchmark::DoNotOptimize(object); });
    table.SetIterationTime((reading->us - before) * 1e-6);
  }
  table.counters["MB"] = reading->bytes * 1e-6;
  table.counters["MB_per_s"] = reading->MegabytesPerSecond();
}

void ApplyGroups(cluster::State& state) {
  for (size_t i = 0; i < kPods / kPodsPerGang; ++i) {
    GangSpec gang;
    gang.name = GangName(i);
    gang.pods = static_cast<int32_t>(kPodsPerGang);
    gang.tier = 2;
    state.Apply(MakePodGroup(gang));
  }
}

// Fabric and nodes, then PodGroups, then bound pods; what each adds is measured once all that
// follows from it is worked out.
void Hold(benchmark::State& table) {
  for (auto _ : table) {
    const int64_t empty = live_bytes;
    auto state = std::make_unique<cluster::State>();
    const auto settled = [&] {
      state->TakeChanges();
      state->trees();
      return static_cast<double>(live_bytes);
    };
    const auto apply = [&](api::Object& object) { state->Apply(object); };
    for (const api::HyperNode& domain : MakeFabric({.name = "c", .nodes = kNodes, .spine = 512})) {
      state->Apply(domain);
    }
    ReadAll(kNodes, NodePage, nodes_applied, apply);
    const double with_nodes = settled();
    ApplyGroups(*state);
    const double with_groups = settled();
    ReadAll(kPods, PodPage, pods_applied, apply);
    const double with_pods = settled();
    node_bytes = (with_nodes - static_cast<double>(empty)) / kNodes;
    group_bytes = (with_groups - with_nodes) / (static_cast<double>(kPods) / kPodsPerGang);
    pod_bytes = (with_pods - with_groups) / kPods;
    HOPWISE_CHECK(state->PodsOn(state->FindNode(NodeName(0))).size() == kPods / kNodes);
  }
  table.counters["node_B"] = node_bytes;
  table.counters["pod_B"] = pod_bytes;
  table.counters["podgroup_B"] = group_bytes;
}

void Register() {
  benchmark::RegisterBenchmark("read_nodes", Read, kNodes, NodePage, &nodes_read)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("read_pods", Read, kPods, PodPage, &pods_read)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("hold", Hold)->Iterations(1)->Unit(benchmark::kMillisecond);
}

void Judge(Report& report) {
  report.Target("bytes_per_node", node_bytes, 4096);
  report.Target("bytes_per_bound_pod", pod_bytes, 1024);
  report.Figure("bytes_per_podgroup", group_bytes);
  const Reading both{nodes_read.bytes + pods_read.bytes, nodes_read.us + pods_read.us};
  report.FigureAtLeast("read_json_MB_per_s", both.MegabytesPerSecond(), 200);
  report.Figure("read_nodes_MB_per_s", nodes_read.MegabytesPerSecond());
  report.Figure("read_pods_MB_per_s", pods_read.MegabytesPerSecond());
  report.Figure("read_and_apply_nodes_MB_per_s", nodes_applied.MegabytesPerSecond());
  report.Figure("read_and_apply_pods_MB_per_s", pods_applied.MegabytesPerSecond());
}

}  // namespace
}  // namespace hopwise::bench

int main(int argc, char** argv) {
  using namespace hopwise::bench;
  benchmark::Initialize(&argc, argv);
  Register();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  Report report;
  Judge(report);
  report.Print();
  return 0;
}
