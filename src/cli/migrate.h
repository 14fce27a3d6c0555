// `hopwise migrate check`: what of a cluster would behave differently than under Volcano.
#pragma once

#include "cli/command.h"

namespace hopwise::cli {

void AddMigrateCommands(CLI::App& app, Commands& commands);

}  // namespace hopwise::cli
