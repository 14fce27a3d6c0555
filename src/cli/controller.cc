#include "cli/controller.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/daemon_flags.h"
#include "daemon/options.h"

namespace hopwise::cli {
namespace {

constexpr const char* kControllerHelp = R"(
Runs the controllers of a cluster, until it gets SIGTERM:
  job-controller        vcjobs: their pods, PodGroups and plugins, policies, Commands
  pg-controller         PodGroups for pods that name our scheduler and have none
  queue-controller      states of queues, opened and closed with those above them
  hypernode-controller  HyperNodes of what the sources in a volcano-controller.conf tell, and the
                        status of all

Examples:
  hopwise controller --controller-conf volcano-controller.conf
  hopwise controller --controller-configmap volcano-system/volcano-controller-configmap

Exit status: 0 ended by a signal; 1 wrong credentials, missing permissions, or no API server within
--startup-timeout; 2 wrong use, or a configuration that cannot be used.)";

struct Words {
  daemon::ControllerOptions options;
  DaemonWords common{options};
  std::string conf_map;
  std::vector<std::string> names, controllers;
};

// Of Volcano's controller manager: taken, so that its command line can be kept, and warned of.
// Source: volcano cmd/controller-manager/app/options.
constexpr const char* kIgnoredFlags[] = {"--disable-default-controller-config",
                                         "--worker-threads-for-podgroup",
                                         "--worker-threads-for-queue",
                                         "--worker-threads-for-gc",
                                         "--worker-threads",
                                         "--feature-gates"};

// "*" and names; "-name" takes one out. As Volcano reads --controllers, one switch for each of
// ours; controllers of Volcano that have no counterpart here may be named and change nothing.
std::string ReadControllers(const std::vector<std::string>& words,
                            daemon::ControllerOptions& options) {
  bool nothing = false;  // a controller's switch that is none
  const std::pair<std::string_view, bool*> known[] = {
      {"job-controller", &options.jobs},     {"pg-controller", &options.pod_groups},
      {"queue-controller", &options.queues}, {"hypernode-controller", &options.hypernodes},
      {"gc-controller", &nothing},           {"jobflow-controller", &nothing},
      {"jobtemplate-controller", &nothing},  {"cronjob-controller", &nothing},
      {"sharding-controller", &nothing}};
  if (words.empty()) {
    return "";
  }
  const bool all = std::ranges::find(words, "*") != words.end();
  for (const auto& [name, on] : known) {
    *on = all;
  }
  for (const std::string& word : words) {
    const bool off = word.starts_with('-');
    const std::string name = word.substr(off ? 1 : 0);
    const auto at = std::ranges::find(known, name, &std::pair<std::string_view, bool*>::first);
    if (word != "*" && at == std::end(known)) {
      return "--controllers: there is no controller " + name +
             "; known are job-controller, pg-controller, queue-controller, hypernode-controller";
    }
    if (word != "*") {
      *at->second = !off;
    }
  }
  return "";
}

int RunWith(Words& words, Io& io) {
  std::string problem = ReadDaemonWords(words.common);
  daemon::ControllerOptions& options = words.options;
  if (!words.names.empty()) {
    options.scheduler_names = words.names;
  }
  if (problem.empty()) {
    problem = ReadControllers(words.controllers, options);
  }
  if (problem.empty() && options.most_failures < -1) {
    problem = "--max-requeue-num: a number, or -1 for no limit";
  }
  options.most_failures = std::max(options.most_failures, 0);
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
  CLI::App* command = app.add_subcommand("controller", "Run the controllers of a real cluster");
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
  command
      ->add_option("--controllers", words->controllers,
                   "Controllers to run, by name; '*' is all of them, -<name> all but that one")
      ->delimiter(',');
  command
      ->add_option("--scheduler-name", words->names,
                   "schedulerName of pods to make PodGroups for, instead of volcano and hopwise; "
                   "may be repeated")
      ->allow_extra_args(false);
  command->add_option("--default-queue", words->options.default_queue,
                      "Queue of jobs and groups that name none");
  command->add_flag("--inherit-owner-annotations,!--no-inherit-owner-annotations",
                    words->options.inherit_owner_annotations,
                    "Whether annotations of a pod's owner count for its PodGroup");
  command->add_option("--max-requeue-num", words->options.most_failures,
                      "Failures one after the other after which a job is ended; -1: never");
  AddForeignFlags(command, kIgnoredFlags, words->options.ignored_flags);
  return [words](Io& io) { return RunWith(*words, io); };
}

}  // namespace hopwise::cli
