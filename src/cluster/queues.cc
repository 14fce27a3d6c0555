#include "cluster/queues.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace hopwise::cluster {
namespace {

constexpr std::string_view kRoot = "root";

std::vector<int64_t> ByResource(const api::ResourceList& list, int64_t absent, Columns& columns) {
  std::vector<int64_t> amounts;
  for (const auto& [name, amount] : list) {
    const size_t r = columns.Resource(name).index();
    if (r >= amounts.size()) amounts.resize(r + 1, absent);
    amounts[r] = std::max<int64_t>(amount, 0);
  }
  return amounts;
}

void Grow(std::vector<int64_t>& amounts, size_t size, int64_t absent) {
  if (amounts.size() < size) amounts.resize(size, absent);
}

// Wraps where users ask for more than int64 holds: nonsense in, but what is taken back later is
// exactly what was added.
void Add(int64_t& sum, int64_t amount) {
  sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(amount));
}

// As vectors that go on with zeros for ever.
bool SameAmounts(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const size_t size = std::max(a.size(), b.size());
  for (size_t r = 0; r < size; ++r) {
    if ((r < a.size() ? a[r] : 0) != (r < b.size() ? b[r] : 0)) return false;
  }
  return true;
}

}  // namespace

QueueTree::QueueTree(const std::string& default_queue) {
  root_ = Slot(kRoot);
  default_ = Slot(default_queue);
  Reset(queues_[root_.index()]);
  Reset(queues_[default_.index()]);
  Resolve();
  TakeChanged();
}

QueueId QueueTree::Slot(std::string_view name) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  const QueueId id(queues_.size());
  queues_.emplace_back().name = std::string(name);
  own_.emplace_back();
  has_object_.push_back(0);
  marked_.push_back(0);
  by_name_.emplace(name, id);
  Size(id);
  return id;
}

QueueId QueueTree::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || !at(found->second).alive) return {};
  return found->second;
}

// As without an object.
void QueueTree::Reset(Queue& queue) {
  const QueueId id = by_name_.find(queue.name)->second;
  Queue fresh;
  fresh.name = std::move(queue.name);
  fresh.allocated = std::move(queue.allocated);
  fresh.parent = queue.parent;  // until Resolve sees that it is another
  fresh.alive = id == root_ || id == default_;
  queue = std::move(fresh);
  Size(id);
}

QueueId QueueTree::Apply(const api::Queue& object, Columns& columns) {
  const QueueId id = Slot(object.meta.name);
  Queue& queue = queues_[id.index()];
  const auto asked = [&] {
    return std::tuple(queue.alive, queue.open, queue.weight, queue.priority, queue.parent_name,
                      queue.reclaimable);
  };
  const auto amounts = [&] {
    return std::array{queue.capability, queue.guarantee, queue.deserved};
  };
  const bool had_object = has_object_[id.index()] != 0;
  const auto asked_before = asked();
  const auto amounts_before = amounts();
  has_object_[id.index()] = 1;
  queue.alive = true;
  queue.open = object.state != "Closed" && object.state != "Closing";
  queue.weight = object.weight;
  queue.priority = object.priority;
  queue.parent_name = object.parent;
  queue.reclaimable = object.reclaimable;
  queue.capability = ByResource(object.capability, -1, columns);
  queue.guarantee = ByResource(object.guarantee, 0, columns);
  queue.deserved = ByResource(object.deserved, -1, columns);
  Cover(columns.resource_count());
  Size(id);
  // Its counters are written all the time, by whoever schedules; they change nothing.
  if (!had_object || asked() != asked_before || amounts() != amounts_before) {
    Mark(id);
    Resolve();
  }
  return id;
}

QueueId QueueTree::Remove(std::string_view name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || has_object_[found->second.index()] == 0) return {};
  const QueueId id = found->second;
  has_object_[id.index()] = 0;
  Reset(queues_[id.index()]);
  Mark(id);
  Resolve();
  return id;
}

void QueueTree::Charge(QueueId slot, const Request& request) {
  for (const auto& [r, amount] : request) {
    Cover(r.index() + 1);
    Add(own_[slot.index()][r.index()], amount);
  }
  if (!at(slot).alive) return;
  for (QueueId q = slot; q.valid(); q = at(q).parent) {
    for (const auto& [r, amount] : request) Add(queues_[q.index()].allocated[r.index()], amount);
  }
}

void QueueTree::Discharge(QueueId slot, const Request& request) {
  for (const auto& [r, amount] : request) Add(own_[slot.index()][r.index()], -amount);
  if (!at(slot).alive) return;
  for (QueueId q = slot; q.valid(); q = at(q).parent) {
    for (const auto& [r, amount] : request) Add(queues_[q.index()].allocated[r.index()], -amount);
    Mark(q);
  }
}

void QueueTree::Cover(size_t resources) {
  if (resources <= resources_) return;
  resources_ = resources;
  for (size_t q = 0; q < queues_.size(); ++q) Size(QueueId(q));
}

