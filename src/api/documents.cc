#include "api/documents.h"

#include "api/yaml_scalar.h"

namespace hopwise::api {

bool IsListKind(std::string_view kind) { return kind.ends_with("List"); }

ItemDefaults DefaultsOf(std::string_view list_kind, std::string_view list_api_version) {
  static constexpr size_t kSuffix = std::string_view("List").size();
  if (list_kind.size() <= kSuffix) return {};
  return {std::string(list_kind.substr(0, list_kind.size() - kSuffix)),
          std::string(list_api_version)};
}

void AddDefaults(const ItemDefaults& defaults, bool has_kind, bool has_api_version,
                 std::string& json) {
  std::string head = "{";
  if (!has_api_version && !defaults.api_version.empty()) {
    head += "\"apiVersion\":";
    AppendJsonString(head, defaults.api_version);
    head += ',';
  }
  if (!has_kind && !defaults.kind.empty()) {
    head += "\"kind\":";
    AppendJsonString(head, defaults.kind);
    head += ',';
  }
  if (head.size() == 1) return;
  const size_t first = json.find_first_not_of(" \t\r\n", 1);
  if (first != std::string::npos && json[first] == '}') head.pop_back();
  json.replace(0, 1, head);
}

Document BadDocument(size_t line, size_t index, size_t item, std::string error) {
  Document document;
  document.line = line;
  document.index = index;
  document.item = item;
  document.error = std::move(error);
  return document;
}

std::vector<Document> SplitDocuments(std::string_view text) {
  // A byte order mark says nothing in UTF-8, and JSON does not allow it.
  static constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    if (auto documents = SplitJson(text)) return *std::move(documents);
  }
  return SplitYaml(text);
}

}  // namespace hopwise::api
