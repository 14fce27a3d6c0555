#include "cli/app.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/config_check.h"
#include "cli/controller.h"
#include "cli/get.h"
#include "cli/job.h"
#include "cli/man.h"
#include "cli/migrate.h"
#include "cli/pod.h"
#include "cli/queue.h"
#include "cli/scheduler.h"
#include "cli/simulate.h"
#include "cli/topology.h"
#include "cli/tree.h"
#include "cli/webhook.h"

namespace hopwise::cli {
namespace {

constexpr const char* kVersion = HOPWISE_VERSION;

constexpr const char* kSimulateHelp = R"(
Each STEP is a file, a directory (its *.yaml, *.yml and *.json, by name) or "-" for standard
input. It is applied after the cluster went quiet after the step before. Workloads are expanded
into pods as their controllers do; pods end after their annotation hopwise.dev/run-time; an
object annotated hopwise.dev/simulate: delete is deleted in that step.

Examples:
  hopwise simulate cluster.yaml jobs.yaml
  hopwise simulate cluster.yaml jobs.yaml -o wide --explain train
  hopwise simulate cluster/ jobs.yaml -o json --snapshot-dir out --config scheduler.conf
  kubectl get nodes,hypernodes,queues,priorityclasses,podgroups,pods -A -o yaml |
    hopwise simulate - new-job.yaml

Exit status: 0 the run ended, whatever stayed pending; 1 it did not come to rest; 2 input that
cannot be used.)";

constexpr const char* kTreeHelp = R"(
Without files it is the cluster of the kubeconfig. FREE counts what nodes that are ready and not
cordoned have left; TOTAL what all nodes have.

Examples:
  hopwise topology tree
  hopwise topology tree cluster.yaml
  kubectl get nodes,hypernodes,pods -A -o yaml | hopwise topology tree - --resource cpu)";

constexpr const char* kCheckHelp = R"(
Without files it is the cluster of the kubeconfig. An error takes its HyperNode out of the topology,
a warning does not.

Examples:
  hopwise topology check
  hopwise topology check hypernodes.yaml nodes.yaml

Exit status: 0 no errors; 1 some; 2 input that cannot be used.)";

constexpr const char* kConfigHelp = R"(
Of a volcano-scheduler.conf or a volcano-controller.conf. What the scheduler or controller would
refuse is an error with its line or path; what it knows and does not serve, and what it does not
know, is a warning.

Exit status: 0 all of it is served; 1 warnings; 2 it would be refused.)";

constexpr const char* kCompletionHelp = R"(
Examples:
  hopwise completion bash > /etc/bash_completion.d/hopwise
  hopwise completion zsh > "${fpath[1]}/_hopwise"
  hopwise completion fish > ~/.config/fish/completions/hopwise.fish)";

constexpr const char* kGetHelp = R"(
RESOURCE is one of hypernodes (hn), nodes (no), podgroups (pg), queues (q). Without -f it is the
cluster of the kubeconfig.

Examples:
  hopwise get hypernodes
  hopwise get hypernodes -o wide -f cluster.yaml
  hopwise get nodes -f cluster/)";

// Standard input can be read once only.
bool StdinTwice(const std::vector<std::string>& paths, Io& io) {
  if (std::count(paths.begin(), paths.end(), "-") <= 1) {
    return false;
  }
  Complain(io, "\"-\" is given twice; standard input can be read only once");
  return true;
}

void AddCommonFlags(CLI::App* command, bool& keep_going, bool& quiet) {
  command->add_flag("--keep-going", keep_going, "Use the good documents when some cannot be used");
  command->add_flag("-q,--quiet", quiet, "No warnings");
}

