#include <algorithm>
#include <limits>

#include "api/documents.h"
#include "api/yaml.h"

namespace hopwise::api {
namespace {

// What a line is to the division of a file into documents.
enum class Line : uint8_t {
  kContent,
  kBlank,       // nothing, or a comment
  kDirective,   // %YAML 1.1
  kMarker,      // ---, perhaps with the start of a document behind it
  kEnd,         // ...
  kNotAMarker,  // ------ and the like, meant as a marker
};

Line Classify(std::string_view line) {
  const auto ends_word = [&](size_t at) {
    return at == line.size() || line[at] == ' ' || line[at] == '\t' || line[at] == '\r';
  };
  if (line.starts_with("---") && ends_word(3)) return Line::kMarker;
  if (line.starts_with("...") && ends_word(3)) return Line::kEnd;
  if (line.starts_with('%')) return Line::kDirective;
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] == '#') return Line::kBlank;
  const size_t dashes = std::min(line.find_first_not_of('-'), line.size());
  if (dashes > 3 && line.find_first_not_of(" \t\r", dashes) == std::string_view::npos) {
    return Line::kNotAMarker;
  }
  return Line::kContent;
}

// A document that is alone in the text it is parsed from, so that an error stays within it. A line
// that begins with --- ends a document even inside a quoted or block scalar, by YAML's own rules,
// hence this division needs no parser.
class Divider {
 public:
  struct Part {
    std::string_view text;
    size_t line;        // of its first line
    bool not_a_marker;  // the part is one line, which is mistaken for a marker
    bool blank;         // nothing but markers and comments
  };

  explicit Divider(std::string_view text) : text_(text) {}

  // False at the end of the text.
  bool Next(Part& part) {
    const size_t begin = at_;
    const size_t begin_line = line_;
    bool marked = false;   // a --- of this part has been seen
    bool content = false;  // and something that is no directive or comment
    while (at_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      const Line kind = Classify(line);
      const bool begins_next = (kind == Line::kMarker && (marked || content)) ||
                               (kind == Line::kNotAMarker && at_ != begin);
      if (begins_next) break;
      if (kind == Line::kEnd) {
        part = {text_.substr(begin, at_ - begin), begin_line, false, !content};
        Advance(end);
        return true;
      }
      Advance(end);
      if (kind == Line::kNotAMarker) {
        part = {text_.substr(begin, end - begin), begin_line, true, false};
        return true;
      }
      marked = marked || kind == Line::kMarker;
      content = content || kind == Line::kContent ||
                (kind == Line::kMarker && Classify(line.substr(3)) == Line::kContent);
    }
    part = {text_.substr(begin, at_ - begin), begin_line, false, !content};
    return at_ > begin;
  }

 private:
  void Advance(size_t line_end) {
    at_ = std::min(line_end + 1, text_.size());
    ++line_;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
};

class Splitter {
 public:
  std::vector<Document> Run(std::string_view text) {
    Divider divider(text);
    Divider::Part part;
    while (divider.Next(part)) TakePart(part);
    return std::move(out_);
  }

 private:
  void TakePart(const Divider::Part& part) {
    if (part.blank) return;
    if (part.not_a_marker) {
      ++index_;
      item_ = 0;
      Bad(part.line, part.line,
          "\"" + std::string(part.text.substr(0, 20)) +
              "\" does not separate documents; expected exactly \"---\"");
      return;
    }
    // Node positions have 32 bits.
    if (part.text.size() > std::numeric_limits<uint32_t>::max() / 2) {
      ++index_;
      Bad(part.line, part.line, "a YAML document of more than 2 GiB");
      return;
    }
    const YamlTree tree = ParseYaml(part.text, part.line);
    // The root that the error cut off is reported, not used.
    const size_t whole = tree.roots.size() - (tree.error.empty() || tree.roots.empty() ? 0 : 1);
    for (size_t i = 0; i < whole; ++i) {
      item_ = 0;
      TakeRoot(tree, tree.roots[i]);
    }
    if (tree.error.empty()) return;
    ++index_;
    item_ = 0;
    const size_t begin = whole < tree.roots.size() ? tree.At(tree.roots[whole]).line : part.line;
    Bad(begin, tree.error_line, tree.error);
  }

  void TakeRoot(const YamlTree& tree, uint32_t root) {
    YamlJsonWriter writer(tree);
    const size_t line = tree.At(root).line;
    const std::string_view type = writer.TypeName(root);
    if (type == "null") return;
    ++index_;
    if (type != "a mapping") {
      Bad(line, line, "expected an object with apiVersion and kind, found " + std::string(type));
      return;
    }
    TakeObject(tree, writer, root, {}, 0);
  }

  static std::string_view Text(const YamlTree& tree, uint32_t node) {
    if (node == kNoYamlNode || tree.At(node).kind != YamlKind::kScalar) return {};
    return tree.TextOf(tree.At(node));
  }

  void TakeObject(const YamlTree& tree, YamlJsonWriter& writer, uint32_t node,
                  const ItemDefaults& defaults, size_t depth) {
    const size_t line = tree.At(node).line;
    const uint32_t own_kind = writer.FieldOf(node, "kind");
    const uint32_t version = writer.FieldOf(node, "apiVersion");
    const uint32_t items = writer.FieldOf(node, "items");
    const std::string_view kind =
        own_kind == kNoYamlNode ? std::string_view(defaults.kind) : Text(tree, own_kind);
    const bool has_items = items != kNoYamlNode && tree.At(items).kind == YamlKind::kSequence;
    if (kind == "List" || (IsListKind(kind) && has_items)) {
      if (depth == kMaxListDepth) {
        Bad(line, line,
            "Lists within Lists, deeper than " + std::to_string(kMaxListDepth) + " levels");
      } else if (items != kNoYamlNode && !has_items && writer.TypeName(items) != "null") {
        Bad(line, tree.At(items).line,
            "items: expected a sequence, found " + std::string(writer.TypeName(items)));
      } else if (has_items) {
        TakeItems(tree, writer, items, DefaultsOf(kind, Text(tree, version)), depth);
      }
      return;
    }
    Document document;
    document.line = line;
    document.index = index_;
    document.item = item_;
    const YamlError error = writer.Write(node, document.json);
    if (!error.message.empty()) {
      Bad(line, error.line, error.message);
      return;
    }
    AddDefaults(defaults, own_kind != kNoYamlNode, version != kNoYamlNode, document.json);
    out_.push_back(std::move(document));
  }

  void TakeItems(const YamlTree& tree, YamlJsonWriter& writer, uint32_t items,
                 const ItemDefaults& defaults, size_t depth) {
    for (uint32_t at = tree.At(items).begin; at != kNoYamlNode; at = tree.At(at).next) {
      const uint32_t item = tree.Resolve(at);
      ++item_;
      if (tree.At(item).kind == YamlKind::kMapping) {
        TakeObject(tree, writer, item, defaults, depth + 1);
      } else {
        const size_t line = tree.At(at).line;
        Bad(line, line, "expected an object, found " + std::string(writer.TypeName(item)));
      }
    }
  }

  void Bad(size_t begin, size_t line, const std::string& error) {
    std::string message = "line " + std::to_string(line);
    if (item_ > 0) message += ", item " + std::to_string(item_);
    out_.push_back(BadDocument(begin, index_, item_, message + ": " + error));
  }

  std::vector<Document> out_;
  size_t index_ = 0;
  size_t item_ = 0;
};

}  // namespace

std::vector<Document> SplitYaml(std::string_view text) { return Splitter().Run(text); }

}  // namespace hopwise::api
