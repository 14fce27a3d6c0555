#include "cli/man.h"

#include <cctype>

#include <fmt/format.h>

#include "base/check.h"

namespace hopwise::cli {
namespace {

// Text that roff prints as it is.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      // A line that begins with these would be a request.
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
        out += "\\&";
      }
      out += c;
    }
  }
  return out;
}

std::string Bold(const std::string& text) { return "\\fB" + Escaped(text) + "\\fR"; }
std::string Italic(const std::string& text) { return "\\fI" + Escaped(text) + "\\fR"; }

std::string ValueOf(const FlagInfo& flag) {
  if (flag.choices.empty()) {
    return Italic("VALUE");
  }
  std::string out;
  for (const std::string& choice : flag.choices) {
    out += (out.empty() ? "" : "|") + Italic(choice);
  }
  return out;
}

std::string Flag(const FlagInfo& flag) {
  std::string names;
  for (const std::string& name : flag.names) {
    names += (names.empty() ? "" : ", ") + Bold(name);
  }
  return fmt::format(".TP\n{}{}{}\n{}\n", names, flag.takes_value ? " " : "",
                     flag.takes_value ? ValueOf(flag) : "", Escaped(flag.description));
}

// "hopwise topology tree [FILE...] [flags]"
std::string Synopsis(const CommandInfo& command) {
  std::string out = Bold(command.path);
  for (const FlagInfo& positional : command.positionals) {
    const std::string name = Italic(positional.names.front()) + (positional.repeated ? "..." : "");
    out += positional.required ? " " + name : " [" + name + "]";
  }
  return out + " [" + Italic("flags") + "]";
}

std::string Section(const CommandInfo& command) {
  std::string out = fmt::format(".SS \"{}\"\n{}\n.PP\n{}\n", Escaped(command.path),
                                Synopsis(command), Escaped(command.description) + ".");
  for (const FlagInfo& positional : command.positionals) {
    out += fmt::format(".TP\n{}\n{}\n", Italic(positional.names.front()),
                       Escaped(positional.description));
  }
  for (const FlagInfo& flag : command.flags) {
    out += Flag(flag);
  }
  if (!command.footer.empty()) {
    out += ".PP\n.nf\n" + Escaped(command.footer.substr(command.footer.find_first_not_of('\n'))) +
           "\n.fi\n";
  }
  return out;
}

std::string Upper(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

constexpr const char* kTail = R"(.SH EXIT STATUS
.TP
0
It ran to its end.
.TP
1
It ran and did not end well: the API server refused or did not answer, or a check found something.
.TP
2
Wrong use, or input that cannot be used.
.SH ENVIRONMENT
.TP
.B KUBECONFIG
Kubeconfig files, separated by colons, where
.B \-\-kubeconfig
is not given.
.SH FILES
.TP
.I ~/.kube/config
The kubeconfig where nothing else names one.
.SH SEE ALSO
.BR kubectl (1)
)";

}  // namespace

std::string ManPage(const std::vector<CommandInfo>& tree, const std::string& version) {
  HOPWISE_CHECK(!tree.empty());
  const CommandInfo& root = tree.front();
  std::string out = fmt::format(
      ".TH \"{}\" \"1\" \"\" \"hopwise {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      "{} {} [{}]\n.SH DESCRIPTION\n{}.\nEvery command has {}.\n.SH COMMANDS\n",
      Upper(Escaped(root.path)), Escaped(version), Escaped(root.path), Escaped(root.description),
      Bold(root.path), Italic("command"), Italic("flags"), Escaped(root.description),
      Bold("--help"));
  for (const CommandInfo& command : tree) {
    if (command.children.empty()) {
      out += Section(command);
    }
  }
  return out + kTail;
}

}  // namespace hopwise::cli
