#include "api/meta.h"

#include <algorithm>
#include <charconv>

namespace hopwise::api {
namespace {

// A whole decimal number with nothing around it, as strconv.ParseInt(text, 10, 64) takes it.
std::optional<int64_t> ParseInteger(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool ComparesAs(Operator op, const std::string& label, const std::vector<std::string>& values) {
  if (values.size() != 1) return false;
  const std::optional<int64_t> left = ParseInteger(label);
  const std::optional<int64_t> right = ParseInteger(values.front());
  if (!left || !right) return false;
  return op == Operator::kGt ? *left > *right : *left < *right;
}

}  // namespace

const std::string* Find(const StringMap& map, std::string_view key) {
  const auto found = std::ranges::lower_bound(
      map, key, {},
      [](const auto& entry) -> std::string_view { return std::string_view(entry.first); });
  return found != map.end() && found->first == key ? &found->second : nullptr;
}

const OwnerReference* ControllerOf(const ObjectMeta& meta) {
  for (const OwnerReference& owner : meta.owners) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

bool Matches(const Requirement& requirement, const StringMap& labels) {
  const std::string* label = Find(labels, requirement.key);
  const auto listed = [&] { return std::ranges::binary_search(requirement.values, *label); };
  switch (requirement.op) {
    case Operator::kIn:
      return label != nullptr && listed();
    case Operator::kNotIn:
      return label == nullptr || !listed();
    case Operator::kExists:
      return label != nullptr;
    case Operator::kDoesNotExist:
      return label == nullptr;
    case Operator::kGt:
    case Operator::kLt:
      return label != nullptr && ComparesAs(requirement.op, *label, requirement.values);
  }
  return false;
}

bool Matches(const LabelSelector& selector, const StringMap& labels) {
  return std::ranges::all_of(selector.requirements, [&](const Requirement& requirement) {
    return Matches(requirement, labels);
  });
}

}  // namespace hopwise::api
