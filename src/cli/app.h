// The command line of `hopwise`: from words to commands.
#pragma once

#include <string>
#include <vector>

#include "cli/io.h"

namespace hopwise::cli {

// `args` without the program's name. `program` is how the file is called: as vcctl it takes the
// commands and flags of Volcano's tool, as kubectl-hopwise it is kubectl's plugin, else it is
// hopwise. Returns the exit status.
int MainAs(const std::string& program, const std::vector<std::string>& args, Io& io);
// As hopwise.
int Main(const std::vector<std::string>& args, Io& io);

}  // namespace hopwise::cli
