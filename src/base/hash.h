// A hash for names that must be the same in every process and version.
#pragma once

#include <cstdint>
#include <string_view>

namespace hopwise {

// FNV-1a, and SplitMix64's last step to spread what differs little.
constexpr uint64_t StableHash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebULL;
  return hash ^ (hash >> 31U);
}

}  // namespace hopwise
