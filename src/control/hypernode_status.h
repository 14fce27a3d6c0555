// status of the HyperNodes, as the fabric trees have it: nodeCount, and the condition Ready, which
// Volcano declares and never writes.
//
// nodeCount: existing nodes for Node members and 1 for each existing child, as Volcano counts them,
// but current. Ready is False with a fault's reason where the HyperNode is no domain because of it
// or holds nothing (Cycle, TwoParents, Overlap, TierOrder, BadPattern, NameClash, Empty), True with
// the reason of what is only said (MissingChild, BadSelector, TierNameClash), else True with reason
// "Ready".
//
// A source that could not be asked is told of by the condition Discovered on its topmost
// HyperNodes: False with why, and True when it works again. Where nothing ever failed there is
// none.
#pragma once

#include <string>
#include <vector>

#include "api/batch.h"
#include "base/time.h"
#include "topology/forest.h"

namespace hopwise::control {

inline constexpr std::string_view kReady = "Ready";
inline constexpr std::string_view kDiscovered = "Discovered";

struct HyperNodeStatus {
  const api::HyperNode* object = nullptr;
  int64_t node_count = 0;
  api::Condition ready;
  std::vector<api::Condition> conditions;  // all of the object, others' too
};

// Of a source that is asked: reason "" while it works.
struct SourceState {
  std::string source, reason, message;
};

// Those whose status must be written, in the order of their names. `objects`: all HyperNodes, in
// that order too; `topology`: made of them; `sources`: those that are asked.
std::vector<HyperNodeStatus> PlanStatuses(const topology::Topology& topology,
                                          const std::vector<const api::HyperNode*>& objects,
                                          const std::vector<SourceState>& sources, Time now);

}  // namespace hopwise::control
