#include "api/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace hopwise::api {
namespace {

struct Word {
  std::string_view text;
  ScalarType type;
  std::string_view json;
};
// "" is handled by the caller; the rest is grouped by meaning.
constexpr std::array<Word, 38> kWords = {{
    {"~", ScalarType::kNull, "null"},      {"null", ScalarType::kNull, "null"},
    {"Null", ScalarType::kNull, "null"},   {"NULL", ScalarType::kNull, "null"},
    {"true", ScalarType::kBool, "true"},   {"True", ScalarType::kBool, "true"},
    {"TRUE", ScalarType::kBool, "true"},   {"y", ScalarType::kBool, "true"},
    {"Y", ScalarType::kBool, "true"},      {"yes", ScalarType::kBool, "true"},
    {"Yes", ScalarType::kBool, "true"},    {"YES", ScalarType::kBool, "true"},
    {"on", ScalarType::kBool, "true"},     {"On", ScalarType::kBool, "true"},
    {"ON", ScalarType::kBool, "true"},     {"false", ScalarType::kBool, "false"},
    {"False", ScalarType::kBool, "false"}, {"FALSE", ScalarType::kBool, "false"},
    {"n", ScalarType::kBool, "false"},     {"N", ScalarType::kBool, "false"},
    {"no", ScalarType::kBool, "false"},    {"No", ScalarType::kBool, "false"},
    {"NO", ScalarType::kBool, "false"},    {"off", ScalarType::kBool, "false"},
    {"Off", ScalarType::kBool, "false"},   {"OFF", ScalarType::kBool, "false"},
    {".nan", ScalarType::kNotFinite, ""},  {".NaN", ScalarType::kNotFinite, ""},
    {".NAN", ScalarType::kNotFinite, ""},  {".inf", ScalarType::kNotFinite, ""},
    {".Inf", ScalarType::kNotFinite, ""},  {".INF", ScalarType::kNotFinite, ""},
    {"+.inf", ScalarType::kNotFinite, ""}, {"+.Inf", ScalarType::kNotFinite, ""},
    {"+.INF", ScalarType::kNotFinite, ""}, {"-.inf", ScalarType::kNotFinite, ""},
    {"-.Inf", ScalarType::kNotFinite, ""}, {"-.INF", ScalarType::kNotFinite, ""},
}};
constexpr size_t kLongestWord = 5;
constexpr std::string_view kFirstOfWords = "~nNtTyYoOfF.+-";

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t CountDigits(std::string_view text, size_t from) {
  size_t n = from;
  while (n < text.size() && IsDigit(text[n])) ++n;
  return n - from;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool LooksLikeFloat(std::string_view text) {
  size_t at = text.empty() || (text[0] != '-' && text[0] != '+') ? 0 : 1;
  const size_t whole = CountDigits(text, at);
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = CountDigits(text, at + 1);
    if (whole == 0 && fraction == 0) return false;
    at += 1 + fraction;
  } else if (whole == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const size_t exponent = CountDigits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

// True when the number is a float that fits a double; a larger one stays text, as in go-yaml.
bool ParseFloat(std::string_view text, double& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  if (error == std::errc::result_out_of_range) {
    // from_chars also reports what is too small, which is 0 to Go.
    const bool tiny =
        text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    out = 0;
    return tiny;
  }
  return error == std::errc() && stop == end;
}

// The base a number announces by its prefix, which is removed.
int TakeBase(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  int base = 8;
  size_t prefix = 1;
  switch (digits[1]) {
    case 'x':
    case 'X':
      base = 16;
      prefix = 2;
      break;
    case 'b':
    case 'B':
      base = 2;
      prefix = 2;
      break;
    case 'o':
    case 'O':
      prefix = 2;
      break;
    default:
      break;
  }
  digits.remove_prefix(prefix);
  return base;
}

// A whole number from the smallest int64 to the largest uint64, as decimal text.
bool ParseInt(std::string_view text, std::string& json) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const int base = TakeBase(text);
  if (text.empty() || text[0] == '-') return false;
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return false;
  if (negative && value > 1ULL << 63U) return false;
  json = (negative && value != 0 ? "-" : "") + std::to_string(value);
  return true;
}

Scalar ResolveNumber(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '_');
  Scalar scalar;
  if (ParseInt(plain, scalar.json)) {
    scalar.type = ScalarType::kInt;
  } else if (LooksLikeFloat(plain) && ParseFloat(plain, scalar.number)) {
    scalar.type = ScalarType::kFloat;
    scalar.json = FloatJson(scalar.number);
  }
  return scalar;
}

// A float's shortest text in scientific form, and its exponent.
template <class Float>
std::string Scientific(Float number, int& exponent) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                          std::chars_format::scientific);
  const std::string text(buffer.data(), end);
  const size_t at = text.find('e') + 1;
  const size_t digits = text[at] == '+' ? at + 1 : at;
  std::from_chars(text.data() + digits, text.data() + text.size(), exponent);
  return text;
}

template <class Float>
std::string Fixed(Float number) {
  std::array<char, 512> buffer{};
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  return {buffer.data(), end};
}

}  // namespace

Scalar ResolvePlain(std::string_view text) {
  if (text.empty()) return {ScalarType::kNull, "null"};
  if (text.size() <= kLongestWord && kFirstOfWords.find(text[0]) != std::string_view::npos) {
    for (const Word& word : kWords) {
      if (word.text == text) return {word.type, std::string(word.json)};
    }
  }
  if (IsDigit(text[0]) || text[0] == '-' || text[0] == '+') return ResolveNumber(text);
  Scalar scalar;
  if (text[0] == '.' && LooksLikeFloat(text) && ParseFloat(text, scalar.number)) {
    scalar.type = ScalarType::kFloat;
    scalar.json = FloatJson(scalar.number);
  }
  return scalar;
}

std::string FloatKey(double number) {
  // Keys pass through float32 in sigs.k8s.io/yaml.
  const auto narrow = static_cast<float>(number);
  int exponent = 0;
  std::string text = Scientific(narrow, exponent);
  if (narrow != 0 && (exponent < -4 || exponent >= 6)) return text;
  return Fixed(narrow);
}

std::string FloatJson(double number) {
  int exponent = 0;
  std::string text = Scientific(number, exponent);
  if (number == 0 || (exponent >= -6 && exponent < 21)) return Fixed(number);
  // One-digit exponents lose their leading zero when negative: 1e-09 becomes 1e-9.
  const size_t zero = text.size() - 2;
  if (exponent < 0 && exponent > -10) text.erase(zero, 1);
  return text;
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  out += '"';
  while (!text.empty()) {
    const auto stop = std::ranges::find_if_not(text, plain);
    const auto n = static_cast<size_t>(stop - text.begin());
    out.append(text, 0, n);
    text.remove_prefix(n);
    if (text.empty()) break;
    const auto c = static_cast<unsigned char>(text[0]);
    text.remove_prefix(1);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[c >> 4U];
        out += kHex[c & 15U];
    }
  }
  out += '"';
}

}  // namespace hopwise::api
