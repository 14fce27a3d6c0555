// JSON as YAML: block style, members in order, text quoted whenever any reader of YAML could take
// it for something else.
#pragma once

#include <string>

#include "api/json.h"

namespace hopwise::cli {

std::string ToYaml(const json::Json& value);

}  // namespace hopwise::cli
