// Who stands when several HyperNodes claim one member: the one linked to a parent, then the older,
// then the lesser name; the others are out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace hopwise::topology {

struct Claimant {
  std::string name;
  Time creation;
  std::vector<uint32_t> parents;  // claimants that name this one as a child
};

enum class Merit : uint8_t { kLinked, kOlder, kLesserName };
// "is linked to a parent", "is older", "has the lesser name".
std::string_view TextOf(Merit merit);

struct Loss {
  uint32_t loser = 0, winner = 0;
  Merit merit = Merit::kLesserName;  // by which the winner stands
  uint32_t item = 0;                 // the first item on which they clash
  uint32_t items = 0;                // on how many items the loser clashes with whom ever
};

// items[i] lists the claimants of item i. compatible(a, b) tells whether both may hold one item.
// Returns the losses by loser. A function of its arguments alone, whatever the order of claimants
// within an item.
//
// A parent that loses here no longer makes its children "linked", which may turn other decisions:
// the contest is repeated with all parents that ever lost discounted, until none is added.
std::vector<Loss> Decide(const std::vector<Claimant>& claimants,
                         const std::vector<std::vector<uint32_t>>& items,
                         const std::function<bool(uint32_t, uint32_t)>& compatible);

}  // namespace hopwise::topology
