// volcano-scheduler.conf, read again when its content changes. What else happens in its folder (a
// ConfigMap's symbolic links, files beside it) is of no interest.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "sched/config.h"

namespace hopwise::daemon {

// A ConfigMap takes up to a minute to reach a container anyway; one read of a small file a second
// costs nothing that could be measured.
inline constexpr Duration kConfigLook = Seconds(1);

// A ConfigMap holds a MiB at most.
inline constexpr size_t kMostConfigBytes = size_t{16} << 20U;

class ConfigFile {
 public:
  // "" stands for the built-in default, which never changes.
  explicit ConfigFile(std::string path) : path_(std::move(path)) {}

  // Reads and parses. The error names the path.
  Result<sched::Config> Load();
  // Whether the content is another one than last read; a file that cannot be read just now is not.
  [[nodiscard]] bool Changed() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string content_;
};

}  // namespace hopwise::daemon
