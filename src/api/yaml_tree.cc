#include "api/yaml_tree.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <yaml.h>

namespace hopwise::api {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

struct TagName {
  std::string_view name;
  YamlTag tag;
};
constexpr std::array<TagName, 8> kTags = {{{"str", YamlTag::kStr},
                                           {"bool", YamlTag::kBool},
                                           {"int", YamlTag::kInt},
                                           {"float", YamlTag::kFloat},
                                           {"null", YamlTag::kNull},
                                           {"timestamp", YamlTag::kTimestamp},
                                           {"map", YamlTag::kMap},
                                           {"seq", YamlTag::kSeq}}};

std::string_view View(const yaml_char_t* text, size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}
std::string_view View(const yaml_char_t* text) {
  return text == nullptr ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(text));
}

// Owns an event for as long as it is looked at.
struct Event {
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&event); }
  yaml_event_t event{};
};

class Builder {
 public:
  Builder(std::string_view text, size_t first_line) : text_(text), first_line_(first_line) {
    ok_ = yaml_parser_initialize(&parser_) == 1;
    if (!ok_) {
      Fail(first_line, "the YAML reader has no memory");
      return;
    }
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    const auto* bytes = reinterpret_cast<const yaml_char_t*>(text.data());
    yaml_parser_set_input_string(&parser_, bytes, text.size());
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder() { yaml_parser_delete(&parser_); }

  YamlTree Run() {
    while (ok_ && !ended_) {
      Event event;
      if (yaml_parser_parse(&parser_, &event.event) != 1) {
        FailSyntax();
        break;
      }
      Take(event.event);
    }
    return std::move(tree_);
  }

 private:
  struct Open {
    uint32_t node;
    uint32_t last_child = kNoYamlNode;
  };

  bool Fail(size_t line, std::string message) {
    ok_ = false;
    tree_.error = std::move(message);
    tree_.error_line = line;
    return false;
  }
  [[nodiscard]] size_t LineOf(const yaml_mark_t& mark) const { return first_line_ + mark.line; }

  void FailSyntax() {
    std::string message = parser_.problem == nullptr ? "malformed YAML" : parser_.problem;
    if (parser_.error == YAML_READER_ERROR) {
      // The reader works on bytes and knows an offset only.
      const auto bytes = text_.substr(0, std::min(parser_.problem_offset, text_.size()));
      const auto lines = static_cast<size_t>(std::ranges::count(bytes, '\n'));
      Fail(first_line_ + lines, "no YAML text: " + message);
      return;
    }
    if (parser_.context != nullptr) {
      message += std::string(" ") + parser_.context;
      message += " that begins on line " + std::to_string(LineOf(parser_.context_mark));
    }
    if (LineAt(parser_.problem_mark).find_first_not_of(" \t") != std::string_view::npos &&
        LineAt(parser_.problem_mark).find('\t') <
            LineAt(parser_.problem_mark).find_first_not_of(" \t")) {
      message += " (a tab cannot indent)";
    }
    Fail(LineOf(parser_.problem_mark), std::move(message));
  }
  // The text of a line from its start.
  [[nodiscard]] std::string_view LineAt(const yaml_mark_t& mark) const {
    size_t begin = 0;
    for (size_t line = 0; line < mark.line; ++line) {
      const size_t end = text_.find('\n', begin);
      if (end == std::string_view::npos) return {};
      begin = end + 1;
    }
    return text_.substr(begin, text_.find('\n', begin) - begin);
  }

  void Take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_STREAM_END_EVENT:
        ended_ = true;
        break;
      case YAML_DOCUMENT_START_EVENT:
        anchors_.clear();
        aliases_ = 0;
        break;
      case YAML_SCALAR_EVENT:
        TakeScalar(event);
        break;
      case YAML_ALIAS_EVENT:
        TakeAlias(event);
        break;
      case YAML_SEQUENCE_START_EVENT:
        TakeCollection(event, YamlKind::kSequence, event.data.sequence_start.tag,
                       event.data.sequence_start.anchor);
        break;
      case YAML_MAPPING_START_EVENT:
        TakeCollection(event, YamlKind::kMapping, event.data.mapping_start.tag,
                       event.data.mapping_start.anchor);
        break;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        open_.pop_back();
        break;
      default:
        break;
    }
  }

  // Appends a node to the tree and to its parent's children.
  uint32_t Add(const yaml_event_t& event, YamlKind kind) {
    const auto index = static_cast<uint32_t>(tree_.nodes.size());
    YamlNode& node = tree_.nodes.emplace_back();
    node.kind = kind;
    node.line = static_cast<uint32_t>(LineOf(event.start_mark));
    if (open_.empty()) {
      tree_.roots.push_back(index);
    } else if (Open& parent = open_.back(); parent.last_child == kNoYamlNode) {
      tree_.nodes[parent.node].begin = index;
      parent.last_child = index;
    } else {
      tree_.nodes[parent.last_child].next = index;
      parent.last_child = index;
    }
    return index;
  }

  void TakeScalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const std::optional<YamlTag> tag = TagOf(event, scalar.tag);
    if (!tag) return;
    if (*tag == YamlTag::kMap || *tag == YamlTag::kSeq) {
      Fail(LineOf(event.start_mark), "a scalar cannot be tagged as a mapping or a sequence");
      return;
    }
    const std::string_view text = View(scalar.value, scalar.length);
    const uint32_t index = Add(event, YamlKind::kScalar);
    YamlNode& node = tree_.nodes[index];
    node.tag = *tag;
    node.plain = scalar.plain_implicit != 0;
    node.begin = static_cast<uint32_t>(tree_.text.size());
    node.size = static_cast<uint32_t>(text.size());
    tree_.text += text;
    SetAnchor(scalar.anchor, index);
  }

  void TakeCollection(const yaml_event_t& event, YamlKind kind, const yaml_char_t* tag_text,
                      const yaml_char_t* anchor) {
    const std::optional<YamlTag> tag = TagOf(event, tag_text);
    if (!tag) return;
    const YamlTag fitting = kind == YamlKind::kMapping ? YamlTag::kMap : YamlTag::kSeq;
    if (*tag != YamlTag::kNone && *tag != fitting) {
      Fail(LineOf(event.start_mark), "the tag does not fit what follows it");
      return;
    }
    if (open_.size() >= kMaxYamlDepth) {
      Fail(LineOf(event.start_mark),
           "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
      return;
    }
    const uint32_t index = Add(event, kind);
    SetAnchor(anchor, index);
    open_.push_back({index});
  }

  void TakeAlias(const yaml_event_t& event) {
    const std::string_view name = View(event.data.alias.anchor);
    const size_t line = LineOf(event.start_mark);
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) {
      Fail(line, "there is no anchor &" + std::string(name) + " before this alias");
      return;
    }
    if (std::ranges::any_of(open_, [&](const Open& o) { return o.node == found->second; })) {
      Fail(line, "the anchor &" + std::string(name) + " contains itself");
      return;
    }
    if (++aliases_ > kMaxYamlAliases) {
      Fail(line, "more than " + std::to_string(kMaxYamlAliases) + " aliases in one document");
      return;
    }
    const uint32_t target = found->second;
    tree_.nodes[Add(event, YamlKind::kAlias)].begin = target;
  }

  void SetAnchor(const yaml_char_t* anchor, uint32_t node) {
    if (anchor != nullptr) anchors_.insert_or_assign(std::string(View(anchor)), node);
  }

  // Nothing, having failed, when the tag is not one of the core schema.
  std::optional<YamlTag> TagOf(const yaml_event_t& event, const yaml_char_t* text) {
    std::string_view name = View(text);
    if (name.empty() || name == "!") return YamlTag::kNone;
    if (name.starts_with(kTagPrefix)) {
      name.remove_prefix(kTagPrefix.size());
      for (const TagName& known : kTags) {
        if (known.name == name) return known.tag;
      }
      name = View(text);
    }
    Fail(LineOf(event.start_mark), "the tag " + std::string(name) +
                                       " is not served; expected !!str, !!int, !!float, !!bool, "
                                       "!!null, !!timestamp, !!map or !!seq");
    return std::nullopt;
  }

  std::string_view text_;
  size_t first_line_;
  yaml_parser_t parser_{};
  bool ok_ = false;
  bool ended_ = false;
  YamlTree tree_;
  std::vector<Open> open_;
  std::map<std::string, uint32_t, std::less<>> anchors_;  // of the current document
  size_t aliases_ = 0;
};

}  // namespace

YamlTree ParseYaml(std::string_view text, size_t first_line) {
  return Builder(text, first_line).Run();
}

}  // namespace hopwise::api
