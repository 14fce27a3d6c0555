// Objects as JSON trees, read without exceptions: what is absent or of another type is the
// fallback.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"

// Compiled once, in json.cc: most files use the same members.
extern template class nlohmann::basic_json<>;

namespace hopwise::json {

using Json = nlohmann::json;  // members in the order of their names, so equal objects dump alike
using Path = std::initializer_list<std::string_view>;

// Nesting that ParseJson accepts; deeper text is refused, since writing it out would recurse as
// deep.
inline constexpr size_t kMaxJsonDepth = 128;

Result<Json> ParseJson(std::string_view text);
// null when it is no JSON, or too deep.
Json ParseOrNull(std::string_view text);
// indent -1: one line. Text that is no UTF-8 is written with replacement characters.
std::string Dump(const Json& value, int indent = -1);

// The value at the end of the path, or nullptr.
const Json* Get(const Json& from, Path path);
std::string Text(const Json& from, Path path, std::string_view fallback = "");
// Numbers beyond int64 stick at its ends.
int64_t Number(const Json& from, Path path, int64_t fallback);
bool Flag(const Json& from, Path path, bool fallback);
// The array at the end of the path; an empty one when there is none.
const Json& List(const Json& from, Path path);

// The member, made an object first where it is none. `object` becomes an object too.
Json& Member(Json& object, std::string_view key);
// Puts a value at the end of the path; objects on the way are made.
void Set(Json& object, Path path, Json value);
// Removes the last member of the path, if it is there; emptied parents stay.
void Unset(Json& object, Path path);

std::string Annotation(const Json& object, std::string_view key);
std::string Label(const Json& object, std::string_view key);
std::string Name(const Json& object);
std::string Namespace(const Json& object);
std::string Uid(const Json& object);

// "Kind namespace/name", as messages call an object.
std::string Describe(const Json& object);

}  // namespace hopwise::json
