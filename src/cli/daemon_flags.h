// Flags that all daemons have: the API server, the Lease, what is served, the log.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "daemon/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the option parser's name
class App;
}

namespace hopwise::cli {

// What they are parsed into before they become options.
struct DaemonWords {
  daemon::CommonOptions& options;
  bool has_lease = true;  // else its flags have no meaning
  std::string lease_duration = "15s", renew_deadline = "10s", retry_period = "2s";
  std::string startup_timeout = "1m0s";
  std::string log_level = "info", log_format = "text";
};

// `words` lives as long as the command.
void AddDaemonFlags(CLI::App* command, DaemonWords& words);
// Flags that --help does not list and whose values nobody reads: those that are given go to
// `given`.
void AddForeignFlags(CLI::App* command, std::span<const char* const> flags,
                     std::vector<std::string>& given);

// After parsing: into the options. "" or what is wrong.
std::string ReadDaemonWords(DaemonWords& words);
// The same for one flag's duration, which must be above zero.
std::string ReadDuration(const char* flag, const std::string& text, Duration& into);

}  // namespace hopwise::cli
