// `hopwise webhook`.
#pragma once

#include <functional>

#include "cli/io.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the option parser's name
class App;
}

namespace hopwise::cli {

// Adds the command; the returned function runs it once its arguments were parsed.
std::function<int(Io&)> AddWebhook(CLI::App& app);

}  // namespace hopwise::cli
