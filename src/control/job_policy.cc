#include "control/job_policy.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hopwise::control {
namespace {

constexpr std::array<std::pair<JobAction, std::string_view>, 9> kActions = {{
    {JobAction::kSync, "SyncJob"},
    {JobAction::kAbortJob, "AbortJob"},
    {JobAction::kRestartJob, "RestartJob"},
    {JobAction::kRestartTask, "RestartTask"},
    {JobAction::kRestartPod, "RestartPod"},
    {JobAction::kRestartPartition, "RestartPartition"},
    {JobAction::kTerminateJob, "TerminateJob"},
    {JobAction::kCompleteJob, "CompleteJob"},
    {JobAction::kResumeJob, "ResumeJob"},
}};

bool Names(const Json& policy, std::string_view event) {
  const auto is = [&](const std::string& text) { return text == event || text == "*"; };
  if (is(Text(policy, {"event"}))) {
    return true;
  }
  const Json& events = List(policy, {"events"});
  return std::ranges::any_of(
      events, [&](const Json& one) { return one.is_string() && is(one.get<std::string>()); });
}

bool Matches(const Json& policy, const JobEvent& event) {
  const Json* exit_code = Get(policy, {"exitCode"});
  if (exit_code != nullptr && exit_code->is_number()) {
    return event.exit_code && *event.exit_code == Number(policy, {"exitCode"}, 0);
  }
  // Every pod is pending at first: only one that stays so is an event.
  const bool pending = event.name == "PodPending";
  return Names(policy, event.name) && (!pending || !Text(policy, {"timeout"}).empty());
}

const Json* FirstMatch(const Json& policies, const JobEvent& event) {
  const auto at =
      std::ranges::find_if(policies, [&](const Json& policy) { return Matches(policy, event); });
  return at == policies.end() ? nullptr : &*at;
}

const Json* PolicyFor(const Json& job, const JobEvent& event) {
  if (!event.task.empty()) {
    for (const Json& task : List(job, {"spec", "tasks"})) {
      if (Text(task, {"name"}) == event.task) {
        if (const Json* policy = FirstMatch(List(task, {"policies"}), event)) {
          return policy;
        }
      }
    }
  }
  return FirstMatch(List(job, {"spec", "policies"}), event);
}

}  // namespace

std::string_view NameOf(JobAction action) {
  return std::ranges::find(kActions, action, &std::pair<JobAction, std::string_view>::first)
      ->second;
}

std::vector<std::string_view> JobActionNames() {
  std::vector<std::string_view> names;
  for (const auto& [action, name] : kActions) {
    if (action != JobAction::kSync) {
      names.push_back(name);
    }
  }
  return names;
}

std::optional<JobAction> ParseJobAction(std::string_view text) {
  const auto at =
      std::ranges::find(kActions, text, &std::pair<JobAction, std::string_view>::second);
  if (at == kActions.end() || at->first == JobAction::kSync) {
    return std::nullopt;
  }
  return at->first;
}

JobRequest ApplyPolicies(const Json& job, const std::vector<JobEvent>& events, Time now,
                         Time& again) {
  JobRequest request;
  for (const JobEvent& event : events) {
    const Json* policy = PolicyFor(job, event);
    if (policy == nullptr) {
      continue;
    }
    const std::optional<JobAction> action = ParseJobAction(Text(*policy, {"action"}));
    if (!action) {
      continue;
    }
    const Result<Duration> timeout = ParseGoDuration(Text(*policy, {"timeout"}, "0s"));
    const Time due = event.since + (timeout ? *timeout : Duration{});
    if (timeout && timeout->ns > 0 && now < due) {
      again = again.set() ? std::min(again, due) : due;
      continue;
    }
    if (request.action == JobAction::kSync) {
      request = {*action, event};
    }
  }
  return request;
}

}  // namespace hopwise::control
