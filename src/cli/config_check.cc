#include "cli/config_check.h"

#include <ostream>

#include <fmt/format.h>

#include "sched/config.h"

namespace hopwise::cli {

int ConfigCheck(const std::string& path, Io& io) {
  const Result<std::string> text = ReadFile(path);
  if (!text) {
    Complain(io, text.error().message);
    return kUnusable;
  }
  const Result<sched::Config> config = sched::ParseConfig(*text);
  if (!config) {
    Complain(io, path + ": " + config.error().message);
    return kUnusable;
  }
  for (const std::string& warning : config->warnings) {
    io.out << "warning: " << warning << "\n";
  }
  const size_t count = config->warnings.size();
  io.out << path << ": " << (count == 0 ? "all of it is served" : fmt::format("{} warnings", count))
         << "\n";
  return count == 0 ? kOk : kFailed;
}

}  // namespace hopwise::cli
