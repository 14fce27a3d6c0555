#include "topology/match.h"

#include <algorithm>

namespace hopwise::topology {
namespace {

// No label key holds a '=', so this is unambiguous.
void BucketKey(std::string_view key, std::string_view value, std::string& text) {
  text.assign(key);
  text += '=';
  text += value;
}

}  // namespace

std::vector<Matcher::PatternError> Matcher::Add(uint32_t slot, const MemberSpec& spec) {
  std::vector<PatternError> errors;
  for (const std::string& name : spec.node_names) exact_[name].push_back(slot);
  for (const std::string& pattern : spec.patterns) {
    std::string message = patterns_.Add(pattern, slot);
    if (!message.empty()) errors.push_back({pattern, std::move(message)});
  }
  for (const api::LabelSelector& selector : spec.label_selectors) AddLabels(slot, selector);
  return errors;
}

void Matcher::Remove(uint32_t slot, const MemberSpec& spec) {
  for (const std::string& name : spec.node_names) {
    const auto it = exact_.find(name);
    if (it == exact_.end()) continue;
    std::erase(it->second, slot);
    if (it->second.empty()) exact_.erase(it);
  }
  for (const std::string& pattern : spec.patterns) patterns_.Remove(pattern, slot);
  if (const auto it = label_entries_of_.find(slot); it != label_entries_of_.end()) {
    for (const uint32_t entry : it->second) RemoveLabels(entry);
    label_entries_of_.erase(it);
  }
}

void Matcher::Match(std::string_view name, const api::StringMap& labels,
                    std::vector<uint32_t>& slots) const {
  slots.clear();
  if (const auto it = exact_.find(name); it != exact_.end()) slots = it->second;
  patterns_.Match(name, slots);
  MatchLabels(wide_, labels, slots);
  if (!buckets_.empty()) {
    std::string text;
    for (const auto& [key, value] : labels) {
      BucketKey(key, value, text);
      const auto it = buckets_.find(text);
      if (it != buckets_.end()) MatchLabels(it->second, labels, slots);
    }
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
}

bool Matcher::Scans(const MemberSpec& spec, std::string_view name,
                    const api::StringMap& labels) const {
  return std::any_of(spec.patterns.begin(), spec.patterns.end(),
                     [&](const auto& pattern) { return patterns_.Matches(pattern, name); }) ||
         std::any_of(spec.label_selectors.begin(), spec.label_selectors.end(),
                     [&](const auto& selector) { return api::Matches(selector, labels); });
}

const api::Requirement* Matcher::Pin(const api::LabelSelector& selector) const {
  // Of {block: b1, rack: r17} the rack is the better handle: its buckets stay small.
  const api::Requirement* best = nullptr;
  size_t best_size = 0;
  std::string text;
  for (const api::Requirement& requirement : selector.requirements) {
    if (requirement.op != api::Operator::kIn) continue;
    size_t size = 0;
    for (const std::string& value : requirement.values) {
      BucketKey(requirement.key, value, text);
      const auto it = buckets_.find(text);
      if (it != buckets_.end()) size = std::max(size, it->second.size());
    }
    if (best == nullptr || size < best_size) {
      best = &requirement;
      best_size = size;
    }
  }
  return best;
}

void Matcher::AddLabels(uint32_t slot, const api::LabelSelector& selector) {
  if (free_label_entries_.empty()) {
    free_label_entries_.push_back(static_cast<uint32_t>(label_entries_.size()));
    label_entries_.emplace_back();
  }
  const uint32_t id = free_label_entries_.back();
  free_label_entries_.pop_back();
  LabelEntry& entry = label_entries_[id];
  entry = LabelEntry{slot, selector, {}, false};
  label_entries_of_[slot].push_back(id);

  const api::Requirement* pin = Pin(selector);
  if (pin == nullptr) {
    entry.wide = true;
    wide_.push_back(id);
    return;
  }
  for (const std::string& value : pin->values) {
    BucketKey(pin->key, value, entry.buckets.emplace_back());
    buckets_[entry.buckets.back()].push_back(id);
  }
}

void Matcher::RemoveLabels(uint32_t id) {
  LabelEntry& entry = label_entries_[id];
  if (entry.wide) std::erase(wide_, id);
  for (const std::string& bucket : entry.buckets) {
    const auto it = buckets_.find(bucket);
    if (it == buckets_.end()) continue;
    std::erase(it->second, id);
    if (it->second.empty()) buckets_.erase(it);
  }
  entry = {};
  free_label_entries_.push_back(id);
}

void Matcher::MatchLabels(const std::vector<uint32_t>& entries, const api::StringMap& labels,
                          std::vector<uint32_t>& slots) const {
  for (const uint32_t id : entries) {
    const LabelEntry& entry = label_entries_[id];
    if (api::Matches(entry.selector, labels)) slots.push_back(entry.slot);
  }
}

}  // namespace hopwise::topology
