#include "daemon/config_file.h"

#include <utility>

#include "rt/files.h"

namespace hopwise::daemon {

Result<std::string> ConfigFile::Read() {
  if (path_.empty()) {
    return std::string();
  }
  Result<std::string> text = rt::ReadSmallFile(path_, kMostConfigBytes);
  if (text) {
    const std::lock_guard lock(mutex_);
    content_ = *text;
  }
  return text;
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

Result<sched::Config> LoadSchedulerConf(ConfigFile& file) {
  if (file.path().empty()) {
    return sched::DefaultConfig();
  }
  const Result<std::string> text = file.Read();
  if (!text) {
    return tl::unexpected(text.error());
  }
  Result<sched::Config> config = sched::ParseConfig(*text);
  return config ? std::move(config) : tl::unexpected(config.error().Prefix(file.path()));
}

}  // namespace hopwise::daemon
