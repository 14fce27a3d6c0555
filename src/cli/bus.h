// Orders to controllers: the Command objects of bus.volcano.sh.
#pragma once

#include <string>
#include <string_view>

#include "api/json.h"

namespace hopwise::cli {

// A Command in `ns` that tells whoever cares for `target` to do `action`. It goes with the target.
json::Json CommandFor(const json::Json& target, const std::string& ns, std::string_view action);

}  // namespace hopwise::cli
