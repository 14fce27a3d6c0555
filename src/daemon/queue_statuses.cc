#include "daemon/queue_statuses.h"

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "sim/json.h"

namespace hopwise::daemon {
namespace {

struct Counter {
  const char* field;
  const char* phase;
  int32_t api::Queue::* member;
};
constexpr Counter kCounters[] = {{"pending", "Pending", &api::Queue::pending},
                                 {"running", "Running", &api::Queue::running},
                                 {"inqueue", "Inqueue", &api::Queue::inqueue},
                                 {"unknown", "Unknown", &api::Queue::unknown},
                                 {"completed", "Completed", &api::Queue::completed}};

std::map<std::string, int64_t> AllocatedOf(const cluster::State& state, const std::string& name) {
  std::map<std::string, int64_t> amounts;
  const QueueId id = state.FindQueue(name);
  if (id.valid()) {
    const std::vector<int64_t>& allocated = state.queue(id).allocated;
    for (size_t r = 0; r < allocated.size(); ++r) {
      if (allocated[r] != 0) {
        amounts[state.columns().ResourceName(ResourceId(r))] = allocated[r];
      }
    }
  }
  return amounts;
}

// What differs, as a merge patch of the status; null when nothing does. A resource of which nothing
// is left is taken out by a null.
sim::Json StatusChanges(const api::Queue& shown, const std::map<std::string, int32_t>& phases,
                        const std::map<std::string, int64_t>& allocated) {
  sim::Json changes;
  if (shown.state.empty()) {
    changes["state"] = "Open";
  }
  for (const Counter& counter : kCounters) {
    const auto at = phases.find(counter.phase);
    const int32_t count = at == phases.end() ? 0 : at->second;
    if (shown.*counter.member != count) {
      changes[counter.field] = count;
    }
  }
  std::map<std::string, int64_t> have;
  for (const auto& [resource, amount] : shown.allocated) {
    have[resource] = amount;
    if (!allocated.contains(resource)) {
      changes["allocated"][resource] = nullptr;
    }
  }
  for (const auto& [resource, amount] : allocated) {
    const auto at = have.find(resource);
    if (at == have.end() || at->second != amount) {
      changes["allocated"][resource] = FormatQuantity(resource, amount);
    }
  }
  return changes;
}

}  // namespace

void QueueStatuses::Apply(const api::Queue& object) {
  views_[object.meta.name].object = object;
  asked_.erase(object.meta.name);
  touched_ = true;
}

void QueueStatuses::Remove(const std::string& name) {
  views_.erase(name);
  touched_ = true;
}

void QueueStatuses::Settle(const cluster::State& state, const PodGroups& groups, Time now,
                           Effects& effects) {
  if (!touched_ || now - last_ < kQueueInterval) {
    return;
  }
  touched_ = false;
  last_ = now;
  const auto phases = groups.CountPhases();
  for (auto& [name, view] : views_) {
    if (view.writing) {
      touched_ = true;
      continue;
    }
    const auto at = phases.find(name);
    const sim::Json changes = StatusChanges(
        view.object, at == phases.end() ? std::map<std::string, int32_t>() : at->second,
        AllocatedOf(state, name));
    if (changes.is_null()) {
      continue;
    }
    const sim::Json body = {{"metadata", {{"uid", view.object.meta.uid}}}, {"status", changes}};
    effects.patches.push_back({kube::kQueues,
                               {"", name, view.object.meta.uid},
                               "status",
                               kube::kMergePatch,
                               sim::Dump(body)});
    view.writing = true;
  }
}

// The watch shows what was written and touches again, and that a queue is gone; any other failure
// is looked at once more.
void QueueStatuses::Written(const std::string& name, const kube::ApiError& error) {
  if (const auto at = views_.find(name); at != views_.end()) {
    at->second.writing = false;
    touched_ = touched_ || (!error.ok() && error.failure != kube::Failure::kNotFound);
  }
}

void QueueStatuses::CreateMissing(const std::string& default_queue, Effects& effects) {
  for (const std::string& name : {std::string("root"), default_queue}) {
    if (!views_.contains(name) && asked_.insert(name).second) {
      effects.new_queues.push_back(name);
    }
  }
}

}  // namespace hopwise::daemon
