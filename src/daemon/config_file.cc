#include "daemon/config_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace hopwise::daemon {
namespace {

std::optional<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf() || file.peek() == std::ifstream::traits_type::eof())) {
    return std::nullopt;
  }
  return text.str();
}

}  // namespace

Result<sched::Config> ConfigFile::Load() {
  if (path_.empty()) {
    return sched::DefaultConfig();
  }
  errno = 0;
  const std::optional<std::string> text = ReadAll(path_);
  if (!text) {
    return Fail(ErrorCode::kIo, path_ + ": cannot be read: " +
                                    (errno == 0 ? "no regular file" : std::strerror(errno)));
  }
  content_ = *text;
  Result<sched::Config> config = sched::ParseConfig(content_);
  return config ? std::move(config) : tl::unexpected(config.error().Prefix(path_));
}

bool ConfigFile::Changed() const {
  if (path_.empty()) {
    return false;
  }
  const std::optional<std::string> text = ReadAll(path_);
  return text && *text != content_;
}

}  // namespace hopwise::daemon
