// A node of a YAML tree as JSON text. Private to src/api.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/yaml_tree.h"

namespace hopwise::api {

struct YamlError {
  size_t line = 0;
  std::string message;  // "" while all is well
};

// Writes one document, or parts of it, as JSON; the limits on aliases and merge keys hold for all
// that one writer writes.
class YamlJsonWriter {
 public:
  explicit YamlJsonWriter(const YamlTree& tree) : tree_(tree) {}

  // Appends the node to `out`; on an error what was appended is of no use.
  [[nodiscard]] YamlError Write(uint32_t node, std::string& out);
  // The value of a mapping's field, aliases followed and merge keys not looked at; or kNoYamlNode.
  [[nodiscard]] uint32_t FieldOf(uint32_t mapping, std::string_view key) const;
  // "a string", "a mapping", …
  [[nodiscard]] std::string_view TypeName(uint32_t node) const;

 private:
  struct Entry {
    std::string key;
    uint32_t key_node;
    uint32_t value;
    bool merged;
  };

  bool Fail(uint32_t node, std::string message);
  bool CountAliased(uint32_t node, size_t bytes);
  bool WriteNode(uint32_t node, size_t depth);
  bool WriteScalar(uint32_t node);
  bool WriteSequence(uint32_t node, size_t depth);
  bool WriteMapping(uint32_t node, size_t depth);
  bool KeyText(uint32_t node, std::string& out);
  bool Collect(uint32_t mapping, bool merged, size_t depth, std::vector<Entry>& entries);
  bool CollectMerged(uint32_t value, size_t depth, std::vector<Entry>& entries);
  bool DropShadowed(std::vector<Entry>& entries);
  [[nodiscard]] bool IsMergeKey(uint32_t node) const;

  const YamlTree& tree_;
  std::string* out_ = nullptr;
  YamlError error_;
  size_t in_alias_ = 0;  // how many aliases we are inside of
  size_t alias_bytes_ = 0;
  size_t merged_fields_ = 0;
};

}  // namespace hopwise::api
