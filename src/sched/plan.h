// What a decision yields, as data: binds, verdicts and the words for the people who wait.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace hopwise::sched {

struct Bind {
  PodId pod;
  NodeId node;
};

// A pod that makes room for another gang.
struct Eviction {
  PodId pod;
  GangId claimer;
  std::string_view action;  // "preempt", "reclaim", "gangpreempt", "gangreclaim"
  std::string why;          // "gangpreempt: ml/a (priority 100) needs its room in leaf-3"
};

// Where a gang's members are: the smallest domain of one tree that holds them all.
struct Location {
  bool known = false;  // false: no member is placed
  size_t tree = 0;     // index into State::trees()
  DomainId domain;     // DomainId(0): the virtual root
  int32_t tier = 0;
  std::string tier_name, domain_name;  // "" for the virtual root
};

enum class Verdict : uint8_t {
  kNothingToDo,  // no member waits
  kPlaced,       // binds were made (all of the minimum, or surplus of a running gang)
  kNever,        // not even on the empty cluster as it stands
  kNotNow,       // proved: does not fit in what is free
  kUndecided,    // a bounded search gave up; tried again
  kInvalid,      // cannot be judged as written: PodGroup or queue missing, too few members, a
                 // constraint not evaluated
  kQueueLimit,   // the queue or one above it has no share left
};

// Condition reasons as Volcano writes them: "NotEnoughResources", "NotEnoughTasks",
// "NotEnoughPodsOfTask", and ours: "QueueNotFound", "QueueClosed", "QueueOverLimit",
// "TopologyUnknown", "NeverFits", "Unevaluated", "Malformed".
struct GangReport {
  GangId gang;
  Verdict verdict = Verdict::kNothingToDo;
  Verdict rest = Verdict::kNothingToDo;  // on members that still wait, as `verdict` unless kPlaced
  std::vector<Bind> binds;               // members placed in this decision, in rank order
  std::vector<Bind> nominated;           // members that hold room which others are leaving
  int32_t placed =
      0;  // members with a node after this decision (finished ones that succeeded included)
  int32_t waiting = 0;  // members still without one
  Location location;    // of all placed members
  std::string reason;   // word; "" when nothing waits
  std::string message;  // sentence; "" when nothing waits
  std::vector<std::string>
      warnings;  // to be said once: rule fell back, anchors span more than the rule, …
};

struct Plan {
  std::vector<GangReport> gangs;  // in the order decided
  std::vector<Eviction> evictions;
};

}  // namespace hopwise::sched
