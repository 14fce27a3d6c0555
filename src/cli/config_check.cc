#include "cli/config_check.h"

#include <ostream>
#include <vector>

#include <fmt/format.h>

#include "control/controller_config.h"
#include "sched/config.h"

namespace hopwise::cli {

namespace {

int Print(const std::string& path, const std::vector<std::string>& errors,
          const std::vector<std::string>& warnings, Io& io) {
  for (const std::string& error : errors) {
    Complain(io, path + ": " + error);
  }
  for (const std::string& warning : warnings) {
    io.out << "warning: " << warning << "\n";
  }
  if (!errors.empty()) {
    return kUnusable;
  }
  const size_t count = warnings.size();
  io.out << path << ": " << (count == 0 ? "all of it is served" : fmt::format("{} warnings", count))
         << "\n";
  return count == 0 ? kOk : kFailed;
}

}  // namespace

int ConfigCheck(const std::string& path, Io& io) {
  const Result<std::string> text = ReadFile(path);
  if (!text) {
    Complain(io, text.error().message);
    return kUnusable;
  }
  if (control::LooksLikeControllerConfig(*text)) {
    const control::ControllerConfigReport report = control::ReadControllerConfig(*text);
    return Print(path, report.errors, report.config.warnings, io);
  }
  const sched::ConfigReport report = sched::ReadConfig(*text);
  return Print(path, report.errors, report.config.warnings, io);
}

}  // namespace hopwise::cli
