#include "cli/tree.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace hopwise::cli {
namespace {

// CLI11 writes the values of IsMember, and ours of positionals, as "{a,b}" behind the type.
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin == std::string::npos ? 0 : begin);
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) {
    return choices;
  }
  for (size_t at = begin + 1; at < end;) {
    const size_t comma = std::min(type.find(',', at), end);
    choices.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

FlagInfo InfoOf(const CLI::Option& option) {
  FlagInfo info;
  for (const std::string& name : option.get_snames()) {
    info.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    info.names.push_back("--" + name);
  }
  info.description = option.get_description();
  info.takes_value = option.get_items_expected_max() > 0;
  info.required = option.get_required();
  info.repeated = option.get_items_expected_max() > 1;
  info.choices = ChoicesOf(option);
  return info;
}

void AddCommand(const CLI::App& app, const std::string& path, std::vector<CommandInfo>& tree) {
  const size_t at = tree.size();
  CommandInfo info;
  info.path = path;
  info.name = path.substr(path.rfind(' ') + 1);
  info.description = app.get_description();
  info.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) {
      continue;
    }
    FlagInfo flag = InfoOf(*option);
    if (option->get_positional()) {
      FlagInfo positional = flag;
      positional.names = {option->get_name(true)};
      info.positionals.push_back(positional);
    }
    if (!flag.names.empty()) {
      info.flags.push_back(flag);
    }
  }
  tree.push_back(info);
  const auto shown = [](const CLI::App* sub) {
    return !sub->get_name().empty() && !sub->get_group().empty();
  };
  for (const CLI::App* sub : app.get_subcommands(shown)) {
    tree[at].children.push_back(tree.size());
    AddCommand(*sub, path + " " + sub->get_name(), tree);
  }
}

}  // namespace

std::vector<CommandInfo> ReadTree(const CLI::App& app, const std::string& program) {
  std::vector<CommandInfo> tree;
  AddCommand(app, program, tree);
  return tree;
}

}  // namespace hopwise::cli
