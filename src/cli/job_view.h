// `hopwise job view`: one Volcano Job with its pods, why it waits, and what was told of it.
#pragma once

#include <string>

#include "cli/cluster_flags.h"
#include "cli/io.h"

namespace hopwise::cli {

struct JobViewOptions {
  ClusterFlags cluster;
  std::string name, output;
};

int JobView(const JobViewOptions& options, Io& io);

}  // namespace hopwise::cli
