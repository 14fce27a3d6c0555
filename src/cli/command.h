// A command of the tree and what runs it once its words were parsed.
#pragma once

#include <functional>
#include <vector>

#include "cli/io.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the option parser's name
class App;
}

namespace hopwise::cli {

struct Command {
  const CLI::App* app = nullptr;
  std::function<int(Io&)> run;  // holds the options that the words were parsed into
};
using Commands = std::vector<Command>;

}  // namespace hopwise::cli
