// Volcano Jobs: counts, policies, volumes, dependencies, their queue and their pods' templates. Of
// one that exists only its counts and its priority may change.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/quantity.h"
#include "control/admission_rules.h"
#include "control/job_plugins.h"
#include "control/job_policy.h"
#include "control/vcjob.h"

namespace hopwise::control {
namespace {

// Volcano checks a pod's name as a label.
constexpr size_t kLongestPodName = 63;

// Those that users may name; others are the controllers' own.
constexpr std::array<std::string_view, 8> kEvents = {"*",          "PodFailed", "PodEvicted",
                                                     "PodPending", "Unknown",   "TaskCompleted",
                                                     "TaskFailed", "JobUpdated"};
constexpr std::string_view kAnyEvent = "*";

template <size_t Size>
bool Holds(const std::array<std::string_view, Size>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string TaskPath(const std::string& prefix, size_t i) {
  return fmt::format("{}spec.tasks[{}]", prefix, i);
}

// False when it is: nothing that follows would be true.
bool RefuseNegative(const Json& object, Path field, const std::string& path, Findings& findings) {
  const int64_t number = Number(object, field, 0);
  if (number >= 0) return true;
  findings.Refuse(path, fmt::format("{} is negative", number));
  return false;
}

// --- counts

void CheckPartition(const Json& task, const VcTask& read, const std::string& path,
                    Findings& findings) {
  const Json* policy = Get(task, {"partitionPolicy"});
  if (policy == nullptr || !policy->is_object()) return;
  const std::string at = path + ".partitionPolicy";
  CheckTopology(Get(*policy, {"networkTopology"}), at + ".networkTopology", findings);
  const int64_t total = Number(*policy, {"totalPartitions"}, 0);
  const int64_t size = Number(*policy, {"partitionSize"}, 0);
  const int64_t least = Number(*policy, {"minPartitions"}, 0);
  if (total <= 0) findings.Refuse(at + ".totalPartitions", "must be above zero");
  if (size <= 0) findings.Refuse(at + ".partitionSize", "must be above zero");
  if (least < 0) findings.Refuse(at + ".minPartitions", "is negative");
  if (total <= 0 || size <= 0 || least < 0) return;
  if (read.replicas != SaturatingMul(total, size)) {
    findings.Refuse(path + ".replicas",
                    fmt::format("{} must be totalPartitions times partitionSize, {}", read.replicas,
                                SaturatingMul(total, size)));
  }
  if (least > total) {
    findings.Refuse(at + ".minPartitions",
                    fmt::format("{} is more than totalPartitions, {}", least, total));
  } else if (least > 0 && read.min_available != SaturatingMul(least, size)) {
    findings.Refuse(path + ".minAvailable",
                    fmt::format("{} must be minPartitions times partitionSize, {}",
                                read.min_available, SaturatingMul(least, size)));
  }
}

void CheckCounts(const Json& job, const std::string& prefix, Findings& findings) {
  const Json& tasks = List(job, {"spec", "tasks"});
  const std::vector<VcTask> read = VcTasks(job);
  bool sound = true;
  int64_t pods = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string path = TaskPath(prefix, i);
    const bool counts = RefuseNegative(tasks[i], {"replicas"}, path + ".replicas", findings);
    const bool least = RefuseNegative(tasks[i], {"minAvailable"}, path + ".minAvailable", findings);
    sound = sound && counts && least;
    if (!counts || !least) continue;
    pods = SaturatingAdd(pods, read[i].replicas);
    if (read[i].min_available > read[i].replicas) {
      findings.Refuse(path + ".minAvailable", fmt::format("{} is more than its replicas, {}",
                                                          read[i].min_available, read[i].replicas));
    }
    CheckPartition(tasks[i], read[i], path, findings);
  }
  const std::string path = prefix + "spec.minAvailable";
  if (!RefuseNegative(job, {"spec", "minAvailable"}, path, findings) || !sound) return;
  if (const int64_t least = Number(job, {"spec", "minAvailable"}, 0); least > pods) {
    findings.Refuse(path,
                    fmt::format("{} is more than the replicas of all tasks, {}", least, pods));
  }
}

// --- policies

class PolicyCheck {
 public:
  PolicyCheck(std::string path, Findings& findings) : path_(std::move(path)), findings_(findings) {}

  void Check(const Json& policies) {
    for (size_t i = 0; i < policies.size(); ++i) {
      CheckOne(policies[i], fmt::format("{}[{}]", path_, i));
    }
    if (events_.contains(kAnyEvent) && events_.size() > 1) {
      findings_.Refuse(path_, "the event * stands for all events; leave out the others");
    }
  }

