// One gang in words: what it asks for, where it is, what it waits for.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/report.h"

namespace hopwise::sim {
namespace {

std::string RuleText(const cluster::TopologyRule& rule) {
  using Mode = cluster::TopologyRule::Mode;
  if (rule.mode == Mode::kNone) {
    return "none";
  }
  std::string text = rule.mode == Mode::kHard ? "hard" : "soft";
  if (rule.highest_tier) {
    text += fmt::format(", highest tier {}", *rule.highest_tier);
  }
  if (!rule.highest_tier_name.empty()) {
    text += fmt::format(", highest tier {}", rule.highest_tier_name);
  }
  if (!rule.fabric.empty()) {
    text += fmt::format(", fabric {}", rule.fabric);
  }
  if (!rule.label_keys.empty()) {
    text += fmt::format(", one value of {}", fmt::join(rule.label_keys, "/"));
  }
  return text;
}

std::string PlaceText(const GangLine& line) {
  if (!line.located) {
    return "";
  }
  if (line.domain.empty()) {
    return " across the cluster, outside any one HyperNode";
  }
  return fmt::format(" in {} (tier {}{}{})", line.domain, line.tier,
                     line.tier_name.empty() ? "" : ", ", line.tier_name);
}

std::string StateText(const cluster::PodRecord& pod) {
  switch (pod.state) {
    case cluster::PodState::kPending:
      return pod.blocker.empty() ? "waits" : "waits: " + pod.blocker;
    case cluster::PodState::kGated:
      return "gated";
    case cluster::PodState::kAssumed:
      return "binding";
    case cluster::PodState::kBound:
      return pod.running ? "runs" : "bound";
    case cluster::PodState::kFinished:
      return pod.succeeded ? "succeeded" : "failed";
    case cluster::PodState::kForeign:
      return "waits for another scheduler";
  }
  return "";
}

void AppendRules(const cluster::State& state, const cluster::Gang& gang, std::string& out) {
  out += fmt::format("Rule:       {}\n", RuleText(gang.rule));
  out += fmt::format("Minimum:    {}\n", gang.min_member);
  for (const auto& [role, minimum] : gang.min_per_role) {
    // Volcano's rule: minimums of roles count only while the gang's covers their sum.
    out +=
        fmt::format("            {} of role {}{}\n", minimum, state.Text(role),
                    gang.roles_enforced ? "" : " (does not count: together they pass the minimum)");
  }
  for (size_t i = 0; i < gang.policies.size(); ++i) {
    const cluster::SubGroupPolicy& policy = gang.policies[i];
    const auto groups =
        std::count_if(gang.sub_groups.begin(), gang.sub_groups.end(),
                      [&](const cluster::SubGroup& group) { return group.policy == i; });
    out += fmt::format(
        "Subgroups:  {}: {} of {} {}{}; rule: {}\n", policy.name, groups, policy.size,
        policy.size == 1 ? "pod" : "pods",
        policy.min_groups > 0 ? fmt::format(", at least {} of them", policy.min_groups) : "",
        RuleText(policy.rule));
  }
}

void AppendMembers(const cluster::State& state, const cluster::Gang& gang, std::string& out) {
  size_t name_width = 3;
  size_t node_width = 4;
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    name_width = std::max(name_width, pod.name.size());
    node_width = std::max(node_width, pod.node.valid() ? state.node(pod.node).name.size() : 0);
  }
  out += "Members:\n";
  out += fmt::format("  {:<{}}   {:<{}}   {}\n", "POD", name_width, "NODE", node_width, "STATE");
  for (const PodId id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(id);
    std::string note = StateText(pod);
    if (pod.role.valid()) {
      note += ", role " + state.Text(pod.role);
    }
    if (pod.sub_group < gang.sub_groups.size()) {
      note += ", subgroup " + gang.sub_groups[pod.sub_group].name;
    }
    out += fmt::format("  {:<{}}   {:<{}}   {}\n", pod.name, name_width,
                       pod.node.valid() ? state.node(pod.node).name : "-", node_width, note);
  }
}

bool IsCalled(const GangLine& line, std::string_view wanted) {
  const size_t slash = wanted.find('/');
  const std::string_view name = slash == std::string_view::npos ? wanted : wanted.substr(slash + 1);
  if (slash != std::string_view::npos && wanted.substr(0, slash) != line.ns) {
    return false;
  }
  return line.name == name || line.workload_name() == name ||
         std::any_of(line.pods.begin(), line.pods.end(),
                     [&](const MemberLine& pod) { return pod.name == name; });
}

std::string ExplainLine(Simulator& simulator, const GangLine& line, const cluster::Gang& gang) {
  std::string out = fmt::format("Gang:       {}/{}\n", line.ns, line.shown());
  out += fmt::format("Source:     {} {}{}{}\n", line.source, line.name,
                     line.workload.empty() ? "" : " of ", line.workload);
  out += fmt::format("Queue:      {}\nPriority:   {}\nPhase:      {}\n", line.queue, gang.priority,
                     line.phase.empty() ? "-" : line.phase);
  AppendRules(simulator.state(), gang, out);
  out += fmt::format("Placed:     {} of {}{}\n", line.placed, line.wanted, PlaceText(line));
  out += fmt::format("Verdict:    {}{}{}\n", line.verdict, line.reason.empty() ? "" : ": ",
                     line.reason);
  if (!line.message.empty()) {
    out += "            " + line.message + "\n";
  }
  for (const std::string& warning : gang.warnings) {
    out += "Warning:    " + warning + "\n";
  }
  if (!gang.pods.empty()) {
    AppendMembers(simulator.state(), gang, out);
  }
  return out;
}

}  // namespace

Result<std::string> Explain(Simulator& simulator, std::string_view wanted) {
  cluster::State& state = simulator.state();
  const StepReport report = MakeReport(simulator);
  std::string out;
  std::string known;
  for (const GangLine& line : report.gangs) {
    known += (known.empty() ? "" : ", ") + line.ns + "/" + line.shown();
    if (!IsCalled(line, wanted)) {
      continue;
    }
    for (size_t i = 0; i < state.gang_slots(); ++i) {
      const cluster::Gang& gang = state.gang(GangId(i));
      const bool same_source =
          (gang.source == cluster::GangSource::kLonePod) == (line.source == "Pod");
      if (gang.alive && same_source && gang.ns == line.ns && gang.name == line.name) {
        out += (out.empty() ? "" : "\n") + ExplainLine(simulator, line, gang);
      }
    }
  }
  if (out.empty()) {
    constexpr size_t kShown = 300;
    if (known.size() > kShown) {
      known = known.substr(0, kShown) + "…";
    }
    return Fail(ErrorCode::kNotFound, fmt::format("no gang is called {}; there are: {}", wanted,
                                                  known.empty() ? std::string("none") : known));
  }
  return out;
}

}  // namespace hopwise::sim
