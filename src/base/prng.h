// A seeded generator without floating point in its interface, so that runs replay on every machine.
// SplitMix64 (Steele, Lea, Flood 2014); not for secrets.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace hopwise {

class Prng {
 public:
  explicit Prng(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound) {
    HOPWISE_CHECK(bound > 0);
    return Next() % bound;
  }
  // Uniform in [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }
  // True in `numerator` of `denominator` calls.
  bool Chance(uint64_t numerator, uint64_t denominator) { return Below(denominator) < numerator; }

 private:
  uint64_t state_;
};

}  // namespace hopwise
