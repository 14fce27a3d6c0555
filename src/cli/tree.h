// The command tree as data: what completions and the man page are made of, so that neither can be
// stale.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the option parser's name
class App;
}

namespace hopwise::cli {

struct FlagInfo {
  std::vector<std::string> names;  // "-o", "--output"; of a positional "STEP"
  std::string description;
  bool takes_value = false;
  bool required = false, repeated = false;
  std::vector<std::string> choices;  // the only values there are; empty: any
};

struct CommandInfo {
  std::string path;  // "hopwise job list"
  std::string name;  // "list"
  std::string description, footer;
  std::vector<FlagInfo> flags, positionals;
  std::vector<size_t> children;  // indexes into the tree
};

// Depth first, the root first. What --help does not show is left out.
std::vector<CommandInfo> ReadTree(const CLI::App& app, const std::string& program);

}  // namespace hopwise::cli
