// Fields of a parsed JSON value, for the few objects this module reads besides those of src/api.
// Nothing throws: what is absent or of another type reads as empty.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hopwise::kube {

using Json = nlohmann::json;

// Discarded (is_discarded()) when the text is no JSON.
inline Json ParseJson(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// What does not stand in UTF-8 is written as U+FFFD.
inline std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The value behind the keys, or nullptr.
inline const Json* FieldOf(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json* at = &json;
  for (const std::string_view key : keys) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

inline std::string TextOf(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json* field = FieldOf(json, keys);
  return field != nullptr && field->is_string() ? field->get_ref<const std::string&>() : "";
}

inline int64_t IntOf(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json* field = FieldOf(json, keys);
  return field != nullptr && field->is_number_integer() ? field->get<int64_t>() : 0;
}

}  // namespace hopwise::kube
