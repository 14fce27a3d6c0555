#include "api/json.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

template class nlohmann::basic_json<>;

namespace hopwise::json {
namespace {

// Deepest nesting of brackets outside strings.
size_t DepthOf(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

int64_t ToInt(const Json& value, int64_t fallback) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number > static_cast<uint64_t>(kMax) ? kMax : static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) {
    return value.get<int64_t>();
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (!(number > -9.2e18)) {  // NaN too
      return number <= -9.2e18 ? kMin : fallback;
    }
    return number >= 9.2e18 ? kMax : static_cast<int64_t>(number);
  }
  return fallback;
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  if (const size_t depth = DepthOf(text); depth > kMaxJsonDepth) {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("nested {} levels deep; at most {} are read", depth, kMaxJsonDepth));
  }
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return Invalid("is not JSON");
  }
  return value;
}

Json ParseOrNull(std::string_view text) {
  Result<Json> parsed = ParseJson(text);
  return parsed ? std::move(*parsed) : Json();
}

std::string Dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

const Json* Get(const Json& from, Path path) {
  const Json* at = &from;
  for (const std::string_view key : path) {
    if (!at->is_object()) {
      return nullptr;
    }
    const auto found = at->find(key);
    if (found == at->end()) {
      return nullptr;
    }
    at = &*found;
  }
  return at;
}

std::string Text(const Json& from, Path path, std::string_view fallback) {
  const Json* value = Get(from, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string(fallback);
}

int64_t Number(const Json& from, Path path, int64_t fallback) {
  const Json* value = Get(from, path);
  return value == nullptr ? fallback : ToInt(*value, fallback);
}

bool Flag(const Json& from, Path path, bool fallback) {
  const Json* value = Get(from, path);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

const Json& List(const Json& from, Path path) {
  static const Json kEmpty = Json::array();
  const Json* value = Get(from, path);
  return value != nullptr && value->is_array() ? *value : kEmpty;
}

Json& Member(Json& object, std::string_view key) {
  if (!object.is_object()) {
    object = Json::object();
  }
  Json& member = object[std::string(key)];
  if (!member.is_object()) {
    member = Json::object();
  }
  return member;
}

void Set(Json& object, Path path, Json value) {
  Json* at = &object;
  const auto* last = path.end() - 1;
  for (const auto* key = path.begin(); key != last; ++key) {
    at = &Member(*at, *key);
  }
  if (!at->is_object()) {
    *at = Json::object();
  }
  (*at)[std::string(*last)] = std::move(value);
}

void Unset(Json& object, Path path) {
  Json* at = &object;
  for (const auto* key = path.begin(); key != path.end(); ++key) {
    if (!at->is_object()) {
      return;
    }
    const auto found = at->find(*key);
    if (found == at->end()) {
      return;
    }
    if (key + 1 == path.end()) {
      at->erase(found);
      return;
    }
    at = &*found;
  }
}

std::string Annotation(const Json& object, std::string_view key) {
  return Text(object, {"metadata", "annotations", key});
}
std::string Label(const Json& object, std::string_view key) {
  return Text(object, {"metadata", "labels", key});
}
std::string Name(const Json& object) { return Text(object, {"metadata", "name"}); }
std::string Namespace(const Json& object) { return Text(object, {"metadata", "namespace"}); }
std::string Uid(const Json& object) { return Text(object, {"metadata", "uid"}); }

std::string Describe(const Json& object) {
  const std::string ns = Namespace(object);
  return fmt::format("{} {}{}{}", Text(object, {"kind"}), ns, ns.empty() ? "" : "/", Name(object));
}

}  // namespace hopwise::json
