#include "topology/pattern_index.h"

#include <algorithm>
#include <cstdint>

#include <re2/stringpiece.h>

#include "base/check.h"

namespace hopwise::topology {
namespace {

// Bounds the common automaton: thousands of patterns, and its states are dropped when it is full.
constexpr int64_t kSetMemoryBytes = int64_t{256} << 20;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

char LowerCase(char c) { return (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c; }

// The place behind the character class that begins at `at`, or npos when it is not understood.
size_t SkipClass(std::string_view pattern, size_t at) {
  ++at;
  if (at < pattern.size() && pattern[at] == '^') ++at;
  if (at < pattern.size() && pattern[at] == ']') ++at;  // in front it stands for itself
  for (; at < pattern.size(); ++at) {
    if (pattern[at] == '[') return std::string_view::npos;  // perhaps [:alpha:]
    if (pattern[at] == ']') return at + 1;
    if (pattern[at] == '\\') ++at;
  }
  return std::string_view::npos;
}

}  // namespace

bool PatternTable::Entry::Occurs(std::string_view name) const {
  return RE2::PartialMatch(Piece(name), *regex);
}

RE2::Options PatternOptions(int64_t memory_bytes) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(memory_bytes);
  options.set_never_capture(true);
  return options;
}

bool IsBoundToFront(std::string_view pattern) {
  if (!pattern.starts_with('^')) return false;
  // "^*" is satisfied without the front.
  if (pattern.size() > 1 && std::string_view("*+?{").find(pattern[1]) != std::string_view::npos) {
    return false;
  }
  int depth = 0;
  for (size_t at = 1; at < pattern.size();) {
    switch (pattern[at]) {
      case '\\':
        if (pattern.substr(at + 1).starts_with('Q')) return false;  // quotes up to \E
        at += 2;
        continue;
      case '[':
        at = SkipClass(pattern, at);
        if (at == std::string_view::npos) return false;
        continue;
      case '(':
        ++depth;
        break;
      case ')':
        --depth;
        break;
      case '|':
        if (depth <= 0) return false;
        break;
      default:
        break;
    }
    ++at;
  }
  return depth == 0;
}

// --- AtomSet -------------------------------------------------------------------------------------

AtomSet::AtomSet(const std::vector<std::string>& atoms) {
  for (size_t i = 0; i < atoms.size(); ++i) sorted_.emplace_back(atoms[i], static_cast<int>(i));
  std::sort(sorted_.begin(), sorted_.end());
}

void AtomSet::FindIn(std::string_view name, std::vector<int>& found) const {
  found.clear();
  for (size_t start = 0; start < name.size(); ++start) {
    // [low, high) are the atoms that begin with the letters read since `start`. One that is no
    // longer than these comes first.
    auto low = sorted_.begin();
    auto high = sorted_.end();
    for (size_t read = 0; start + read < name.size(); ++read) {
      const char c = LowerCase(name[start + read]);
      const auto letter = [read](const auto& atom) {
        return read < atom.first.size() ? int{static_cast<unsigned char>(atom.first[read])} : -1;
      };
      const int wanted = static_cast<unsigned char>(c);
      low = std::partition_point(low, high, [&](const auto& a) { return letter(a) < wanted; });
      high = std::partition_point(low, high, [&](const auto& a) { return letter(a) <= wanted; });
      if (low == high) break;
      if (low->first.size() == read + 1) found.push_back(low->second);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

// --- PatternIndex --------------------------------------------------------------------------------

PatternIndex::PatternIndex(const std::vector<Entry*>& entries) {
  std::vector<Entry*> front;
  for (Entry* entry : entries) {
    (IsBoundToFront(entry->regex->pattern()) ? front : other_entries_).push_back(entry);
  }
  AddFront(front);
  AddOthers();
}

void PatternIndex::AddFront(const std::vector<Entry*>& entries) {
  front_ = std::make_unique<RE2::Set>(PatternOptions(kSetMemoryBytes), RE2::ANCHOR_START);
  for (Entry* entry : entries) {
    const bool is_added = front_->Add(entry->regex->pattern(), nullptr) >= 0;
    (is_added ? front_entries_ : other_entries_).push_back(entry);
  }
  if (front_->Compile()) return;
  // Too large for one automaton.
  other_entries_.insert(other_entries_.end(), front_entries_.begin(), front_entries_.end());
  front_entries_.clear();
}

void PatternIndex::AddOthers() {
  if (other_entries_.empty()) return;
  for (const Entry* entry : other_entries_) {
    int number = 0;
    const RE2::Options options = PatternOptions(entry->regex->options().max_mem());
    // With the options it was compiled with before, it compiles.
    HOPWISE_CHECK(others_.Add(entry->regex->pattern(), options, &number) == RE2::NoError);
  }
  std::vector<std::string> atoms;
  others_.Compile(&atoms);
  atoms_ = AtomSet(atoms);
}

void PatternIndex::Match(std::string_view name, std::vector<uint32_t>& slots) const {
  if (!front_entries_.empty()) MatchFront(name, slots);
  if (!other_entries_.empty()) MatchOthers(name, slots);
}

void PatternIndex::MatchFront(std::string_view name, std::vector<uint32_t>& slots) const {
  const auto append = [&slots](const Entry* entry) {
    slots.insert(slots.end(), entry->slots.begin(), entry->slots.end());
  };
  std::vector<int> hits;
  RE2::Set::ErrorInfo error = {RE2::Set::kNoError};
  if (front_->Match(Piece(name), &hits, &error)) {
    for (const int hit : hits) append(front_entries_[static_cast<size_t>(hit)]);
  } else if (error.kind != RE2::Set::kNoError) {
    for (const Entry* entry : front_entries_) {
      if (entry->Occurs(name)) append(entry);
    }
  }
}

void PatternIndex::MatchOthers(std::string_view name, std::vector<uint32_t>& slots) const {
  std::vector<int> atoms;
  std::vector<int> candidates;
  atoms_.FindIn(name, atoms);
  others_.AllPotentials(atoms, &candidates);
  for (const int candidate : candidates) {
    const Entry* entry = other_entries_[static_cast<size_t>(candidate)];
    if (!entry->slots.empty() && entry->Occurs(name)) {
      slots.insert(slots.end(), entry->slots.begin(), entry->slots.end());
    }
  }
}

}  // namespace hopwise::topology
