#include <algorithm>

#include <simdjson.h>

#include "api/documents.h"
#include "api/json_reader.h"

namespace hopwise::api {
namespace {

// Finds where values begin and end by their brackets alone; whether they are JSON is asked later.
class Extents {
 public:
  explicit Extents(std::string_view text) : text_(text) {}

  // Moves to the next value. False at the end of the text.
  bool Next() {
    const size_t begin = text_.find_first_not_of(" \t\r\n", end_);
    if (begin == std::string_view::npos) return false;
    line_ += Lines(end_, begin);
    begin_ = begin;
    end_ = begin;
    depth_ = 0;
    deepest_ = 0;
    if (text_[begin] == '{') FindEnd();
    return true;
  }
  [[nodiscard]] bool is_object() const { return text_[begin_] == '{'; }
  [[nodiscard]] bool closed() const { return depth_ == 0; }
  [[nodiscard]] bool too_deep() const { return deepest_ > kMaxDocumentDepth; }
  [[nodiscard]] std::string_view value() const { return text_.substr(begin_, end_ - begin_); }
  [[nodiscard]] size_t line() const { return line_; }
  // Call when done with the value, so that the next one's line is right.
  void Leave() { line_ += Lines(begin_, end_); }

 private:
  [[nodiscard]] size_t Lines(size_t begin, size_t end) const {
    return static_cast<size_t>(std::ranges::count(text_.substr(begin, end - begin), '\n'));
  }
  void FindEnd() {
    for (size_t at = begin_; at < text_.size();) {
      const char c = text_[at++];
      if (c == '"') {
        at = SkipString(at);
      } else if (c == '{' || c == '[') {
        deepest_ = std::max(deepest_, ++depth_);
      } else if ((c == '}' || c == ']') && --depth_ == 0) {
        end_ = at;
        return;
      }
    }
    end_ = text_.size();
    depth_ = std::max<size_t>(depth_, 1);
  }
  // The position after the closing quote, or beyond the end of the text.
  [[nodiscard]] size_t SkipString(size_t at) const {
    while (at < text_.size() && text_[at] != '"') at += text_[at] == '\\' ? 2U : 1U;
    return at + 1;
  }

  std::string_view text_;
  size_t begin_ = 0, end_ = 0;
  size_t line_ = 1;
  size_t depth_ = 0, deepest_ = 0;
};

// What is asked of an object before it is taken as a List or as one document.
struct Head {
  std::string_view kind, api_version;
  bool has_kind = false, has_api_version = false, has_items = false;
};

class Splitter {
 public:
  explicit Splitter(std::vector<Document>& out) : out_(out) {}

  // Appends the documents of one value. `json` was checked to be JSON.
  void Take(std::string_view json, size_t line, size_t index) {
    line_ = line;
    index_ = index;
    item_ = 0;
    TakeText(json, {}, 0);
  }

 private:
  // A text of its own, and so a parser of its own: where it stands, another still walks.
  void TakeText(std::string_view json, const ItemDefaults& defaults, size_t depth) {
    simdjson::ondemand::parser parser;
    const simdjson::padded_string padded(json);
    simdjson::ondemand::document document;
    simdjson::ondemand::object root;
    auto error = parser.iterate(padded).get(document);
    if (error == simdjson::SUCCESS) error = document.get_object().get(root);
    JsonContext context;
    if (error != simdjson::SUCCESS) {
      context.FailSyntax(nullptr, error);
    } else {
      JsonObject object(root, nullptr, context);
      Head head;
      if (!ReadHead(object, head)) {
        // The context says why.
      } else if (IsList(head, defaults)) {
        TakeItems(object, DefaultsOf(KindOf(head, defaults), head.api_version), padded.data(),
                  depth);
      } else {
        Good(json, head, defaults);
      }
    }
    if (!context.error.empty()) Bad(context.error);
  }

  static std::string_view KindOf(const Head& head, const ItemDefaults& defaults) {
    return head.has_kind ? head.kind : std::string_view(defaults.kind);
  }
  static bool IsList(const Head& head, const ItemDefaults& defaults) {
    const std::string_view kind = KindOf(head, defaults);
    return kind == "List" || (IsListKind(kind) && head.has_items);
  }

