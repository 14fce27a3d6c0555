// `hopwise job`: Volcano Jobs of a cluster, from their start to their end.
#pragma once

#include "cli/cluster_flags.h"
#include "cli/command.h"

namespace hopwise::cli {

void AddJobCommands(CLI::App& app, Tool tool, Commands& commands);

}  // namespace hopwise::cli
