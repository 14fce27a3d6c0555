// The order in which people number things: digits inside names compare as numbers, so leaf-2 comes
// before leaf-10.
#pragma once

#include <string_view>

namespace hopwise::topology {

// Negative, zero or positive as `a` comes before, is, or comes after `b`. A total order: names that
// differ only in leading zeros are told apart by plain text, so zero means equal text.
[[nodiscard]] int NaturalCompare(std::string_view a, std::string_view b);

struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const { return NaturalCompare(a, b) < 0; }
};

}  // namespace hopwise::topology
