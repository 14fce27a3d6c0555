// `hopwise scheduler`.
#pragma once

#include <functional>
#include <span>

#include "cli/io.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the option parser's name
class App;
}

namespace hopwise::cli {

// Adds the command; the returned function runs it once its arguments were parsed.
std::function<int(Io&)> AddScheduler(CLI::App& app);

// Flags of Volcano's scheduler that are taken and have no effect, and those that are refused.
std::span<const char* const> IgnoredSchedulerFlags();
std::span<const char* const> RefusedSchedulerFlags();

}  // namespace hopwise::cli
