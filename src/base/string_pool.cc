#include "base/string_pool.h"

#include "base/check.h"

namespace hopwise {

StringId StringPool::Intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) {
    ++uses_[found->second.index()];
    return found->second;
  }
  StringId id(texts_.size());
  if (free_.empty()) {
    HOPWISE_CHECK(id.valid());
    texts_.emplace_back(text);
    uses_.push_back(1);
  } else {
    id = free_.back();
    free_.pop_back();
    texts_[id.index()] = text;
    uses_[id.index()] = 1;
  }
  // The key views the pool's own copy: the caller's text may go away.
  ids_.emplace(std::string_view(texts_[id.index()]), id);
  return id;
}

void StringPool::Release(StringId id) {
  HOPWISE_CHECK(uses_[id.index()] > 0);
  if (--uses_[id.index()] > 0) return;
  ids_.erase(texts_[id.index()]);
  texts_[id.index()] = std::string();
  free_.push_back(id);
}

StringId StringPool::Find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? StringId() : found->second;
}

}  // namespace hopwise
