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
  const sched::ConfigReport report = sched::ReadConfig(*text);
  for (const std::string& error : report.errors) {
    Complain(io, path + ": " + error);
  }
  for (const std::string& warning : report.config.warnings) {
    io.out << "warning: " << warning << "\n";
  }
  if (!report.errors.empty()) {
    return kUnusable;
  }
  const size_t count = report.config.warnings.size();
  io.out << path << ": " << (count == 0 ? "all of it is served" : fmt::format("{} warnings", count))
         << "\n";
  return count == 0 ? kOk : kFailed;
}

}  // namespace hopwise::cli
