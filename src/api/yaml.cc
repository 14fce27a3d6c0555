#include "api/yaml.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "api/yaml_scalar.h"

namespace hopwise::api {
namespace {

std::string_view TagText(YamlTag tag) {
  switch (tag) {
    case YamlTag::kBool:
      return "!!bool";
    case YamlTag::kInt:
      return "!!int";
    case YamlTag::kFloat:
      return "!!float";
    case YamlTag::kNull:
      return "!!null";
    default:
      return "!!str";
  }
}

bool Fits(YamlTag tag, ScalarType type) {
  switch (tag) {
    case YamlTag::kBool:
      return type == ScalarType::kBool;
    case YamlTag::kInt:
      return type == ScalarType::kInt;
    case YamlTag::kFloat:
      return type == ScalarType::kFloat || type == ScalarType::kInt;
    case YamlTag::kNull:
      return type == ScalarType::kNull;
    default:
      return true;
  }
}

// What the scalar is, by its tag, its quotes and its text.
Scalar TypeOf(const YamlNode& node, std::string_view text) {
  const bool text_decides = node.tag == YamlTag::kNone
                                ? node.plain
                                : node.tag != YamlTag::kStr && node.tag != YamlTag::kTimestamp;
  return text_decides ? ResolvePlain(text) : Scalar();
}

}  // namespace

YamlError YamlJsonWriter::Write(uint32_t node, std::string& out) {
  error_ = {};
  out_ = &out;
  WriteNode(node, 0);
  return std::move(error_);
}

bool YamlJsonWriter::Fail(uint32_t node, std::string message) {
  if (error_.message.empty()) error_ = {tree_.At(node).line, std::move(message)};
  return false;
}

std::string_view YamlJsonWriter::TypeName(uint32_t node) const {
  const YamlNode& resolved = tree_.At(tree_.Resolve(node));
  if (resolved.kind == YamlKind::kMapping) return "a mapping";
  if (resolved.kind == YamlKind::kSequence) return "a sequence";
  switch (TypeOf(resolved, tree_.TextOf(resolved)).type) {
    case ScalarType::kNull:
      return "null";
    case ScalarType::kBool:
      return "a boolean";
    case ScalarType::kString:
      return "a string";
    default:
      return "a number";
  }
}

uint32_t YamlJsonWriter::FieldOf(uint32_t mapping, std::string_view key) const {
  const YamlNode& node = tree_.At(tree_.Resolve(mapping));
  if (node.kind != YamlKind::kMapping) return kNoYamlNode;
  for (uint32_t at = node.begin; at != kNoYamlNode;) {
    const YamlNode& name = tree_.At(at);
    const uint32_t value = name.next;
    if (name.kind == YamlKind::kScalar && tree_.TextOf(name) == key) return tree_.Resolve(value);
    at = tree_.At(value).next;
  }
  return kNoYamlNode;
}

bool YamlJsonWriter::CountAliased(uint32_t node, size_t bytes) {
  alias_bytes_ += bytes;
  return alias_bytes_ <= kMaxAliasBytes ||
         Fail(node, "the aliases of the document expand to too much, more than " +
                        std::to_string(kMaxAliasBytes) + " bytes");
}

bool YamlJsonWriter::WriteNode(uint32_t node, size_t depth) {
  // Aliases can nest deeper than the text does.
  if (depth > kMaxYamlDepth) {
    return Fail(node, "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
  }
  if (in_alias_ > 0 && !CountAliased(node, kAliasNodeBytes)) return false;
  switch (tree_.At(node).kind) {
    case YamlKind::kScalar:
      return WriteScalar(node);
    case YamlKind::kSequence:
      return WriteSequence(node, depth);
    case YamlKind::kMapping:
      return WriteMapping(node, depth);
    case YamlKind::kAlias:
      break;
  }
  ++in_alias_;
  const bool ok = WriteNode(tree_.At(node).begin, depth + 1);
  --in_alias_;
  return ok;
}

bool YamlJsonWriter::WriteScalar(uint32_t node) {
  const YamlNode& scalar = tree_.At(node);
  const std::string_view text = tree_.TextOf(scalar);
  const Scalar resolved = TypeOf(scalar, text);
  if (!Fits(scalar.tag, resolved.type)) {
    return Fail(node, "\"" + std::string(text.substr(0, 64)) + "\" is no " +
                          std::string(TagText(scalar.tag)));
  }
  if (resolved.type == ScalarType::kNotFinite) {
    return Fail(node, std::string(text) + " cannot stand in JSON; write a finite number");
  }
  const size_t before = out_->size();
  if (resolved.type == ScalarType::kString) {
    AppendJsonString(*out_, text);
  } else {
    *out_ += resolved.json;
  }
  return in_alias_ == 0 || CountAliased(node, out_->size() - before);
}

bool YamlJsonWriter::WriteSequence(uint32_t node, size_t depth) {
  *out_ += '[';
  bool first = true;
  for (uint32_t at = tree_.At(node).begin; at != kNoYamlNode; at = tree_.At(at).next) {
    if (!first) *out_ += ',';
    first = false;
    if (!WriteNode(at, depth + 1)) return false;
  }
  *out_ += ']';
  return true;
}

bool YamlJsonWriter::IsMergeKey(uint32_t node) const {
  const YamlNode& key = tree_.At(node);
  return key.kind == YamlKind::kScalar && key.plain && tree_.TextOf(key) == "<<";
}

bool YamlJsonWriter::KeyText(uint32_t node, std::string& out) {
  const YamlNode& key = tree_.At(tree_.Resolve(node));
  if (key.kind != YamlKind::kScalar) {
    return Fail(node, "expected a string as a key, found " + std::string(TypeName(node)));
  }
  const std::string_view text = tree_.TextOf(key);
  Scalar scalar = TypeOf(key, text);
  switch (scalar.type) {
    case ScalarType::kString:
      out = text;
      return true;
    case ScalarType::kFloat:
      out = FloatKey(scalar.number);
      return true;
    case ScalarType::kBool:
    case ScalarType::kInt:
      out = std::move(scalar.json);
      return true;
    case ScalarType::kNull:
    case ScalarType::kNotFinite:
      break;
  }
  return Fail(node,
              "expected a string as a key, found \"" + std::string(text) + "\" without quotes");
}

bool YamlJsonWriter::Collect(uint32_t mapping, bool merged, size_t depth,
                             std::vector<Entry>& entries) {
  std::vector<uint32_t> sources;
  for (uint32_t at = tree_.At(mapping).begin; at != kNoYamlNode;) {
    const uint32_t value = tree_.At(at).next;
    if (IsMergeKey(at)) {
      sources.push_back(value);
    } else {
      Entry& entry = entries.emplace_back(Entry{{}, at, value, merged});
      if (!KeyText(at, entry.key)) return false;
      if (merged && ++merged_fields_ > kMaxMergedFields) {
        return Fail(at, "merge keys bring more than " + std::to_string(kMaxMergedFields) +
                            " fields into the document");
      }
    }
    at = tree_.At(value).next;
  }
  // What stands in the mapping itself wins over what is merged in, wherever the << stands.
  return std::ranges::all_of(
      sources, [&](uint32_t source) { return CollectMerged(source, depth + 1, entries); });
}

bool YamlJsonWriter::CollectMerged(uint32_t value, size_t depth, std::vector<Entry>& entries) {
  if (depth > kMaxYamlDepth) {
    return Fail(value, "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
  }
  // Counted per source too, or empty ones could multiply for free.
  if (++merged_fields_ > kMaxMergedFields) {
    return Fail(value, "merge keys bring more than " + std::to_string(kMaxMergedFields) +
                           " fields into the document");
  }
  const uint32_t source = tree_.Resolve(value);
  const YamlNode& node = tree_.At(source);
  if (node.kind == YamlKind::kMapping) return Collect(source, true, depth, entries);
  bool ok = node.kind == YamlKind::kSequence;
  for (uint32_t at = node.begin; ok && at != kNoYamlNode; at = tree_.At(at).next) {
    const uint32_t item = tree_.Resolve(at);
    if (tree_.At(item).kind != YamlKind::kMapping) {
      ok = false;
    } else if (!CollectMerged(at, depth + 1, entries)) {
      return false;
    }
  }
  return ok || Fail(value, "expected a mapping or a sequence of mappings to merge with <<");
}

// Keeps the first entry of each key; two of the mapping's own with one key are an error.
bool YamlJsonWriter::DropShadowed(std::vector<Entry>& entries) {
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    const int by_key = entries[a].key.compare(entries[b].key);
    return by_key != 0 ? by_key < 0 : a < b;
  });
  bool any_dropped = false;
  for (size_t i = 1; i < order.size(); ++i) {
    Entry& entry = entries[order[i]];
    const Entry& before = entries[order[i - 1]];
    if (entry.key != before.key) continue;
    if (!entry.merged) {
      return Fail(entry.key_node, "the key \"" + entry.key +
                                      "\" stands here a second time, first on line " +
                                      std::to_string(tree_.At(before.key_node).line));
    }
    entry.value = kNoYamlNode;
    any_dropped = true;
  }
  if (any_dropped) {
    std::erase_if(entries, [](const Entry& entry) { return entry.value == kNoYamlNode; });
  }
  return true;
}

bool YamlJsonWriter::WriteMapping(uint32_t node, size_t depth) {
  std::vector<Entry> entries;
  if (!Collect(node, false, depth, entries) || !DropShadowed(entries)) return false;
  *out_ += '{';
  bool first = true;
  for (const Entry& entry : entries) {
    if (!first) *out_ += ',';
    first = false;
    const size_t inside = entry.merged ? 1 : 0;
    in_alias_ += inside;
    const size_t before = out_->size();
    AppendJsonString(*out_, entry.key);
    *out_ += ':';
    const bool ok = (in_alias_ == 0 || CountAliased(entry.value, out_->size() - before)) &&
                    WriteNode(entry.value, depth + 1);
    in_alias_ -= inside;
    if (!ok) return false;
  }
  *out_ += '}';
  return true;
}

}  // namespace hopwise::api
