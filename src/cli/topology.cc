#include "cli/topology.h"

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "base/quantity.h"
#include "cli/table.h"
#include "cluster/state.h"
#include "sim/load.h"
#include "sim/report.h"

namespace hopwise::cli {
namespace {

constexpr size_t kNodesShown = 8;

// The strokes of a tree.
struct Strokes {
  const char *child, *last, *down, *gap;
};
constexpr Strokes kUnicode = {"├─ ", "└─ ", "│  ", "   "};
constexpr Strokes kAscii = {"|- ", "`- ", "|  ", "   "};

class TreePrinter {
 public:
  TreePrinter(const cluster::State& state, const topology::Tree& tree, ResourceId resource,
              const Strokes& strokes)
      : state_(state), tree_(tree), resource_(resource), strokes_(strokes), table_(Headers()) {}

  std::string Print(bool bold) {
    AddDomain(DomainId(0U), "", "");
    return table_.ToString(bold);
  }

 private:
  [[nodiscard]] std::vector<std::string> Headers() const {
    return {
        "DOMAIN", "TIER", "NODES",
        fmt::format("FREE/TOTAL {}", resource_.valid() ? state_.columns().ResourceName(resource_)
                                                       : std::string(api::kCpu)),
        "MEMBERS"};
  }

  [[nodiscard]] std::string Room(const topology::Domain& domain) const {
    int64_t free = 0;
    int64_t total = 0;
    if (!resource_.valid()) {
      return "0/0";
    }
    for (uint32_t at = domain.lo; at < domain.hi; ++at) {
      const NodeId id = tree_.order[at];
      const cluster::NodeRecord& node = state_.node(id);
      const int64_t allocatable = state_.columns().allocatable(resource_)[id.index()];
      const int64_t used = state_.columns().used(resource_)[id.index()];
      total = SaturatingAdd(total, allocatable);
      // What a cordoned or unready node has left is of no use to anybody.
      if (node.alive && node.ready && !node.unschedulable) {
        free = SaturatingAdd(free, std::max<int64_t>(0, SaturatingSub(allocatable, used)));
      }
    }
    const std::string& name = state_.columns().ResourceName(resource_);
    return FormatQuantity(name, free) + "/" + FormatQuantity(name, total);
  }

  [[nodiscard]] std::string Members(const topology::Domain& domain) const {
    std::vector<std::string> names;
    size_t cordoned = 0;
    size_t unready = 0;
    for (uint32_t at = domain.lo; at < domain.direct; ++at) {
      const cluster::NodeRecord& node = state_.node(tree_.order[at]);
      names.push_back(node.name);
      cordoned += node.unschedulable ? 1 : 0;
      unready += node.ready ? 0 : 1;
    }
    std::sort(names.begin(), names.end(), sim::NaturalLess);
    std::string text = Shortened(names, kNodesShown);
    if (cordoned > 0) {
      text += fmt::format(" ({} cordoned)", cordoned);
    }
    if (unready > 0) {
      text += fmt::format(" ({} not ready)", unready);
    }
    return text;
  }

  void AddDomain(DomainId id, const std::string& stroke, const std::string& below) {
    const topology::Domain& domain = tree_.at(id);
    const bool root = id.index() == 0;
    std::string tier = std::to_string(domain.tier);
    if (!domain.tier_name.empty()) {
      tier += fmt::format(" ({})", domain.tier_name);
    }
    const std::string fabric = tree_.fabric.empty() ? "cluster" : "fabric " + tree_.fabric;
    table_.Add({root ? fabric : stroke + domain.name, root ? "-" : tier,
                std::to_string(domain.node_count()), Room(domain), Members(domain)});
    std::vector<uint32_t> children;
    for (uint32_t at = id.value + 1; at < domain.end; at = tree_.domains[at].end) {
      children.push_back(at);
    }
    for (size_t i = 0; i < children.size(); ++i) {
      const bool last = i + 1 == children.size();
      AddDomain(DomainId(children[i]), below + (last ? strokes_.last : strokes_.child),
                below + (last ? strokes_.gap : strokes_.down));
    }
  }

  const cluster::State& state_;
  const topology::Tree& tree_;
  ResourceId resource_;
  Strokes strokes_;
  Table table_;
};

// The extended resource that most nodes have; of equals the lesser name. None: cpu.
std::string DefaultResource(const cluster::State& state) {
  std::string best(api::kCpu);
  int64_t most = 0;
  const cluster::Columns& columns = state.columns();
  for (size_t r = 0; r < columns.resource_count(); ++r) {
    const std::string& name = columns.ResourceName(ResourceId(r));
    if (name.find('/') == std::string::npos) {
      continue;
    }
    const std::vector<int64_t>& amounts = columns.allocatable(ResourceId(r));
    const int64_t nodes =
        std::count_if(amounts.begin(), amounts.end(), [](int64_t amount) { return amount > 0; });
    if (nodes > most || (nodes == most && nodes > 0 && name < best)) {
      best = name;
      most = nodes;
    }
  }
  return best;
}

bool Load(const TopologyOptions& options, Io& io, cluster::State& state) {
  const Result<sim::Manifest> manifest = LoadFiles(io, options.files);
  if (!manifest) {
    Complain(io, manifest.error().message);
    return false;
  }
  if (!Accept(io, *manifest, options.keep_going, options.quiet)) {
    return false;
  }
  sim::Store store;
  LoadState(*manifest, store, state);
  return true;
}

}  // namespace

int TopologyTree(const TopologyOptions& options, Io& io) {
  cluster::State state;
  if (!Load(options, io, state)) {
    return kUnusable;
  }
  const std::string resource = options.resource.empty() ? DefaultResource(state) : options.resource;
  const ResourceId id = state.columns().FindResource(resource);
  if (!id.valid() && !options.resource.empty()) {
    Complain(io, fmt::format("--resource {}: no node has it", resource));
    return kUnusable;
  }
  const topology::Topology& topology = state.topology();
  for (size_t i = 0; i < topology.trees.size(); ++i) {
    io.out << (i == 0 ? "" : "\n")
           << TreePrinter(state, topology.trees[i], id, options.ascii ? kAscii : kUnicode)
                  .Print(io.out_is_terminal);
  }
  if (!topology.faults.empty() && !options.quiet) {
    WarnUser(io, sim::FaultSummary(topology));
  }
  return kOk;
}

int TopologyCheck(const TopologyOptions& options, Io& io) {
  cluster::State state;
  if (!Load(options, io, state)) {
    return kUnusable;
  }
  const topology::Topology& topology = state.topology();
  if (topology.faults.empty()) {
    io.out << fmt::format("no faults in {} HyperNodes\n", topology.hypernodes.size());
    return kOk;
  }
  Table table({"OBJECT", "SEVERITY", "REASON", "MESSAGE"});
  bool isolates = false;
  for (const topology::Fault& fault : topology.faults) {
    isolates = isolates || fault.isolates;
    table.Add({"HyperNode/" + fault.object, fault.isolates ? "error" : "warning",
               std::string(topology::ReasonOf(fault.kind)), fault.message});
  }
  io.out << table.ToString(io.out_is_terminal);
  return isolates ? kFailed : kOk;
}

}  // namespace hopwise::cli
