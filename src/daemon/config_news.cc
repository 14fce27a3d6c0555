#include "daemon/config_news.h"

#include "base/log.h"

namespace hopwise::daemon {

void ConfigNews::Loaded(const std::string& file) {
  metrics_.Count("hopwise_config_reloads_total", 1, {{"result", "loaded"}});
  Log(LogLevel::kInfo, "configuration_loaded", {{"file", file}});
  tell_({.reason = "ConfigurationLoaded", .message = file + " was read", .key = ""});
}

void ConfigNews::Warn(const std::vector<std::string>& warnings) {
  metrics_.Set("hopwise_config_warnings", static_cast<double>(warnings.size()));
  for (const std::string& warning : warnings) {
    Log(LogLevel::kWarning, "configuration_warning", {{"warning", warning}});
    tell_({.warning = true, .reason = "ConfigurationWarning", .message = warning, .key = ""});
  }
}

void ConfigNews::Refused(const std::string& why) {
  metrics_.Count("hopwise_config_reloads_total", 1, {{"result", "refused"}});
  Log(LogLevel::kError, "configuration_refused",
      {{"error", why}, {"kept", "the configuration before"}});
  tell_({.warning = true,
         .reason = "ConfigurationRefused",
         .message = why + "; the one before is kept",
         .key = ""});
}

}  // namespace hopwise::daemon
