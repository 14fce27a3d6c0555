// Shell completion scripts, made from the command tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/tree.h"

namespace hopwise::cli {

// `shell`: bash, zsh or fish. The root's path is the program's name.
std::string CompletionScript(std::string_view shell, const std::vector<CommandInfo>& tree);

}  // namespace hopwise::cli
