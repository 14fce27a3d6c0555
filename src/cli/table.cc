#include "cli/table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hopwise::cli {
namespace {

constexpr size_t kGap = 3;

// The two largest units of an age; below `whole` of the larger one the smaller is shown too.
std::string TwoUnits(int64_t value, int64_t unit, std::string_view large, std::string_view small,
                     int64_t small_unit, int64_t whole) {
  const int64_t main = value / unit;
  const int64_t rest = value % unit / small_unit;
  if (rest == 0 || main >= whole) {
    return fmt::format("{}{}", main, large);
  }
  return fmt::format("{}{}{}{}", main, large, rest, small);
}

}  // namespace

Table::Table(std::vector<std::string> headers) { rows_.push_back(std::move(headers)); }

void Table::Add(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  for (std::string& cell : cells) {
    cell = Printable(cell);
  }
  rows_.push_back(std::move(cells));
}

std::string Table::ToString(bool bold) const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], WidthOf(row[c]));
    }
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      line += rows_[r][c];
      line.append(widths[c] + kGap - WidthOf(rows_[r][c]), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += r == 0 && bold ? "\x1b[1m" + line + "\x1b[0m" : line;
    text += '\n';
  }
  return text;
}

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

std::string Printable(std::string_view text) {
  std::string safe(text);
  for (char& c : safe) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      c = c == '\n' || c == '\t' ? ' ' : '?';
    }
  }
  return safe;
}

std::string Shortened(const std::vector<std::string>& words, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(words.size(), most); ++i) {
    text += (i == 0 ? "" : ",") + words[i];
  }
  if (words.size() > most) {
    text += fmt::format(" +{}", words.size() - most);
  }
  return text;
}

// k8s.io/apimachinery/pkg/util/duration.HumanDuration.
std::string AgeText(Duration age) {
  const int64_t seconds = std::max<int64_t>(0, age.ns / Seconds(1).ns);
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  if (seconds < 2 * kMinute) {
    return fmt::format("{}s", seconds);
  }
  if (seconds < 3 * kHour) {
    return TwoUnits(seconds, kMinute, "m", "s", 1, 10);
  }
  if (seconds < 2 * kDay) {
    return TwoUnits(seconds, kHour, "h", "m", kMinute, 8);
  }
  if (seconds < 2 * 365 * kDay) {
    return TwoUnits(seconds, kDay, "d", "h", kHour, 8);
  }
  return TwoUnits(seconds, 365 * kDay, "y", "d", kDay, 8);
}

}  // namespace hopwise::cli
