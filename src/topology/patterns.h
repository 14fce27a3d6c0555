// The regular expressions of all HyperNodes, each compiled once, and the question which of them
// match a name: linear in the name however the patterns are written, and not a loop over all
// patterns where there are thousands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <re2/re2.h>

namespace hopwise::topology {

class PatternIndex;

class PatternTable {
 public:
  // One pattern with those who use it.
  struct Entry {
    std::unique_ptr<RE2> regex;
    std::vector<uint32_t> slots;
    bool is_indexed = false;

    [[nodiscard]] bool Occurs(std::string_view name) const;
  };

  PatternTable();
  ~PatternTable();
  PatternTable(PatternTable&&) noexcept;
  PatternTable& operator=(PatternTable&&) noexcept;

  // Registers that `slot` uses `pattern`. Returns what is wrong with the pattern, "" if nothing; a
  // wrong one matches no name.
  std::string Add(const std::string& pattern, uint32_t slot);
  void Remove(const std::string& pattern, uint32_t slot);

  // Whether a registered pattern occurs anywhere in `name`.
  [[nodiscard]] bool Matches(const std::string& pattern, std::string_view name) const;

  // Announces that about `names` names will be tried, so that the index is renewed when it pays.
  void Prepare(size_t names);
  // Appends the slots of all patterns that occur in `name`, unsorted and perhaps repeated.
  void Match(std::string_view name, std::vector<uint32_t>& slots) const;

  // How many patterns are kept, used or not; for tests.
  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  std::map<std::string, Entry, std::less<>> entries_;  // its elements do not move
  std::vector<Entry*> loose_;                          // sound ones that index_ does not know
  std::unique_ptr<PatternIndex> index_;
  size_t unused_ = 0;  // entries without a slot, kept because index_ knows them
};

}  // namespace hopwise::topology
