#include "cli/scheduler.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/daemon_flags.h"
#include "daemon/options.h"

namespace hopwise::cli {
namespace {

constexpr const char* kSchedulerHelp = R"(
Schedules the pods of its scheduler names on the cluster of the kubeconfig (or, in a pod, on its
own), gang by gang, until it gets SIGTERM.

Examples:
  hopwise scheduler --kubeconfig ~/.kube/config --dry-run
  hopwise scheduler --scheduler-conf volcano-scheduler.conf --listen-address :8080

Exit status: 0 ended by a signal; 1 wrong credentials, missing permissions, no API server within
--startup-timeout, or another scheduler at work; 2 wrong use, or a configuration that cannot be
used.)";

// What the flags are parsed into before they become options.
struct Words {
  daemon::SchedulerOptions options;
  DaemonWords common{options};
  std::string gang_deadline = "1m0s", group_wait = "1s";
  std::vector<std::string> names, refused;
};

void AddSchedulingFlags(CLI::App* command, Words& words) {
  daemon::SchedulerOptions& options = words.options;
  command
      ->add_option(
          "--scheduler-name", words.names,
          "schedulerName of pods to place, instead of volcano and hopwise; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--scheduler-conf", options.scheduler_conf,
                      "A volcano-scheduler.conf; read again when its content changes");
  command->add_option("--default-queue", options.default_queue, "Queue of gangs that name none");
  command->add_option("--gang-deadline", words.gang_deadline,
                      "A gang that never was complete gives its room back after this");
  command->add_option("--pod-group-wait", words.group_wait,
                      "A workload's pod that names no gang waits so long for the PodGroup that a "
                      "controller makes for it; 0s: it does not");
  command->add_flag("--dry-run", options.dry_run, "Decide and log, write nothing");
  command->add_flag("--takeover", options.takeover,
                    "Start although another scheduler's Lease for a name is being renewed");
  command->add_option("--debug-address", options.debug_address,
                      "Where /debug/state is served; default the listen address if only this "
                      "machine reaches it, else 127.0.0.1:11252");
}

// Of Volcano's scheduler, about what works otherwise here or not at all: taken, so that its command
// line can be kept, and warned of. What would change which nodes or jobs are its own
// (--node-selector, --scheduler-sharding-mode) is refused. Source: volcano
// cmd/scheduler/app/options.
constexpr const char* kIgnoredFlags[] = {"--schedule-period",
                                         "--resync-period",
                                         "--priority-class",
                                         "--minimum-feasible-nodes",
                                         "--minimum-percentage-nodes-to-find",
                                         "--percentage-nodes-to-find",
                                         "--plugins-dir",
                                         "--csi-storage",
                                         "--cache-dumper",
                                         "--cache-dump-dir",
                                         "--node-worker-threads",
                                         "--gate-removal-worker-num",
                                         "--ignored-provisioners",
                                         "--resource-sync-timeout",
                                         "--disable-default-scheduler-config"};

constexpr const char* kRefusedFlags[] = {"--node-selector", "--scheduler-sharding-mode",
                                         "--scheduler-sharding-name"};

int RunWith(Words& words, Io& io) {
  daemon::SchedulerOptions& options = words.options;
  std::string problem = ReadDaemonWords(words.common);
  if (problem.empty()) {
    problem = ReadDuration("--gang-deadline", words.gang_deadline, options.gang_deadline);
  }
  if (words.group_wait == "0s" || words.group_wait == "0") {
    options.group_wait = {};
  } else if (problem.empty()) {
    problem = ReadDuration("--pod-group-wait", words.group_wait, options.group_wait);
  }
  if (!problem.empty()) {
    Complain(io, problem);
    return kUnusable;
  }
  if (!words.names.empty()) {
    options.scheduler_names = words.names;
  }
  if (std::ranges::find(options.scheduler_names, "") != options.scheduler_names.end()) {
    Complain(io, "--scheduler-name: an empty name; pods without a schedulerName are not ours");
    return kUnusable;
  }
  if (!words.refused.empty()) {
    Complain(io, words.refused.front() +
                     " would let this scheduler see a part of the cluster only, and Hopwise places "
                     "on all of it: leave the flag out, and keep pods away from nodes by taints");
    return kUnusable;
  }
  return daemon::RunScheduler(options);
}

}  // namespace

std::span<const char* const> IgnoredSchedulerFlags() { return kIgnoredFlags; }
std::span<const char* const> RefusedSchedulerFlags() { return kRefusedFlags; }

std::function<int(Io&)> AddScheduler(CLI::App& app) {
  CLI::App* command = app.add_subcommand("scheduler", "Schedule a real cluster");
  command->footer(kSchedulerHelp);
  const auto words = std::make_shared<Words>();
  AddDaemonFlags(command, words->common);
  AddSchedulingFlags(command, *words);
  AddForeignFlags(command, kIgnoredFlags, words->options.ignored_flags);
  AddForeignFlags(command, kRefusedFlags, words->refused);
  return [words](Io& io) { return RunWith(*words, io); };
}

}  // namespace hopwise::cli
