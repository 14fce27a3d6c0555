// A configuration file, read again when its content changes. What else happens in its folder (a
// ConfigMap's symbolic links, files beside it) is of no interest.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "sched/config.h"

namespace hopwise::daemon {

// A ConfigMap takes up to a minute to reach a container anyway; one read of a small file a second
// costs nothing that could be measured.
inline constexpr Duration kConfigLook = Seconds(1);

// Files are exchanged by whoever deploys them; one that is absent for longer is lost.
inline constexpr Duration kMostGone = Seconds(10);

// A ConfigMap holds a MiB at most.
inline constexpr size_t kMostConfigBytes = size_t{16} << 20U;

class ConfigFile {
 public:
  // "" stands for no file: an empty text that never changes.
  explicit ConfigFile(std::string path) : path_(std::move(path)) {}

  // The error names the path.
  Result<std::string> Read();
  enum class Seen : uint8_t {
    kSame,
    kChanged,  // the content is another one than last read
    kGone,     // it could not be read for kMostGone; told once, until it can be again
  };
  // To be called every kConfigLook.
  Seen Look();
  [[nodiscard]] const std::string& path() const { return path_; }
  // As last read, usable or not; "" for no file. From any thread.
  [[nodiscard]] std::string content() const;

 private:
  std::string path_;
  mutable std::mutex mutex_;  // of content_, which only the thread that calls Read changes
  std::string content_;
  int looks_in_vain_ = 0;
};

// A volcano-scheduler.conf; the built-in default where there is no file. The error names the path.
Result<sched::Config> LoadSchedulerConf(ConfigFile& file);

}  // namespace hopwise::daemon
