#include "topology/natural.h"

#include <cstddef>

namespace hopwise::topology {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the run of digits at the front of `text` off and returns it without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  while (!number.empty() && number.front() == '0') number.remove_prefix(1);
  return number;
}

// Numbers of any length: without leading zeros the longer one is the greater.
int CompareNumbers(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

}  // namespace

int NaturalCompare(std::string_view a, std::string_view b) {
  std::string_view x = a;
  std::string_view y = b;
  while (!x.empty() && !y.empty()) {
    if (IsDigit(x.front()) && IsDigit(y.front())) {
      const std::string_view number_x = TakeNumber(x);
      const std::string_view number_y = TakeNumber(y);
      if (const int order = CompareNumbers(number_x, number_y); order != 0) return order;
      continue;
    }
    if (x.front() != y.front()) {
      return static_cast<unsigned char>(x.front()) < static_cast<unsigned char>(y.front()) ? -1 : 1;
    }
    x.remove_prefix(1);
    y.remove_prefix(1);
  }
  if (x.empty() != y.empty()) return x.empty() ? -1 : 1;
  return a.compare(b);
}

}  // namespace hopwise::topology
