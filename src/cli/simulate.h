// `hopwise simulate`: manifests step by step on a virtual cluster.
#pragma once

#include <string>
#include <vector>

#include "cli/io.h"

namespace hopwise::cli {

struct SimulateOptions {
  std::vector<std::string> steps;
  std::string output = "table";  // table, wide, json, yaml
  std::string snapshot_dir, config;
  std::vector<std::string> explain, scheduler_names;
  bool keep_going = false, until_done = false, place_foreign = false, quiet = false;
};

int Simulate(const SimulateOptions& options, Io& io);

}  // namespace hopwise::cli
