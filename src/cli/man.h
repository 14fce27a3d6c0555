// The man page, made from the command tree.
#pragma once

#include <string>
#include <vector>

#include "cli/tree.h"

namespace hopwise::cli {

// hopwise(1) in roff. `version` goes into its foot; no date, so that equal programs have equal
// pages.
std::string ManPage(const std::vector<CommandInfo>& tree, const std::string& version);

}  // namespace hopwise::cli
