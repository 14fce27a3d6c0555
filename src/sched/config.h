// volcano-scheduler.conf: which actions run, which plugins score, with their documented arguments.
// Format and defaults: Volcano's pkg/scheduler/conf and plugins; every key is explained in
// docs/reference/configuration.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hopwise::sched {

// Weights by resource name for the packing scores; cpu and memory always, others only when listed.
using ResourceWeights = std::vector<std::pair<std::string, int64_t>>;

// No weight counts as more than this, so that scores fit into int64.
inline constexpr int64_t kMaxWeight = 1'000'000;
// 1000 as a factor from tier to tier, in thousandths.
inline constexpr int64_t kMaxFadingMilli = 1'000'000;

struct NetworkTopologyAware {
  bool enabled = false;
  int64_t weight = 1;
  ResourceWeights resources = {{"cpu", 1}, {"memory", 1}};  // hypernode.binpack.*
  bool normal_pod = true;                                   // hypernode.binpack.normal-pod.enable
  int64_t fading_milli = 800;    // hypernode.binpack.normal-pod.fading, thousandths
  bool hyper_node_order = true;  // enabledHyperNodeOrder: the score of domains
  bool scores_nodes = true;      // enableNodeOrder: the scores of nodes, by distance or by tier
};
struct Binpack {
  bool enabled = false;
  int64_t weight = 1;
  ResourceWeights resources = {{"cpu", 1}, {"memory", 1}};
};
// The resource terms of nodeorder.
struct NodeOrder {
  bool enabled = false;
  int64_t least_requested = 1, most_requested = 0, balanced = 1;
};

// Arguments of gangpreempt and gangreclaim, by their documented names.
struct EvictArguments {
  int64_t max_domains = 8;  // maxDomains: cleared in earnest for one gang
  bool whole_gangs = true;  // allowWholeBundle: false takes members beyond a minimum only
};

struct Config {
  std::vector<std::string> actions;
  std::vector<std::string> plugins;  // in tier order, names only
  NetworkTopologyAware network_topology_aware;
  Binpack binpack;
  NodeOrder node_order;
  EvictArguments gang_preempt, gang_reclaim;
  bool capacity_hierarchy = false;
  // Known but not implemented plugins, unknown keys or arguments, ignored values.
  std::vector<std::string> warnings;
};

// The documented built-in default (enqueue, allocate, backfill; priority gang conformance /
// overcommit drf predicates proportion nodeorder) plus network-topology-aware.
Config DefaultConfig();

// All that is to be said of a file: with errors it cannot be used, and `config` holds what could be
// read, for its warnings.
struct ConfigReport {
  Config config;
  std::vector<std::string> errors;
};

// Errors: not YAML, wrong types, an unknown action or plugin; each names the line or the path and
// what is known. Text without a document is the default, with a warning.
ConfigReport ReadConfig(std::string_view text);
// The same for whoever wants to use it: the errors in one message.
Result<Config> ParseConfig(std::string_view text);

}  // namespace hopwise::sched
