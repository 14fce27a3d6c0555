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
  {
    const std::lock_guard lock(mutex_);
    content_ = *text;
  }
  Result<sched::Config> config = sched::ParseConfig(*text);
  return config ? std::move(config) : tl::unexpected(config.error().Prefix(path_));
}

std::string ConfigFile::content() const {
  const std::lock_guard lock(mutex_);
  return content_;
}

ConfigFile::Seen ConfigFile::Look() {
  if (path_.empty()) {
    return Seen::kSame;
  }
  const Result<std::string> text = rt::ReadSmallFile(path_, kMostConfigBytes);
  if (!text) {
    return ++looks_in_vain_ == kMostGone.ns / kConfigLook.ns ? Seen::kGone : Seen::kSame;
  }
  looks_in_vain_ = 0;
  return *text != content_ ? Seen::kChanged : Seen::kSame;
}

}  // namespace hopwise::daemon
