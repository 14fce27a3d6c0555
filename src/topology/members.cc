#include "topology/members.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace hopwise::topology {
namespace {

constexpr size_t kNamesInMessage = 8;

void SortUnique(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

bool Same(const api::Requirement& a, const api::Requirement& b) {
  return a.op == b.op && a.key == b.key && a.values == b.values;
}

bool Same(const api::LabelSelector& a, const api::LabelSelector& b) {
  return std::equal(a.requirements.begin(), a.requirements.end(), b.requirements.begin(),
                    b.requirements.end(), [](const auto& x, const auto& y) { return Same(x, y); });
}

// What is wrong with the member, as the end of a sentence that names it; "" when nothing is.
std::string_view FlawOf(const api::HyperNodeMember& member) {
  const int set = int{member.exact.has_value()} + int{member.pattern.has_value()} +
                  int{member.labels.has_value()};
  if (set == 0) return "has no selector (exactMatch, regexMatch or labelMatch)";
  if (set > 1) return "sets more than one of exactMatch, regexMatch and labelMatch";
  if (member.exact && member.exact->empty()) return "has an exactMatch without a name";
  if (member.pattern && member.pattern->empty()) return "has a regexMatch without a pattern";
  if (member.type == api::MemberType::kHyperNode && !member.exact) {
    return "is a HyperNode, and HyperNodes are selected by exactMatch only";
  }
  return {};
}

}  // namespace

bool operator==(const MemberSpec& a, const MemberSpec& b) {
  return a.node_names == b.node_names && a.patterns == b.patterns && a.children == b.children &&
         a.faults == b.faults &&
         std::equal(a.label_selectors.begin(), a.label_selectors.end(), b.label_selectors.begin(),
                    b.label_selectors.end(),
                    [](const auto& x, const auto& y) { return Same(x, y); });
}

MemberSpec ReadMembers(const api::HyperNode& hypernode) {
  MemberSpec spec;
  for (size_t i = 0; i < hypernode.members.size(); ++i) {
    const api::HyperNodeMember& member = hypernode.members[i];
    if (const std::string_view flaw = FlawOf(member); !flaw.empty()) {
      spec.faults.push_back({hypernode.meta.name, FaultKind::kBadSelector, false,
                             fmt::format("Member {} of HyperNode {} {}; the member is ignored.",
                                         i + 1, hypernode.meta.name, flaw)});
    } else if (member.type == api::MemberType::kHyperNode) {
      spec.children.push_back(*member.exact);
    } else if (member.exact) {
      spec.node_names.push_back(*member.exact);
    } else if (member.pattern) {
      spec.patterns.push_back(*member.pattern);
    } else {
      spec.label_selectors.push_back(*member.labels);
    }
  }
  SortUnique(spec.node_names);
  SortUnique(spec.patterns);
  SortUnique(spec.children);
  return spec;
}

std::string FabricOf(const api::ObjectMeta& meta) {
  if (const std::string* label = api::Find(meta.labels, kFabricKey)) return *label;
  if (const std::string* annotation = api::Find(meta.annotations, kFabricKey)) return *annotation;
  return {};
}

std::string JoinNames(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesInMessage);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += (i + 1 == names.size()) ? " and " : ", ";
    text += names[i];
  }
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace hopwise::topology
