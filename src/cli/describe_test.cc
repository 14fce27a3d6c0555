// Completions and the man page know every command and flag, since they are made of the tree.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/completion.h"
#include "cli/man.h"
#include "cli/test_api_server.h"
#include "cli/tree.h"

namespace hopwise::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A small program with what a tree can have.
class Tree : public ::testing::Test {
 protected:
  Tree() {
    app_.set_help_flag("-h,--help", "Print this help");
    CLI::App* sing = app_.add_subcommand("sing", "Sing what's asked");
    sing->footer("\n.dot at the beginning\n'quote \\ backslash");
    sing->add_option("SONG", song_, "Which")->type_name("{aria,lied}")->required();
    sing->add_option("-o,--output", output_, "How")->check(CLI::IsMember({"loud", "soft"}));
    sing->add_option("--file", file_, "Where from");
    sing->add_option("--secret", secret_, "Unseen")->group("");
    app_.add_subcommand("hum", "Unseen")->group("");
  }

  [[nodiscard]] std::vector<CommandInfo> Read() const { return ReadTree(app_, "choir"); }

  CLI::App app_{"A choir", "choir"};
  std::string song_, output_, file_, secret_;
};

TEST_F(Tree, IsReadWithChoicesAndWithoutWhatIsHidden) {
  const std::vector<CommandInfo> tree = Read();
  ASSERT_EQ(tree.size(), 2U);
  EXPECT_EQ(tree[1].path, "choir sing");
  ASSERT_EQ(tree[1].positionals.size(), 1U);
  EXPECT_THAT(tree[1].positionals[0].choices, ElementsAre("aria", "lied"));
  EXPECT_TRUE(tree[1].positionals[0].required);
  std::vector<std::string> names;
  for (const FlagInfo& flag : tree[1].flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  EXPECT_THAT(names, ElementsAre("-h", "--help", "-o", "--output", "--file"));
  EXPECT_FALSE(tree[1].flags[0].takes_value);
  EXPECT_TRUE(tree[1].flags[1].takes_value);
  EXPECT_THAT(tree[1].flags[1].choices, ElementsAre("loud", "soft"));
}

TEST_F(Tree, BecomesScriptsForThreeShells) {
  const std::string bash = CompletionScript("bash", Read());
  EXPECT_THAT(bash, HasSubstr("'choir sing -o'|'choir sing --output')\n"));
  EXPECT_THAT(bash, HasSubstr("compgen -W 'loud soft' -- "));
  EXPECT_THAT(bash, HasSubstr("complete -o default -F _choir choir\n"));
  const std::string zsh = CompletionScript("zsh", Read());
  EXPECT_THAT(zsh, StartsWith("#compdef choir\n"));
  EXPECT_THAT(zsh, HasSubstr("'sing:Sing what'\\''s asked'"));
  EXPECT_THAT(zsh, HasSubstr("compadd -- loud soft\n"));
  const std::string fish = CompletionScript("fish", Read());
  EXPECT_THAT(fish, HasSubstr("-n '__choir_at choir' -f -a sing -d 'Sing what\\'s asked'\n"));
  EXPECT_THAT(fish, HasSubstr("-n '__choir_at choir sing' -s o -l output -x -a 'loud soft'"));
  for (const std::string& script : {bash, zsh, fish}) {
    EXPECT_THAT(script, Not(HasSubstr("secret")));
    EXPECT_THAT(script, Not(HasSubstr("hum")));
  }
}

TEST_F(Tree, BecomesAManPageWhoseTextIsNoRequest) {
  const std::string page = ManPage(Read(), "1.2");
  EXPECT_THAT(page, StartsWith(".TH \"CHOIR\" \"1\" \"\" \"hopwise 1.2\""));
  EXPECT_THAT(page, HasSubstr(".SS \"choir sing\"\n\\fBchoir sing\\fR \\fISONG\\fR ["));
  EXPECT_THAT(page, HasSubstr("\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIloud\\fR|\\fIsoft\\fR"));
  EXPECT_THAT(page, HasSubstr("\n\\&.dot at the beginning\n\\&'quote \\e backslash\n"));
}

TEST(CompletionCommand, KnowsEveryCommandThatHelpShows) {
  TestApiServer api;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = api.Type({"completion", shell});
    EXPECT_EQ(outcome.status, 0);
    for (const char* path : {"hopwise simulate", "hopwise topology tree", "hopwise job suspend",
                             "hopwise queue operate", "hopwise pod list", "hopwise migrate check",
                             "hopwise scheduler", "hopwise completion"}) {
      EXPECT_THAT(outcome.out, HasSubstr(path)) << shell;
    }
    EXPECT_THAT(outcome.out, HasSubstr("hypernodes")) << shell;
    EXPECT_THAT(outcome.out, HasSubstr("scheduler-conf")) << shell;
  }
  EXPECT_EQ(api.Type({"completion", "tcsh"}).status, 2);
  EXPECT_THAT(api.Type({"completion", "bash"}, "vcctl").out,
              HasSubstr("complete -o default -F _vcctl vcctl"));
}

// What bash offers behind these words, by the script itself.
std::string BashOffers(const std::string& script, const std::string& words) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     ("hopwise-" + std::string(info->name()) + ".sh");
  std::ofstream(path) << script << "\nCOMP_WORDS=(" << words
                      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_hopwise\n"
                      << "echo \"${COMPREPLY[@]}\"\n";
  std::FILE* pipe = popen(("bash " + path.string() + " 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> piece{};
  while (pipe != nullptr && std::fgets(piece.data(), piece.size(), pipe) != nullptr) {
    out += piece.data();
  }
  if (pipe != nullptr) {
    pclose(pipe);
  }
  std::filesystem::remove(path);
  return out;
}

TEST(CompletionCommand, WorksInBash) {
  TestApiServer api;
  const std::string script = api.Type({"completion", "bash"}).out;
  EXPECT_EQ(BashOffers(script, "hopwise mig"), "migrate\n");
  EXPECT_EQ(BashOffers(script, "hopwise job ''"), "run list view suspend resume delete\n");
  EXPECT_EQ(BashOffers(script, "hopwise get h"), "hypernodes\n");
  EXPECT_EQ(BashOffers(script, "hopwise job list --all"), "--all-namespaces\n");
  EXPECT_EQ(BashOffers(script, "hopwise job list -n ml -o ''"), "wide json yaml name\n");
  EXPECT_EQ(BashOffers(script, "hopwise job list --output = y"), "yaml\n");
  EXPECT_EQ(BashOffers(script, "hopwise simulate --config ''"), "\n");
}

TEST(ManCommand, DescribesEveryCommandWithItsFlags) {
  TestApiServer api;
  const Outcome outcome = api.Type({"man"});
  EXPECT_EQ(outcome.status, 0);
  for (const char* part : {".TH \"HOPWISE\" \"1\"", ".SH NAME", ".SH SYNOPSIS", ".SH COMMANDS",
                           ".SH EXIT STATUS", ".SS \"hopwise job run\"",
                           ".SS \"hopwise scheduler\"", "\\fB\\-\\-request\\-timeout\\fR"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".")) {
      const std::string request = line.substr(1, line.find(' ') - 1);
      EXPECT_THAT(
          (std::array<std::string, 10>{"TH", "SH", "SS", "PP", "TP", "nf", "fi", "B", "I", "BR"}),
          Contains(request))
          << line;
    }
  }
}

}  // namespace
}  // namespace hopwise::cli