  void Good(std::string_view json, const Head& head, const ItemDefaults& defaults) {
    Document& out = out_.emplace_back();
    out.line = line_;
    out.index = index_;
    out.item = item_;
    out.json = json;
    AddDefaults(defaults, head.has_kind, head.has_api_version, out.json);
  }

  // False when the list cannot be walked on.
  bool TakeItem(JsonValue& item, const ItemDefaults& defaults, size_t depth) {
    if (item.first() != '{') {
      Bad("expected an object, found something else");
      return true;
    }
    Head head;
    std::string_view json;
    const bool ok = item.WithObject(item.context(), nullptr, [&](JsonObject& object) {
      return ReadHead(object, head) && object.ReadRaw(json);
    });
    if (!ok) return false;
    if (!IsList(head, defaults)) {
      Good(json, head, defaults);
    } else if (depth == kMaxListDepth) {
      Bad("Lists within Lists, deeper than " + std::to_string(kMaxListDepth) + " levels");
    } else {
      TakeText(json, defaults, depth + 1);
    }
    return true;
  }

  static bool ReadHead(JsonObject& object, Head& head) {
    return object.Peek([&](std::string_view key, JsonValue& value) {
      if (key == "kind" && !head.has_kind) {
        head.has_kind = true;
        return value.first() == '"' && value.ReadString(head.kind);
      }
      if (key == "apiVersion" && !head.has_api_version) {
        head.has_api_version = true;
        return value.first() == '"' && value.ReadString(head.api_version);
      }
      head.has_items = head.has_items || (key == "items" && value.first() == '[');
      // Only a List is looked through to its end.
      return !head.has_kind || IsListKind(head.kind) || !head.has_api_version;
    });
  }

  void TakeItems(JsonObject& object, const ItemDefaults& defaults, const char* begin,
                 size_t depth) {
    const size_t list_line = line_;
    size_t counted = 0;  // bytes whose newlines are in line_
    object.ForEachField([&](std::string_view key, JsonValue& items) {
      if (key != "items") return true;
      return items.ForEachItem([&](JsonValue& item) {
        const std::string_view text = item.token();
        const auto at = static_cast<size_t>(text.data() - begin);
        if (depth == 0) {
          line_ += static_cast<size_t>(std::count(begin + counted, begin + at, '\n'));
          counted = at;
        }
        ++item_;
        return TakeItem(item, defaults, depth);
      });
    });
    if (depth == 0) line_ = list_line;
  }

  void Bad(const std::string& error) {
    std::string message = "line " + std::to_string(line_);
    if (item_ > 0) message += ", item " + std::to_string(item_);
    out_.push_back(BadDocument(line_, index_, item_, message + ": " + error));
  }

  std::vector<Document>& out_;
  size_t line_ = 1, index_ = 1, item_ = 0;
};

// "" when the text is well-formed JSON, through and through.
std::string Check(simdjson::dom::parser& parser, std::string_view json) {
  simdjson::dom::element unused;
  const auto error = parser.parse(json.data(), json.size()).get(unused);
  if (error == simdjson::SUCCESS) return {};
  return std::string("malformed JSON: ") + simdjson::error_message(error);
}

}  // namespace

std::optional<std::vector<Document>> SplitJson(std::string_view text) {
  std::vector<Document> out;
  simdjson::dom::parser parser;
  Splitter splitter(out);
  Extents extents(text);
  for (size_t index = 1; extents.Next(); ++index, extents.Leave()) {
    if (!extents.is_object()) return std::nullopt;
    std::string error;
    if (!extents.closed()) {
      error = "the object that begins here does not end";
    } else if (extents.too_deep()) {
      error = "nested deeper than " + std::to_string(kMaxDocumentDepth) + " levels";
    } else {
      error = Check(parser, extents.value());
    }
    if (error.empty()) {
      splitter.Take(extents.value(), extents.line(), index);
    } else if (index == 1 && !extents.too_deep()) {
      return std::nullopt;
    } else {
      const std::string where = "line " + std::to_string(extents.line()) + ": ";
      out.push_back(BadDocument(extents.line(), index, 0, where + error));
    }
  }
  return out;
}

}  // namespace hopwise::api
