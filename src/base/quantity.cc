#include "base/quantity.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "base/int128.h"

namespace hopwise {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

// More integer digits than this exceed int64 whatever the suffix.
constexpr int64_t kIntegerDigits = 24;
// Every multiple of 1/2^60 (the unit of Ei) ends within 60 decimals, so what lies beyond them can
// decide only whether there is a remainder at all.
constexpr int64_t kFractionDigits = 60;

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The pieces of a quantity's text: value = digits * 10^exponent * 2^shift.
struct Parts {
  bool negative = false;
  std::string_view whole, fraction;  // the digits before and after the point
  int64_t exponent = 0;              // decimal, from the suffix
  int shift = 0;                     // binary, from the suffix
};

struct Suffix {
  std::string_view text;
  int exponent;
  int shift;
};
constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};

std::string_view TakeDigits(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && IsDigit(text[n])) ++n;
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

// "E" alone is exa and was tried before; here e or E needs digits after it.
bool ParseExponent(std::string_view text, int64_t& exponent) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return false;
  text.remove_prefix(1);
  if (text[0] == '+') {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, exponent);
  return error == std::errc() && stop == end;
}

bool ParseSuffix(std::string_view text, Parts& parts) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.text == text) {
      parts.exponent = suffix.exponent;
      parts.shift = suffix.shift;
      return true;
    }
  }
  return ParseExponent(text, parts.exponent);
}

std::optional<Parts> Split(std::string_view text) {
  Parts parts;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    parts.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  parts.whole = TakeDigits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    parts.fraction = TakeDigits(text);
  }
  if (parts.whole.empty() && parts.fraction.empty()) return std::nullopt;
  if (!ParseSuffix(text, parts)) return std::nullopt;
  while (!parts.whole.empty() && parts.whole[0] == '0') parts.whole.remove_prefix(1);
  while (!parts.fraction.empty() && parts.fraction.back() == '0') parts.fraction.remove_suffix(1);
  return parts;
}

// The digit string whole+fraction, addressed by decimal weight.
class Digits {
 public:
  explicit Digits(const Parts& parts) : whole_(parts.whole), fraction_(parts.fraction) {}
  [[nodiscard]] bool zero() const { return whole_.empty() && fraction_.empty(); }
  [[nodiscard]] int64_t size() const {
    return static_cast<int64_t>(whole_.size() + fraction_.size());
  }
  [[nodiscard]] int At(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return (at < whole_.size() ? whole_[at] : fraction_[at - whole_.size()]) - '0';
  }
  [[nodiscard]] bool AnyFrom(int64_t begin) const {
    for (int64_t i = begin < 0 ? 0 : begin; i < size(); ++i) {
      if (At(i) != 0) return true;
    }
    return false;
  }

 private:
  std::string_view whole_, fraction_;
};

struct Ceiling {
  int64_t value = 0;
  bool saturated = false;
};
constexpr Ceiling kTooBig = {kMax, true};

// The fraction digits times 2^shift: the whole part of the product and whether something is left.
std::pair<uint64_t, bool> ShiftFraction(const Digits& digits, int64_t point, int shift) {
  std::array<uint8_t, kFractionDigits> decimals{};
  for (int64_t i = 0; i < kFractionDigits; ++i) {
    const int64_t at = point + i;
    if (at >= 0 && at < digits.size()) {
      decimals.at(static_cast<size_t>(i)) = static_cast<uint8_t>(digits.At(at));
    }
  }
  bool rest = digits.AnyFrom(point + kFractionDigits);
  Uint128 carry = 0;
  for (size_t i = decimals.size(); i-- > 0;) {
    carry += static_cast<Uint128>(decimals.at(i)) << shift;
    rest = rest || carry % 10 != 0;
    carry /= 10;
  }
  return {static_cast<uint64_t>(carry), rest};
}

// ceil(digits * 10^(exponent - fraction length) * 2^shift), with no limit on how many digits.
Ceiling Scale(const Parts& parts, int64_t extra_exponent) {
  const Digits digits(parts);
  if (digits.zero()) return {};
  // `point` digits stand before the decimal point once the exponent is applied.
  const int64_t point = SaturatingAdd(static_cast<int64_t>(parts.whole.size()),
                                      SaturatingAdd(parts.exponent, extra_exponent));
  int64_t leading = 0;  // zeros of ".0001", which make the number no longer
  while (digits.At(leading) == 0) ++leading;
  if (point < -kFractionDigits) return {1, false};
  if (point - leading > kIntegerDigits) return kTooBig;
  Uint128 whole = 0;
  for (int64_t i = leading; i < point; ++i) {
    whole = whole * 10 + static_cast<unsigned>(i < digits.size() ? digits.At(i) : 0);
  }
  if (whole > static_cast<Uint128>(kMax)) return kTooBig;
  const auto [carried, rest] = ShiftFraction(digits, point, parts.shift);
  // Both terms are below 2^123, so the sum cannot wrap.
  const Uint128 sum = (whole << parts.shift) + carried + (rest ? 1U : 0U);
  if (sum > static_cast<Uint128>(kMax)) return kTooBig;
  return {static_cast<int64_t>(sum), false};
}

bool IsBytes(std::string_view resource) {
  return resource == "memory" || resource == "ephemeral-storage" || resource == "storage" ||
         resource.starts_with("hugepages-");
}

std::string FormatBytes(int64_t amount) {
  static constexpr std::array<std::string_view, 7> kUnits = {"",   "Ki", "Mi", "Gi",
                                                             "Ti", "Pi", "Ei"};
  size_t unit = 0;
  while (amount != 0 && amount % 1024 == 0) {
    amount /= 1024;
    ++unit;
  }
  return std::to_string(amount) + std::string(kUnits.at(unit));
}

}  // namespace

Result<Quantity> ParseQuantity(std::string_view text) {
  const std::optional<Parts> parts = Split(text);
  if (!parts) {
    return Invalid("\"" + std::string(text.substr(0, 64)) +
                   "\" is no quantity (digits, then n u m k M G T P E, Ki … Ei or e3)");
  }
  const Ceiling units = Scale(*parts, 0);
  const Ceiling milli = Scale(*parts, 3);
  Quantity quantity{units.value, milli.value, units.saturated, milli.saturated};
  if (parts->negative) {
    quantity.units = -quantity.units;
    quantity.milli = -quantity.milli;
  }
  return quantity;
}

std::string FormatQuantity(std::string_view resource, int64_t amount) {
  if (resource == "cpu") {
    return amount % 1000 == 0 ? std::to_string(amount / 1000) : std::to_string(amount) + "m";
  }
  return IsBytes(resource) ? FormatBytes(amount) : std::to_string(amount);
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? kMin : kMax;
}

int64_t SaturatingSub(int64_t a, int64_t b) {
  int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return a < 0 ? kMin : kMax;
}

int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? kMax : kMin;
}

}  // namespace hopwise
