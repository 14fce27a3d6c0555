// Interned strings: equal text, equal StringId. Ids are dense and never freed; the text lives as
// long as the pool.
#pragma once

#include <deque>
#include <string>
#include <string_view>

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

  StringId Intern(std::string_view text);
  // kNone when the text was never interned.
  [[nodiscard]] StringId Find(std::string_view text) const;
  [[nodiscard]] const std::string& Text(StringId id) const { return texts_[id.index()]; }
  [[nodiscard]] size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque, so that the views in ids_ stay good
  boost::unordered_flat_map<std::string_view, StringId> ids_;  // look-up only
};

}  // namespace hopwise
