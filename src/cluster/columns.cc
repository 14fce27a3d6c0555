#include "cluster/columns.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"

namespace hopwise::cluster {

namespace {

size_t ZonesOf(size_t slots) { return (slots + Columns::kZone - 1) / Columns::kZone; }

}  // namespace

void Journal::Append(NodeId node) {
  entries_.push_back(node);
  // Dropped in halves, so that appending stays constant on average and a reader is never cut off by
  // one entry.
  if (entries_.size() >= 2 * keep_) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(keep_));
    base_ += keep_;
  }
}

Journal::Tail Journal::Since(uint64_t from) const {
  if (from < base_) {
    return {{}, false};
  }
  HOPWISE_CHECK(from <= end());
  return {std::span<const NodeId>(entries_).subspan(static_cast<size_t>(from - base_)), true};
}

Columns::Columns() { Resource(api::kPods); }

ResourceId Columns::Resource(std::string_view name) {
  const StringId id = names_.Intern(name);
  if (id.index() == allocatable_.size()) {
    allocatable_.emplace_back(slots_, 0);
    used_.emplace_back(slots_, 0);
    free_.emplace_back(slots_, 0);
    extents_.emplace_back(ZonesOf(slots_));
    max_allocatable_.push_back(0);
    total_allocatable_.push_back(0);
  }
  return ResourceId(id.value);
}

ResourceId Columns::FindResource(std::string_view name) const {
  return ResourceId(names_.Find(name).value);
}

void Columns::Resize(size_t slots) {
  const size_t begun = slots_ / kZone;  // the zone that further slots fill up
  slots_ = slots;
  for (size_t r = 0; r < allocatable_.size(); ++r) {
    allocatable_[r].resize(slots, 0);
    used_[r].resize(slots, 0);
    free_[r].resize(slots, 0);
    extents_[r].resize(ZonesOf(slots));
    if (begun < extents_[r].size()) {
      Tighten(ResourceId(r), begun);
    }
  }
  room_.set_keep(std::max<size_t>(1024, slots / 2));
  traits_.set_keep(std::max<size_t>(1024, slots / 2));
}

void Columns::SetAllocatable(NodeId node, const api::ResourceList& amounts) {
  for (size_t r = 0; r < allocatable_.size(); ++r) {
    total_allocatable_[r] -= std::exchange(allocatable_[r][node.index()], 0);
  }
  for (const auto& [name, amount] : amounts) {
    const ResourceId r = Resource(name);
    int64_t& mine = allocatable_[r.index()][node.index()];
    total_allocatable_[r.index()] -= mine;
    mine = std::max<int64_t>(amount, 0);
    total_allocatable_[r.index()] += mine;
    max_allocatable_[r.index()] = std::max(max_allocatable_[r.index()], amount);
  }
  for (size_t r = 0; r < allocatable_.size(); ++r) {
    SetFree(ResourceId(r), node);
  }
  room_.Append(node);
}

void Columns::SetFree(ResourceId r, NodeId node) {
  int64_t& free = free_[r.index()][node.index()];
  const int64_t before = std::exchange(
      free, SaturatingSub(allocatable_[r.index()][node.index()], used_[r.index()][node.index()]));
  Extent& extent = extents_[r.index()][node.index() / kZone];
  const bool inward =
      (before == extent.least && free > before) || (before == extent.most && free < before);
  extent = {std::min(extent.least, free), std::max(extent.most, free), extent.exact && !inward};
}

void Columns::Tighten(ResourceId r, size_t zone) const {
  const std::vector<int64_t>& free = free_[r.index()];
  const size_t lo = zone * kZone;
  const size_t hi = std::min(slots_, lo + kZone);
  int64_t least = lo < hi ? free[lo] : 0;
  int64_t most = least;
  for (size_t i = lo; i < hi; ++i) {
    least = std::min(least, free[i]);
    most = std::max(most, free[i]);
  }
  extents_[r.index()][zone] = {least, most, true};
}

int64_t Columns::total_allocatable(ResourceId r) const {
  return static_cast<int64_t>(std::min<Int128>(total_allocatable_[r.index()], INT64_MAX));
}

void Columns::Use(NodeId node, const Request& request) {
  for (const auto& [r, amount] : request) {
    int64_t& used = used_[r.index()][node.index()];
    used = SaturatingAdd(used, amount);
    SetFree(r, node);
  }
  room_.Append(node);
}

void Columns::Release(NodeId node, const Request& request) {
  for (const auto& [r, amount] : request) {
    int64_t& used = used_[r.index()][node.index()];
    used = SaturatingSub(used, amount);
    SetFree(r, node);
  }
  room_.Append(node);
}

void Columns::TraitsChanged(NodeId node) {
  traits_.Append(node);
  room_.Append(node);
}

int64_t Columns::Fit(NodeId node, const Request& request) const {
  int64_t fit = INT64_MAX;
  for (const auto& [r, amount] : request) {
    const int64_t free = free_[r.index()][node.index()];
    fit = std::min(fit, free < amount ? 0 : free / amount);
  }
  return fit;
}

int64_t Columns::FitEmpty(NodeId node, const Request& request) const {
  int64_t fit = INT64_MAX;
  for (const auto& [r, amount] : request) {
    fit = std::min(fit, allocatable_[r.index()][node.index()] / amount);
  }
  return fit;
}

Request Columns::MakeRequest(const api::ResourceList& list) {
  Request request;
  request.emplace_back(pods(), 1);
  for (const auto& [name, amount] : list) {
    if (amount > 0 && name != api::kPods) {
      request.emplace_back(Resource(name), amount);
    }
  }
  std::ranges::sort(request);
  return request;
}

size_t Columns::MemoryBytes() const {
  size_t bytes = 0;
  for (size_t r = 0; r < allocatable_.size(); ++r) {
    bytes +=
        (allocatable_[r].capacity() + used_[r].capacity() + free_[r].capacity()) * sizeof(int64_t);
    bytes += extents_[r].capacity() * sizeof(Extent);
  }
  return bytes;
}

}  // namespace hopwise::cluster