 private:
  void CheckOne(const Json& policy, const std::string& at) {
    const std::string action = Text(policy, {"action"});
    if (!ParseJobAction(action)) {
      findings_.Refuse(at + ".action", fmt::format("\"{}\" is none of {}", action,
                                                   fmt::join(JobActionNames(), ", ")));
    }
    const std::string timeout = Text(policy, {"timeout"});
    if (!timeout.empty() && !ParseGoDuration(timeout)) {
      findings_.Refuse(at + ".timeout",
                       fmt::format("\"{}\" is no duration, such as 30s or 10m", timeout));
    }
    std::vector<std::pair<std::string, std::string>> named;  // path, event
    if (const std::string event = Text(policy, {"event"}); !event.empty()) {
      named.emplace_back(at + ".event", event);
    }
    const Json& events = List(policy, {"events"});
    for (size_t i = 0; i < events.size(); ++i) {
      named.emplace_back(fmt::format("{}.events[{}]", at, i),
                         events[i].is_string() ? events[i].get<std::string>() : "");
    }
    const Json* code = Get(policy, {"exitCode"});
    const bool has_code = code != nullptr && !code->is_null();
    if (has_code != named.empty()) {
      findings_.Refuse(at, has_code ? "event and exitCode exclude each other; make two policies"
                                    : "needs an event or an exitCode");
    }
    for (const auto& [path, event] : named) CheckEvent(path, event);
    if (has_code) CheckCode(at + ".exitCode", Number(policy, {"exitCode"}, 0));
  }

  void CheckEvent(const std::string& path, const std::string& event) {
    if (!Holds(kEvents, event)) {
      findings_.Refuse(path, fmt::format("\"{}\" is none of {}", event, fmt::join(kEvents, ", ")));
    } else if (!events_.insert(event).second) {
      findings_.Refuse(path, fmt::format("{} stands twice", event));
    }
  }

  void CheckCode(const std::string& path, int64_t code) {
    if (code == 0) {
      findings_.Refuse(path, "0 is success, on which nothing is done");
    } else if (!codes_.insert(code).second) {
      findings_.Refuse(path, fmt::format("{} stands twice", code));
    }
  }

  std::string path_;
  Findings& findings_;
  std::set<std::string, std::less<>> events_;
  std::set<int64_t> codes_;
};

// --- the rest of the spec

void CheckVolumes(const Json& job, const std::string& prefix, Findings& findings) {
  const Json& volumes = List(job, {"spec", "volumes"});
  std::set<std::string> places;
  for (size_t i = 0; i < volumes.size(); ++i) {
    const std::string at = fmt::format("{}spec.volumes[{}]", prefix, i);
    const std::string place = Text(volumes[i], {"mountPath"});
    if (place.empty()) {
      findings.Refuse(at + ".mountPath", "is missing");
    } else if (!places.insert(place).second) {
      findings.Refuse(at + ".mountPath", fmt::format("{} stands twice", place));
    }
    const std::string name = Text(volumes[i], {"volumeClaimName"});
    const Json* claim = Get(volumes[i], {"volumeClaim"});
    const bool has_claim = claim != nullptr && !claim->is_null();
    if (has_claim == !name.empty()) {
      findings.Refuse(at, has_claim ? "volumeClaim and volumeClaimName exclude each other"
                                    : "needs a volumeClaim or a volumeClaimName");
    } else if (!name.empty() && !IsDnsSubdomain(name)) {
      findings.Refuse(at + ".volumeClaimName", fmt::format("\"{}\" is no name of a claim", name));
    }
  }
}

void CheckPlugins(const Json& job, const std::string& prefix, Findings& findings) {
  const Json* plugins = Get(job, {"spec", "plugins"});
  if (plugins == nullptr || !plugins->is_object()) return;
  const std::vector<std::string> known = PluginNames();
  bool all_known = true;
  for (const auto& [name, arguments] : plugins->items()) {
    if (std::ranges::find(known, name) == known.end()) {
      all_known = false;
      findings.Refuse(fmt::format("{}spec.plugins[{}]", prefix, name),
                      fmt::format("there is no such plugin; there are {}", fmt::join(known, ", ")));
    }
  }
  // Volcano takes a job whose plugins cannot work.
  if (all_known) {
    for (const std::string& problem : PluginProblems(job)) {
      findings.Warn(prefix + "spec.plugins", problem);
    }
  }
}

void CheckDependencies(const std::vector<VcTask>& tasks, const std::string& prefix,
                       Findings& findings) {
  std::map<std::string, std::vector<std::string>> depends_on;
  for (const VcTask& task : tasks) depends_on[task.name] = task.depends_on;
  bool known = true;
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (size_t k = 0; k < tasks[i].depends_on.size(); ++k) {
      const std::string& name = tasks[i].depends_on[k];
      if (depends_on.contains(name)) continue;
      known = false;
      findings.Refuse(fmt::format("{}.dependsOn.name[{}]", TaskPath(prefix, i), k),
                      fmt::format("there is no task \"{}\" here", name));
    }
  }
  if (!known) return;
  if (const std::string cycle = CycleIn(depends_on); !cycle.empty()) {
    findings.Refuse(prefix + "spec.tasks", "the tasks depend on each other in a cycle: " + cycle);
  }
}

void CheckTasks(const Json& job, const std::string& prefix, Findings& findings) {
  const Json& specs = List(job, {"spec", "tasks"});
  if (specs.empty()) {
    findings.Refuse(prefix + "spec.tasks", "a Job needs at least one task");
    return;
  }
  const std::vector<VcTask> tasks = VcTasks(job);
  std::set<std::string> names;
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string at = TaskPath(prefix, i);
    const std::string& name = tasks[i].name;
    if (!IsDnsLabel(name)) {
      findings.Refuse(at + ".name", fmt::format("\"{}\" {}", name, kDnsLabelRule));
    } else if (!names.insert(name).second) {
      findings.Refuse(at + ".name", fmt::format("{} stands twice", name));
    }
    RefuseNegative(specs[i], {"maxRetry"}, at + ".maxRetry", findings);
    PolicyCheck(at + ".policies", findings).Check(List(specs[i], {"policies"}));
    CheckTemplate(tasks[i].pod_template, at + ".template", findings);
    const std::string pod = VcPodName(job, tasks[i], std::max<int64_t>(tasks[i].replicas - 1, 0));
    if (!Name(job).empty() && pod.size() > kLongestPodName) {
      findings.Refuse("metadata.name",
                      fmt::format("a pod of it would be called {}, which is {} characters long; at "
                                  "most {} are allowed: shorten the name of the Job or the task",
                                  pod, pod.size(), kLongestPodName));
    }
  }
  CheckDependencies(tasks, prefix, findings);
}

