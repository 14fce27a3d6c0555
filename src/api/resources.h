// Amounts of resources by name. Unit of an amount: thousandths of a core for "cpu", else whole
// units (bytes, counts).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hopwise::api {

// Sorted by name, names unique. Amounts may be negative only if the input was; users decide what
// that means.
using ResourceList = std::vector<std::pair<std::string, int64_t>>;

inline constexpr std::string_view kCpu = "cpu";
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kPods = "pods";

// The amount, or 0.
int64_t AmountOf(const ResourceList& list, std::string_view name);
// Sets or replaces.
void SetAmount(ResourceList& list, std::string_view name, int64_t amount);
// Element-wise, saturating; names of either side.
ResourceList Sum(const ResourceList& a, const ResourceList& b);
ResourceList Max(const ResourceList& a, const ResourceList& b);

// Text of one amount in the unit of its resource -> int64. kOverflow carries a message; the
// saturated value is lost.
Result<int64_t> ParseAmount(std::string_view resource, std::string_view text);

}  // namespace hopwise::api
