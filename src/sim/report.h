// What a person asks after a step: which gang sits where, what waits and why.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/objects.h"
#include "sim/simulator.h"

namespace hopwise::sim {

struct MemberLine {
  std::string name, node;  // node "" while it waits
};

struct GangLine {
  std::string ns, name;         // of the PodGroup, the label group or the lone pod
  std::string workload;         // "Job/train": the outermost owner; "" when there is none
  bool one_of_several = false;  // the workload has more gangs
  std::string source;           // "PodGroup", "Labels", "Pod"
  std::string queue, phase;
  int64_t placed = 0, wanted = 0, minimum = 0;
  bool located = false;  // some member is placed: tier and domain hold
  int32_t tier = 0;
  std::string tier_name, domain;   // "" for outside every HyperNode
  std::vector<std::string> nodes;  // sorted, each once
  std::string verdict;  // "placed", "not-now", "never", "undecided", "invalid", "queue-limit",
                        // "nothing-to-do"
  std::string reason, message;   // "" when nothing waits
  std::vector<MemberLine> pods;  // in the order of creation
  [[nodiscard]] bool waits() const { return placed < wanted && !message.empty(); }
  // What people call it: the workload's name, else the group's, as where a workload has several.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] std::string workload_name() const;  // "train"; "" when there is none
};

struct StepReport {
  int step = 0;
  std::string time;
  std::vector<GangLine> gangs;             // by namespace and shown name
  std::map<std::string, int64_t> foreign;  // pods that wait for other schedulers, by scheduler
};

StepReport MakeReport(Simulator& simulator);
// The machine form of one step; `warnings` go in as they are.
Json ToJson(const StepReport& report, const std::vector<std::string>& warnings);

// One gang in full: rule, members, verdict, numbers. `gang`: "ns/name" or a name of the gang, its
// workload or a lone pod.
Result<std::string> Explain(Simulator& simulator, std::string_view gang);

// "3 faults in the topology, the first: HyperNode a …". Precondition: there is one.
std::string FaultSummary(const topology::Topology& topology);

// Natural order: digits count as numbers, so n2 comes before n10.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace hopwise::sim
