// 10,000 gangs wait for a cluster that takes a quarter of them; then running ones end, one after
// the other, and free room for others.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "base/prng.h"
#include "base/time.h"
#include "cluster/state.h"
#include "cluster_builder.h"
#include "report.h"
#include "sched/config.h"
#include "sched/scheduler.h"

namespace hopwise::bench {
namespace {

constexpr int kGangs = 10'000;
constexpr int kShapes = 100;
constexpr int32_t kMembers = 8;
constexpr int64_t kGpusPerMember = 4;
constexpr int kWholeGangs = 50;   // completions of all members at once
constexpr int kSinglePods = 400;  // completions of one member after the other
constexpr int kRoomFreed = kWholeGangs + kSinglePods / kMembers;  // in gangs
constexpr uint64_t kSeed = 4;

// 10,000 nodes in leaves of 16: four gangs to a leaf.
ClusterSpec Idle() { return {.name = "pending", .nodes = 10'000, .spine = 512, .seed = kSeed}; }

GangSpec GangOf(size_t number) {
  return {.name = "g" + std::to_string(number),
          .pods = kMembers,
          .gpus = kGpusPerMember,
          .cpu_milli = 1000 + static_cast<int64_t>(number % kShapes),
          .rule = Rule::kHard,
          .tier = 1};
}

struct Bed {
  Bed() : scheduler(state, sched::DefaultConfig()) {
    BuildCluster(spec, state);
    for (size_t i = 0; i < kGangs; ++i) {
      AddGang(GangOf(i), state);
    }
  }
  Time NextMilli() { return {now_ns += 1'000'000}; }
  [[nodiscard]] size_t NumberOf(GangId id) const {
    return std::stoul(state.gang(id).name.substr(1));
  }

  ClusterSpec spec = Idle();
  cluster::State state;
  sched::Scheduler scheduler;
  Prng prng{kSeed};
  int64_t now_ns = 1'000'000'000'000;
  std::vector<size_t> running;  // numbers of gangs that are placed
  size_t ending = 0;            // the gang whose members end one by one
  int32_t ended = kMembers;     // how many of them did
};

Samples samples;
std::unique_ptr<Bed> bed;
size_t decided = 0, placed_at_first = 0;
// Of the completions: gangs decided, placed, and those that no necessary test would have let pass.
size_t woken = 0, placed = 0, useless = 0, completions = 0;

size_t LeafOf(NodeId node) { return NodeIndex(bed->state.node(node).name) / bed->spec.leaf; }

// Whether the leaf has room for all members of a gang of this shape, by the columns alone.
bool HasRoom(size_t leaf, size_t number) {
  const GangSpec gang = GangOf(number);
  const cluster::Columns& columns = bed->state.columns();
  cluster::Request request = {
      {columns.pods(), 1},
      {columns.FindResource("cpu"), gang.cpu_milli},
      {columns.FindResource("nvidia.com/gpu"), gang.gpus},
  };
  std::ranges::sort(request);
  int64_t room = 0;
  for (size_t i = leaf * bed->spec.leaf; i < (leaf + 1) * bed->spec.leaf; ++i) {
    room += columns.Fit(bed->state.FindNode(NodeName(i)), request);
  }
  return room >= kMembers;
}

// Before the run: which shapes the freed leaves could take. No other leaf has changed, and none of
// them had room for a gang that waits.
std::vector<bool> HelpedShapes(const std::set<size_t>& leaves) {
  std::vector<bool> helped(kShapes, false);
  for (size_t shape = 0; shape < kShapes; ++shape) {
    helped[shape] = std::ranges::any_of(leaves, [&](size_t leaf) { return HasRoom(leaf, shape); });
  }
  return helped;
}

// A gang that loses its members one by one is decided because it changed, not woken.
void Account(const sched::Plan& plan, const std::vector<bool>& helped) {
  ++completions;
  for (const sched::GangReport& report : plan.gangs) {
    const size_t number = bed->NumberOf(report.gang);
    if (bed->ended < kMembers && number == bed->ending) {
      continue;
    }
    ++woken;
    if (report.verdict == sched::Verdict::kPlaced) {
      ++placed;
      bed->running.push_back(number);
    } else if (!helped[number % kShapes]) {
      ++useless;
    }
  }
}

// Takes a seeded one out of the running gangs.
size_t TakeRunning() {
  const size_t at = bed->prng.Below(bed->running.size());
  std::swap(bed->running[at], bed->running.back());
  const size_t number = bed->running.back();
  bed->running.pop_back();
  return number;
}

void Release(size_t number, int32_t member, std::set<size_t>& leaves) {
  const std::string name = MemberName(GangOf(number), member);
  const PodId pod = bed->state.FindPod(kNamespace, name);
  HOPWISE_CHECK(pod.valid());
  leaves.insert(LeafOf(bed->state.pod(pod).node));
  bed->state.RemovePod(kNamespace, name);
}

double AfterCompletion(const std::set<size_t>& leaves) {
  const std::vector<bool> helped = HelpedShapes(leaves);
  const Time now = bed->NextMilli();
  sched::Plan plan;
  const double us = TimeUs([&] { plan = bed->scheduler.Run(now); });
  Account(plan, helped);
  return us;
}

double CompleteGang() {
  const size_t number = TakeRunning();
  std::set<size_t> leaves;
  for (int32_t i = 0; i < kMembers; ++i) {
    Release(number, i, leaves);
  }
  bed->state.RemovePodGroup(kNamespace, GangOf(number).name, false);
  return AfterCompletion(leaves);
}

double CompletePod() {
  if (bed->ended == kMembers) {
    bed->ending = TakeRunning();
    bed->ended = 0;
  }
  std::set<size_t> leaves;
  Release(bed->ending, bed->ended, leaves);
  if (++bed->ended == kMembers) {
    bed->state.RemovePodGroup(kNamespace, GangOf(bed->ending).name, false);
  }
  return AfterCompletion(leaves);
}

void DecideAll(benchmark::State& table) {
  bed = std::make_unique<Bed>();
  for (auto _ : table) {
    sched::Plan plan;
    const Time now = bed->NextMilli();
    const double us = TimeUs([&] { plan = bed->scheduler.Run(now); });
    for (const sched::GangReport& report : plan.gangs) {
      ++decided;
      if (report.verdict == sched::Verdict::kPlaced) {
        bed->running.push_back(bed->NumberOf(report.gang));
      }
    }
    placed_at_first = bed->running.size();
    samples.Add("decide_all", us);
    table.SetIterationTime(us * 1e-6);
  }
}

void Complete(benchmark::State& table, const std::string& name,
              const std::function<double()>& once) {
  if (bed == nullptr || bed->running.empty()) {
    table.SkipWithError("nothing runs");
    return;
  }
  for (auto _ : table) {
    const double us = once();
    samples.Add(name, us);
    table.SetIterationTime(us * 1e-6);
  }
  samples.Tabulate(name, table);
  table.counters["max_us"] = samples.Max(name);
}

void Register() {
  benchmark::RegisterBenchmark("decide_all", DecideAll)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("complete_gang", Complete, "complete_gang", CompleteGang)
      ->Iterations(kWholeGangs)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("complete_pod", Complete, "complete_pod", CompletePod)
      ->Iterations(kSinglePods)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void Judge(Report& report) {
  report.TargetAtLeast("pending_decided", static_cast<double>(decided), kGangs);
  report.TargetAtLeast("pending_placed", static_cast<double>(placed_at_first), kGangs / 4.0);
  report.Figure("pending_decide_all_ms", samples.Min("decide_all") / 1000, 2000);
  report.Target("completion_woken_in_vain", static_cast<double>(useless), 0);
  // Each gang that has ended in full makes room for one.
  report.TargetAtLeast("completion_placed", static_cast<double>(placed),
                       static_cast<double>(kRoomFreed));
  const auto count = static_cast<double>(completions);
  report.Figure("completion_woken_per_completion", static_cast<double>(woken) / count);
  report.Figure("completion_gang_us", samples.Median("complete_gang"), 1000);
  report.Figure("completion_gang_max_us", samples.Max("complete_gang"));
  report.Figure("completion_pod_us", samples.Median("complete_pod"), 1000);
  report.Figure("completion_pod_max_us", samples.Max("complete_pod"));
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
  bed.reset();
  return 0;
}
