#include "base/time.h"

#include <array>
#include <cstdio>
#include <limits>
#include <optional>

#include "base/int128.h"

namespace hopwise {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kLimit = 1ULL << 63U;  // one more than the largest int64

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

struct Unit {
  std::string_view name;
  uint64_t ns;
};
// Two ways to write the micro sign: U+00B5 and the Greek mu U+03BC.
constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                         {"us", 1'000},
                                         {"\u00b5s", 1'000},
                                         {"\u03bcs", 1'000},
                                         {"ms", 1'000'000},
                                         {"s", 1'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"h", 3'600'000'000'000}}};

std::optional<uint64_t> FindUnit(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return unit.ns;
  }
  return std::nullopt;
}

// False when the number exceeds 2^63; leaves the first non-digit at the front of `text`.
bool TakeWhole(std::string_view& text, uint64_t& value) {
  value = 0;
  for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1)) {
    if (value > kLimit / 10) return false;
    value = value * 10 + static_cast<uint64_t>(text[0] - '0');
    if (value > kLimit) return false;
  }
  return true;
}

// A fraction in units of 1/scale; digits that no longer fit are dropped, as Go drops them.
struct Fraction {
  uint64_t value = 0;
  double scale = 1;
};
Fraction TakeFraction(std::string_view& text) {
  Fraction fraction;
  bool full = false;
  for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1)) {
    if (full || fraction.value > (kLimit - 1) / 10) {
      full = true;
      continue;
    }
    const uint64_t next = fraction.value * 10 + static_cast<uint64_t>(text[0] - '0');
    full = next > kLimit;
    if (full) continue;
    fraction.value = next;
    fraction.scale *= 10;
  }
  return fraction;
}

enum class Step : uint8_t { kOk, kInvalid, kOverflow };

// One "12.5ms" from the front of `text`, added to `total`.
Step TakeTerm(std::string_view& text, uint64_t& total) {
  if (text[0] != '.' && !IsDigit(text[0])) return Step::kInvalid;
  uint64_t value = 0;
  const size_t before = text.size();
  if (!TakeWhole(text, value)) return Step::kOverflow;
  bool any = text.size() != before;
  Fraction fraction;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const size_t dot = text.size();
    fraction = TakeFraction(text);
    any = any || text.size() != dot;
  }
  if (!any) return Step::kInvalid;
  size_t n = 0;
  while (n < text.size() && text[n] != '.' && !IsDigit(text[n])) ++n;
  const std::optional<uint64_t> unit = FindUnit(text.substr(0, n));
  if (!unit) return Step::kInvalid;
  text.remove_prefix(n);
  if (value > kLimit / *unit) return Step::kOverflow;
  value *= *unit;
  // The same double arithmetic as Go's, so that both round a fraction alike.
  value += static_cast<uint64_t>(static_cast<double>(fraction.value) *
                                 (static_cast<double>(*unit) / fraction.scale));
  if (value > kLimit || value > kLimit - total) return Step::kOverflow;
  total += value;
  return Step::kOk;
}

std::string WithFraction(uint64_t value, uint64_t unit, std::string_view name) {
  std::string text = std::to_string(value / unit);
  if (uint64_t rest = value % unit; rest != 0) {
    text += '.';
    for (unit /= 10; rest != 0; unit /= 10) {
      text += static_cast<char>('0' + static_cast<char>(rest / unit));
      rest %= unit;
    }
  }
  return text.append(name);
}

// Days since 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March, so that
// the leap day is a year's last.
int64_t DaysFromDate(int64_t year, int64_t month, int64_t day) {
  if (month <= 2) --year;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t month_from_march = (month + 9) % 12;
  const int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
  return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719'468;
}

struct Date {
  int64_t year, month, day;
};
Date DateFromDays(int64_t days) {
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t day_of_era = days - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int64_t DaysInMonth(int64_t year, int64_t month) {
  static constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays.at(static_cast<size_t>(month - 1)) + (month == 2 && IsLeap(year) ? 1 : 0);
}

// Reads fixed-width parts from the front of a text; ok() turns false at the first that is amiss.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  int64_t Number(size_t width) {
    int64_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      if (text_.empty() || !IsDigit(text_[0])) {
        ok_ = false;
        return 0;
      }
      value = value * 10 + (text_[0] - '0');
      text_.remove_prefix(1);
    }
    return value;
  }
  bool Skip(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void Expect(char c) { ok_ = Skip(c) && ok_; }
  // Nanoseconds of ".123…"; digits beyond the ninth are dropped.
  int64_t Fraction() {
    if (!Skip('.')) return 0;
    int64_t value = 0;
    int64_t weight = kNsPerSecond / 10;
    if (text_.empty() || !IsDigit(text_[0])) ok_ = false;
    for (; !text_.empty() && IsDigit(text_[0]); text_.remove_prefix(1), weight /= 10) {
      value += (text_[0] - '0') * weight;
    }
    return value;
  }
  // Seconds east of UTC.
  int64_t Offset() {
    if (Skip('Z')) return 0;
    const bool west = Skip('-');
    if (!west) Expect('+');
    const int64_t hours = Number(2);
    Expect(':');
    const int64_t minutes = Number(2);
    ok_ = ok_ && hours <= 23 && minutes <= 59;
    return (west ? -60 : 60) * (hours * 60 + minutes);
  }
  [[nodiscard]] bool done() const { return ok_ && text_.empty(); }

 private:
  std::string_view text_;
  bool ok_ = true;
};

