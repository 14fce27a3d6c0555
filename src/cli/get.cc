#include "cli/get.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "cli/cluster_load.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cluster/state.h"
#include "sim/load.h"
#include "sim/report.h"

namespace hopwise::cli {
namespace {

using json::Json;

struct Loaded {
  sim::Store store;
  cluster::State state;
  std::map<sim::Key, std::string>
      created;  // creationTimestamp as given; none for objects without one
};

std::string AgeOf(const Loaded& loaded, const sim::Key& key, Time now) {
  const auto found = loaded.created.find(key);
  const Result<Time> created =
      found == loaded.created.end() ? Invalid("") : ParseRfc3339(found->second);
  return created ? AgeText(now - *created) : "<unknown>";
}

std::string NumberOr(const Json& object, json::Path path, const std::string& fallback) {
  const Json* value = json::Get(object, path);
  return value != nullptr && value->is_number() ? json::Dump(*value) : fallback;
}

using Row = std::function<std::vector<std::string>(const sim::Key&, const Json&)>;

struct Kind {
  std::string_view group, kind;
  kube::Resource resource;
  std::vector<std::string_view> names;
  std::vector<std::string> headers;
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kKinds = {
      {sim::kVolcanoTopology,
       "HyperNode",
       kube::kHyperNodes,
       {"hypernodes", "hypernode", "hn"},
       {"NAME", "TIER", "TIERNAME", "NODECOUNT", "AGE"}},
      {"",
       "Node",
       kube::kNodes,
       {"nodes", "node", "no"},
       {"NAME", "STATUS", "PODS", "DOMAIN", "AGE"}},
      {sim::kVolcanoScheduling,
       "PodGroup",
       kube::kPodGroups,
       {"podgroups", "podgroup", "pg"},
       {"NAMESPACE", "NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE", "QUEUE"}},
      {sim::kVolcanoScheduling,
       "Queue",
       kube::kQueues,
       {"queues", "queue", "q"},
       {"NAME", "PARENT", "STATE", "WEIGHT", "AGE"}},
  };
  return kKinds;
}

const Kind* FindKind(const std::string& name) {
  for (const Kind& kind : Kinds()) {
    if (std::find(kind.names.begin(), kind.names.end(), name) != kind.names.end()) {
      return &kind;
    }
  }
  return nullptr;
}

std::vector<std::string> HyperNodeRow(Loaded& loaded, const sim::Key& key, const Json& object,
                                      const std::string& age) {
  // Without Node objects there is nothing to count: then the status, as the cluster wrote it,
  // counts.
  std::string count = NumberOr(object, {"status", "nodeCount"}, "0");
  const topology::Topology& topology = loaded.state.topology();
  bool has_nodes = false;
  for (size_t i = 0; i < loaded.state.node_slots() && !has_nodes; ++i) {
    has_nodes = loaded.state.node(NodeId(i)).alive;
  }
  if (has_nodes) {
    const auto found = std::find_if(topology.hypernodes.begin(), topology.hypernodes.end(),
                                    [&](const auto& state) { return state.name == key.name; });
    count = found == topology.hypernodes.end() ? "0" : std::to_string(found->node_count);
  }
  return {key.name, NumberOr(object, {"spec", "tier"}, "<none>"),
          json::Text(object, {"spec", "tierName"}), count, age};
}

std::vector<std::string> NodeRow(Loaded& loaded, const sim::Key& key, const std::string& age) {
  const NodeId id = loaded.state.FindNode(key.name);
  if (!id.valid()) {
    return {key.name, "Unknown", "0", "<none>", age};
  }
  const cluster::NodeRecord& node = loaded.state.node(id);
  const topology::Tree& tree = loaded.state.topology().trees.front();
  const DomainId leaf = id.index() < tree.leaf_of.size() ? tree.leaf_of[id.index()] : DomainId(0U);
  const std::string status = std::string(node.ready ? "Ready" : "NotReady") +
                             (node.unschedulable ? ",SchedulingDisabled" : "");
  const bool outside = !leaf.valid() || leaf.index() == 0;
  return {key.name, status, std::to_string(node.pods), outside ? "<none>" : tree.at(leaf).name,
          age};
}

std::vector<std::string> RowOf(Loaded& loaded, const sim::Key& key, const Json& object, Time now) {
  const std::string age = AgeOf(loaded, key, now);
  if (key.kind == "HyperNode") {
    return HyperNodeRow(loaded, key, object, age);
  }
  if (key.kind == "Node") {
    return NodeRow(loaded, key, age);
  }
  if (key.kind == "PodGroup") {
    return {key.ns,
            key.name,
            TextOr(object, {"status", "phase"}, "Pending"),
            NumberOr(object, {"spec", "minMember"}, "0"),
            NumberOr(object, {"status", "running"}, "0"),
            age,
            TextOr(object, {"spec", "queue"}, "default")};
  }
  return {key.name, json::Text(object, {"spec", "parent"}),
          TextOr(object, {"status", "state"}, "Open"), NumberOr(object, {"spec", "weight"}, "1"),
          age};
}

void Print(const GetOptions& options, const Kind& kind, Loaded& loaded, Io& io) {
  std::vector<sim::Key> keys;
  loaded.store.Each(kind.group, kind.kind,
                    [&](const sim::Key& key, const sim::Entry&) { keys.push_back(key); });
  std::sort(keys.begin(), keys.end(), [](const sim::Key& a, const sim::Key& b) {
    return a.ns != b.ns ? a.ns < b.ns : sim::NaturalLess(a.name, b.name);
  });
  if (IsMachine(options.output)) {
    std::vector<Json> objects;
    for (const sim::Key& key : keys) {
      objects.push_back(*loaded.store.FindObject(key));
    }
    PrintList(io, options.output, SingularName(kind.resource), objects);
    return;
  }
  if (keys.empty()) {
    Complain(io, "No resources found");
    return;
  }
  Table table(kind.headers);
  for (const sim::Key& key : keys) {
    table.Add(RowOf(loaded, key, *loaded.store.FindObject(key), io.now));
  }
  io.out << table.ToString(io.out_is_terminal);
}

int Show(const GetOptions& options, const Kind& kind, const sim::Manifest& manifest, Io& io) {
  Loaded loaded;
  for (const sim::ManifestObject& item : manifest.objects) {
    if (std::string created = json::Text(item.object, {"metadata", "creationTimestamp"});
        !created.empty()) {
      loaded.created[item.key] = std::move(created);
    }
  }
  LoadState(manifest, loaded.store, loaded.state);
  Print(options, kind, loaded, io);
  return kOk;
}

// The kind, and what its rows need besides: the counts of HyperNodes come from nodes, the domains
// of nodes from HyperNodes, their pods from pods.
std::vector<WantedKind> WantedOf(const GetOptions& options, const Kind& kind,
                                 const ClusterClient& client) {
  std::vector<WantedKind> wanted = {
      {kind.resource,
       {kind.resource.namespaced ? client.list_ns() : "", options.labels, ""},
       false}};
  // Of a part of the HyperNodes nothing could be counted: then the status, as the controller wrote
  // it, counts.
  if (kind.kind == "HyperNode" && options.labels.empty()) {
    wanted.push_back({kube::kNodes, {}, true});
  }
  if (kind.kind == "Node") {
    wanted.push_back({kube::kHyperNodes, {}, true});
    wanted.push_back({kube::kPods, {}, true});
  }
  return wanted;
}

int GetFromCluster(const GetOptions& options, const Kind& kind, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  if (IsMachine(options.output)) {
    const Answer<std::vector<Json>> found =
        client->List(kind.resource, WantedOf(options, kind, *client).front().query);
    if (!found) {
      return Refused(io, found.error());
    }
    PrintList(io, options.output, SingularName(kind.resource), *found);
    return kOk;
  }
  int status = kUnusable;
  const Result<sim::Manifest> manifest =
      LoadCluster(*client, WantedOf(options, kind, *client), io, status);
  if (!manifest) {
    return status;
  }
  const bool none = std::ranges::none_of(manifest->objects, [&](const sim::ManifestObject& item) {
    return item.key.kind == kind.kind && item.key.group == kind.group;
  });
  if (none && kind.resource.namespaced) {
    return NothingFound(io, Tool::kHopwise, *client);
  }
  Accept(io, *manifest, true, true);
  return Show(options, kind, *manifest, io);
}

}  // namespace

int Get(const GetOptions& options, Io& io) {
  const Kind* kind = FindKind(options.resource);
  if (kind == nullptr) {
    Complain(io, fmt::format(
                     "get: unknown resource '{}'; known are hypernodes, nodes, podgroups, queues",
                     options.resource));
    return kUnusable;
  }
  if (options.files.empty()) {
    return GetFromCluster(options, *kind, io);
  }
  const Result<sim::Manifest> manifest = LoadFiles(io, options.files);
  if (!manifest) {
    Complain(io, manifest.error().message);
    return kUnusable;
  }
  if (!Accept(io, *manifest, options.keep_going, options.quiet)) {
    return kUnusable;
  }
  return Show(options, *kind, *manifest, io);
}

}  // namespace hopwise::cli
