// The queue controller: what state a queue is in. Source: Volcano's pkg/controllers/queue.
//
// A queue that is closed is Closing while PodGroups name it, and Closed after that. Closing one
// closes all below it, which are marked; opening it opens those that are marked. `root` stays open.
// What is written follows from the objects alone, so a controller that starts anew goes on where
// another one stopped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/expand.h"
#include "control/store.h"
#include "control/writes.h"

namespace hopwise::control {

inline constexpr std::string_view kClosedByParent = "volcano.sh/closed-by-parent";

Key QueueKey(std::string_view name);
// spec.parent; root where it is empty, "" of root itself.
std::string ParentOf(const Json& queue);
bool IsClosedQueue(const Json& queue);

struct QueueView {
  const Store& store;
  Key queue;
  // Commands that target the queue, oldest first.
  std::vector<Key> commands;
};

// Precondition: the queue is in the store. To be asked again when it, its parent or a Command
// changed, and, while it is Closing, when a PodGroup went.
Outcome ReconcileQueue(const QueueView& view);

}  // namespace hopwise::control
