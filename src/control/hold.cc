#include "control/hold.h"

#include <algorithm>

#include <fmt/format.h>

namespace hopwise::control {
namespace {

// Of what would be deleted: another discovery is another token.
std::string TokenOf(const HyperNodePlan& plan) {
  std::string text;
  for (const HyperNodeWrite& write : plan.writes) {
    if (write.kind == HyperNodeWrite::Kind::kDelete) text += write.object.meta.name + '/';
  }
  return StableSuffix(text);
}

}  // namespace

Hold::Verdict Hold::Judge(const HyperNodePlan& plan, Time now, std::string_view confirmed) {
  const bool all = plan.goes == plan.owned;
  const bool many =
      plan.goes * 100 > plan.owned * static_cast<size_t>(options_.most_deleted_percent);
  if (plan.goes == 0 || (!all && !many)) {
    since_ = Time();
    return {};
  }
  if (!since_.set()) since_ = now;
  const std::string token = TokenOf(plan);
  const Time until = since_ + options_.believed_after;
  if (token == confirmed || now >= until) {
    since_ = Time();
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
