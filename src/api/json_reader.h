// How this module's decoders walk JSON: simdjson's on-demand cursor with the path of each value, so
// that an error can name its field. Private to src/api. Each value is read at most once, in the
// order of the text. A function that reads returns false once the context has failed, and its
// caller then only passes that on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

namespace hopwise::api {

// One step from the document's root; lives on the stack of whoever descends.
struct JsonPath {
  const JsonPath* up = nullptr;
  std::string_view key;  // of an object
  int64_t index = -1;    // of an array, else -1
};
// "spec.containers[0].resources.requests["nvidia.com/gpu"]"; "" for the root.
std::string PathText(const JsonPath* path);

// The outcome of one object's decoding.
struct JsonContext {
  std::string error;       // begins with the path; "" while all is well
  bool malformed = false;  // the text is no JSON: the cursor is of no use any more
  std::vector<std::string> warnings;

  bool Fail(const JsonPath* path, std::string_view what);
  bool FailSyntax(const JsonPath* path, simdjson::error_code code);
  void Warn(const JsonPath* path, std::string_view what);
};

class JsonObject;

class JsonValue {
 public:
  JsonValue(simdjson::ondemand::value value, const JsonPath* path, JsonContext& context)
      : value_(value), path_(path), context_(context) {}

  // The view is good while the parser keeps the document.
  bool ReadString(std::string_view& out);
  bool ReadInt(int64_t& out);
  bool ReadBool(bool& out);
  // The text of a string or a number, as a quantity or an IntOrString may be either.
  bool ReadScalarText(std::string_view& out);
  // The object's text, then visit(key, value) as ForEachField does.
  template <class Visit>
  bool ReadRawObject(std::string_view& out, Visit visit);
  // Hands visit(JsonObject&) the object, with a context and a path of its own.
  template <class Visit>
  bool WithObject(JsonContext& context, const JsonPath* path, Visit visit);
  // visit(JsonValue&) -> bool, once per element; null elements are passed over.
  template <class Visit>
  bool ForEachItem(Visit visit);
  // visit(std::string_view key, JsonValue&) -> bool, once per field that is not null.
  template <class Visit>
  bool ForEachField(Visit visit);
  // visit(std::string_view key, JsonValue*) -> bool, once per field; nullptr when it is null.
  template <class Visit>
  bool ForEachFieldOrNull(Visit visit);

  bool Fail(std::string_view what) { return context_.Fail(path_, what); }
  // "expected <what>, found a number"
  bool FailType(std::string_view what);
  void Warn(std::string_view what) { context_.Warn(path_, what); }
  [[nodiscard]] const JsonPath* path() const { return path_; }
  [[nodiscard]] JsonContext& context() const { return context_; }
  // The first character of the value's text tells its type.
  [[nodiscard]] char first() const { return token()[0]; }
  // The value's first token where it stands in the text, with the white space behind it.
  [[nodiscard]] std::string_view token() const {
    // Reading a token does not move the cursor; simdjson merely lacks the const.
    return simdjson::ondemand::value(value_).raw_json_token();
  }

 private:
  friend class JsonObject;
  bool FailSyntax(simdjson::error_code code) { return context_.FailSyntax(path_, code); }
  // Moves past a null; a value that merely begins like one is an error.
  bool TakeNull(bool& is_null);
  bool TakeRawObject(std::string_view& out, simdjson::ondemand::object& object);

  simdjson::ondemand::value value_;
  const JsonPath* path_;
  JsonContext& context_;
};

// An object whose fields are yet to be walked: the document's root, or an element of a List.
class JsonObject {
 public:
  JsonObject(simdjson::ondemand::object object, const JsonPath* path, JsonContext& context)
      : object_(object), path_(path), context_(context) {}
  template <class Visit>
  bool ForEachField(Visit visit);
  template <class Visit>
  bool ForEachFieldOrNull(Visit visit);
  // Looks for fields without moving on: visit(key, JsonValue&) -> bool, false to stop looking.
  // Keys with escapes are passed over. A string that was read here must not be read once more:
  // simdjson has room for each only once.
  template <class Visit>
  bool Peek(Visit visit);
  // The object's text; its fields are then behind the cursor.
  bool ReadRaw(std::string_view& out);
  bool ReadWhole(std::string_view& out);  // its fields are still to be walked
  [[nodiscard]] const JsonPath* path() const { return path_; }
  [[nodiscard]] JsonContext& context() const { return context_; }

