// The queues as a tree: limits, and what the gangs of each queue and of all queues below it hold.
//
// A name has a slot from its first mention on, so that gangs may come before their queue; a slot
// without an object is not alive (but "root" and the default queue always are), counts what its
// gangs hold and passes nothing on. Parents are resolved afresh with every change of the objects:
// an unknown parent or a cycle of parents is a warning on the queue and makes it a child of root.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch.h"
#include "base/ids.h"
#include "cluster/columns.h"
#include "cluster/model.h"

namespace hopwise::cluster {

class QueueTree {
 public:
  explicit QueueTree(const std::string& default_queue);

  // The slot of the name, made when there is none.
  QueueId Slot(std::string_view name);
  // None unless the queue is alive.
  [[nodiscard]] QueueId Find(std::string_view name) const;
  [[nodiscard]] size_t size() const { return queues_.size(); }
  [[nodiscard]] const Queue& at(QueueId id) const { return queues_[id.index()]; }

  QueueId Apply(const api::Queue& object, Columns& columns);
  // None when there is no such object.
  QueueId Remove(std::string_view name);

  void Charge(QueueId slot, const Request& request);
  void Discharge(QueueId slot, const Request& request);

  // From now on every vector has at least `resources` entries.
  void Cover(size_t resources);

  // Queues with new limits, state or parents or with falling use, since the last call.
  std::vector<QueueId> TakeChanged();

  // Recounts allocated from what the gangs of each queue hold; "" when it agrees.
  [[nodiscard]] std::string Audit(const std::vector<std::vector<int64_t>>& own) const;
  [[nodiscard]] size_t MemoryBytes() const;

 private:
  void Reset(Queue& queue);
  void Size(QueueId id);
  void Mark(QueueId id);
  void Resolve();
  [[nodiscard]] QueueId ParentOf(QueueId id, std::string* warning) const;
  [[nodiscard]] bool InCycle(QueueId id) const;
  void Recount();
  void AddUp(QueueId from, const std::vector<int64_t>& amounts);

  std::deque<Queue> queues_;
  std::vector<std::vector<int64_t>> own_;  // what the gangs of this very queue hold
  std::vector<uint8_t> has_object_;
  std::map<std::string, QueueId, std::less<>> by_name_;
  std::vector<QueueId> changed_;
  std::vector<uint8_t> marked_;
  QueueId root_, default_;
  size_t resources_ = 0;
};

}  // namespace hopwise::cluster
