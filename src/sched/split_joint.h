// The exact split of all parts of a gang at once, on a fabric that is small: sub-groups of several
// policies, sub-groups that hold members already, several classes, and loose pods. Where parts are
// packed one after the other an early one may take the place that a later one needs.
//
// A dynamic programme over the fabric. The state of a domain says how many pods of each kind wait
// in it to be counted further up and how many sub-groups of each kind are whole; its cost, which
// adds up over the tree, is what the objective (quality.h) compares first: the ranks in which
// sub-groups were completed, then the cells opened.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/state.h"
#include "sched/cells.h"
#include "sched/quality.h"
#include "sched/split_exact.h"
#include "sched/trial.h"

namespace hopwise::sched {

// A sub-group with a rule of its own, of which members are to be placed.
struct JointGroup {
  uint32_t sub_group = 0;     // index into Gang::sub_groups
  std::vector<int32_t> pods;  // by class
  DomainId home;              // smallest domain of the members that it holds; none without any
  uint16_t limit = 0;         // highest rank of its smallest domain
};

struct JointRequest {
  std::vector<JointGroup> groups;
  std::vector<int32_t> loose;  // by class
  uint16_t limit = 0;          // highest rank of the gang's smallest domain
};

struct JointPiece {
  uint32_t sub_group = kLoose;
  std::vector<Slot> slots;
};

struct JointAnswer {
  SplitOutcome outcome = SplitOutcome::kImpossible;
  DomainId domain;  // smallest one that the programme found for the gang
  std::vector<JointPiece>
      pieces;  // one for each group, and one for the loose pods if there are any
};

// The best placement anywhere in the trial's tree; nothing is placed in the trial. kTooLarge when
// more than `budget` pairs of states would be looked at, or the numbers do not fit the digits of a
// state; then nothing is proved.
JointAnswer SplitJoint(const cluster::State& state, const Trial& trial, const Anchors& anchors,
                       const JointRequest& request, int64_t budget);

}  // namespace hopwise::sched
