// What a plain YAML scalar means, as kubectl understands it: the YAML 1.1 resolver of go-yaml v2
// followed by the conversion of sigs.k8s.io/yaml. Private to src/api.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hopwise::api {

enum class ScalarType : uint8_t {
  kString,
  kNull,       // "", ~, null, Null, NULL
  kBool,       // true, yes, on, y and their opposites, in the three usual spellings
  kInt,        // decimal, 0x, 0o, 0b and a leading 0 for octal; underscores between the digits
  kFloat,      // 1.5, 1e3, and whole numbers beyond 64 bits
  kNotFinite,  // .inf and .nan, which JSON has no word for
};

struct Scalar {
  ScalarType type = ScalarType::kString;
  std::string json;   // the JSON text of a null, bool, int or float
  double number = 0;  // of a float
};

Scalar ResolvePlain(std::string_view text);

// A float used as a key, which JSON wants as text: 1.5, 1e+06.
std::string FloatKey(double number);
// A float as encoding/json writes it: 1000, 0.5, 1e+21.
std::string FloatJson(double number);
// Appends a JSON string. The text is valid UTF-8.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace hopwise::api
