// A YAML document as a tree of nodes in one array, from libyaml's events. Private to src/api.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hopwise::api {

// Limits on what one document may hold; the largest real manifests stay far below.
inline constexpr size_t kMaxYamlDepth = 256;
inline constexpr size_t kMaxYamlAliases = 10'000;
// Bytes of JSON that come from aliases, where each node counts as kAliasNodeBytes more, since small
// ones cost time too; and fields that come from merge keys.
inline constexpr size_t kMaxAliasBytes = size_t{4} << 20U;
inline constexpr size_t kAliasNodeBytes = 16;
inline constexpr size_t kMaxMergedFields = 100'000;

enum class YamlKind : uint8_t { kScalar, kSequence, kMapping, kAlias };
enum class YamlTag : uint8_t { kNone, kStr, kBool, kInt, kFloat, kNull, kTimestamp, kMap, kSeq };

inline constexpr uint32_t kNoYamlNode = 0xffffffffU;

struct YamlNode {
  YamlKind kind = YamlKind::kScalar;
  YamlTag tag = YamlTag::kNone;
  bool plain = false;           // a scalar without quotes: its text decides its type
  uint32_t line = 0;            // 1-based, in the file
  uint32_t next = kNoYamlNode;  // the next child of the same parent
  // A scalar: where its text begins in YamlTree::text. A collection: its first child; those of a
  // mapping are key, value, key, value. An alias: the node it stands for, which precedes it.
  uint32_t begin = kNoYamlNode;
  uint32_t size = 0;  // of a scalar's text
};

struct YamlTree {
  std::vector<YamlNode> nodes;
  std::string text;
  std::vector<uint32_t> roots;  // one per document with content
  // Why the rest could not be read; "" when all was.
  std::string error;
  size_t error_line = 0;

  [[nodiscard]] const YamlNode& At(uint32_t node) const { return nodes[node]; }
  // The node itself, or what the alias stands for.
  [[nodiscard]] uint32_t Resolve(uint32_t node) const {
    return nodes[node].kind == YamlKind::kAlias ? nodes[node].begin : node;
  }
  [[nodiscard]] std::string_view TextOf(const YamlNode& scalar) const {
    return std::string_view(text).substr(scalar.begin, scalar.size);
  }
};

// Reads YAML text whose first line is number `first_line` of its file.
YamlTree ParseYaml(std::string_view text, size_t first_line);

}  // namespace hopwise::api
