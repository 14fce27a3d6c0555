#include "cli/app.h"

#include <algorithm>
#include <functional>
#include <ostream>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/config_check.h"
#include "cli/controller.h"
#include "cli/get.h"
#include "cli/scheduler.h"
#include "cli/simulate.h"
#include "cli/topology.h"
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
FREE counts what nodes that are ready and not cordoned have left; TOTAL what all nodes have.

Examples:
  hopwise topology tree cluster.yaml
  kubectl get nodes,hypernodes,pods -A -o yaml | hopwise topology tree - --resource cpu)";

constexpr const char* kCheckHelp = R"(
An error takes its HyperNode out of the topology, a warning does not.

Examples:
  hopwise topology check hypernodes.yaml nodes.yaml

Exit status: 0 no errors; 1 some; 2 input that cannot be used.)";

constexpr const char* kConfigHelp = R"(
Of a volcano-scheduler.conf or a volcano-controller.conf. What the scheduler or controller would
refuse is an error with its line or path; what it knows and does not serve, and what it does not
know, is a warning.

Exit status: 0 all of it is served; 1 warnings; 2 it would be refused.)";

constexpr const char* kGetHelp = R"(
RESOURCE is one of hypernodes (hn), nodes (no), podgroups (pg), queues (q).

Examples:
  hopwise get hypernodes -o wide -f cluster.yaml
  hopwise get nodes -f cluster/)";

struct Options {
  SimulateOptions simulate;
  TopologyOptions topology;
  GetOptions get;
};

CLI::App* AddSimulate(CLI::App& app, SimulateOptions& options) {
  CLI::App* command =
      app.add_subcommand("simulate", "Run manifests on a virtual cluster, step by step");
  command->footer(kSimulateHelp);
  command->add_option("STEP", options.steps, "Manifests, one step each")->required();
  command->add_option("-o,--output", options.output, "table, wide, json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}));
  command->add_option("--snapshot-dir", options.snapshot_dir,
                      "Write all objects after step N to DIR/step-N.json");
  command->add_option("--config", options.config, "A volcano-scheduler.conf");
  command
      ->add_option("--explain", options.explain,
                   "Explain this gang, job or pod after the last step; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--scheduler-name", options.scheduler_names,
          "schedulerName of pods to place, instead of volcano and hopwise; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--place-foreign", options.place_foreign, "Place the pods of every scheduler");
  command->add_flag("--until-done", options.until_done,
                    "Let all run times end after the last step");
  command->add_flag("--keep-going", options.keep_going,
                    "Use the good documents when some cannot be used");
  command->add_flag("-q,--quiet", options.quiet, "No warnings");
  return command;
}

void AddCommonFlags(CLI::App* command, bool& keep_going, bool& quiet) {
  command->add_flag("--keep-going", keep_going, "Use the good documents when some cannot be used");
  command->add_flag("-q,--quiet", quiet, "No warnings");
}

std::pair<CLI::App*, CLI::App*> AddTopology(CLI::App& app, TopologyOptions& options) {
  CLI::App* topology =
      app.add_subcommand("topology", "Look at the fabric that HyperNodes describe");
  topology->require_subcommand(1);
  CLI::App* tree = topology->add_subcommand("tree", "Draw the tree with the room in each domain");
  tree->footer(kTreeHelp);
  tree->add_option("FILE", options.files, "Manifests with Nodes, HyperNodes and Pods")->required();
  tree->add_option("--resource", options.resource,
                   "Resource to count; default: the extended resource most nodes have, else cpu");
  tree->add_flag("--ascii", options.ascii, "Draw with ASCII characters only");
  AddCommonFlags(tree, options.keep_going, options.quiet);
  CLI::App* check = topology->add_subcommand("check", "List every fault of the topology");
  check->footer(kCheckHelp);
  check->add_option("FILE", options.files, "Manifests with Nodes and HyperNodes")->required();
  AddCommonFlags(check, options.keep_going, options.quiet);
  return {tree, check};
}

CLI::App* AddGet(CLI::App& app, GetOptions& options) {
  CLI::App* command = app.add_subcommand("get", "List objects of manifests as kubectl would");
  command->footer(kGetHelp);
  command->add_option("RESOURCE", options.resource, "What to list")->required();
  command->add_option("-f,--filename", options.files, "Manifests; may be repeated")
      ->required()
      ->allow_extra_args(false);
  command->add_option("-o,--output", options.output, "wide, json, yaml or name")
      ->check(CLI::IsMember({"wide", "json", "yaml", "name"}));
  AddCommonFlags(command, options.keep_going, options.quiet);
  return command;
}

CLI::App* AddConfigCheck(CLI::App& app, std::string& file) {
  CLI::App* config = app.add_subcommand("config", "Look at a configuration file");
  config->require_subcommand(1);
  CLI::App* check = config->add_subcommand("check", "List what of it is not served");
  check->footer(kConfigHelp);
  check->add_option("FILE", file, "The file")->required();
  return check;
}

// Standard input can be read once only.
bool StdinTwice(const std::vector<std::string>& paths) {
  return std::count(paths.begin(), paths.end(), "-") > 1;
}

int Dispatch(CLI::App& app, const std::vector<std::string>& args, Io& io) {
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("hopwise ") + kVersion);
  app.require_subcommand(1);
  Options options;
  CLI::App* simulate = AddSimulate(app, options.simulate);
  const auto [tree, check] = AddTopology(app, options.topology);
  AddGet(app, options.get);
  const std::function<int(Io&)> scheduler = AddScheduler(app);
  const std::function<int(Io&)> controller = AddController(app);
  const std::function<int(Io&)> webhook = AddWebhook(app);
  std::string conf;
  CLI::App* config_check = AddConfigCheck(app, conf);
  CLI::App* version = app.add_subcommand("version", "Print the version");
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error, io.out, io.err);
    return status == 0 ? kOk : kUnusable;
  }
  if (StdinTwice(options.simulate.steps) || StdinTwice(options.topology.files) ||
      StdinTwice(options.get.files)) {
    Complain(io, "\"-\" is given twice; standard input can be read only once");
    return kUnusable;
  }
  if (version->parsed()) {
    io.out << "hopwise " << kVersion << "\n";
    return kOk;
  }
  if (app.got_subcommand("controller")) {
    return controller(io);
  }
  if (app.got_subcommand("scheduler")) {
    return scheduler(io);
  }
  if (app.got_subcommand("webhook")) {
    return webhook(io);
  }
  if (config_check->parsed()) {
    return ConfigCheck(conf, io);
  }
  if (simulate->parsed()) {
    return Simulate(options.simulate, io);
  }
  if (tree->parsed()) {
    return TopologyTree(options.topology, io);
  }
  return check->parsed() ? TopologyCheck(options.topology, io) : Get(options.get, io);
}

}  // namespace

int Main(const std::vector<std::string>& args, Io& io) {
  CLI::App app("Topology-aware gang scheduling for Kubernetes: on a cluster, or without one",
               "hopwise");
  return Dispatch(app, args, io);
}

}  // namespace hopwise::cli
