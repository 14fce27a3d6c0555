#include "cli/topology.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "base/quantity.h"
#include "cli/cluster_load.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/yaml.h"
#include "cluster/state.h"
#include "sim/load.h"
#include "sim/report.h"

namespace hopwise::cli {
namespace {

using json::Json;

constexpr size_t kNodesShown = 8;

// The strokes of a tree.
struct Strokes {
  const char *child, *last, *down, *gap;
};
constexpr Strokes kUnicode = {"├─ ", "└─ ", "│  ", "   "};
constexpr Strokes kAscii = {"|- ", "`- ", "|  ", "   "};

// Of a domain: what its nodes have, and what of it is left where it is of use.
struct Room {
  int64_t free = 0, total = 0;
};

Room RoomOf(const cluster::State& state, const topology::Tree& tree, const topology::Domain& domain,
            ResourceId resource) {
  Room room;
  for (uint32_t at = domain.lo; at < domain.hi && resource.valid(); ++at) {
    const NodeId id = tree.order[at];
    const cluster::NodeRecord& node = state.node(id);
    const int64_t allocatable = state.columns().allocatable(resource)[id.index()];
    const int64_t used = state.columns().used(resource)[id.index()];
    room.total = SaturatingAdd(room.total, allocatable);
    // What a cordoned or unready node has left is of no use to anybody.
    if (node.alive && node.ready && !node.unschedulable) {
      room.free = SaturatingAdd(room.free, std::max<int64_t>(0, SaturatingSub(allocatable, used)));
    }
  }
  return room;
}

// Of the nodes that belong to the domain itself.
std::vector<std::string> NamesOf(const cluster::State& state, const topology::Tree& tree,
                                 const topology::Domain& domain) {
  std::vector<std::string> names;
  for (uint32_t at = domain.lo; at < domain.direct; ++at) {
    names.push_back(state.node(tree.order[at]).name);
  }
  std::sort(names.begin(), names.end(), sim::NaturalLess);
  return names;
}

class TreePrinter {
 public:
  TreePrinter(const cluster::State& state, const topology::Tree& tree, ResourceId resource,
              const Strokes& strokes, size_t most_names)
      : state_(state),
        tree_(tree),
        resource_(resource),
        strokes_(strokes),
        most_names_(most_names),
        table_(Headers()) {}

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

  [[nodiscard]] std::string RoomText(const topology::Domain& domain) const {
    if (!resource_.valid()) {
      return "0/0";
    }
    const Room room = RoomOf(state_, tree_, domain, resource_);
    const std::string& name = state_.columns().ResourceName(resource_);
    return FormatQuantity(name, room.free) + "/" + FormatQuantity(name, room.total);
  }

  [[nodiscard]] std::string Members(const topology::Domain& domain) const {
    size_t cordoned = 0;
    size_t unready = 0;
    for (uint32_t at = domain.lo; at < domain.direct; ++at) {
      const cluster::NodeRecord& node = state_.node(tree_.order[at]);
      cordoned += node.unschedulable ? 1 : 0;
      unready += node.ready ? 0 : 1;
    }
    std::string text = Shortened(NamesOf(state_, tree_, domain), most_names_);
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
                std::to_string(domain.node_count()), RoomText(domain), Members(domain)});
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
  size_t most_names_;
  Table table_;
};

// The trees as data: each domain with the name of the one around it, "" at the top.
Json TreeJson(const cluster::State& state, const topology::Tree& tree, ResourceId resource) {
  Json domains = Json::array();
  for (const topology::Domain& domain : tree.domains) {
    const Room room = RoomOf(state, tree, domain, resource);
    Json one = {{"name", domain.name},
                {"parent", domain.parent.valid() ? tree.at(domain.parent).name : ""},
                {"nodeCount", domain.node_count()},
                {"nodes", NamesOf(state, tree, domain)}};
    if (resource.valid()) {
      const std::string& name = state.columns().ResourceName(resource);
      one["free"] = FormatQuantity(name, room.free);
      one["total"] = FormatQuantity(name, room.total);
    }
    if (domain.parent.valid()) {  // not the cluster as a whole
      one["tier"] = domain.tier;
      one["tierName"] = domain.tier_name;
    }
    domains.push_back(std::move(one));
  }
  return {{"fabric", tree.fabric}, {"domains", std::move(domains)}};
}

Json FaultsJson(const topology::Topology& topology) {
  Json faults = Json::array();
  for (const topology::Fault& fault : topology.faults) {
    faults.push_back({{"object", "HyperNode/" + fault.object},
                      {"severity", fault.isolates ? "error" : "warning"},
                      {"reason", topology::ReasonOf(fault.kind)},
                      {"message", fault.message}});
  }
  return faults;
}

void PrintJson(Io& io, const std::string& output, const Json& report) {
  io.out << (output == "json" ? json::Dump(report, 2) + "\n" : ToYaml(report));
}

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

// `status` is the exit status where nothing could be loaded.
bool LoadFromCluster(const TopologyOptions& options, bool pods, Io& io, cluster::State& state,
                     int& status) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return false;
  }
  std::vector<WantedKind> kinds = {{kube::kNodes, {}, false}, {kube::kHyperNodes, {}, false}};
  if (pods) {
    kinds.push_back({kube::kPods, {}, false});
  }
  const Result<sim::Manifest> manifest = LoadCluster(*client, kinds, io, status);
  if (!manifest || !Accept(io, *manifest, true, options.quiet)) {
    return false;
  }
  sim::Store store;
  LoadState(*manifest, store, state);
  return true;
}

