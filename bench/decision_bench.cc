// How long one gang takes to decide, against one sweep over the columns that it asks of.
//
// A decision is Scheduler::Run on a state where exactly that gang has just arrived; making and
// applying its objects is not timed. A repetition asks for an amount of CPU never seen before, so
// that nothing is known of its shape; afterwards the gang is removed and the room is as before.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/time.h"
#include "cluster/state.h"
#include "cluster_builder.h"
#include "report.h"
#include "sched/config.h"
#include "sched/scheduler.h"

namespace hopwise::bench {
namespace {

constexpr int kSweeps = 20;
constexpr int kOtherShapes = 1000;

Samples samples;
std::set<size_t> leaves_of_512, spines_of_512;  // of the last cold gang of 512 in cluster (a)

// One cluster, its scheduler, and amounts of CPU that no gang has asked for yet.
struct Bed {
  explicit Bed(ClusterSpec s) : spec(std::move(s)), scheduler(state, sched::DefaultConfig()) {
    BuildCluster(spec, state);
    Settle();
  }
  void Settle() { scheduler.Run(Now()); }
  Time Now() { return {now_ns += 1'000'000}; }
  int64_t FreshCpu() { return ++last_cpu; }

  ClusterSpec spec;
  cluster::State state;
  sched::Scheduler scheduler;
  int64_t now_ns = 1'000'000'000'000;
  int64_t last_cpu = 1000;
  int64_t serial = 0;
  bool crowded = false;
};

// One cluster at a time: the large ones are not kept beside each other.
Bed& Use(const ClusterSpec& spec) {
  static std::unique_ptr<Bed> bed;
  if (bed == nullptr || bed->spec.name != spec.name) {
    bed.reset();
    bed = std::make_unique<Bed>(spec);
  }
  return *bed;
}

// What is asked of a cluster; `label` names it in the table.
struct Case {
  std::string label;
  int32_t pods = 0;
  int32_t tier = 0;
  Rule rule = Rule::kHard;
  int32_t sub_group_size = 0;
  sched::Verdict expected = sched::Verdict::kPlaced;
};

GangSpec MakeGang(Bed& bed, const Case& asked, int64_t cpu) {
  return {.name = "g" + std::to_string(++bed.serial),
          .pods = asked.pods,
          .cpu_milli = cpu,
          .rule = asked.rule,
          .tier = asked.tier,
          .sub_group_size = asked.sub_group_size};
}

// Microseconds to decide a gang that has just arrived; negative when the answer is not the
// expected.
double Decide(Bed& bed, const GangSpec& gang, sched::Verdict expected) {
  AddGang(gang, bed.state);
  const Time now = bed.Now();
  sched::Plan plan;
  const double us = TimeUs([&] { plan = bed.scheduler.Run(now); });
  if (plan.gangs.size() != 1 || plan.gangs[0].verdict != expected) {
    std::fprintf(stderr, "unexpected: %zu gangs decided, verdict %d: %s\n", plan.gangs.size(),
                 plan.gangs.empty() ? -1 : static_cast<int>(plan.gangs[0].verdict),
                 plan.gangs.empty() ? "" : plan.gangs[0].message.c_str());
    return -1;
  }
  if (bed.spec.name == "a" && gang.pods == 512 && gang.rule == Rule::kHard &&
      gang.sub_group_size == 0) {
    leaves_of_512.clear();
    spines_of_512.clear();
    for (const sched::Bind& bind : plan.gangs[0].binds) {
      const size_t node = NodeIndex(bed.state.node(bind.node).name);
      leaves_of_512.insert(node / bed.spec.leaf);
      spines_of_512.insert(node / bed.spec.spine);
    }
  }
  return us;
}

void Drop(Bed& bed, const GangSpec& gang) {
  RemoveGang(gang, bed.state);
  bed.Settle();
}

// Runs `once` for each iteration and keeps what it measured under `name`.
void Repeat(benchmark::State& table, const std::string& name, const std::function<double()>& once) {
  for (auto _ : table) {
    const double us = once();
    if (us < 0) {
      table.SkipWithError("not the verdict that the benchmark is about");
      return;
    }
    samples.Add(name, us);
    table.SetIterationTime(us * 1e-6);
  }
  samples.Tabulate(name, table);
}

// --- the floor

using Column = std::vector<int64_t>;

std::vector<const Column*> AskedColumns(const cluster::State& state) {
  std::vector<const Column*> columns;
  for (const char* name : {"pods", "cpu", "nvidia.com/gpu"}) {
    const ResourceId r = state.columns().FindResource(name);
    columns.push_back(&state.columns().allocatable(r));
    columns.push_back(&state.columns().used(r));
  }
  return columns;
}

double Sweep(const std::vector<const Column*>& columns) {
  return TimeUs([&] {
    for (size_t c = 0; c < columns.size(); c += 2) {
      const int64_t* const allocatable = columns[c]->data();
      const int64_t* const used = columns[c + 1]->data();
      int64_t free = 0;
      for (size_t i = 0; i < columns[c]->size(); ++i) {
        free += allocatable[i] - used[i];
      }
      benchmark::DoNotOptimize(free);
    }
  });
}

double Copy(const std::vector<const Column*>& columns, std::vector<Column>& target) {
  return TimeUs([&] {
    for (size_t c = 0; c < columns.size(); ++c) {
      std::memcpy(target[c].data(), columns[c]->data(), columns[c]->size() * sizeof(int64_t));
      benchmark::ClobberMemory();
    }
  });
}

// --- decisions

// 1,000 shapes that the scheduler knows: half were placed and are gone, half wait, as they ask for
// a leaf with more nodes than any has.
void Crowd(Bed& bed) {
  for (int i = 0; i < kOtherShapes && !bed.crowded; ++i) {
    const bool waits = i % 2 == 0;
    const Case other{
        .label = "other", .pods = waits ? static_cast<int32_t>(bed.spec.leaf) + 1 : 1, .tier = 1};
    const GangSpec gang = MakeGang(bed, other, bed.FreshCpu());
    AddGang(gang, bed.state);
    bed.Settle();
    if (!waits) {
      Drop(bed, gang);
    }
  }
  bed.crowded = true;
}

double Cold(Bed& bed, const Case& asked) {
  const GangSpec gang = MakeGang(bed, asked, bed.FreshCpu());
  const double us = Decide(bed, gang, asked.expected);
  Drop(bed, gang);
  return us;
}

// The shape was decided and its gang is gone; one node has changed since.
double Warm(Bed& bed, const Case& asked, int64_t cpu) {
  const std::string visitor = "visitor-" + std::to_string(bed.serial);
  const size_t node = static_cast<size_t>(bed.serial) * 7919 % bed.spec.nodes;
  bed.state.Apply(MakeBoundPod(visitor, node, 0));
  bed.Settle();
  const GangSpec gang = MakeGang(bed, asked, cpu);
  const double us = Decide(bed, gang, asked.expected);
  bed.state.RemovePod(kNamespace, visitor);
  Drop(bed, gang);
  return us;
}

// As above, and the shape's own comings and goings had been taken note of before the node changed.
void CatchUp(Bed& bed, const Case& asked, int64_t cpu) {
  const GangSpec gang = MakeGang(bed, asked, cpu);
  AddGang(gang, bed.state);
  const PodId member = bed.state.FindPod(kNamespace, MemberName(gang, 0));
  const ShapeId shape = bed.state.ShapeOf(member);
  const auto& trees = bed.state.trees();
  bed.state.fits().Get(shape, trees, bed.state.trees_version());
  bed.state.fits().Sums(shape, trees, 0);
  RemoveGang(gang, bed.state);
  bed.Settle();
}

// Another gang waits with the answer to the same question.
double FromMemory(Bed& bed, const Case& asked, int64_t cpu) {
  const GangSpec gang = MakeGang(bed, asked, cpu);
  const uint64_t known = bed.scheduler.counters().from_memory;
  const double us = Decide(bed, gang, asked.expected);
  const bool remembered = bed.scheduler.counters().from_memory != known;
  Drop(bed, gang);
  return remembered ? us : -1;
}

// --- what is measured on a cluster

std::string NameOf(const std::string& what, const ClusterSpec& spec, const std::string& label) {
  return what + "_" + spec.name + (label.empty() ? "" : "_" + label);
}

// HOPWISE_BENCH_ROUNDS=<n> repeats everything n times as often, for a profiler.
int Rounds() {
  const char* const rounds = std::getenv("HOPWISE_BENCH_ROUNDS");
  return rounds == nullptr ? 1 : std::max(1, std::atoi(rounds));
}

void Add(const std::string& name, int repetitions, std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->Iterations(int64_t{repetitions} * Rounds())
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void AddFloor(const ClusterSpec& spec) {
  const std::string sweep = NameOf("sweep", spec, "");
  Add(sweep, kSweeps, [spec, sweep](benchmark::State& table) {
    const auto columns = AskedColumns(Use(spec).state);
    Repeat(table, sweep, [&] { return Sweep(columns); });
  });
  const std::string copy = NameOf("copy", spec, "");
  Add(copy, kSweeps, [spec, copy](benchmark::State& table) {
    const auto columns = AskedColumns(Use(spec).state);
    std::vector<Column> target(columns.size(), Column(columns[0]->size(), 1));
    Repeat(table, copy, [&] { return Copy(columns, target); });
  });
}

void AddCold(const ClusterSpec& spec, const std::string& what, const Case& asked, int repetitions,
             bool crowded = false) {
  const std::string name = NameOf(what, spec, asked.label);
  Add(name, repetitions, [=](benchmark::State& table) {
    Bed& bed = Use(spec);
    if (crowded) {
      Crowd(bed);
    }
    Repeat(table, name, [&] { return Cold(bed, asked); });
  });
}

void AddWarm(const ClusterSpec& spec, const Case& asked, int repetitions, bool caught_up) {
  const std::string name = NameOf(caught_up ? "warm1" : "warm", spec, asked.label);
  Add(name, repetitions, [=](benchmark::State& table) {
    Bed& bed = Use(spec);
    const int64_t cpu = bed.FreshCpu();
    const GangSpec first = MakeGang(bed, asked, cpu);
    Decide(bed, first, asked.expected);
    Drop(bed, first);
    Repeat(table, name, [&] {
      if (caught_up) {
        CatchUp(bed, asked, cpu);
      }
      return Warm(bed, asked, cpu);
    });
  });
}

void AddFromMemory(const ClusterSpec& spec, const Case& asked, int repetitions) {
  const std::string name = NameOf("from_memory", spec, asked.label);
  Add(name, repetitions, [=](benchmark::State& table) {
    Bed& bed = Use(spec);
    const int64_t cpu = bed.FreshCpu();
    const GangSpec first = MakeGang(bed, asked, cpu);
    Decide(bed, first, asked.expected);
    Repeat(table, name, [&] { return FromMemory(bed, asked, cpu); });
    Drop(bed, first);
  });
}

// What a cluster is asked: gangs that fit, and gangs that do not.
struct Plan {
  ClusterSpec spec;
  int repetitions = 20;
  std::vector<Case> fitting;
  std::vector<Case> refused;
  std::vector<Case> variants;  // soft and sub-grouped, each beside the fitting one of its size
};

std::vector<Case> Variants(int32_t pods, int32_t tier) {
  const std::string size = std::to_string(pods);
  return {{.label = "soft_" + size, .pods = pods, .rule = Rule::kSoft},
          {.label = "subgroups_" + size, .pods = pods, .tier = tier, .sub_group_size = 8}};
}

std::vector<Plan> Plans() {
  const Case g64{.label = "64", .pods = 64, .tier = 2};
  const Case g128{.label = "128", .pods = 128, .tier = 2};
  const Case g512{.label = "512", .pods = 512, .tier = 3};
  const Case g4096{.label = "4096", .pods = 4096, .tier = 3};
  // 64 in a leaf of 16; 16 in a leaf, 512 in a spine of 512, with half of the nodes full.
  const Case never{.label = "never_64", .pods = 64, .tier = 1, .expected = sched::Verdict::kNever};
  const Case leaf{
      .label = "not_now_16", .pods = 16, .tier = 1, .expected = sched::Verdict::kNotNow};
  const Case spine{
      .label = "not_now_512", .pods = 512, .tier = 2, .expected = sched::Verdict::kNotNow};
  std::vector<Case> variants = Variants(64, 2);
  for (const Case& larger : Variants(512, 3)) {
    variants.push_back(larger);
  }
  return {{ClusterA(), 60, {g64, g128, g512}, {never}, variants},
          {ClusterB(), 60, {g64, g512}, {never, leaf, spine}, variants},
          {ClusterC(), 40, {g64, g512, g4096}, {never, leaf, spine}, {}}};
}

void Register(const std::vector<Plan>& plans) {
  for (const Plan& plan : plans) {
    AddFloor(plan.spec);
    for (const Case& asked : plan.fitting) {
      AddCold(plan.spec, "cold", asked, plan.repetitions);
      AddWarm(plan.spec, asked, plan.repetitions, false);
      AddWarm(plan.spec, asked, plan.repetitions, true);
    }
    for (const Case& asked : plan.variants) {
      AddCold(plan.spec, "cold", asked, plan.repetitions);
    }
    for (const Case& asked : plan.refused) {
      AddCold(plan.spec, "refused", asked, plan.repetitions);
      AddFromMemory(plan.spec, asked, plan.repetitions);
    }
    for (const Case& asked : plan.fitting) {
      AddCold(plan.spec, "cold_1000_shapes", asked, plan.repetitions / 2, true);
    }
  }
}

// --- the lines at the end

void Judge(const Plan& plan, Report& report) {
  const double sweep = samples.Min(NameOf("sweep", plan.spec, ""));
  report.Target(NameOf("sweep_to_copy", plan.spec, ""),
                sweep / samples.Min(NameOf("copy", plan.spec, "")), 1.5);
  report.Figure(NameOf("sweep_us", plan.spec, ""), sweep);
  for (const Case& asked : plan.fitting) {
    const double allowed = 4 * sweep + 2.0 * asked.pods + 100;
    for (const char* what : {"cold", "cold_1000_shapes"}) {
      const double us = samples.Min(NameOf(what, plan.spec, asked.label));
      report.Target(NameOf(what, plan.spec, asked.label), us / allowed, 1);
      report.Figure(NameOf(std::string(what) + "_us", plan.spec, asked.label), us, allowed);
    }
    for (const char* what : {"warm", "warm1"}) {
      const double us = samples.Min(NameOf(what, plan.spec, asked.label));
      const std::string name = NameOf(std::string(what) + "_us", plan.spec, asked.label);
      if (plan.spec.name == "c" && asked.pods == 512) {
        report.Figure(name, us, 300);
      } else {
        report.Figure(name, us);
      }
    }
  }
  for (const Case& asked : plan.refused) {
    const double us = samples.Min(NameOf("refused", plan.spec, asked.label));
    report.Target(NameOf("refused", plan.spec, asked.label), us / (4 * sweep + 100), 1);
    report.Figure(NameOf("refused_us", plan.spec, asked.label), us, 4 * sweep + 100);
    report.Figure(NameOf("from_memory_us", plan.spec, asked.label),
                  samples.Min(NameOf("from_memory", plan.spec, asked.label)), 20);
  }
  for (const Case& asked : plan.variants) {
    const double hard = samples.Min(NameOf("cold", plan.spec, std::to_string(asked.pods)));
    report.Target(NameOf("to_hard", plan.spec, asked.label),
                  samples.Min(NameOf("cold", plan.spec, asked.label)) / hard, 3);
  }
}

}  // namespace
}  // namespace hopwise::bench

int main(int argc, char** argv) {
  using namespace hopwise::bench;
  benchmark::Initialize(&argc, argv);
  const std::vector<Plan> plans = Plans();
  Register(plans);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  Report report;
  for (const Plan& plan : plans) {
    Judge(plan, report);
  }
  const auto counted = [](const std::set<size_t>& seen) {
    return seen.empty() ? std::nan("") : static_cast<double>(seen.size());
  };
  report.Target("leaves_a_512", counted(leaves_of_512), 32);
  report.Target("spines_a_512", counted(spines_of_512), 4);
  report.Print();
  return 0;
}
