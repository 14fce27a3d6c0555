#include "daemon/queue_statuses.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "base/quantity.h"

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
json::Json StatusChanges(const api::Queue& shown, const std::map<std::string, int32_t>& phases,
                         const std::map<std::string, int64_t>& allocated) {
  json::Json changes;
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
  for (auto& [name, pause] : pauses_) {
    if (pause.until.set() && pause.until <= now) {
      pause.until = {};  // tried again; its length stays until that succeeds
      touched_ = true;
    }
  }
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
    if (Waits(name, now)) {
      continue;  // the end of its pause wakes us
    }
    const auto at = phases.find(name);
    const json::Json changes = StatusChanges(
        view.object, at == phases.end() ? std::map<std::string, int32_t>() : at->second,
        AllocatedOf(state, name));
    if (changes.is_null()) {
      continue;
    }
    const json::Json body = {{"metadata", {{"uid", view.object.meta.uid}}}, {"status", changes}};
    effects.patches.push_back({kube::kQueues,
                               {"", name, view.object.meta.uid},
                               "status",
                               kube::kMergePatch,
                               json::Dump(body)});
    view.writing = true;
  }
}

// The watch shows what was written and touches again, and that a queue is gone; any other failure
// is looked at once more.
void QueueStatuses::Written(const std::string& name, const kube::ApiError& error, Time now) {
  const auto at = views_.find(name);
  if (at == views_.end()) {
    return;
  }
  at->second.writing = false;
  if (error.ok()) {
    pauses_.erase(name);
  } else if (error.failure != kube::Failure::kNotFound) {
    PutOff(name, now);
  }
}

void QueueStatuses::PutOff(const std::string& name, Time now) {
  asked_.erase(name);
  Pause& pause = pauses_[name];
  pause.until = now + pause.length;
  pause.length = std::min(Duration{2 * pause.length.ns}, kMostQueuePause);
}

bool QueueStatuses::Waits(const std::string& name, Time now) const {
  const auto at = pauses_.find(name);
  return at != pauses_.end() && now < at->second.until;
}

Time QueueStatuses::next_wake() const {
  Time next = touched_ ? last_ + kQueueInterval : Time();
  for (const auto& [name, pause] : pauses_) {
    if (pause.until.set() && (!next.set() || pause.until < next)) {
      next = pause.until;
    }
  }
  return next;
}

void QueueStatuses::CreateMissing(const std::string& default_queue, Time now, Effects& effects) {
  for (const std::string& name : {std::string("root"), default_queue}) {
    if (!views_.contains(name) && !Waits(name, now) && asked_.insert(name).second) {
      effects.new_queues.push_back(name);
    }
  }
}

}  // namespace hopwise::daemon
