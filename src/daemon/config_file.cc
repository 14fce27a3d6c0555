#include "daemon/config_file.h"

#include <utility>

#include "rt/files.h"

namespace hopwise::daemon {

Result<sched::Config> ConfigFile::Load() {
  if (path_.empty()) {
    return sched::DefaultConfig();
  }
  Result<std::string> text = rt::ReadSmallFile(path_, kMostConfigBytes);
  if (!text) {
    return tl::unexpected(text.error());
  }
  content_ = std::move(*text);
  Result<sched::Config> config = sched::ParseConfig(content_);
  return config ? std::move(config) : tl::unexpected(config.error().Prefix(path_));
}

bool ConfigFile::Changed() const {
  if (path_.empty()) {
    return false;
  }
  const Result<std::string> text = rt::ReadSmallFile(path_, kMostConfigBytes);
  return text && *text != content_;
}

}  // namespace hopwise::daemon
