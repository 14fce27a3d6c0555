#include "control/queue_controller.h"

#include <utility>

#include <fmt/format.h>

namespace hopwise::control {
namespace {

constexpr std::string_view kOpen = "Open", kClosing = "Closing", kClosed = "Closed";

bool HasPodGroups(const Store& store, const std::string& queue) {
  bool any = false;
  store.Each(kVolcanoScheduling, "PodGroup", [&](const Key&, const Entry& entry) {
    any = any || Text(entry.object, {"spec", "queue"}, "default") == queue;
  });
  return any;
}

class QueueReconciler {
 public:
  explicit QueueReconciler(const QueueView& view)
      : view_(view),
        queue_(*view.store.FindObject(view.queue)),
        state_(Text(queue_, {"status", "state"})),
        marked_(Annotation(queue_, kClosedByParent) == "true") {
    const std::string parent = ParentOf(queue_);
    const Json* above = parent.empty() ? nullptr : view.store.FindObject(QueueKey(parent));
    parent_closed_ = above != nullptr && IsClosedQueue(*above);
  }

  Outcome Run() {
    closed_ = IsClosedQueue(queue_);
    mark_ = marked_;
    FollowParent();
    FollowCommands();
    if (!Text(queue_, {"metadata", "deletionTimestamp"}).empty()) {
      return std::move(out_);
    }
    // The mark is there as long as it is needed, whenever the writing stops.
    if (closed_) {
      WriteMetadata();
      WriteState();
    } else {
      WriteState();
      WriteMetadata();
    }
    return std::move(out_);
  }

 private:
  void FollowParent() {
    const bool root = view_.queue.name == kRootQueue;
    if (root || (!parent_closed_ && mark_)) {
      closed_ = mark_ = false;
    } else if (parent_closed_ && !closed_) {
      closed_ = mark_ = true;
    }
  }

  void FollowCommands() {
    std::vector<Write> deletions;
    for (const Key& key : view_.commands) {
      const Json& command = *view_.store.FindObject(key);
      Write write;
      write.verb = Write::Verb::kDelete;
      write.key = key;
      write.uid = Uid(command);
      deletions.push_back(std::move(write));
      Obey(Text(command, {"action"}));
    }
    if (!deletions.empty()) {
      out_.steps.push_back(std::move(deletions));
    }
  }

  void Obey(const std::string& action) {
    if (action == "CloseQueue" && view_.queue.name == kRootQueue) {
      Tell(true, "queue root cannot be closed");
    } else if (action == "CloseQueue") {
      // Who closes it by hand wants it to stay closed when its parent is opened.
      closed_ = true;
      mark_ = false;
      Tell(false, "command CloseQueue is carried out");
    } else if (action == "OpenQueue" && parent_closed_) {
      Tell(true, fmt::format("it cannot be opened while its parent {} is closed: open that first",
                             ParentOf(queue_)));
    } else if (action == "OpenQueue") {
      closed_ = mark_ = false;
      Tell(false, "command OpenQueue is carried out");
    } else {
      Tell(true, fmt::format("command {} is not known: OpenQueue or CloseQueue", action));
    }
  }

  void WriteMetadata() {
    Json patch = Json::object();
    if (mark_ != marked_) {
      Set(patch, {"metadata", "annotations", kClosedByParent}, mark_ ? Json("true") : Json());
    }
    if (view_.queue.name != kRootQueue && Text(queue_, {"spec", "parent"}).empty()) {
      Set(patch, {"spec", "parent"}, std::string(kRootQueue));
    }
    if (!patch.empty()) {
      Add(Write::Verb::kPatch, std::move(patch));
    }
  }

  void WriteState() {
    const std::string_view wanted = !closed_                                      ? kOpen
                                    : HasPodGroups(view_.store, view_.queue.name) ? kClosing
                                                                                  : kClosed;
    // What is closed stays so, although a PodGroup comes to it.
    if (wanted == state_ || (wanted == kClosing && state_ == kClosed)) {
      return;
    }
    Add(Write::Verb::kPatchStatus, {{"status", {{"state", wanted}}}});
  }

  // Only while the queue is as it was looked at: a state that somebody else writes meanwhile
  // counts.
  void Add(Write::Verb verb, Json body) {
    Set(body, {"metadata", "uid"}, Uid(queue_));
    if (out_.steps.empty()) {
      Set(body, {"metadata", "resourceVersion"}, Text(queue_, {"metadata", "resourceVersion"}));
    }
    Write write;
    write.verb = verb;
    write.key = view_.queue;
    write.body = std::move(body);
    out_.steps.push_back({std::move(write)});
  }

  void Tell(bool warning, std::string message) {
    out_.events.push_back({view_.queue, Uid(queue_), warning, "CommandIssued", std::move(message)});
  }

  const QueueView& view_;
  const Json& queue_;
  const std::string state_;
  const bool marked_;
  bool parent_closed_ = false;
  bool closed_ = false, mark_ = false;  // as it should be
  Outcome out_;
};

}  // namespace

Key QueueKey(std::string_view name) {
  return {std::string(kVolcanoScheduling), "Queue", "", std::string(name)};
}

std::string ParentOf(const Json& queue) {
  return Name(queue) == kRootQueue ? "" : Text(queue, {"spec", "parent"}, std::string(kRootQueue));
}

bool IsClosedQueue(const Json& queue) {
  const std::string state = Text(queue, {"status", "state"});
  return state == kClosed || state == kClosing;
}

Outcome ReconcileQueue(const QueueView& view) { return QueueReconciler(view).Run(); }

}  // namespace hopwise::control
