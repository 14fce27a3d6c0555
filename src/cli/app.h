// The command line of `hopwise`: from words to commands.
#pragma once

#include <string>
#include <vector>

#include "cli/io.h"

namespace hopwise::cli {

// `args` without the program's name. Returns the exit status.
int Main(const std::vector<std::string>& args, Io& io);

}  // namespace hopwise::cli
