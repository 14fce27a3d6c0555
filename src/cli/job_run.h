// `hopwise job run`: a Volcano Job of flags or of a file.
#pragma once

#include <cstdint>
#include <string>

#include "api/json.h"
#include "base/result.h"
#include "cli/cluster_flags.h"
#include "cli/io.h"

namespace hopwise::cli {

// Defaults are vcctl's.
struct JobRunOptions {
  Tool tool = Tool::kHopwise;
  ClusterFlags cluster;
  std::string name, image = "busybox", scheduler = "volcano", file, output;
  std::string requests = "cpu=1000m,memory=100Mi", limits = "cpu=1000m,memory=100Mi";
  int64_t min = 1, replicas = 1;
};

// The Job that the flags describe; the error names the flag.
Result<json::Json> JobOfFlags(const JobRunOptions& options, const std::string& ns);

int JobRun(const JobRunOptions& options, Io& io);

}  // namespace hopwise::cli
