#include "api/json_reader.h"

#include <cstring>

namespace hopwise::api {
namespace {

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && std::strchr(" \t\r\n", text.back()) != nullptr) text.remove_suffix(1);
  return text;
}

std::string_view TypeName(char first) {
  switch (first) {
    case '"':
      return "a string";
    case '{':
      return "an object";
    case '[':
      return "a list";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return first == '-' || (first >= '0' && first <= '9') ? "a number" : "no JSON value";
  }
}

void AppendStep(std::string& text, const JsonPath& step) {
  if (step.index >= 0) {
    text += '[' + std::to_string(step.index) + ']';
  } else if (step.key.find_first_of("./ ") != std::string_view::npos || step.key.empty()) {
    text += "[\"";
    text += step.key;
    text += "\"]";
  } else {
    if (!text.empty()) text += '.';
    text += step.key;
  }
}

}  // namespace

std::string PathText(const JsonPath* path) {
  if (path == nullptr) return {};
  std::string text = PathText(path->up);
  AppendStep(text, *path);
  return text;
}

bool JsonContext::Fail(const JsonPath* path, std::string_view what) {
  if (!error.empty()) return false;
  error = PathText(path);
  if (!error.empty()) error += ": ";
  error += what;
  return false;
}

bool JsonContext::FailSyntax(const JsonPath* path, simdjson::error_code code) {
  malformed = true;
  return Fail(path, std::string("malformed JSON: ") + simdjson::error_message(code));
}

void JsonContext::Warn(const JsonPath* path, std::string_view what) {
  warnings.push_back(PathText(path) + ": " + std::string(what));
}

bool JsonValue::FailType(std::string_view what) {
  std::string message = "expected ";
  message += what;
  message += ", found ";
  return Fail(message.append(TypeName(first())));
}

bool JsonValue::ReadString(std::string_view& out) {
  const std::string_view text = token();
  if (text[0] != '"') return FailType("a string");
  const char* begin = text.data() + 1;
  const auto* end = static_cast<const char*>(std::memchr(begin, '"', text.size() - 1));
  if (end == nullptr) return FailSyntax(simdjson::UNCLOSED_STRING);
  const auto length = static_cast<size_t>(end - begin);
  if (std::memchr(begin, '\\', length) == nullptr) {
    simdjson::ondemand::raw_json_string raw;
    if (const auto error = value_.get_raw_json_string().get(raw); error != simdjson::SUCCESS) {
      return FailSyntax(error);
    }
    out = {begin, length};
    return true;
  }
  if (const auto error = value_.get_string().get(out); error != simdjson::SUCCESS) {
    return FailSyntax(error);
  }
  return true;
}

bool JsonValue::ReadInt(int64_t& out) {
  if (value_.get_int64().get(out) == simdjson::SUCCESS) return true;
  if (TypeName(first()) != "a number") return FailType("a whole number");
  return Fail("expected a whole number, found " + std::string(TrimEnd(token()).substr(0, 40)));
}

bool JsonValue::ReadBool(bool& out) {
  if (value_.get_bool().get(out) == simdjson::SUCCESS) return true;
  return FailType("a boolean");
}

bool JsonValue::ReadScalarText(std::string_view& out) {
  if (first() == '"') return ReadString(out);
  if (TypeName(first()) != "a number") return FailType("a string or a number");
  out = TrimEnd(token());
  // Reading it as a number is what moves the cursor, and what refuses 1x or 1.2.3.
  double unused = 0;
  if (value_.get_double().get(unused) != simdjson::SUCCESS) {
    return Fail("expected a number, found " + std::string(out.substr(0, 40)));
  }
  return true;
}

bool JsonValue::TakeNull(bool& is_null) {
  const auto error = value_.is_null().get(is_null);
  return error == simdjson::SUCCESS || FailSyntax(error);
}

bool JsonValue::TakeRawObject(std::string_view& out, simdjson::ondemand::object& object) {
  if (first() != '{') return FailType("an object");
  auto error = value_.get_object().get(object);
  if (error == simdjson::SUCCESS) error = object.raw_json().get(out);
  bool has_fields = false;
  if (error == simdjson::SUCCESS) error = object.reset().get(has_fields);
  if (error != simdjson::SUCCESS) return FailSyntax(error);
  out = TrimEnd(out);
  return true;
}

bool JsonObject::ReadRaw(std::string_view& out) {
  const auto error = object_.raw_json().get(out);
  if (error != simdjson::SUCCESS) return context_.FailSyntax(path_, error);
  out = TrimEnd(out);
  return true;
}

bool JsonObject::ReadWhole(std::string_view& out) {
  if (!ReadRaw(out)) return false;
  const auto error = object_.reset().error();
  return error == simdjson::SUCCESS || context_.FailSyntax(path_, error);
}

std::string_view PlainKey(simdjson::ondemand::field& field) {
  const char* begin = field.key().raw();
  const char* end = begin;
  // The tokenizer has found the closing quote, so this ends.
  while (*end != '"' && *end != '\\') ++end;
  return *end == '"' ? std::string_view(begin, static_cast<size_t>(end - begin))
                     : std::string_view();
}

bool ReadKey(simdjson::ondemand::field& field, std::string_view& out, simdjson::error_code& error) {
  out = PlainKey(field);
  if (!out.empty()) return true;
  error = field.unescaped_key().get(out);
  return error == simdjson::SUCCESS;
}

}  // namespace hopwise::api