void AddSimulate(CLI::App& app, Commands& commands) {
  CLI::App* command =
      app.add_subcommand("simulate", "Run manifests on a virtual cluster, step by step");
  command->footer(kSimulateHelp);
  const auto options = std::make_shared<SimulateOptions>();
  command->add_option("STEP", options->steps, "Manifests, one step each")->required();
  command->add_option("-o,--output", options->output, "table, wide, json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}));
  command->add_option("--snapshot-dir", options->snapshot_dir,
                      "Write all objects after step N to DIR/step-N.json");
  command->add_option("--config", options->config, "A volcano-scheduler.conf");
  command
      ->add_option("--explain", options->explain,
                   "Explain this gang, job or pod after the last step; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--scheduler-name", options->scheduler_names,
          "schedulerName of pods to place, instead of volcano and hopwise; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--place-foreign", options->place_foreign, "Place the pods of every scheduler");
  command->add_flag("--until-done", options->until_done,
                    "Let all run times end after the last step");
  AddCommonFlags(command, options->keep_going, options->quiet);
  commands.push_back({command, [options](Io& io) {
                        return StdinTwice(options->steps, io) ? kUnusable : Simulate(*options, io);
                      }});
}

// Files as arguments, as ever, and by -f, as elsewhere.
struct TopologyWords {
  TopologyOptions options;
  std::vector<std::string> more_files;
};

int RunTopology(TopologyWords& words, int (*run)(const TopologyOptions&, Io&), Io& io) {
  std::vector<std::string>& files = words.options.files;
  files.insert(files.end(), words.more_files.begin(), words.more_files.end());
  return StdinTwice(files, io) ? kUnusable : run(words.options, io);
}

void AddTopologyCommand(CLI::App* command, const std::shared_ptr<TopologyWords>& words,
                        const char* files, int (*run)(const TopologyOptions&, Io&),
                        Commands& commands) {
  command->add_option("FILE", words->options.files, files);
  command->add_option("-f,--filename", words->more_files, "The same; may be repeated")
      ->allow_extra_args(false);
  AddCommonFlags(command, words->options.keep_going, words->options.quiet);
  AddClusterFlags(command, Tool::kHopwise, words->options.cluster);
  commands.push_back({command, [words, run](Io& io) { return RunTopology(*words, run, io); }});
}

void AddTopology(CLI::App& app, Commands& commands) {
  CLI::App* topology =
      app.add_subcommand("topology", "Look at the fabric that HyperNodes describe");
  topology->require_subcommand(1);
  CLI::App* tree = topology->add_subcommand("tree", "Draw the tree with the room in each domain");
  tree->footer(kTreeHelp);
  const auto tree_words = std::make_shared<TopologyWords>();
  tree->add_option("--resource", tree_words->options.resource,
                   "Resource to count; default: the extended resource most nodes have, else cpu");
  tree->add_flag("--ascii", tree_words->options.ascii, "Draw with ASCII characters only");
  tree->add_option("-o,--output", tree_words->options.output, "wide, json or yaml")
      ->check(CLI::IsMember({"wide", "json", "yaml"}));
  AddTopologyCommand(tree, tree_words,
                     "Manifests with Nodes, HyperNodes and Pods, in place of a cluster",
                     TopologyTree, commands);
  CLI::App* check = topology->add_subcommand("check", "List every fault of the topology");
  check->footer(kCheckHelp);
  const auto check_words = std::make_shared<TopologyWords>();
  check->add_option("-o,--output", check_words->options.output, "json or yaml")
      ->check(CLI::IsMember({"json", "yaml"}));
  AddTopologyCommand(check, check_words,
                     "Manifests with Nodes and HyperNodes, in place of a cluster", TopologyCheck,
                     commands);
}

void AddGet(CLI::App& app, Commands& commands) {
  CLI::App* command = app.add_subcommand("get", "List objects as kubectl would");
  command->footer(kGetHelp);
  const auto options = std::make_shared<GetOptions>();
  command->add_option("RESOURCE", options->resource, "What to list")
      ->type_name("{hypernodes,nodes,podgroups,queues}")
      ->required();
  CLI::Option* files = command->add_option("-f,--filename", options->files,
                                           "Manifests, in place of a cluster; may be repeated");
  files->allow_extra_args(false);
  command->add_option("-o,--output", options->output, "wide, json, yaml or name")
      ->check(CLI::IsMember({"wide", "json", "yaml", "name"}));
  command->add_option("-l,--selector", options->labels, "Only those with these labels")
      ->excludes(files);
  AddNamespaceFlags(command, Tool::kHopwise, options->cluster);
  AddCommonFlags(command, options->keep_going, options->quiet);
  AddClusterFlags(command, Tool::kHopwise, options->cluster);
  commands.push_back({command, [options](Io& io) {
                        return StdinTwice(options->files, io) ? kUnusable : Get(*options, io);
                      }});
}

void AddConfigCheck(CLI::App& app, Commands& commands) {
  CLI::App* config = app.add_subcommand("config", "Look at a configuration file");
  config->require_subcommand(1);
  CLI::App* check = config->add_subcommand("check", "List what of it is not served");
  check->footer(kConfigHelp);
  const auto file = std::make_shared<std::string>();
  check->add_option("FILE", *file, "The file")->required();
  commands.push_back({check, [file](Io& io) { return ConfigCheck(*file, io); }});
}

void AddVersion(CLI::App& app, Commands& commands) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  commands.push_back({command, [](Io& io) {
                        io.out << "hopwise " << kVersion << "\n";
                        return kOk;
                      }});
}

