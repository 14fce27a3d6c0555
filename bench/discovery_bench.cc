// What `hopwise controller` computes when a large fabric is found out: from labels, and from UFM's
// answer.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "api/ufm.h"
#include "base/check.h"
#include "control/discovery.h"
#include "control/label_source.h"
#include "control/ufm_source.h"
#include "report.h"

namespace hopwise::bench {
namespace {

constexpr size_t kNodes = 10'000;
constexpr size_t kPerLeaf = 16, kLeavesPerSpine = 16, kSpinesPerCore = 10;

// A fabric of rails: 64 units of 32 machines and 8 leaves, each leaf under 7 spines of its rail.
constexpr size_t kUnits = 64, kMachines = 32, kRails = 8, kSpines = 7;

struct Labelled {
  std::vector<std::string> names;
  std::vector<api::StringMap> labels;
  [[nodiscard]] std::vector<control::LabelledNode> Views() const {
    std::vector<control::LabelledNode> views;
    for (size_t n = 0; n < names.size(); ++n) {
      views.push_back({names[n], &labels[n]});
    }
    return views;
  }
};

Labelled MakeLabelled() {
  Labelled made;
  for (size_t n = 0; n < kNodes; ++n) {
    const size_t leaf = n / kPerLeaf;
    const size_t spine = leaf / kLeavesPerSpine;
    made.names.push_back(fmt::format("node{}", n));
    made.labels.push_back({{"core", fmt::format("core{}", spine / kSpinesPerCore)},
                           {"leaf", fmt::format("leaf{}", leaf)},
                           {"spine", fmt::format("spine{}", spine)}});
  }
  return made;
}

const control::LabelType kType = {"fabric", {"core", "spine", "leaf"}};

// One cable, told at both of its ends.
void Plug(bool machine, const std::string& a, const std::string& b, size_t port_a, size_t port_b,
          std::string& into) {
  const auto tell = [&](bool computer, const std::string& own, size_t port, const std::string& peer,
                        size_t peer_port) {
    into += fmt::format(
        R"({}{{"description":"{} IB Port","number":{},"physical_state":"Link Up",)"
        R"("path":"default(5) / {}","tier":1,"lid":7,"logical_state":"Active",)"
        R"("capabilities":["healthy_operations","reset"],"mtu":4096,"active_speed":"NDR",)"
        R"("supported_speed":["SDR","EDR","HDR","NDR"],"peer_node_name":"{}","peer":"{}_{}",)"
        R"("name":"{}_{}","guid":"{}","system_name":"{}"}})",
        into.empty() ? "" : ",", computer ? "Computer" : "Switch", port, own,
        peer.substr(0, peer.find('.')), peer, peer_port, own, port, own,
        own.substr(0, own.find('.')));
  };
  tell(machine, a, port_a, b, port_b);
  tell(false, b, port_b, a, port_a);
}

std::string MakeAnswer(std::vector<std::string>& nodes) {
  std::string ports;
  for (size_t unit = 0; unit < kUnits; ++unit) {
    for (size_t rail = 0; rail < kRails; ++rail) {
      const std::string leaf = fmt::format("leaf{}r{}", unit, rail);
      for (size_t m = 0; m < kMachines; ++m) {
        // Each adapter is a device of its own, of the machine before the dot.
        Plug(true, fmt::format("node{}.r{}", unit * kMachines + m, rail), leaf, 1, m, ports);
      }
      for (size_t s = 0; s < kSpines; ++s) {
        Plug(false, leaf, fmt::format("spine{}r{}", s, rail), kMachines + s, unit, ports);
      }
    }
    for (size_t m = 0; m < kMachines; ++m) {
      nodes.push_back(fmt::format("node{}", unit * kMachines + m));
    }
  }
  std::ranges::sort(nodes);
  return "[" + ports + "]";
}

Samples& Times() {
  static Samples samples;
  return samples;
}

void LabelDiscovery(benchmark::State& state) {
  const Labelled nodes = MakeLabelled();
  const std::vector<control::LabelledNode> views = nodes.Views();
  for (auto _ : state) {
    Times().Add("label", TimeUs([&] {
                  const control::Discovery found = control::DiscoverByLabels({kType}, views);
                  const auto plan = control::PlanHyperNodes("label", found, {});
                  HOPWISE_CHECK(plan.writes.size() == 625 + 40 + 4);
                }));
  }
  Times().Tabulate("label", state);
}
BENCHMARK(LabelDiscovery)->Unit(benchmark::kMillisecond);

void UfmDiscovery(benchmark::State& state) {
  std::vector<std::string> nodes;
  const std::string answer = MakeAnswer(nodes);
  const std::vector<std::string_view> names(nodes.begin(), nodes.end());
  for (auto _ : state) {
    std::string text = answer;
    Times().Add("ufm", TimeUs([&] {
                  const Result<api::UfmPorts> ports = api::ReadUfmPorts(text);
                  HOPWISE_CHECK(ports && ports->ports.size() == 39'936);
                  const auto found = control::DiscoverByUfm(*ports, names, {}, 50);
                  HOPWISE_CHECK(found && found->domains.size() == kUnits + 1);
                }));
  }
  Times().Tabulate("ufm", state);
  state.counters["MB"] = static_cast<double>(answer.size()) / (1 << 20);
}
BENCHMARK(UfmDiscovery)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hopwise::bench

int main(int argc, char** argv) {
  using namespace hopwise::bench;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  Report report;
  report.Figure("label_10000_nodes_ms", Times().Min("label") / 1e3);
  report.Target("ufm_40000_ports_s", Times().Min("ufm") / 1e6, 1.0);
  report.Print();
  return 0;
}
