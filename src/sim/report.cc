#include "sim/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/apps.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

bool IsPlaced(const cluster::PodRecord& pod) {
  return pod.state == cluster::PodState::kBound || pod.state == cluster::PodState::kAssumed ||
         (pod.state == cluster::PodState::kFinished && pod.succeeded);
}

std::string WordFor(sched::Verdict verdict) {
  switch (verdict) {
    case sched::Verdict::kNothingToDo:
      return "nothing-to-do";
    case sched::Verdict::kPlaced:
      return "placed";
    case sched::Verdict::kNever:
      return "never";
    case sched::Verdict::kNotNow:
      return "not-now";
    case sched::Verdict::kUndecided:
      return "undecided";
    case sched::Verdict::kInvalid:
      return "invalid";
    case sched::Verdict::kQueueLimit:
      return "queue-limit";
  }
  return "undecided";
}

std::string WordFor(cluster::GangSource source) {
  switch (source) {
    case cluster::GangSource::kPodGroup:
      return "PodGroup";
    case cluster::GangSource::kLabels:
      return "Labels";
    case cluster::GangSource::kLonePod:
      return "Pod";
  }
  return "Pod";
}

// The object itself or the last of the chain of controllers above it.
const Json* Outermost(const Store& store, const Json& object) {
  const Json* at = &object;
  for (int hops = 0; hops < 8; ++hops) {
    const Json* ref = ControllerOf(*at);
    const Key* owner = ref == nullptr ? nullptr : store.FindUid(Text(*ref, {"uid"}));
    if (owner == nullptr) {
      break;
    }
    at = store.FindObject(*owner);
  }
  return at;
}

// How many pods the gang has once all are made.
int64_t WantedOf(const Store& store, const Json& group, int64_t present) {
  const Json* ref = ControllerOf(group);
  const Key* key = ref == nullptr ? nullptr : store.FindUid(Text(*ref, {"uid"}));
  const int64_t at_least = std::max(present, Number(group, {"spec", "minMember"}, 0));
  if (key == nullptr) {
    return at_least;
  }
  const Json& owner = *store.FindObject(*key);
  if (key->group == kVolcanoBatch && key->kind == "Job") {
    int64_t sum = 0;
    for (const VcTask& task : VcTasks(owner)) {
      sum += task.replicas;
    }
    return std::max(present, sum);
  }
  if (key->kind == "ReplicaSet" || key->kind == "StatefulSet") {
    return std::max(present, Replicas(owner, {"spec", "replicas"}, 1));
  }
  return at_least;
}

void DescribeGroup(Simulator& simulator, const cluster::Gang& gang, GangLine& line) {
  const Store& store = simulator.world().store;
  Key scratch;
  const Key* key = PodGroupOf(store, gang, scratch);
  if (key == nullptr && !gang.pods.empty()) {
    const cluster::PodRecord& first = simulator.state().pod(gang.pods.front());
    scratch = PodKey(first.ns, first.name);
    key = store.Find(scratch) == nullptr ? nullptr : &scratch;
  }
  if (key == nullptr) {
    return;
  }
  const Json& object = *store.FindObject(*key);
  line.phase = Text(object, {"status", "phase"});
  const Json* top = Outermost(store, object);
  if (top != &object && Text(*top, {"kind"}) != "Pod") {
    line.workload = Text(*top, {"kind"}) + "/" + Name(*top);
  }
  if (key->kind == "PodGroup") {
    line.wanted = WantedOf(store, object, line.wanted);
    const Json* condition = ConditionOf(object, "Unschedulable");
    if (line.reason.empty() && condition != nullptr) {
      line.reason = Text(*condition, {"reason"});
      line.message = Text(*condition, {"message"});
      line.verdict = "invalid";
    }
  }
}

GangLine LineFor(Simulator& simulator, GangId id) {
  cluster::State& state = simulator.state();
  const cluster::Gang& gang = state.gang(id);
  GangLine line;
  line.ns = gang.ns;
  line.name = gang.name;
  line.source = WordFor(gang.source);
  line.queue = gang.queue_name;
  line.minimum = gang.min_member;
  std::set<std::string> nodes;
  for (const PodId pod_id : gang.pods) {
    const cluster::PodRecord& pod = state.pod(pod_id);
    const bool placed = IsPlaced(pod);
    line.placed += placed ? 1 : 0;
    std::string node = pod.node.valid() ? state.node(pod.node).name : "";
    if (placed && !node.empty()) {
      nodes.insert(node);
    }
    line.pods.push_back({pod.name, std::move(node)});
  }
  line.wanted = static_cast<int64_t>(gang.pods.size());
  line.nodes.assign(nodes.begin(), nodes.end());
  std::sort(line.nodes.begin(), line.nodes.end(), NaturalLess);
  const sched::Location location = simulator.scheduler().Locate(id);
  if (location.known) {
    line.located = true;
    line.tier = location.tier;
    line.tier_name = location.tier_name;
    line.domain = location.domain_name;
  }
  line.verdict = line.placed > 0 ? "placed" : "nothing-to-do";
  if (const sched::GangReport* report = simulator.scheduler().LastReport(id); report != nullptr) {
    line.verdict = WordFor(report->verdict);
    line.reason = report->reason;
    line.message = report->message;
  }
  DescribeGroup(simulator, gang, line);
  return line;
}