// --- updates

// The spec without what may change.
Json FixedPart(const Json& job) {
  const Json* found = Get(job, {"spec"});
  Json spec = found == nullptr ? Json::object() : *found;
  Unset(spec, {"minAvailable"});
  Unset(spec, {"priorityClassName"});
  if (const auto tasks = spec.find("tasks"); tasks != spec.end() && tasks->is_array()) {
    for (Json& task : *tasks) {
      Unset(task, {"replicas"});
      Unset(task, {"minAvailable"});
    }
  }
  return spec;
}

// "/tasks/0/template" of a JSON patch as "spec.tasks[0].template".
std::string FieldPath(std::string_view pointer) {
  std::string path = "spec";
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string_view part = pointer.substr(0, end);
    const bool index =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    path += index ? fmt::format("[{}]", part) : fmt::format(".{}", part);
    pointer.remove_prefix(end);
  }
  return path;
}

void CheckUpdate(const AdmissionRequest& request, Findings& findings) {
  const size_t before = List(request.old_object, {"spec", "tasks"}).size();
  const size_t after = List(request.object, {"spec", "tasks"}).size();
  if (before != after) {
    findings.Refuse("spec.tasks",
                    fmt::format("the number of tasks cannot change, from {} to {}; make another "
                                "Job",
                                before, after));
    return;
  }
  std::set<std::string> changed;
  const Json diff = Json::diff(FixedPart(request.old_object), FixedPart(request.object));
  for (const Json& step : diff) changed.insert(FieldPath(Text(step, {"path"})));
  for (const std::string& path : changed) {
    findings.Refuse(path,
                    "cannot change; of a Job only minAvailable, priorityClassName and the replicas "
                    "and minAvailable of its tasks can");
  }
  CheckCounts(request.object, "", findings);
}

}  // namespace

void CheckNewJob(const Json& job, const std::string& prefix, const AdmissionContext& context,
                 Findings& findings) {
  const std::string spec = prefix + "spec";
  CheckTasks(job, prefix, findings);
  CheckCounts(job, prefix, findings);
  RefuseNegative(job, {"spec", "maxRetry"}, spec + ".maxRetry", findings);
  RefuseNegative(job, {"spec", "ttlSecondsAfterFinished"}, spec + ".ttlSecondsAfterFinished",
                 findings);
  if (Number(job, {"spec", "minSuccess"}, 1) < 1) {
    findings.Refuse(spec + ".minSuccess", "must be above zero");
  }
  PolicyCheck(spec + ".policies", findings).Check(List(job, {"spec", "policies"}));
  CheckVolumes(job, prefix, findings);
  CheckPlugins(job, prefix, findings);
  CheckTopology(Get(job, {"spec", "networkTopology"}), spec + ".networkTopology", findings);
  const std::string queue = Text(job, {"spec", "queue"});
  CheckQueueOf(queue.empty() ? context.settings.default_queue : queue, spec + ".queue", true,
               context, findings);
}

void AdmitJob(const AdmissionRequest& request, const AdmissionContext& context,
              Findings& findings) {
  const Json& job = request.object;
  if (request.creates()) {
    CheckNewJob(job, "", context, findings);
  } else if (!IsLeaving(job) && !SamePart(job, request.old_object, {"spec"})) {
    CheckUpdate(request, findings);
  }
}

}  // namespace hopwise::control
