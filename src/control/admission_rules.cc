#include "control/admission_rules.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace hopwise::control {
namespace {

constexpr size_t kLongestLabel = 63;
constexpr size_t kLongestName = 253;

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Follows the names from `from`, depth first; the way back to a name that is on it is the cycle.
// `done` lead to none.
class CycleSearch {
 public:
  explicit CycleSearch(const std::map<std::string, std::vector<std::string>>& depends_on)
      : depends_on_(depends_on) {}

  std::string From(const std::string& start) {
    struct Step {
      const std::string* name;
      size_t next = 0;
    };
    std::vector<Step> way;
    const auto enter = [&](const std::string& name) {
      way.push_back({&name});
      on_way_.insert(name);
    };
    enter(start);
    while (!way.empty()) {
      Step& step = way.back();
      const auto at = depends_on_.find(*step.name);
      if (at == depends_on_.end() || step.next == at->second.size()) {
        on_way_.erase(*step.name);
        done_.insert(*step.name);
        way.pop_back();
        continue;
      }
      const std::string& next = at->second[step.next++];
      if (on_way_.contains(next)) {
        std::string text;
        for (auto from = std::ranges::find(way, next, [](const Step& s) { return *s.name; });
             from != way.end(); ++from) {
          text += *from->name + " -> ";
        }
        return text + next;
      }
      if (!done_.contains(next)) enter(next);
    }
    return "";
  }

 private:
  const std::map<std::string, std::vector<std::string>>& depends_on_;
  std::set<std::string> on_way_, done_;
};

// nullptr for what counts as not there.
const Json* Present(const Json& from, Path path) {
  const Json* value = Get(from, path);
  return value == nullptr || value->is_null() || (value->is_structured() && value->empty())
             ? nullptr
             : value;
}

}  // namespace

bool IsDnsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && IsLowerOrDigit(text.front()) &&
         IsLowerOrDigit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > kLongestName) return false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    // A part of a subdomain may be longer than a label.
    if (part.empty() || !IsLowerOrDigit(part.front()) || !IsLowerOrDigit(part.back()) ||
        !std::ranges::all_of(part, [](char c) { return IsLowerOrDigit(c) || c == '-'; })) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

std::string CycleIn(const std::map<std::string, std::vector<std::string>>& depends_on) {
  CycleSearch search(depends_on);
  for (const auto& [name, others] : depends_on) {
    if (std::string cycle = search.From(name); !cycle.empty()) return cycle;
  }
  return "";
}

bool SamePart(const Json& a, const Json& b, Path path) {
  const Json* in_a = Present(a, path);
  const Json* in_b = Present(b, path);
  if (in_a == nullptr || in_b == nullptr) return in_a == in_b;
  return *in_a == *in_b;
}

bool IsLeaving(const Json& object) {
  return !Text(object, {"metadata", "deletionTimestamp"}).empty();
}

void CheckTopology(const Json* topology, const std::string& path, Findings& findings) {
  if (topology == nullptr) return;
  const Json* tier = Get(*topology, {"highestTierAllowed"});
  const bool has_tier = tier != nullptr && !tier->is_null();
  if (has_tier && !Text(*topology, {"highestTierName"}).empty()) {
    findings.Refuse(path,
                    "highestTierAllowed and highestTierName exclude each other; leave one out");
  }
}

void CheckQueueOf(const std::string& name, const std::string& path, bool leaf,
                  const AdmissionContext& context, Findings& findings) {
  if (leaf && name == kRootQueue) {
    findings.Refuse(path, "the queue root holds queues and no jobs; name another");
    return;
  }
  const auto& queues = context.view.queues;
  const auto at = queues.find(name);
  if (at == queues.end()) {
    // The default queue counts as there: a scheduler makes it when it starts.
    if (name == context.settings.default_queue || name == kRootQueue) return;
    findings.Refuse(path, fmt::format("there is no queue {}; create it, or name another", name));
    findings.MissQueue(name);
    return;
  }
  const std::string& state = at->second.state;
  if (!state.empty() && state != kOpen) {
    findings.Refuse(path, fmt::format("the queue {} is {} and takes no jobs; open it, or name "
                                      "another",
                                      name, state));
  }
  if (!leaf) return;
  const auto child = std::ranges::find_if(queues, [&](const auto& entry) {
    return entry.second.parent == name && entry.first != name;
  });
  if (child != queues.end()) {
    findings.Refuse(path, fmt::format("the queue {} holds other queues, such as {}, and no jobs; "
                                      "name one without queues below it",
                                      name, child->first));
  }
}

}  // namespace hopwise::control