bool IsShown(const cluster::State& state, const cluster::Gang& gang) {
  if (!gang.alive) {
    return false;
  }
  // Lone pods of other schedulers are no business of ours.
  return gang.source != cluster::GangSource::kLonePod ||
         (!gang.pods.empty() && state.pod(gang.pods.front()).ours);
}

}  // namespace

bool NaturalLess(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) {
        return a[i] < b[j];
      }
      ++i;
      ++j;
      continue;
    }
    const auto number_at = [&](std::string_view text, size_t& at) {
      const size_t first = std::min(text.find_first_not_of('0', at), text.size());
      size_t end = at;
      while (end < text.size() && digit(text[end])) {
        ++end;
      }
      at = end;
      return first >= end ? std::string_view() : text.substr(first, end - first);
    };
    const std::string_view x = number_at(a, i);
    const std::string_view y = number_at(b, j);
    if (x != y) {
      return x.size() != y.size() ? x.size() < y.size() : x < y;
    }
  }
  // Equal as far as numbers go: the plain order decides, so that it stays an order.
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

std::string GangLine::shown() const {
  return workload.empty() || one_of_several ? name : workload_name();
}

std::string GangLine::workload_name() const { return workload.substr(workload.find('/') + 1); }

StepReport MakeReport(Simulator& simulator) {
  StepReport report;
  report.step = simulator.steps();
  report.time = FormatRfc3339(simulator.now());
  cluster::State& state = simulator.state();
  for (size_t i = 0; i < state.gang_slots(); ++i) {
    if (IsShown(state, state.gang(GangId(i)))) {
      report.gangs.push_back(LineFor(simulator, GangId(i)));
    }
  }
  std::map<std::pair<std::string, std::string>, int> gangs_of;
  for (const GangLine& line : report.gangs) {
    ++gangs_of[{line.ns, line.workload}];
  }
  for (GangLine& line : report.gangs) {
    line.one_of_several = gangs_of[{line.ns, line.workload}] > 1;
  }
  std::sort(report.gangs.begin(), report.gangs.end(), [](const GangLine& a, const GangLine& b) {
    if (a.ns != b.ns) {
      return a.ns < b.ns;
    }
    const std::string x = a.shown();
    const std::string y = b.shown();
    return x != y ? NaturalLess(x, y) : NaturalLess(a.name, b.name);
  });
  simulator.world().store.Each("", "Pod", [&](const Key&, const Entry& entry) {
    const Json& pod = entry.object;
    if (Text(pod, {"spec", "nodeName"}).empty() && !IsFinished(pod) &&
        !simulator.world().IsOurs(pod)) {
      ++report.foreign[Text(pod, {"spec", "schedulerName"}, "default-scheduler")];
    }
  });
  return report;
}

Json ToJson(const StepReport& report, const std::vector<std::string>& warnings) {
  Json gangs = Json::array();
  Json waiting = Json::array();
  for (const GangLine& line : report.gangs) {
    Json pods = Json::array();
    for (const MemberLine& pod : line.pods) {
      pods.push_back({{"name", pod.name}, {"node", pod.node}});
    }
    Json gang = {
        {"namespace", line.ns},    {"name", line.name},          {"workload", line.workload},
        {"source", line.source},   {"queue", line.queue},        {"placed", line.placed},
        {"wanted", line.wanted},   {"minimum", line.minimum},    {"phase", line.phase},
        {"tier", nullptr},         {"tierName", line.tier_name}, {"domain", line.domain},
        {"nodes", line.nodes},     {"verdict", line.verdict},    {"reason", line.reason},
        {"message", line.message}, {"pods", std::move(pods)}};
    if (line.located) {
      gang["tier"] = line.tier;
    }
    if (line.waits()) {
      waiting.push_back({{"namespace", line.ns},
                         {"name", line.name},
                         {"workload", line.workload},
                         {"pods", line.wanted - line.placed},
                         {"verdict", line.verdict},
                         {"reason", line.reason},
                         {"message", line.message}});
    }
    gangs.push_back(std::move(gang));
  }
  return {{"step", report.step},           {"time", report.time},       {"gangs", std::move(gangs)},
          {"waiting", std::move(waiting)}, {"foreign", report.foreign}, {"warnings", warnings}};
}

std::string FaultSummary(const topology::Topology& topology) {
  const size_t count = topology.faults.size();
  // What takes an object out of the topology is the more urgent news.
  const auto worst = std::ranges::find(topology.faults, true, &topology::Fault::isolates);
  const topology::Fault& first = worst == topology.faults.end() ? topology.faults.front() : *worst;
  return fmt::format("the topology has {} {}{}; `hopwise topology check` lists {}: {}", count,
                     count == 1 ? "fault" : "faults",
                     worst == topology.faults.end() ? "" : ", HyperNodes are left out",
                     count == 1 ? "it" : "them", first.message);
}

}  // namespace hopwise::sim
