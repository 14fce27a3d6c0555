// Interned strings: equal text, equal StringId. Ids are dense. A text lives as long as the pool, or
// until each use that Intern counted was given back; then its id may come to mean another text.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/ids.h"

namespace hopwise {

class StringPool {
 public:
  StringPool() = default;
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;
  StringPool(StringPool&&) noexcept = default;
  StringPool& operator=(StringPool&&) noexcept = default;

  // One use more of the text.
  StringId Intern(std::string_view text);
  // One use less.
  void Release(StringId id);
  // kNone when the text was never interned.
  [[nodiscard]] StringId Find(std::string_view text) const;
  [[nodiscard]] const std::string& Text(StringId id) const { return texts_[id.index()]; }
  [[nodiscard]] uint64_t uses(StringId id) const { return uses_[id.index()]; }
  // Ids are below this.
  [[nodiscard]] size_t size() const { return texts_.size(); }
  // Texts in use.
  [[nodiscard]] size_t used() const { return ids_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque, so that the views in ids_ stay good
  std::vector<uint64_t> uses_;     // by id
  std::vector<StringId> free_;
  boost::unordered_flat_map<std::string_view, StringId> ids_;  // look-up only
};

}  // namespace hopwise
