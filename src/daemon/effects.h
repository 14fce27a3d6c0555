// What the core wants done to the outside world, as data. The core (core.h) makes these on its own
// thread; binder.h and writer.h carry them out on the client's loop and report back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/errors.h"
#include "kube/events.h"
#include "kube/resources.h"

namespace hopwise::daemon {

struct ObjectName {
  std::string ns, name, uid;
};
// "ml/a"; "root" for what has no namespace.
std::string NameOf(const ObjectName& object);

// One Binding, with the uid as precondition.
struct BindPod {
  ObjectName pod;
  std::string node;
  uint64_t decision = 0;  // tells it from an earlier bind of the same pod
};

// Through the eviction API; told by an Event.
struct EvictPod {
  ObjectName pod;
  std::string why;         // "its gang was not completed within 1m0s"
  std::string conditions;  // strategic patch of the pod's status, written before; "" = none
};

// What became of it. ok: the pod goes or is gone.
struct EvictionResult {
  ObjectName pod;
  kube::ApiError error;
  bool sent = true;  // false: it was given up before it was sent
};

// A change of an object. A later one for the same object and subresource takes the place of one
// that still waits.
struct Patch {
  kube::Resource resource;
  ObjectName object;
  std::string_view subresource;   // "" or "status"
  std::string_view content_type;  // of the body
  std::string body;
};

struct Tell {
  kube::ObjectReference about;
  kube::EventText text;
};

// "Successfully assigned ml/a to n1": once for each bind, however often it is told.
Tell ScheduledEvent(const ObjectName& pod, const std::string& node);

// Of a write that was not sent because we do not lead (any more).
kube::ApiError NotLeading();

struct Effects {
  std::vector<BindPod> binds;
  std::vector<ObjectName> cancelled;  // binds that need not be sent any more
  std::vector<EvictPod> evictions;
  std::vector<Patch> patches;
  std::vector<Tell> events;
  std::vector<std::string> new_queues;
  std::vector<ObjectName> look_ups;  // pods to be read anew from the API server

  [[nodiscard]] bool empty() const {
    return binds.empty() && cancelled.empty() && evictions.empty() && patches.empty() &&
           events.empty() && new_queues.empty() && look_ups.empty();
  }
};

}  // namespace hopwise::daemon
