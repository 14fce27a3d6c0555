// A full cluster, and gangs that want in: how long it takes to find whom to evict, and to say no.
#include <cstdint>
#include <memory>
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

constexpr uint64_t kSeed = 6;
constexpr int kRounds = 9;
constexpr Time kNow{1'800'000'000'000'000'000};

Samples samples;
size_t victims = 0;
double full_percent = 0;

sched::Config Evicting() {
  sched::Config config = sched::DefaultConfig();
  config.actions = {"allocate", "backfill", "gangpreempt"};
  return config;
}

// Nodes under leaves of 8, spines of 32, pods of 256 and one core: four tiers.
void BuildFabric(size_t nodes, cluster::State& state) {
  const size_t spans[] = {8, 32, 256, nodes};
  for (int32_t tier = 1; tier <= 4; ++tier) {
    const size_t span = spans[tier - 1];
    const size_t part = tier == 1 ? 1 : spans[tier - 2];
    for (size_t first = 0; first < nodes; first += span) {
      api::HyperNode domain;
      domain.meta.name = "t" + std::to_string(tier) + "-" + std::to_string(first);
      domain.tier = tier;
      for (size_t at = first; at < std::min(first + span, nodes); at += part) {
        api::HyperNodeMember& member = domain.members.emplace_back();
        member.type = tier == 1 ? api::MemberType::kNode : api::MemberType::kHyperNode;
        member.exact =
            tier == 1 ? NodeName(at) : "t" + std::to_string(tier - 1) + "-" + std::to_string(at);
      }
      state.Apply(domain);
    }
  }
  for (size_t i = 0; i < nodes; ++i) {
    state.Apply(MakeNode(i));
  }
}

void Add(const GangSpec& gang, int32_t priority, cluster::State& state) {
  state.Apply(MakePodGroup(gang));
  for (int32_t i = 0; i < gang.pods; ++i) {
    api::Pod pod = MakeMember(gang, i);
    pod.priority = priority;
    state.Apply(pod);
  }
}

// What the scheduler placed runs from now on.
void Confirm(const sched::Plan& plan, cluster::State& state,
             const std::vector<std::pair<GangSpec, int32_t>>& gangs) {
  for (const sched::GangReport& report : plan.gangs) {
    for (const sched::Bind& bind : report.binds) {
      const cluster::PodRecord& record = state.pod(bind.pod);
      const size_t dash = record.name.rfind('-');
      const size_t gang = std::stoul(record.name.substr(1, dash - 1));
      api::Pod pod = MakeMember(gangs[gang].first, std::stoi(record.name.substr(dash + 1)));
      HOPWISE_CHECK(pod.meta.name == record.name);
      pod.priority = gangs[gang].second;
      pod.node_name = state.node(bind.node).name;
      pod.phase = api::PodPhase::kRunning;
      pod.start = {kNow.ns - static_cast<int64_t>(gang + 1) * 60'000'000'000};
      state.Apply(pod);
    }
  }
}

// 700 workloads of less priority, of some GPUs to some dozens of nodes, until 99 % are taken.
struct Bed {
  explicit Bed(size_t nodes) : scheduler(state, Evicting()) {
    BuildFabric(nodes, state);
    Prng random(kSeed);
    std::vector<std::pair<GangSpec, int32_t>> gangs;
    int64_t left = static_cast<int64_t>(nodes) * kGpusPerNode * 99 / 100;
    for (size_t g = 0; left > 0; ++g) {
      const int64_t wanted = 700 > g ? left / static_cast<int64_t>(700 - g) : left;
      GangSpec gang{.name = "g" + std::to_string(g), .rule = Rule::kSoft};
      gang.gpus = int64_t{1} << random.Below(4);
      const int64_t gpus = std::min(left, random.Between(1, std::max<int64_t>(1, 2 * wanted)));
      gang.pods = static_cast<int32_t>(std::max<int64_t>(1, gpus / gang.gpus));
      left -= gang.pods * gang.gpus;
      gangs.emplace_back(gang, static_cast<int32_t>(random.Below(5)));
      Add(gang, gangs.back().second, state);
    }
    workloads = gangs.size();
    Confirm(scheduler.Run(kNow), state, gangs);
    scheduler.Run(kNow);
    const ResourceId gpu = state.columns().FindResource("nvidia.com/gpu");
    int64_t used = 0;
    for (size_t n = 0; n < nodes; ++n) {
      used += state.columns().used(gpu)[n];
    }
    full_percent = 100.0 * static_cast<double>(used) / static_cast<double>(nodes * 8);
  }

  cluster::State state;
  sched::Scheduler scheduler;
  size_t workloads = 0;
};

void OpenDomain(benchmark::State& table) {
  for (auto _ : table) {
    for (int round = 0; round < kRounds; ++round) {
      Bed bed(2000);
      Add({.name = "claimer", .pods = 32, .rule = Rule::kHard, .tier = round % 2 == 0 ? 2 : 3}, 100,
          bed.state);
      sched::Plan plan;
      samples.Add("open", TimeUs([&] { plan = bed.scheduler.Run(kNow); }));
      HOPWISE_CHECK(!plan.evictions.empty());
      victims = std::max(victims, plan.evictions.size());
    }
  }
  samples.Tabulate("open", table);
}
BENCHMARK(OpenDomain)->Iterations(1)->Unit(benchmark::kMillisecond);

// None of them is worth more than what runs.
void SayNo(benchmark::State& table) {
  for (auto _ : table) {
    for (int round = 0; round < kRounds; ++round) {
      Bed bed(500);
      for (int g = 0; g < 10; ++g) {
        Add({.name = "claimer" + std::to_string(g), .pods = 10, .rule = Rule::kHard, .tier = 2}, 0,
            bed.state);
      }
      sched::Plan plan;
      samples.Add("no", TimeUs([&] { plan = bed.scheduler.Run(kNow); }));
      HOPWISE_CHECK(plan.gangs.size() == 10 && plan.evictions.empty());
      for (const sched::GangReport& report : plan.gangs) {
        HOPWISE_CHECK(report.verdict == sched::Verdict::kNotNow && !report.message.empty());
      }
    }
  }
  samples.Tabulate("no", table);
}
BENCHMARK(SayNo)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hopwise::bench

int main(int argc, char** argv) {
  using namespace hopwise::bench;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  Report report;
  report.Target("open_domain_2000_ms", samples.Median("open") / 1000, 20);
  report.Figure("open_domain_victims", static_cast<double>(victims));
  report.Figure("open_domain_full_percent", full_percent);
  report.Target("ten_gangs_refused_500_ms", samples.Median("no") / 1000, 5);
  report.Print();
  return 0;
}
