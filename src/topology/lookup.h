// A map for look-ups by name only: its order depends on hashes and must never show in a result.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <boost/unordered/unordered_flat_map.hpp>

namespace hopwise::topology {

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

template <class Value>
using NameMap = boost::unordered_flat_map<std::string, Value, NameHash, std::equal_to<>>;

}  // namespace hopwise::topology