void QueueTree::Size(QueueId id) {
  Queue& queue = queues_[id.index()];
  Grow(own_[id.index()], resources_, 0);
  Grow(queue.allocated, resources_, 0);
  Grow(queue.capability, resources_, -1);
  Grow(queue.guarantee, resources_, 0);
  Grow(queue.deserved, resources_, -1);
}

std::vector<QueueId> QueueTree::TakeChanged() {
  for (const QueueId id : changed_) marked_[id.index()] = 0;
  std::sort(changed_.begin(), changed_.end());
  return std::exchange(changed_, {});
}

void QueueTree::Mark(QueueId id) {
  if (std::exchange(marked_[id.index()], uint8_t{1}) == 0) changed_.push_back(id);
}

void QueueTree::Resolve() {
  bool moved = false;
  for (size_t q = 0; q < queues_.size(); ++q) {
    const QueueId id(q);
    Queue& queue = queues_[q];
    queue.warnings.clear();
    std::string warning;
    const QueueId parent = queue.alive ? ParentOf(id, &warning) : QueueId();
    if (!warning.empty()) queue.warnings.push_back(std::move(warning));
    if (parent != queue.parent) {
      queue.parent = parent;
      Mark(id);
      moved = true;
    }
  }
  // A queue that came or went without a parent of its own (root) has nothing to move.
  if (moved) Recount();
}

QueueId QueueTree::ParentOf(QueueId id, std::string* warning) const {
  const Queue& queue = at(id);
  if (id == root_) return {};
  if (queue.parent_name.empty()) return root_;
  const QueueId parent = Find(queue.parent_name);
  if (!parent.valid()) {
    *warning = "parent queue " + queue.parent_name + " not found; root counts as its parent";
    return root_;
  }
  if (InCycle(id)) {
    *warning = "its parents lead back to itself; root counts as its parent";
    return root_;
  }
  return parent;
}

bool QueueTree::InCycle(QueueId id) const {
  QueueId q = id;
  for (size_t steps = 0; steps < queues_.size(); ++steps) {
    if (q == root_) return false;
    q = Find(at(q).parent_name);
    if (!q.valid()) return false;
    if (q == id) return true;
  }
  return false;  // leads into a cycle of others, which is cut there
}

void QueueTree::Recount() {
  std::vector<std::vector<int64_t>> before;
  before.reserve(queues_.size());
  for (Queue& queue : queues_) {
    before.push_back(queue.allocated);
    std::fill(queue.allocated.begin(), queue.allocated.end(), 0);
  }
  for (size_t q = 0; q < queues_.size(); ++q) {
    if (queues_[q].alive) AddUp(QueueId(q), own_[q]);
  }
  for (size_t q = 0; q < queues_.size(); ++q) {
    for (size_t r = 0; r < before[q].size(); ++r) {
      if (queues_[q].allocated[r] < before[q][r]) Mark(QueueId(q));
    }
  }
}

void QueueTree::AddUp(QueueId from, const std::vector<int64_t>& amounts) {
  for (QueueId q = from; q.valid(); q = at(q).parent) {
    std::vector<int64_t>& allocated = queues_[q.index()].allocated;
    for (size_t r = 0; r < amounts.size(); ++r) Add(allocated[r], amounts[r]);
  }
}

std::string QueueTree::Audit(const std::vector<std::vector<int64_t>>& own) const {
  std::vector<std::vector<int64_t>> expected(queues_.size());
  for (size_t q = 0; q < queues_.size(); ++q) {
    const std::vector<int64_t>& held = q < own.size() ? own[q] : std::vector<int64_t>{};
    if (!SameAmounts(own_[q], held)) {
      return "queue " + queues_[q].name + ": its own gangs hold something else than was charged";
    }
    size_t steps = 0;
    for (QueueId p(q); at(QueueId(q)).alive && p.valid(); p = at(p).parent) {
      if (++steps > queues_.size()) return "queue " + queues_[q].name + ": parents form a cycle";
      Grow(expected[p.index()], held.size(), 0);
      for (size_t r = 0; r < held.size(); ++r) Add(expected[p.index()][r], held[r]);
    }
  }
  for (size_t q = 0; q < queues_.size(); ++q) {
    if (!SameAmounts(queues_[q].allocated, expected[q])) {
      return "queue " + queues_[q].name + ": allocated is not the sum over its gangs and children";
    }
  }
  return "";
}

size_t QueueTree::MemoryBytes() const {
  size_t bytes = 0;
  for (size_t q = 0; q < queues_.size(); ++q) {
    const Queue& queue = queues_[q];
    bytes += sizeof(Queue) + 2 * queue.name.capacity() + 96 + own_[q].capacity() * 8;
    bytes += 8 * (queue.capability.capacity() + queue.allocated.capacity() +
                  queue.guarantee.capacity() + queue.deserved.capacity());
  }
  return bytes;
}

}  // namespace hopwise::cluster
