// Stage 6, split and pack: all required members of a gang into one candidate domain, then as much
// surplus as fits there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cluster/state.h"
#include "sched/cells.h"
#include "sched/demand.h"
#include "sched/quality.h"
#include "sched/split_exact.h"
#include "sched/trial.h"

namespace hopwise::sched {

// Members of one sub-group (an index into Gang::sub_groups) or loose ones, placed together.
struct PlacedSet {
  uint32_t sub_group = kLoose;
  DomainId domain;  // smallest domain of a sub-group's members, those placed before included
  bool required = true;
  std::vector<Slot> slots;  // slots of one class each; Slot::group is not used here
};

struct Placement {
  std::vector<PlacedSet> sets;
  [[nodiscard]] std::vector<NodeId> Nodes() const;  // distinct, by id
  [[nodiscard]] int64_t members() const;
};

// Smallest domain of a sub-group's members that have a node; none without any.
DomainId HomeOf(const cluster::State& state, const topology::Tree& tree,
                const cluster::SubGroup& group);
// Smallest domain that holds `common` (may be none) and all slots.
DomainId CommonDomain(const topology::Tree& tree, DomainId common, const std::vector<Slot>& slots);

// Bounds on the work of one decision, in fields or states merged.
struct Effort {
  int64_t exact = 0;     // for one exact split
  bool shared = false;   // `exact` is for all of them together
  bool gave_up = false;  // some split was cut off: what was found may not be the best, "impossible"
                         // is not proved

  void Spend(int64_t amount) { exact -= shared ? amount : 0; }
};

class Packer {
 public:
  // `score(k, node)`: plugin score of one pod of class k on the node, the last criterion.
  Packer(cluster::State& state, GangId gang, const Demand& demand, Trial& trial,
         const Anchors& anchors, std::function<int64_t(size_t, NodeId)> score, Effort& effort);

  // Places everything in demand.required inside d in the trial. False: it does not fit (the trial
  // is as before).
  [[nodiscard]] bool PlaceRequired(DomainId d, Placement& out);
  // Then the surplus that fits: sub-groups whole, loose pods one by one. What `out` holds of it
  // already is not placed again.
  void PlaceOptional(DomainId d, Placement& out);

 private:
  enum class Order : uint8_t { kGroupsFirst, kLooseFirst, kReversed };

  [[nodiscard]] bool PlaceInOrder(DomainId d, Order order, Placement& out);
  [[nodiscard]] bool PlaceUniform(DomainId d, const UniformGroups& u, size_t from, int32_t groups,
                                  bool required, Placement& out);
  [[nodiscard]] std::vector<GroupSplit> SplitRuled(DomainId d, const UniformGroups& u,
                                                   int32_t groups, const Anchors& opened);
  [[nodiscard]] std::vector<GroupSplit> SplitUnruled(DomainId d, const UniformGroups& u,
                                                     int32_t groups, const Anchors& opened);
  void PlaceOptionalGroups(DomainId d, Placement& out);
  [[nodiscard]] bool PlaceSingle(DomainId d, const SingleGroup& group, bool required,
                                 Placement& out);
  [[nodiscard]] bool PlaceLoose(DomainId d, const std::vector<int32_t>& wanted,
                                const Anchors& anchors, PlacedSet& out);
  [[nodiscard]] bool PlaceClasses(DomainId d, const std::vector<int32_t>& wanted,
                                  const Anchors& anchors, bool small_first, PlacedSet& out);
  [[nodiscard]] std::vector<NodeCount> SplitOne(DomainId d, size_t k, int64_t pods,
                                                const Anchors& anchors);
  void Commit(size_t k, const std::vector<NodeCount>& nodes, PlacedSet& set);
  [[nodiscard]] uint16_t GroupLimit(uint32_t policy, DomainId d) const;

  cluster::State& state_;
  const cluster::Gang& gang_;
  const Demand& demand_;
  Trial& trial_;
  const Anchors& anchors_;
  std::function<int64_t(size_t, NodeId)> score_;
  Effort& effort_;
};

}  // namespace hopwise::sched