bool Load(const TopologyOptions& options, bool pods, Io& io, cluster::State& state, int& status) {
  if (options.files.empty()) {
    return LoadFromCluster(options, pods, io, state, status);
  }
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
  int status = kUnusable;
  if (!Load(options, true, io, state, status)) {
    return status;
  }
  const std::string resource = options.resource.empty() ? DefaultResource(state) : options.resource;
  const ResourceId id = state.columns().FindResource(resource);
  if (!id.valid() && !options.resource.empty()) {
    Complain(io, fmt::format("--resource {}: no node has it", resource));
    return kUnusable;
  }
  const topology::Topology& topology = state.topology();
  if (IsMachine(options.output)) {
    Json trees = Json::array();
    for (const topology::Tree& tree : topology.trees) {
      trees.push_back(TreeJson(state, tree, id));
    }
    PrintJson(
        io, options.output,
        {{"resource", resource}, {"trees", std::move(trees)}, {"faults", FaultsJson(topology)}});
    return kOk;
  }
  const size_t most_names =
      options.output == "wide" ? std::numeric_limits<size_t>::max() : kNodesShown;
  for (size_t i = 0; i < topology.trees.size(); ++i) {
    io.out << (i == 0 ? "" : "\n")
           << TreePrinter(state, topology.trees[i], id, options.ascii ? kAscii : kUnicode,
                          most_names)
                  .Print(io.out_is_terminal);
  }
  if (!topology.faults.empty() && !options.quiet) {
    WarnUser(io, sim::FaultSummary(topology));
  }
  return kOk;
}

int TopologyCheck(const TopologyOptions& options, Io& io) {
  cluster::State state;
  int status = kUnusable;
  if (!Load(options, false, io, state, status)) {
    return status;
  }
  const topology::Topology& topology = state.topology();
  const bool isolates =
      std::ranges::any_of(topology.faults, [](const topology::Fault& f) { return f.isolates; });
  if (IsMachine(options.output)) {
    PrintJson(io, options.output,
              {{"hyperNodes", topology.hypernodes.size()}, {"faults", FaultsJson(topology)}});
    return isolates ? kFailed : kOk;
  }
  if (topology.faults.empty()) {
    io.out << fmt::format("no faults in {} HyperNodes\n", topology.hypernodes.size());
    return kOk;
  }
  Table table({"OBJECT", "SEVERITY", "REASON", "MESSAGE"});
  for (const topology::Fault& fault : topology.faults) {
    table.Add({"HyperNode/" + fault.object, fault.isolates ? "error" : "warning",
               std::string(topology::ReasonOf(fault.kind)), fault.message});
  }
  io.out << table.ToString(io.out_is_terminal);
  return isolates ? kFailed : kOk;
}

}  // namespace hopwise::cli
