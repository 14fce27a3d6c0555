// `hopwise get`: objects of manifests as kubectl would list them.
#pragma once

#include <string>
#include <vector>

#include "cli/io.h"

namespace hopwise::cli {

struct GetOptions {
  std::string resource;  // hypernodes, nodes, podgroups, queues, or a short or singular form
  std::vector<std::string> files;
  std::string output;  // "", wide, json, yaml, name
  bool keep_going = false, quiet = false;
};

int Get(const GetOptions& options, Io& io);

}  // namespace hopwise::cli
