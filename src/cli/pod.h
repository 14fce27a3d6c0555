// `hopwise pod list`: the pods of jobs and queues.
#pragma once

#include "cli/cluster_flags.h"
#include "cli/command.h"

namespace hopwise::cli {

void AddPodCommands(CLI::App& app, Tool tool, Commands& commands);

}  // namespace hopwise::cli
