// The two readers behind SplitDocuments. Private to src/api.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/decode.h"

namespace hopwise::api {

// Limits on JSON in a manifest: nesting, and Lists within Lists.
inline constexpr size_t kMaxDocumentDepth = 256;
inline constexpr size_t kMaxListDepth = 8;

// A text of JSON values one after the other; nothing when it is something else, or when the first
// value is broken, so that YAML, of which JSON is a part, may have a try.
std::optional<std::vector<Document>> SplitJson(std::string_view text);

std::vector<Document> SplitYaml(std::string_view text);

// "List" and every "<Kind>List".
bool IsListKind(std::string_view kind);

// Gives a List's item, as JSON, the kind and apiVersion that its List implies and it leaves out.
struct ItemDefaults {
  std::string kind, api_version;  // "" when the List implies none
};
ItemDefaults DefaultsOf(std::string_view list_kind, std::string_view list_api_version);
void AddDefaults(const ItemDefaults& defaults, bool has_kind, bool has_api_version,
                 std::string& json);

// A document that cannot be used; `line` is where it begins, the message names its own line.
Document BadDocument(size_t line, size_t index, size_t item, std::string error);

}  // namespace hopwise::api
