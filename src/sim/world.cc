#include "sim/world.h"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "control/commands.h"
#include "control/queue_controller.h"
#include "sim/objects.h"

namespace hopwise::sim {
namespace {

constexpr std::string_view kDefaultQueue = "default";

bool IsWorkload(const Key& key) {
  return (key.group == kVolcanoBatch && key.kind == "Job") || key.group == kApps ||
         (key.group == kBatch && key.kind == "Job") || key.group == kLws;
}

}  // namespace

bool World::IsOurs(const Json& pod) const {
  if (place_foreign) {
    return true;
  }
  const std::string name = Text(pod, {"spec", "schedulerName"}, "default-scheduler");
  return std::find(scheduler_names.begin(), scheduler_names.end(), name) != scheduler_names.end();
}

void World::MarkDirty(const Key& key) { dirty_.insert(key); }

void World::MarkOwner(const Json& object) {
  const Json* ref = ControllerOf(object);
  if (ref == nullptr) {
    return;
  }
  if (const Key* owner = store.FindUid(Text(*ref, {"uid"})); owner != nullptr) {
    MarkDirty(*owner);
    return;
  }
  const Key by_name{GroupOf(Text(*ref, {"apiVersion"})), Text(*ref, {"kind"}), Namespace(object),
                    Text(*ref, {"name"})};
  if (store.Find(by_name) != nullptr) {
    MarkDirty(by_name);
  }
}

void World::MarkChanged(const Change& change) {
  const Key& key = change.key;
  if (key.group == kVolcanoScheduling && key.kind == "Queue") {
    MarkDirty(key);
    store.Each(kVolcanoScheduling, "PodGroup",
               [&](const Key& group, const Entry&) { MarkDirty(group); });
    store.Each(kVolcanoScheduling, "Queue", [&](const Key& below, const Entry& entry) {
      if (ParentOf(entry.object) == key.name) {
        MarkDirty(below);
      }
    });
    return;
  }
  const Json* object = store.FindObject(key);
  if (object == nullptr) {
    return;  // Delete marked what depends on it
  }
  if (key.kind == "Pod" && key.group.empty()) {
    MarkDirty(key);
    MarkOwner(*object);
    if (const std::optional<Key> group = GroupKeyOf(*object); group) {
      MarkDirty(*group);
      touched_groups.insert(*group);
    }
  } else if (IsPodGroup(key)) {
    MarkDirty(key);
    MarkOwner(*object);
    touched_groups.insert(key);
  } else if (key.kind == "Node" && key.group.empty()) {
    if (const auto found = waiting_for_node.find(key.name); found != waiting_for_node.end()) {
      dirty_.insert(found->second.begin(), found->second.end());
      waiting_for_node.erase(found);
    }
  } else if (IsWorkload(key)) {
    MarkDirty(key);
    MarkOwner(*object);
  } else if (const std::optional<Key> target = TargetOf(key, *object); target) {
    MarkDirty(*target);
  }
}

void World::MarkDue() {
  while (!timers.empty() && timers.begin()->first <= now.ns) {
    MarkDirty(timers.begin()->second);
    timers.erase(timers.begin());
  }
}

std::vector<Key> World::TakeDirty() {
  std::vector<std::pair<uint64_t, Key>> order;
  for (const Key& key : dirty_) {
    if (const Entry* entry = store.Find(key); entry != nullptr) {
      order.emplace_back(entry->sequence, key);
    }
  }
  dirty_.clear();
  std::sort(order.begin(), order.end());
  std::vector<Key> taken;
  taken.reserve(order.size());
  for (auto& [sequence, key] : order) {
    taken.push_back(std::move(key));
  }
  return taken;
}

bool World::MakePodObject(Json pod) {
  if (pods_made_ >= kMaxPodsMade) {
    Warn(fmt::format("more than {} pods were made; no further ones are", kMaxPodsMade));
    return false;
  }
  ++pods_made_;
  if (Text(pod, {"status", "phase"}).empty()) {
    Set(pod, {"status", "phase"}, "Pending");
  }
  store.Create(std::move(pod), now);
  return true;
}

void World::Delete(const Key& key, bool by_user) {
  std::deque<Key> work = {key};
  while (!work.empty()) {
    const Key at = work.front();
    work.pop_front();
    const Entry* entry = store.Find(at);
    if (entry == nullptr) {
      continue;
    }
    const Json object = entry->object;
    store.Erase(at);
    MarkOwner(object);
    if (const Json* owner = ControllerOf(object); at.kind == "Pod" && owner != nullptr) {
      if (const auto job = jobs.find(Text(*owner, {"uid"})); job != jobs.end()) {
        PodGone(object, now, job->second);
      }
    }
    jobs.erase(Uid(object));
    if (const std::optional<Key> group = GroupKeyOf(object); at.kind == "Pod" && group) {
      MarkDirty(*group);
      touched_groups.insert(*group);
    }
    for (const Key& dependent : store.Dependents(Uid(object))) {
      const Entry* found = store.Find(dependent);
      const bool owned =
          std::any_of(found->owner_uids.begin(), found->owner_uids.end(),
                      [&](const std::string& uid) { return store.FindUid(uid) != nullptr; });
      if (!owned) {
        work.push_back(dependent);
      }
    }
    if (at.kind == "Node" && at.group.empty()) {
      DeletePodsOn(at.name);
    }
    if (IsPodGroup(at)) {
      MarkDirty(QueueKey(Text(object, {"spec", "queue"}, kDefaultQueue)));
      waiting.erase(at);
      admitted.erase(Uid(object));
    }
    if (at.kind == "Pod" && Annotation(object, kSimulateKey) == "recreate" &&
        ControllerOf(object) == nullptr && !(by_user && at == key)) {
      Recreate(object);
    }
  }
}

void World::DeletePodsOn(const std::string& node) {
  std::vector<Key> there;
  store.Each("", "Pod", [&](const Key& key, const Entry& entry) {
    if (Text(entry.object, {"spec", "nodeName"}) == node) {
      there.push_back(key);
    }
  });
  for (const Key& key : there) {
    Delete(key);
  }
}

void World::Recreate(const Json& pod) {
  Json again = pod;
  again.erase("status");
  Unset(again, {"spec", "nodeName"});
  for (const char* field : {"uid", "creationTimestamp", "resourceVersion", "deletionTimestamp"}) {
    Unset(again, {"metadata", field});
  }
  MakePodObject(std::move(again));
}

void World::Record(const Json& about, std::string_view type, std::string_view reason,
                   std::string_view message, std::string_view component) {
  const std::string hash = Hex(HashOf({Uid(about), reason, message, component}));
  const std::string ns = Namespace(about).empty() ? "default" : Namespace(about);
  const Key key{"", "Event", ns, Joined(Name(about), "." + hash)};
  if (store.Find(key) != nullptr) {
    Json& event = store.Edit(key);
    event["count"] = Number(event, {"count"}, 1) + 1;
    event["lastTimestamp"] = FormatRfc3339(now);
    return;
  }
  const std::string time = FormatRfc3339(now);
  Json involved = {{"apiVersion", Text(about, {"apiVersion"})},
                   {"kind", Text(about, {"kind"})},
                   {"name", Name(about)},
                   {"uid", Uid(about)}};
  if (!Namespace(about).empty()) {
    involved["namespace"] = Namespace(about);
  }
  store.Create({{"apiVersion", "v1"},
                {"kind", "Event"},
                {"metadata", {{"name", key.name}, {"namespace", ns}}},
                {"involvedObject", std::move(involved)},
                {"type", std::string(type)},
                {"reason", std::string(reason)},
                {"message", std::string(message)},
                {"source", {{"component", std::string(component)}}},
                {"reportingComponent", std::string(component)},
                {"count", 1},
                {"firstTimestamp", time},
                {"lastTimestamp", time}},
               now);
}

void World::Warn(std::string text) {
  if (warned_.insert(text).second) {
    warnings_.push_back(std::move(text));
  }
}

std::vector<std::string> World::TakeWarnings() { return std::exchange(warnings_, {}); }

int64_t World::PriorityOf(const std::string& priority_class) const {
  const Json* found = store.FindObject({"scheduling.k8s.io", "PriorityClass", "", priority_class});
  return found == nullptr ? 0 : Number(*found, {"value"}, 0);
}

World::Admission World::QueueAdmission(const std::string& queue) const {
  std::string name = queue;
  // A chain longer than the number of objects runs in a circle.
  for (size_t hops = 0; hops <= store.size(); ++hops) {
    const Json* found = store.FindObject({std::string(kVolcanoScheduling), "Queue", "", name});
    const bool built_in = name == kDefaultQueue || name == kRootQueue;
    if (found == nullptr && !built_in) {
      return {false, "QueueNotFound",
              name == queue ? fmt::format("queue {} does not exist", name)
                            : fmt::format("queue {}, above queue {}, does not exist", name, queue)};
    }
    const std::string state = found == nullptr ? "" : Text(*found, {"status", "state"});
    if (state == "Closed" || state == "Closing") {
      return {false, "QueueClosed",
              name == queue ? fmt::format("queue {} is closed", name)
                            : fmt::format("queue {}, above queue {}, is closed", name, queue)};
    }
    name = found == nullptr ? "" : Text(*found, {"spec", "parent"});
    if (name.empty()) {
      return {};
    }
  }
  return {false, "QueueNotFound", fmt::format("the parents of queue {} form a circle", queue)};
}

}  // namespace hopwise::sim
