#include "base/string_pool.h"

#include "base/check.h"

namespace hopwise {

StringId StringPool::Intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const StringId id(texts_.size());
  HOPWISE_CHECK(id.valid());
  texts_.emplace_back(text);
  // The key views the pool's own copy: the caller's text may go away.
  ids_.emplace(std::string_view(texts_.back()), id);
  return id;
}

StringId StringPool::Find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? StringId() : found->second;
}

}  // namespace hopwise
