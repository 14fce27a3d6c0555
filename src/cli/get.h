// `hopwise get`: objects of a cluster or of manifests as kubectl would list them.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster_flags.h"
#include "cli/io.h"

namespace hopwise::cli {

struct GetOptions {
  std::string resource;  // hypernodes, nodes, podgroups, queues, or a short or singular form
  std::vector<std::string> files;  // none: the cluster
  ClusterFlags cluster;
  std::string labels;  // selector, of the cluster alone
  std::string output;  // "", wide, json, yaml, name
  bool keep_going = false, quiet = false;
};

int Get(const GetOptions& options, Io& io);

}  // namespace hopwise::cli
