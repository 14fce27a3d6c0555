#include "control/hold.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace hopwise::control {
namespace {

// Of what would be deleted, sorted, each between two slashes: "/a/b/".
std::string NamesOf(const HyperNodePlan& plan) {
  std::vector<std::string_view> names;
  for (const HyperNodeWrite& write : plan.writes) {
    if (write.kind == HyperNodeWrite::Kind::kDelete) names.push_back(write.object.meta.name);
  }
  std::ranges::sort(names);
  return fmt::format("/{}/", fmt::join(names, "/"));
}

// Whether all names of the first are among those of the second.
bool IsPartOf(std::string_view names, std::string_view of) {
  for (size_t at = 0; at + 1 < names.size();) {
    const size_t end = names.find('/', at + 1);
    if (of.find(names.substr(at, end - at + 1)) == std::string_view::npos) return false;
    at = end;
  }
  return true;
}

}  // namespace

Hold::Verdict Hold::Judge(const HyperNodePlan& plan, Time now, std::string_view confirmed) {
  const bool all = plan.goes == plan.owned;
  const bool many =
      plan.goes * 100 > plan.owned * static_cast<size_t>(options_.most_deleted_percent);
  if (plan.goes == 0) {
    since_ = Time();
    released_.clear();
    return {};
  }
  const std::string names = NamesOf(plan);
  if ((!all && !many) || IsPartOf(names, released_)) {
    since_ = Time();
    return {};
  }
  const std::string token = StableSuffix(names);
  if (!since_.set() || token_ != token) since_ = now;
  token_ = token;
  const Time until = since_ + options_.believed_after;
  if (token == confirmed || now >= until) {
    since_ = Time();
    released_ = names;
    return {};
  }
  Verdict verdict;
  verdict.held = true;
  verdict.token = token;
  verdict.until = until;
  verdict.why = fmt::format(
      "it would delete {} of {} HyperNodes, more than {} % at once; all stay as they are until {}, "
      "or until it is confirmed by `confirm: {}`",
      plan.goes, plan.owned, options_.most_deleted_percent, FormatRfc3339(until), token);
  return verdict;
}

}  // namespace hopwise::control
