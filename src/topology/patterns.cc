#include "topology/patterns.h"

#include <algorithm>

#include "topology/pattern_index.h"

namespace hopwise::topology {
namespace {

// Bounds one compiled pattern with its cached automaton. Enough for thousands of character classes.
constexpr int64_t kPatternMemoryBytes = int64_t{1} << 20;

// Trying one pattern on one name costs about 0.1 us. Beyond so many trials a new index is cheaper,
// and a single name should not meet more than so many loose patterns.
constexpr size_t kLooseTrials = size_t{1} << 20;
constexpr size_t kLoosePatterns = 1024;

}  // namespace

PatternTable::PatternTable() = default;
PatternTable::~PatternTable() = default;
PatternTable::PatternTable(PatternTable&&) noexcept = default;
PatternTable& PatternTable::operator=(PatternTable&&) noexcept = default;

std::string PatternTable::Add(const std::string& pattern, uint32_t slot) {
  const auto [it, is_new] = entries_.try_emplace(pattern);
  Entry& entry = it->second;
  if (is_new) {
    entry.regex = std::make_unique<RE2>(pattern, PatternOptions(kPatternMemoryBytes));
    if (entry.regex->ok()) loose_.push_back(&entry);
  } else if (entry.slots.empty()) {
    --unused_;
  }
  entry.slots.push_back(slot);
  return entry.regex->ok() ? std::string() : entry.regex->error();
}

void PatternTable::Remove(const std::string& pattern, uint32_t slot) {
  const auto it = entries_.find(pattern);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (std::erase(entry.slots, slot) == 0 || !entry.slots.empty()) return;
  if (entry.is_indexed) {
    ++unused_;
    return;
  }
  std::erase(loose_, &entry);
  entries_.erase(it);
}

bool PatternTable::Matches(const std::string& pattern, std::string_view name) const {
  const auto it = entries_.find(pattern);
  return it != entries_.end() && it->second.regex->ok() && it->second.Occurs(name);
}

void PatternTable::Prepare(size_t names) {
  const bool is_slow = loose_.size() > kLoosePatterns || loose_.size() * names > kLooseTrials;
  const bool is_wasteful = unused_ > kLoosePatterns && unused_ > entries_.size() / 2;
  if (!is_slow && !is_wasteful) return;
  index_.reset();
  std::erase_if(entries_, [](const auto& entry) { return entry.second.slots.empty(); });
  unused_ = 0;
  loose_.clear();
  std::vector<Entry*> sound;
  for (auto& [pattern, entry] : entries_) {
    entry.is_indexed = entry.regex->ok();
    if (entry.is_indexed) sound.push_back(&entry);
  }
  index_ = std::make_unique<PatternIndex>(sound);
}

void PatternTable::Match(std::string_view name, std::vector<uint32_t>& slots) const {
  if (index_ != nullptr) index_->Match(name, slots);
  for (const Entry* entry : loose_) {
    if (entry->Occurs(name)) slots.insert(slots.end(), entry->slots.begin(), entry->slots.end());
  }
}

}  // namespace hopwise::topology
