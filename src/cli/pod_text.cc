#include "cli/pod_text.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "control/conditions.h"

namespace hopwise::cli {
namespace {

using json::Json;

// How a container ended: its reason, else its signal or exit code.
std::string EndOf(const Json& terminated) {
  std::string reason = json::Text(terminated, {"reason"});
  if (!reason.empty()) {
    return reason;
  }
  const int64_t signal = json::Number(terminated, {"signal"}, 0);
  return signal != 0 ? fmt::format("Signal:{}", signal)
                     : fmt::format("ExitCode:{}", json::Number(terminated, {"exitCode"}, 0));
}

// An init container that restarts always is a sidecar: once started it holds nothing up.
bool IsSidecar(const Json& pod, const std::string& name) {
  for (const Json& container : json::List(pod, {"spec", "initContainers"})) {
    if (json::Text(container, {"name"}) == name) {
      return json::Text(container, {"restartPolicy"}) == "Always";
    }
  }
  return false;
}

// What the first init container that is not done says; "" when all are.
std::string Initializing(const Json& pod, PodText& text) {
  const size_t total = json::List(pod, {"spec", "initContainers"}).size();
  size_t done = 0;
  for (const Json& status : json::List(pod, {"status", "initContainerStatuses"})) {
    const bool sidecar = IsSidecar(pod, json::Text(status, {"name"}));
    text.restarts += json::Number(status, {"restartCount"}, 0);
    const Json* ended = json::Get(status, {"state", "terminated"});
    if (sidecar && json::Flag(status, {"ready"}, false)) {
      ++text.ready;
    }
    if ((ended != nullptr && json::Number(*ended, {"exitCode"}, 0) == 0) ||
        (sidecar && json::Flag(status, {"started"}, false))) {
      ++done;
      continue;
    }
    if (ended != nullptr) {
      return "Init:" + EndOf(*ended);
    }
    const std::string waiting = json::Text(status, {"state", "waiting", "reason"});
    return waiting.empty() || waiting == "PodInitializing" ? fmt::format("Init:{}/{}", done, total)
                                                           : "Init:" + waiting;
  }
  return "";
}

// Of the containers proper; the first of those that say something gives the status.
void AddContainers(const Json& pod, PodText& text) {
  bool running = false;
  std::string word;
  for (const Json& status : json::List(pod, {"status", "containerStatuses"})) {
    text.restarts += json::Number(status, {"restartCount"}, 0);
    const bool runs = json::Get(status, {"state", "running"}) != nullptr;
    if (runs && json::Flag(status, {"ready"}, false)) {
      running = true;
      ++text.ready;
    }
    const std::string waiting = json::Text(status, {"state", "waiting", "reason"});
    const Json* ended = json::Get(status, {"state", "terminated"});
    if (word.empty()) {
      word = waiting.empty() && ended != nullptr ? EndOf(*ended) : waiting;
    }
  }
  if (!word.empty()) {
    text.status = word;
  }
  if (text.status == "Completed" && running) {
    text.status = "Running";
  }
}

bool IsGated(const Json& pod) {
  const Json* scheduled = control::ConditionOf(pod, "PodScheduled");
  return scheduled != nullptr && json::Text(*scheduled, {"reason"}) == "SchedulingGated";
}

}  // namespace

// k8s.io/kubernetes/pkg/printers/internalversion, printPod.
PodText TextOfPod(const Json& pod) {
  PodText text;
  text.containers = static_cast<int64_t>(json::List(pod, {"spec", "containers"}).size());
  for (const Json& container : json::List(pod, {"spec", "initContainers"})) {
    text.containers += json::Text(container, {"restartPolicy"}) == "Always" ? 1 : 0;
  }
  text.status = TextOr(pod, {"status", "reason"}, TextOr(pod, {"status", "phase"}, "Pending"));
  if (IsGated(pod)) {
    text.status = "SchedulingGated";
  }
  const std::string initializing = Initializing(pod, text);
  if (initializing.empty()) {
    AddContainers(pod, text);
  } else {
    text.status = initializing;
  }
  if (!json::Text(pod, {"metadata", "deletionTimestamp"}).empty()) {
    text.status = json::Text(pod, {"status", "reason"}) == "NodeLost" ? "Unknown" : "Terminating";
  }
  return text;
}

}  // namespace hopwise::cli
