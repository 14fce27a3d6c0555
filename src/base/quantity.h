// Kubernetes resource quantities, read exactly as apimachinery's resource.Quantity does: decimal SI
// suffixes n u m "" k M G T P E, binary Ki Mi Gi Ti Pi Ei, decimal exponents (1e3, 12E2), signs,
// fractions. Amounts are int64; what does not fit sticks at its end, and a flag says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hopwise {

// What ParseQuantity yields: the value in whole units and in thousandths, each rounded up (away
// from zero, as Quantity.Value() and MilliValue() do), saturated to int64 with the flag set.
struct Quantity {
  int64_t units = 0;
  int64_t milli = 0;
  bool units_saturated = false;
  bool milli_saturated = false;
};

// Errors: kInvalid with the text when it is no quantity.
Result<Quantity> ParseQuantity(std::string_view text);

// The shortest exact text of an amount that uses no decimal suffix: FormatQuantity("cpu", 1500) =
// "1500m", ("cpu", 2000) = "2", ("memory", 8Gi in bytes) = "8Gi"; as memory also storage,
// ephemeral-storage and hugepages-*, all others as plain numbers. `amount` is milli for cpu, units
// for everything else (see api/resources.h). ParseQuantity reads the same amount back.
std::string FormatQuantity(std::string_view resource, int64_t amount);

// a+b, a-b and a*b that stick at the ends of int64 instead of wrapping.
int64_t SaturatingAdd(int64_t a, int64_t b);
int64_t SaturatingSub(int64_t a, int64_t b);
int64_t SaturatingMul(int64_t a, int64_t b);

}  // namespace hopwise