// Both are made of the tree that `app` has when they run.
void AddDescriptions(CLI::App& app, const std::string& program, Commands& commands) {
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for a shell");
  completion->footer(kCompletionHelp);
  const auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "The shell")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
  commands.push_back({completion, [&app, program, shell](Io& io) {
                        io.out << CompletionScript(*shell, ReadTree(app, program));
                        return kOk;
                      }});
  CLI::App* man = app.add_subcommand("man", "Print the man page, in roff");
  commands.push_back({man, [&app, program](Io& io) {
                        io.out << ManPage(ReadTree(app, program), kVersion);
                        return kOk;
                      }});
}

// Commands of vcctl about kinds that nobody serves here.
void AddUnserved(CLI::App& app, const char* name, const char* kinds, Commands& commands) {
  CLI::App* command = app.add_subcommand(name, "Not served");
  command->group("")->prefix_command();
  commands.push_back({command, [name, kinds](Io& io) {
                        Complain(io, std::string(name) + ": Hopwise serves no " + kinds +
                                         "; kubectl shows and deletes the objects, and hopwise "
                                         "migrate check says what to do about them");
                        return kUnusable;
                      }});
}

Commands AddCommands(CLI::App& app, const std::string& program) {
  Commands commands;
  const Tool tool = program == "vcctl" ? Tool::kVcctl : Tool::kHopwise;
  AddJobCommands(app, tool, commands);
  AddQueueCommands(app, tool, commands);
  AddPodCommands(app, tool, commands);
  if (tool == Tool::kVcctl) {
    AddUnserved(app, "jobflow", "JobFlows", commands);
    AddUnserved(app, "jobtemplate", "JobTemplates", commands);
  } else {
    AddGet(app, commands);
    AddTopology(app, commands);
    AddSimulate(app, commands);
    AddConfigCheck(app, commands);
    AddMigrateCommands(app, commands);
    const std::function<int(Io&)> scheduler = AddScheduler(app);
    commands.push_back({app.get_subcommand("scheduler"), scheduler});
    const std::function<int(Io&)> controller = AddController(app);
    commands.push_back({app.get_subcommand("controller"), controller});
    const std::function<int(Io&)> webhook = AddWebhook(app);
    commands.push_back({app.get_subcommand("webhook"), webhook});
  }
  AddDescriptions(app, program, commands);
  AddVersion(app, commands);
  return commands;
}

int Dispatch(CLI::App& app, const std::string& program, const std::vector<std::string>& args,
             Io& io) {
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("hopwise ") + kVersion);
  app.require_subcommand(1);
  const Commands commands = AddCommands(app, program);
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error, io.out, io.err);
    return status == 0 ? kOk : kUnusable;
  }
  const auto given =
      std::ranges::find_if(commands, [](const Command& command) { return command.app->parsed(); });
  HOPWISE_CHECK(given != commands.end());
  return given->run(io);
}

}  // namespace

int MainAs(const std::string& program, const std::vector<std::string>& args, Io& io) {
  // kubectl finds its plugins by their names, and is what a person typed.
  const bool plugin = program == "kubectl-hopwise";
  CLI::App app("Topology-aware gang scheduling for Kubernetes: on a cluster, or without one",
               plugin ? "kubectl hopwise" : program);
  return Dispatch(app, program, args, io);
}

int Main(const std::vector<std::string>& args, Io& io) { return MainAs("hopwise", args, io); }

}  // namespace hopwise::cli
