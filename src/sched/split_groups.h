// Whole groups over a domain when the exact split is too large: every group as low as it can go,
// level by level.
//
// Within a domain d at most floor(room(d) / size) groups can be completed, and taking what its
// children can complete first never lowers that number; so filling from the lowest level up keeps
// the slowest groups as few as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/cells.h"
#include "sched/split_exact.h"
#include "sched/trial.h"

namespace hopwise::sched {

// Most groups of `size` pods that domains of rank <= rank can complete inside d. Domains only: a
// node outside them completes none.
int64_t GroupRoom(const topology::Tree& tree, const RoomView& view, DomainId d, int32_t size,
                  uint16_t rank);

// Places `request.groups` groups of class k inside request.domain in the trial; nullopt (and
// nothing placed) when they do not fit by the rule above. request.loose is ignored.
std::optional<std::vector<GroupSplit>> SplitGroups(Trial& trial, size_t k, const Anchors& anchors,
                                                   const SplitRequest& request);

}  // namespace hopwise::sched
