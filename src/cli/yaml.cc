#include "cli/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace hopwise::cli {
namespace {

using json::Json;

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '/' || c == '-';
}

// Words that some version of YAML reads as booleans or nothing.
bool IsReserved(std::string text) {
  constexpr std::array<std::string_view, 9> kReserved = {"y",   "n",    "yes",   "no",  "on",
                                                         "off", "true", "false", "null"};
  for (char& c : text) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return std::find(kReserved.begin(), kReserved.end(), text) != kReserved.end();
}

std::string Scalar(const Json& value) {
  if (!value.is_string()) {
    return json::Dump(value);  // numbers, true, false, null, {} and [] read alike in both
  }
  const auto& text = value.get_ref<const std::string&>();
  const bool letter = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
  if (letter && std::all_of(text.begin(), text.end(), IsWord) && !IsReserved(text)) {
    return text;
  }
  return json::Dump(value);  // a JSON string is a double-quoted YAML scalar
}

bool IsBlock(const Json& value) { return value.is_structured() && !value.empty(); }

// `first`: how the first line begins, where something ("- ") stands there already.
void Write(const Json& value, size_t indent, bool first_line_open, std::string& out) {
  bool open = first_line_open;
  const auto begin_line = [&] {
    if (!open) {
      out.append(indent, ' ');
    }
    open = false;
  };
  if (!IsBlock(value)) {
    begin_line();
    out += Scalar(value) + "\n";
    return;
  }
  if (value.is_array()) {
    for (const Json& item : value) {
      begin_line();
      out += "- ";
      Write(item, indent + 2, true, out);
    }
    return;
  }
  for (const auto& [key, item] : value.items()) {
    begin_line();
    out += Scalar(Json(key)) + ":";
    if (IsBlock(item)) {
      out += "\n";
      Write(item, item.is_array() ? indent : indent + 2, false, out);
    } else {
      out += " " + Scalar(item) + "\n";
    }
  }
}

}  // namespace

std::string ToYaml(const Json& value) {
  std::string out;
  Write(value, 0, false, out);
  return out;
}

}  // namespace hopwise::cli