tl::unexpected<Error> NoTime(std::string_view text) {
  return Invalid("\"" + std::string(text.substr(0, 64)) +
                 "\" is no RFC 3339 time like 2026-01-02T03:04:05Z");
}

std::string FormatUtc(Time t, bool micro) {
  if (!t.set()) return {};
  int64_t seconds = t.ns / kNsPerSecond;
  int64_t ns = t.ns % kNsPerSecond;
  if (ns < 0) {
    ns += kNsPerSecond;
    --seconds;
  }
  int64_t days = seconds / 86'400;
  int64_t of_day = seconds % 86'400;
  if (of_day < 0) {
    of_day += 86'400;
    --days;
  }
  const Date date = DateFromDays(days);
  std::array<char, 64> text{};
  const int n = std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d",
                              static_cast<int>(date.year), static_cast<int>(date.month),
                              static_cast<int>(date.day), static_cast<int>(of_day / 3600),
                              static_cast<int>(of_day / 60 % 60), static_cast<int>(of_day % 60));
  std::string out(text.data(), static_cast<size_t>(n));
  if (micro) {
    const int m = std::snprintf(text.data(), text.size(), ".%06d", static_cast<int>(ns / 1000));
    out.append(text.data(), static_cast<size_t>(m));
  }
  return out + "Z";
}

}  // namespace

Result<Duration> ParseGoDuration(std::string_view text) {
  const auto invalid = [original = text](ErrorCode code, const char* what) {
    return Fail(code, "\"" + std::string(original.substr(0, 64)) + "\" is " + what);
  };
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text == "0") return Duration{};
  if (text.empty()) return invalid(ErrorCode::kInvalid, "no duration like 1h30m, 1.5s or 300ms");
  uint64_t total = 0;
  while (!text.empty()) {
    switch (TakeTerm(text, total)) {
      case Step::kOk:
        break;
      case Step::kInvalid:
        return invalid(ErrorCode::kInvalid, "no duration like 1h30m, 1.5s or 300ms");
      case Step::kOverflow:
        return invalid(ErrorCode::kOverflow, "too long a duration");
    }
  }
  if (negative) return Duration{static_cast<int64_t>(0 - total)};
  if (total == kLimit) return invalid(ErrorCode::kOverflow, "too long a duration");
  return Duration{static_cast<int64_t>(total)};
}

std::string FormatGoDuration(Duration d) {
  if (d.ns == 0) return "0s";
  const bool negative = d.ns < 0;
  const uint64_t ns = negative ? 0 - static_cast<uint64_t>(d.ns) : static_cast<uint64_t>(d.ns);
  std::string text = negative ? "-" : "";
  if (ns < 1'000) return text + std::to_string(ns) + "ns";
  if (ns < 1'000'000) return text + WithFraction(ns, 1'000, "\u00b5s");
  if (ns < kNsPerSecond) return text + WithFraction(ns, 1'000'000, "ms");
  const uint64_t minutes = ns / 60'000'000'000;
  if (minutes >= 60) text += std::to_string(minutes / 60) + "h";
  if (minutes > 0) text += std::to_string(minutes % 60) + "m";
  return text + WithFraction(ns % 60'000'000'000, kNsPerSecond, "s");
}

Result<Time> ParseRfc3339(std::string_view text) {
  Scanner scan(text);
  const int64_t year = scan.Number(4);
  scan.Expect('-');
  const int64_t month = scan.Number(2);
  scan.Expect('-');
  const int64_t day = scan.Number(2);
  scan.Expect('T');
  const int64_t hour = scan.Number(2);
  scan.Expect(':');
  const int64_t minute = scan.Number(2);
  scan.Expect(':');
  const int64_t second = scan.Number(2);
  const int64_t ns = scan.Fraction();
  const int64_t offset = scan.Offset();
  const bool in_range = month >= 1 && month <= 12 && hour <= 23 && minute <= 59 && second <= 59;
  if (!scan.done() || !in_range) return NoTime(text);
  if (day < 1 || day > DaysInMonth(year, month)) return NoTime(text);
  const int64_t seconds =
      DaysFromDate(year, month, day) * 86'400 + hour * 3600 + minute * 60 + second - offset;
  const Int128 total = static_cast<Int128>(seconds) * kNsPerSecond + ns;
  if (total > std::numeric_limits<int64_t>::max() || total < std::numeric_limits<int64_t>::min()) {
    return Fail(ErrorCode::kOverflow, std::string(text) + " lies outside the years 1678 to 2262");
  }
  return Time{static_cast<int64_t>(total)};
}

std::string FormatRfc3339(Time t) { return FormatUtc(t, false); }

std::string FormatRfc3339Micro(Time t) { return FormatUtc(t, true); }

}  // namespace hopwise
