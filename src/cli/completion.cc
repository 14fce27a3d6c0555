#include "cli/completion.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace hopwise::cli {
namespace {

// A name that every shell takes for a function.
std::string FunctionOf(const std::string& program) {
  std::string name = "_" + program;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// In single quotes, as sh and zsh read them.
std::string Quoted(const std::string& text) { return "'" + Replaced(text, "'", "'\\''") + "'"; }

// In single quotes, as fish reads them.
std::string FishQuoted(const std::string& text) {
  return "'" + Replaced(Replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// 'hopwise job'|'hopwise job list'|…: all paths but the root's.
std::string PathPattern(const std::vector<CommandInfo>& tree, std::string_view between) {
  std::vector<std::string> paths;
  for (size_t i = 1; i < tree.size(); ++i) {
    paths.push_back(Quoted(tree[i].path));
  }
  return fmt::format("{}", fmt::join(paths, between));
}

// 'hopwise get -o'|'hopwise get --output'
std::string ValuePattern(const CommandInfo& command, const FlagInfo& flag) {
  std::vector<std::string> patterns;
  for (const std::string& name : flag.names) {
    patterns.push_back(Quoted(command.path + " " + name));
  }
  return fmt::format("{}", fmt::join(patterns, "|"));
}

// Words that may stand where no flag does: subcommands, and values of positionals that have only a
// few.
std::vector<std::string> WordsOf(const std::vector<CommandInfo>& tree, const CommandInfo& command) {
  std::vector<std::string> words;
  for (const size_t child : command.children) {
    words.push_back(tree[child].name);
  }
  for (const FlagInfo& positional : command.positionals) {
    words.insert(words.end(), positional.choices.begin(), positional.choices.end());
  }
  return words;
}

std::vector<std::string> FlagNames(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const FlagInfo& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

// Files are what `complete -o default` offers where there is nothing else.
std::string Bash(const std::vector<CommandInfo>& tree) {
  const std::string& program = tree.front().path;
  const std::string function = FunctionOf(program);
  std::string out = fmt::format(
      R"(# bash completion for {0}, as `{0} completion bash` prints it.
{1}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} at={0} i words flags
  if [[ $cur == '=' ]]; then
    cur=
  elif [[ $prev == '=' ]]; then
    prev=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$at ${{COMP_WORDS[i]}}" in
      {2}) at="$at ${{COMP_WORDS[i]}}" ;;
    esac
  done
  COMPREPLY=()
  case "$at $prev" in
)",
      program, function, PathPattern(tree, "|"));
  for (const CommandInfo& command : tree) {
    for (const FlagInfo& flag : command.flags) {
      if (flag.takes_value) {
        out += fmt::format(
            "    {})\n      COMPREPLY=($(compgen -W {} -- \"$cur\"))\n"
            "      return ;;\n",
            ValuePattern(command, flag), Quoted(Joined(flag.choices)));
      }
    }
  }
  out += "  esac\n  case \"$at\" in\n";
  for (const CommandInfo& command : tree) {
    out += fmt::format("    {})\n      words={}\n      flags={} ;;\n", Quoted(command.path),
                       Quoted(Joined(WordsOf(tree, command))), Quoted(Joined(FlagNames(command))));
  }
  out += fmt::format(R"(  esac
  [[ $cur == -* ]] && words=$flags
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F {1} {0}
)",
                     program, function);
  return out;
}

// "name:what it is", for zsh's _describe.
std::string Described(const std::string& name, const std::string& description) {
  return Quoted(Replaced(name, ":", "\\:") + ":" + description);
}

std::string ZshItems(const std::vector<CommandInfo>& tree, const CommandInfo& command) {
  std::string items;
  for (const size_t child : command.children) {
    items += " " + Described(tree[child].name, tree[child].description);
  }
  for (const FlagInfo& positional : command.positionals) {
    for (const std::string& choice : positional.choices) {
      items += " " + Described(choice, positional.description);
    }
  }
  return items;
}

std::string Zsh(const std::vector<CommandInfo>& tree) {
  const std::string& program = tree.front().path;
  const std::string function = FunctionOf(program);
  std::string out = fmt::format(R"(#compdef {0}
# zsh completion for {0}, as `{0} completion zsh` prints it.
{1}() {{
  local at={0} cur=$words[CURRENT] prev=$words[CURRENT-1] i
  local -a items flags
  for ((i = 2; i < CURRENT; ++i)); do
    case "$at $words[i]" in
      ({2}) at="$at $words[i]" ;;
    esac
  done
  case "$at $prev" in
)",
                                program, function, PathPattern(tree, "|"));
  for (const CommandInfo& command : tree) {
    for (const FlagInfo& flag : command.flags) {
      if (flag.takes_value) {
        out += fmt::format("    ({})\n      {}\n      return ;;\n", ValuePattern(command, flag),
                           flag.choices.empty() ? "_files" : "compadd -- " + Joined(flag.choices));
      }
    }
  }
  out += "  esac\n  case \"$at\" in\n";
  for (const CommandInfo& command : tree) {
    std::string flags;
    for (const FlagInfo& flag : command.flags) {
      for (const std::string& name : flag.names) {
        flags += " " + Described(name, flag.description);
      }
    }
    out += fmt::format("    ({})\n      items=({} )\n      flags=({} ) ;;\n", Quoted(command.path),
                       ZshItems(tree, command), flags);
  }
  out += fmt::format(R"(  esac
  if [[ $cur == -* ]]; then
    _describe -o flag flags
  elif (( $#items )); then
    _describe command items
  else
    _files
  fi
}}
if [[ $funcstack[1] == {1} ]]; then
  {1} "$@"
else
  compdef {1} {0}
fi
)",
                     program, function);
  return out;
}

std::string FishFlag(const FlagInfo& flag) {
  std::string out;
  for (const std::string& name : flag.names) {
    const bool is_long = name.starts_with("--");
    out += fmt::format(" -{} {}", is_long ? 'l' : 's', name.substr(is_long ? 2 : 1));
  }
  if (!flag.choices.empty()) {
    out += fmt::format(" -x -a {}", FishQuoted(Joined(flag.choices)));
  } else if (flag.takes_value) {
    out += " -r";
  }
  return out + " -d " + FishQuoted(flag.description);
}

std::string Fish(const std::vector<CommandInfo>& tree) {
  const std::string& program = tree.front().path;
  const std::string function = "_" + FunctionOf(program) + "_at";
  std::string out = fmt::format(R"(# fish completion for {0}, as `{0} completion fish` prints it.
function {1}
    set -l at {0}
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
            case {2}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
)",
                                program, function, PathPattern(tree, " "));
  for (const CommandInfo& command : tree) {
    const std::string begin =
        fmt::format("complete -c {} -n {}", program, FishQuoted(function + " " + command.path));
    for (const size_t child : command.children) {
      out += fmt::format("{} -f -a {} -d {}\n", begin, tree[child].name,
                         FishQuoted(tree[child].description));
    }
    for (const FlagInfo& positional : command.positionals) {
      if (!positional.choices.empty()) {
        out += fmt::format("{} -f -a {} -d {}\n", begin, FishQuoted(Joined(positional.choices)),
                           FishQuoted(positional.description));
      }
    }
    for (const FlagInfo& flag : command.flags) {
      out += begin + FishFlag(flag) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string CompletionScript(std::string_view shell, const std::vector<CommandInfo>& tree) {
  HOPWISE_CHECK(!tree.empty());
  if (shell == "zsh") {
    return Zsh(tree);
  }
  return shell == "fish" ? Fish(tree) : Bash(tree);
}

}  // namespace hopwise::cli
