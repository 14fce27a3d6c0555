// Time as a value: nanoseconds, no clock. The core is told what time it is.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hopwise {

struct Duration {
  int64_t ns = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
};

// Nanoseconds since 1970-01-01T00:00:00Z; 0 means "not set", as Kubernetes leaves a null time out.
struct Time {
  int64_t ns = 0;
  [[nodiscard]] constexpr bool set() const { return ns != 0; }
  friend constexpr auto operator<=>(Time, Time) = default;
};

constexpr Time operator+(Time t, Duration d) { return {t.ns + d.ns}; }
constexpr Duration operator-(Time a, Time b) { return {a.ns - b.ns}; }

constexpr Duration Seconds(int64_t s) { return {s * 1'000'000'000}; }
constexpr Duration Millis(int64_t ms) { return {ms * 1'000'000}; }

// A Go duration ("1h30m", "300ms", "1.5s", "-2us"; "0" alone needs no unit), exactly as
// time.ParseDuration reads it; overflow of int64 nanoseconds is an error.
Result<Duration> ParseGoDuration(std::string_view text);
// As Go prints it: "1h30m0s", "1.5s", "300ms", "0s".
std::string FormatGoDuration(Duration d);

// RFC 3339 with optional fraction and any offset ("2026-01-02T03:04:05Z", "...+02:00").
Result<Time> ParseRfc3339(std::string_view text);
// As Kubernetes writes metav1.Time: whole seconds, UTC, "2026-01-02T03:04:05Z"; "" for an unset
// time.
std::string FormatRfc3339(Time t);
// As Kubernetes writes metav1.MicroTime: "2026-01-02T03:04:05.000000Z".
std::string FormatRfc3339Micro(Time t);

}  // namespace hopwise
