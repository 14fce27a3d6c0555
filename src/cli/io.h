// What a command may touch of the outside: streams, files, whether somebody watches, the time of
// day, a cluster.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/cluster_flags.h"
#include "sim/manifest.h"

namespace hopwise::cli {

struct Io {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  Time now;  // for ages
  // In place of ConnectToCluster, for tests.
  std::function<Result<ApiServer>(const ClusterFlags&)> connect = {};
};

// Exit codes of every command.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;    // it ran and did not end well, or found faults
inline constexpr int kUnusable = 2;  // wrong use, or input that cannot be used

void Complain(Io& io, std::string_view text);
void WarnUser(Io& io, std::string_view text);

// The whole file; the error begins with its name.
Result<std::string> ReadFile(const std::string& path);
// What a path stands for: a file, a directory (its *.yaml, *.yml and *.json, by name, not below) or
// "-" for standard input. Empty for a directory without such files.
struct Source {
  std::string name, text;
};
Result<std::vector<Source>> ReadSources(Io& io, const std::string& path);
// Writes beside the file and renames, so that nobody sees half of it.
Status WriteFile(const std::string& path, std::string_view text);

// One step, of ReadSources. What cannot be opened is an error; what is wrong inside is in the
// manifest's problems.
Result<sim::Manifest> LoadStep(Io& io, const std::string& path);
// Several paths as one step.
Result<sim::Manifest> LoadFiles(Io& io, const std::vector<std::string>& paths);

// Names every problem and warning of the manifest. False when it cannot be used: it has problems
// and `keep_going` is off.
bool Accept(Io& io, const sim::Manifest& manifest, bool keep_going, bool quiet);

}  // namespace hopwise::cli
