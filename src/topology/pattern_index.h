// Many patterns tried on one name at once. Two ways, since each is bad where the other is good:
//  - patterns bound to the front of the name (^rack-1[0-9]-) run as one automaton, RE2::Set, whose
//    states thin out with each letter read;
//  - the others could begin at any letter, which no state could tell apart cheaply. They wait until
//    the literal texts they demand (FilteredRE2's atoms) were seen in the name, and only then run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <re2/filtered_re2.h>
#include <re2/re2.h>
#include <re2/set.h>

#include "topology/patterns.h"

namespace hopwise::topology {

// For all RE2 objects: no logging, bounded memory.
RE2::Options PatternOptions(int64_t memory_bytes);

// Whether every match of the pattern begins at the front of the text. Errs on the side of false.
bool IsBoundToFront(std::string_view pattern);

// Literal texts, and which of them occur in a name.
class AtomSet {
 public:
  AtomSet() = default;
  explicit AtomSet(const std::vector<std::string>& atoms);
  // Numbers (places in `atoms`) of those that occur in `name` in any case, sorted.
  void FindIn(std::string_view name, std::vector<int>& found) const;

 private:
  std::vector<std::pair<std::string, int>> sorted_;
};

class PatternIndex {
 public:
  // All entries are sound. They outlive the index; their patterns do not change.
  explicit PatternIndex(const std::vector<PatternTable::Entry*>& entries);

  // Appends the slots of the entries that occur in `name`, unsorted and perhaps repeated.
  void Match(std::string_view name, std::vector<uint32_t>& slots) const;

  [[nodiscard]] size_t size() const { return front_entries_.size() + other_entries_.size(); }

 private:
  using Entry = PatternTable::Entry;

  void AddFront(const std::vector<Entry*>& entries);
  void AddOthers();
  void MatchFront(std::string_view name, std::vector<uint32_t>& slots) const;
  void MatchOthers(std::string_view name, std::vector<uint32_t>& slots) const;

  std::unique_ptr<RE2::Set> front_;
  std::vector<Entry*> front_entries_;  // by number in front_
  re2::FilteredRE2 others_;
  std::vector<Entry*> other_entries_;  // by number in others_
  AtomSet atoms_;
};

}  // namespace hopwise::topology
