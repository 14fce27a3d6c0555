// What a gang asks for in one decision: which members must be placed for it to run, and which may
// follow.
//
// Members that are placed count towards the minimum. What is still missing is chosen in a fixed
// order: groups that lost members, sub-groups a policy requires, role minimums, then whole
// sub-groups and loose pods until min_member is reached. Pods of higher priority come first, as by
// Volcano's plugin priority (TaskOrder); among equals the order of members holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/state.h"

namespace hopwise::sched {

// Alike fresh sub-groups: no member placed, all pods of one class, one policy, one size.
struct UniformGroups {
  uint32_t policy = 0;
  size_t k = 0;                      // class
  int32_t size = 0;                  // pods of each
  std::vector<uint32_t> sub_groups;  // indexes into Gang::sub_groups, in order
};

// One sub-group by itself: with members placed already, or of several classes.
struct SingleGroup {
  uint32_t sub_group = 0;
  std::vector<PodId> pods;  // to be placed now
  bool whole = true;        // all of them or none: they make up the sub-group's minimum
};

struct Batch {
  std::vector<SingleGroup> singles;
  std::vector<UniformGroups> uniform;
  std::vector<PodId> loose;
};

struct Demand {
  std::vector<ShapeId> classes;  // distinct shapes of all members below
  Batch required;                // without these the gang does not run
  Batch optional;                // surplus, in order of preference; sub-groups whole
  std::vector<PodId> placed;     // members with a node
  int32_t waiting = 0;           // members without one, those that cannot be judged included
  bool has_group_rule = false;   // some sub-group of the demand has a topology rule
  std::string blocked;   // why required members cannot be judged: "pod ns/x uses …"; "" = fine
  bool gated = false;    // blocked by scheduling gates only
  bool too_few = false;  // blocked because members, or members of whole sub-groups, are missing
  bool by_pod = false;   // blocked by what a pod itself asks for

  [[nodiscard]] size_t ClassOf(ShapeId shape) const;
  // How many of `pods` are of each class.
  [[nodiscard]] std::vector<int32_t> CountClasses(cluster::State& state,
                                                  const std::vector<PodId>& pods) const;
  // Pods of each class in `required`.
  std::vector<int32_t> required_counts;
  // Pods of each class in both.
  std::vector<int32_t> all_counts;
};

// The sum of counts by class.
int64_t Total(const std::vector<int32_t>& counts);

Demand BuildDemand(cluster::State& state, GangId gang);

}  // namespace hopwise::sched