 private:
  simdjson::ondemand::object object_;
  const JsonPath* path_;
  JsonContext& context_;
};

// The key's text when it has no escapes, as every key that we know; else empty.
std::string_view PlainKey(simdjson::ondemand::field& field);
// The key's text, whatever it holds.
bool ReadKey(simdjson::ondemand::field& field, std::string_view& out, simdjson::error_code& error);

template <class Visit>
bool JsonObject::ForEachFieldOrNull(Visit visit) {
  for (auto result : object_) {
    simdjson::ondemand::field field;
    simdjson::error_code error = std::move(result).get(field);
    std::string_view key;
    if (error != simdjson::SUCCESS || !ReadKey(field, key, error)) {
      return context_.FailSyntax(path_, error);
    }
    const JsonPath step{path_, key, -1};
    JsonValue value(field.value(), &step, context_);
    bool is_null = false;
    if (value.first() == 'n' && !value.TakeNull(is_null)) return false;
    if (!visit(key, is_null ? nullptr : &value)) return false;
  }
  return true;
}

template <class Visit>
bool JsonObject::Peek(Visit visit) {
  for (auto result : object_) {
    simdjson::ondemand::field field;
    const simdjson::error_code error = std::move(result).get(field);
    if (error != simdjson::SUCCESS) return context_.FailSyntax(path_, error);
    const std::string_view key = PlainKey(field);
    const JsonPath step{path_, key, -1};
    JsonValue value(field.value(), &step, context_);
    if (!key.empty() && !visit(key, value)) break;
  }
  bool has_fields = false;
  const auto error = object_.reset().get(has_fields);
  if (error != simdjson::SUCCESS) return context_.FailSyntax(path_, error);
  return context_.error.empty();
}

template <class Visit>
bool JsonObject::ForEachField(Visit visit) {
  return ForEachFieldOrNull([&](std::string_view key, JsonValue* value) {
    return value == nullptr || visit(key, *value);
  });
}

template <class Visit>
bool JsonValue::ForEachField(Visit visit) {
  return ForEachFieldOrNull([&](std::string_view key, JsonValue* value) {
    return value == nullptr || visit(key, *value);
  });
}

template <class Visit>
bool JsonValue::ForEachFieldOrNull(Visit visit) {
  if (first() != '{') return FailType("an object");
  simdjson::ondemand::object object;
  if (const auto error = value_.get_object().get(object); error != simdjson::SUCCESS) {
    return FailSyntax(error);
  }
  return JsonObject(object, path_, context_).ForEachFieldOrNull(visit);
}

template <class Visit>
bool JsonValue::ReadRawObject(std::string_view& out, Visit visit) {
  simdjson::ondemand::object object;
  return TakeRawObject(out, object) && JsonObject(object, path_, context_).ForEachField(visit);
}

template <class Visit>
bool JsonValue::WithObject(JsonContext& context, const JsonPath* path, Visit visit) {
  if (first() != '{') return JsonValue(value_, path, context).FailType("an object");
  simdjson::ondemand::object object;
  if (const auto error = value_.get_object().get(object); error != simdjson::SUCCESS) {
    return context.FailSyntax(path, error);
  }
  JsonObject inner(object, path, context);
  return visit(inner);
}

template <class Visit>
bool JsonValue::ForEachItem(Visit visit) {
  if (first() != '[') return FailType("a list");
  simdjson::ondemand::array array;
  if (const auto error = value_.get_array().get(array); error != simdjson::SUCCESS) {
    return FailSyntax(error);
  }
  JsonPath step{path_, {}, -1};
  for (auto result : array) {
    ++step.index;
    simdjson::ondemand::value element;
    const auto error = std::move(result).get(element);
    if (error != simdjson::SUCCESS) return FailSyntax(error);
    JsonValue value(element, &step, context_);
    bool is_null = false;
    if (value.first() == 'n' && !value.TakeNull(is_null)) return false;
    if (!is_null && !visit(value)) return false;
  }
  return true;
}

// A known field of an object that decodes into a T. Unknown fields are passed over unread.
template <class T>
struct JsonField {
  std::string_view key;
  bool (*read)(JsonValue& value, T& out);
};

// Reads the fields of a table of at most 64, each once: of two values one would be lost. Keys that
// are not in the table go to other(key, value).
template <class T, class Object, class Other>
bool ReadFields(Object& object, std::span<const JsonField<T>> fields, T& out, Other other) {
  uint64_t seen = 0;
  return object.ForEachField([&](std::string_view key, JsonValue& child) {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].key == key) {
        const uint64_t bit = uint64_t{1} << i;
        if ((seen & bit) != 0) return child.Fail("the key stands here a second time");
        seen |= bit;
        return fields[i].read(child, out);
      }
    }
    return other(key, child);
  });
}

template <class T, class Object>  // a JsonValue or a JsonObject
bool ReadFields(Object& object, std::span<const JsonField<T>> fields, T& out) {
  return ReadFields(object, fields, out, [](std::string_view, JsonValue&) { return true; });
}

}  // namespace hopwise::api
