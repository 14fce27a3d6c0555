#include "topology/nodes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "topology/natural.h"

namespace hopwise::topology {
namespace {

// Up to here entering nodes one by one beats a merge, which compares all names.
constexpr size_t kEnteredSingly = 256;

}  // namespace

NodeTable::Change NodeTable::Upsert(NodeId id, std::string_view name,
                                    const api::StringMap& labels) {
  if (IsLive(id) && NameOf(id) == name) {
    if (LabelsOf(id) == labels) return Change::kNone;
    labels_[id.index()] = labels;
    return Change::kLabels;
  }
  Remove(id);
  if (id.index() >= ids()) {
    names_.resize(id.index() + 1);
    labels_.resize(id.index() + 1);
    live_.resize(id.index() + 1);
    listed_.resize(id.index() + 1);
  }
  names_[id.index()] = name;
  labels_[id.index()] = labels;
  live_[id.index()] = 1;
  unlisted_.push_back(id);
  const bool is_new_name = by_name_.try_emplace(std::string(name), id).second;
  HOPWISE_CHECK(is_new_name);
  return Change::kIdentity;
}

bool NodeTable::Remove(NodeId id) {
  if (!IsLive(id)) return false;
  by_name_.erase(by_name_.find(NameOf(id)));
  names_[id.index()].clear();
  labels_[id.index()].clear();
  live_[id.index()] = 0;
  has_stale_ = has_stale_ || listed_[id.index()] != 0;
  listed_[id.index()] = 0;
  return true;
}

NodeId NodeTable::Find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? NodeId() : it->second;
}

std::span<const NodeId> NodeTable::Sorted() {
  if (has_stale_) std::erase_if(sorted_, [&](NodeId id) { return listed_[id.index()] == 0; });
  has_stale_ = false;
  const auto less = [&](NodeId a, NodeId b) { return NaturalCompare(NameOf(a), NameOf(b)) < 0; };
  std::sort(unlisted_.begin(), unlisted_.end());
  unlisted_.erase(std::unique(unlisted_.begin(), unlisted_.end()), unlisted_.end());
  std::erase_if(unlisted_, [&](NodeId id) { return !IsLive(id); });
  if (unlisted_.size() <= kEnteredSingly) {
    for (const NodeId id : unlisted_) {
      sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), id, less), id);
    }
  } else {
    std::sort(unlisted_.begin(), unlisted_.end(), less);
    std::vector<NodeId> merged;
    merged.reserve(sorted_.size() + unlisted_.size());
    std::merge(sorted_.begin(), sorted_.end(), unlisted_.begin(), unlisted_.end(),
               std::back_inserter(merged), less);
    sorted_ = std::move(merged);
  }
  for (const NodeId id : unlisted_) listed_[id.index()] = 1;
  unlisted_.clear();
  return sorted_;
}

}  // namespace hopwise::topology
