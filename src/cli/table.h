// Aligned columns as kubectl prints them: upper-case headers, three spaces between, nothing padded
// at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace hopwise::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> headers);
  // Cells beyond the headers are dropped, missing ones are empty. An empty cell is printed as it
  // is; use "-" or "<none>" where a word is wanted.
  void Add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.size() <= 1; }
  // `bold`: the header in bold, for terminals.
  [[nodiscard]] std::string ToString(bool bold = false) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Columns a text takes on a terminal: code points of UTF-8.
size_t WidthOf(std::string_view text);
// Control characters made harmless.
std::string Printable(std::string_view text);

// Up to `most` of the words, then "+N".
std::string Shortened(const std::vector<std::string>& words, size_t most);

// An age as kubectl prints it: "45s", "5m30s", "3h20m", "2d4h", "400d".
std::string AgeText(Duration age);

}  // namespace hopwise::cli
