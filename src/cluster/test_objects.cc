#include "cluster/test_objects.h"

#include <map>
#include <sstream>

namespace hopwise::cluster::testing {
namespace {

using Lines = std::vector<std::string>;

std::string Join(Lines lines) {
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string Amounts(const State& state, const std::vector<int64_t>& amounts, int64_t absent) {
  std::map<std::string, int64_t> sorted;
  for (size_t r = 0; r < amounts.size(); ++r) {
    if (amounts[r] != absent) sorted[state.columns().ResourceName(ResourceId(r))] = amounts[r];
  }
  std::string text;
  for (const auto& [name, amount] : sorted) text += " " + name + "=" + std::to_string(amount);
  return text;
}

std::string Labels(const State& state, const PackedLabels& labels) {
  Lines pairs;
  for (const auto& [key, value] : labels) {
    pairs.push_back(state.Text(key) + "=" + state.Text(value));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const std::string& pair : pairs) text += " " + pair;
  return text;
}

std::string Rule(const TopologyRule& rule) {
  std::string text = " rule " + std::to_string(static_cast<int>(rule.mode));
  text += "/" + (rule.highest_tier ? std::to_string(*rule.highest_tier) : std::string("-"));
  text += "/" + rule.highest_tier_name + "/" + rule.fabric;
  for (const std::string& key : rule.label_keys) text += "/" + key;
  return text;
}

std::string NodeLine(const State& state, NodeId id) {
  const NodeRecord& node = state.node(id);
  std::vector<int64_t> allocatable, used;
  for (size_t r = 0; r < state.columns().resource_count(); ++r) {
    allocatable.push_back(state.columns().allocatable(ResourceId(r))[id.index()]);
    used.push_back(state.columns().used(ResourceId(r))[id.index()]);
  }
  std::ostringstream out;
  out << "node " << node.name << " alive=" << node.alive << " cordoned=" << node.unschedulable
      << " ready=" << node.ready << Labels(state, node.labels) << " has"
      << Amounts(state, allocatable, 0) << " used" << Amounts(state, used, 0);
  for (const api::Taint& taint : node.taints) out << " taint " << taint.key << ":" << taint.effect;
  Lines pods = Names(state, state.PodsOn(id));
  std::sort(pods.begin(), pods.end());
  for (const std::string& pod : pods) out << " " << pod;
  Lines ports;
  for (const auto& [pod, port] : node.ports) {
    ports.push_back(state.pod(pod).name + ":" + std::to_string(port.port));
  }
  std::sort(ports.begin(), ports.end());
  for (const std::string& port : ports) out << " port " << port;
  return out.str();
}

std::string PodLine(State& state, PodId id) {
  const ShapeId shape = state.ShapeOf(id);
  const PodRecord& pod = state.pod(id);
  std::ostringstream out;
  out << "pod " << pod.ns << "/" << pod.name << " " << pod.uid << " state "
      << static_cast<int>(pod.state) << pod.ours << pod.terminating << pod.succeeded << pod.running
      << pod.best_effort << " priority " << pod.priority << " index " << pod.index;
  if (pod.host.valid()) out << " on " << state.node(pod.host).name << (pod.node.valid() ? "" : "?");
  if (pod.gang.valid()) out << " in " << state.gang(pod.gang).name;
  if (pod.gang.valid() && pod.sub_group != PodRecord::kNoSubGroup) {
    out << ":" << state.gang(pod.gang).sub_groups[pod.sub_group].name;
  }
  if (pod.role.valid()) out << " role " << state.Text(pod.role);
  std::map<std::string, int64_t> request;
  for (const auto& [r, amount] : state.RequestOf(id)) {
    request[state.columns().ResourceName(r)] = amount;
  }
  for (const auto& [name, amount] : request) out << " " << name << "=" << amount;
  out << Labels(state, pod.labels) << " [" << pod.blocker << "] "
      << state.fits().ShapePredicates(shape).Key();
  return out.str();
}

std::string GangLine(const State& state, const Gang& gang) {
  std::ostringstream out;
  out << "gang " << static_cast<int>(gang.source) << gang.scheduler_plugins << gang.has_object
      << gang.roles_enforced << " " << gang.ns << "/" << gang.name << " " << gang.uid << " min "
      << gang.min_member << " priority " << gang.priority << " queue " << gang.queue_name
      << (gang.queue.valid() ? "" : "?") << " created " << gang.creation.ns << " phase "
      << gang.phase << Rule(gang.rule);
  for (const auto& [role, minimum] : gang.min_per_role) {
    out << " " << state.Text(role) << ">=" << minimum;
  }
  for (const SubGroupPolicy& policy : gang.policies) {
    out << " policy " << policy.name << " " << policy.size << "x" << policy.min_groups
        << Rule(policy.rule);
  }
  for (const std::string& pod : Names(state, gang.pods)) out << " " << pod;
  for (const SubGroup& group : gang.sub_groups) {
    out << " {" << group.policy << " " << group.name << " " << group.match_index << " "
        << group.valid;
    for (const std::string& pod : Names(state, group.pods)) out << " " << pod;
    out << "}";
  }
  out << " [" << gang.invalid_reason << ": " << gang.invalid << "]";
  for (const std::string& warning : gang.warnings) out << " !" << warning;
  return out.str();
}

std::string QueueLine(const State& state, const Queue& queue) {
  std::ostringstream out;
  out << "queue " << queue.name << " open=" << queue.open << " weight " << queue.weight
      << " priority " << queue.priority << " under "
      << (queue.parent.valid() ? state.queue(queue.parent).name : "-") << " limits"
      << Amounts(state, queue.capability, -1) << " allocated" << Amounts(state, queue.allocated, 0);
  for (const std::string& warning : queue.warnings) out << " !" << warning;
  return out.str();
}

}  // namespace

std::vector<std::string> Names(const State& state, const std::vector<PodId>& pods) {
  std::vector<std::string> names;
  names.reserve(pods.size());
  for (const PodId pod : pods) names.push_back(state.pod(pod).name);
  return names;
}

std::string Dump(State& state) {
  Lines lines;
  for (size_t n = 0; n < state.node_slots(); ++n) {
    if (!state.node(NodeId(n)).name.empty()) lines.push_back(NodeLine(state, NodeId(n)));
  }
  for (size_t p = 0; p < state.pod_slots(); ++p) {
    if (state.pod(PodId(p)).alive) lines.push_back(PodLine(state, PodId(p)));
  }
  for (size_t g = 0; g < state.gang_slots(); ++g) {
    if (state.gang(GangId(g)).alive) lines.push_back(GangLine(state, state.gang(GangId(g))));
  }
  for (size_t q = 0; q < state.queue_slots(); ++q) {
    const Queue& queue = state.queue(QueueId(q));
    if (queue.alive) lines.push_back(QueueLine(state, queue));
  }
  return Join(std::move(lines));
}

}  // namespace hopwise::cluster::testing
