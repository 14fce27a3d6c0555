#include "cli/controller.h"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/daemon_flags.h"
#include "daemon/options.h"

namespace hopwise::cli {
namespace {

constexpr const char* kControllerHelp = R"(
Keeps the HyperNodes of a cluster: makes them of what the sources in a volcano-controller.conf tell,
and writes the status of all. Runs until it gets SIGTERM.

Examples:
  hopwise controller --controller-conf volcano-controller.conf
  hopwise controller --controller-configmap volcano-system/volcano-controller-configmap

Exit status: 0 ended by a signal; 1 wrong credentials, missing permissions, or no API server within
--startup-timeout; 2 wrong use, or a configuration that cannot be used.)";

struct Words {
  daemon::ControllerOptions options;
  DaemonWords common{options};
  std::string conf_map;
};

// Of Volcano's controller manager: taken, so that its command line can be kept, and warned of.
// Source: volcano cmd/controller-manager/app/options.
constexpr const char* kIgnoredFlags[] = {"--disable-default-controller-config",
                                         "--worker-threads-for-podgroup",
                                         "--worker-threads-for-queue",
                                         "--worker-threads-for-gc",
                                         "--worker-threads",
                                         "--max-requeue-num",
                                         "--feature-gates",
                                         "--scheduler-name",
                                         "--inherit-owner-annotations",
                                         "--controllers"};

int RunWith(Words& words, Io& io) {
  std::string problem = ReadDaemonWords(words.common);
  daemon::ControllerOptions& options = words.options;
  if (const size_t slash = words.conf_map.find('/'); slash != std::string::npos) {
    options.conf_map_ns = words.conf_map.substr(0, slash);
    options.conf_map_name = words.conf_map.substr(slash + 1);
  }
  if (problem.empty() && !words.conf_map.empty() &&
      (options.conf_map_ns.empty() || options.conf_map_name.empty())) {
    problem = "--controller-configmap: " + words.conf_map + " is not <namespace>/<name>";
  }
  if (!problem.empty()) {
    Complain(io, problem);
    return kUnusable;
  }
  return daemon::RunController(options);
}

}  // namespace

std::function<int(Io&)> AddController(CLI::App& app) {
  CLI::App* command = app.add_subcommand("controller", "Keep the HyperNodes of a real cluster");
  command->footer(kControllerHelp);
  const auto words = std::make_shared<Words>();
  AddDaemonFlags(command, words->common);
  CLI::Option* file =
      command->add_option("--controller-conf", words->options.conf_file,
                          "A volcano-controller.conf; read again when its content changes");
  command
      ->add_option("--controller-configmap", words->conf_map,
                   "The ConfigMap <namespace>/<name> whose key volcano-controller.conf holds it")
      ->excludes(file);
  AddForeignFlags(command, kIgnoredFlags, words->options.ignored_flags);
  return [words](Io& io) { return RunWith(*words, io); };
}

}  // namespace hopwise::cli
