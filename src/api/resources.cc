#include "api/resources.h"

#include <algorithm>

#include "base/quantity.h"

namespace hopwise::api {
namespace {

constexpr auto kName = [](const auto& entry) -> std::string_view { return entry.first; };

// Walks two sorted lists at once; `join` sees the amounts of one name, 0 where a side lacks it.
template <class Join>
ResourceList Merge(const ResourceList& a, const ResourceList& b, Join join) {
  ResourceList merged;
  merged.reserve(std::max(a.size(), b.size()));
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    if (right == b.end() || (left != a.end() && left->first < right->first)) {
      merged.emplace_back(left->first, join(left->second, 0));
      ++left;
    } else if (left == a.end() || right->first < left->first) {
      merged.emplace_back(right->first, join(0, right->second));
      ++right;
    } else {
      merged.emplace_back(left->first, join(left->second, right->second));
      ++left;
      ++right;
    }
  }
  return merged;
}

}  // namespace

int64_t AmountOf(const ResourceList& list, std::string_view name) {
  const auto found = std::ranges::lower_bound(list, name, {}, kName);
  return found != list.end() && found->first == name ? found->second : 0;
}

void SetAmount(ResourceList& list, std::string_view name, int64_t amount) {
  const auto found = std::ranges::lower_bound(list, name, {}, kName);
  if (found != list.end() && found->first == name) {
    found->second = amount;
  } else {
    list.emplace(found, name, amount);
  }
}

ResourceList Sum(const ResourceList& a, const ResourceList& b) {
  return Merge(a, b, [](int64_t x, int64_t y) { return SaturatingAdd(x, y); });
}

ResourceList Max(const ResourceList& a, const ResourceList& b) {
  return Merge(a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
}

Result<int64_t> ParseAmount(std::string_view resource, std::string_view text) {
  const Result<Quantity> quantity = ParseQuantity(text);
  if (!quantity) return tl::unexpected(quantity.error());
  const bool cpu = resource == kCpu;
  if (cpu ? quantity->milli_saturated : quantity->units_saturated) {
    return Fail(ErrorCode::kOverflow,
                "\"" + std::string(text.substr(0, 64)) + "\" is larger than any amount we count");
  }
  return cpu ? quantity->milli : quantity->units;
}

}  // namespace hopwise::api
