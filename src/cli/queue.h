// `hopwise queue`: the queues of a cluster.
#pragma once

#include "cli/cluster_flags.h"
#include "cli/command.h"

namespace hopwise::cli {

void AddQueueCommands(CLI::App& app, Tool tool, Commands& commands);

}  // namespace hopwise::cli
