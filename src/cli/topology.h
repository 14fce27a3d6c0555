// `hopwise topology tree` and `hopwise topology check`: the fabric as Hopwise understands it, and
// what is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster_flags.h"
#include "cli/io.h"

namespace hopwise::cli {

struct TopologyOptions {
  std::vector<std::string> files;  // none: the cluster
  ClusterFlags cluster;
  std::string resource;  // tree; "": the extended resource most nodes have, else cpu
  bool ascii = false;    // tree: no line-drawing characters
  std::string output;    // "", wide (all members of each domain), json, yaml
  bool keep_going = false, quiet = false;
};

int TopologyTree(const TopologyOptions& options, Io& io);
// kFailed when a fault takes a HyperNode out of the topology.
int TopologyCheck(const TopologyOptions& options, Io& io);

}  // namespace hopwise::cli
