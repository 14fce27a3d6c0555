// CronJobs: a schedule that can be read, a time zone that is known, and a Job that could be made.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "control/admission_rules.h"

namespace hopwise::control {
namespace {

// Kubernetes: the names of its Jobs are longer by a dash and ten digits.
constexpr size_t kLongestCronName = 52;

struct CronField {
  std::string_view name;
  int least = 0, most = 0;
  std::string_view words;  // three letters each, for least and what follows
};
constexpr std::array<CronField, 5> kFields = {{
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day of month", 1, 31, ""},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {"day of week", 0, 6, "sunmontuewedthufrisat"},
}};
constexpr std::array<std::string_view, 7> kMacros = {"@yearly", "@annually", "@monthly", "@weekly",
                                                     "@daily",  "@midnight", "@hourly"};
constexpr std::string_view kEvery = "@every ";

std::optional<int> NumberIn(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (text.empty() || error != std::errc() || end != text.end()) return std::nullopt;
  return number;
}

std::optional<int> ValueIn(const CronField& field, std::string_view text) {
  if (const std::optional<int> number = NumberIn(text)) return number;
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (size_t at = 0; lower.size() == 3 && at < field.words.size(); at += 3) {
    if (field.words.substr(at, 3) == lower) return field.least + static_cast<int>(at / 3);
  }
  return std::nullopt;
}

// One of the parts between commas: *, a value or a range, each with or without a step.
bool IsPart(const CronField& field, std::string_view part) {
  const size_t slash = part.find('/');
  if (slash != std::string_view::npos) {
    const std::optional<int> step = NumberIn(part.substr(slash + 1));
    if (!step || *step < 1) return false;
    part = part.substr(0, slash);
  }
  if (part == "*" || part == "?") return true;
  const size_t dash = part.find('-');
  const std::optional<int> first = ValueIn(field, part.substr(0, dash));
  const std::optional<int> last =
      dash == std::string_view::npos ? first : ValueIn(field, part.substr(dash + 1));
  return first && last && field.least <= *first && *first <= *last && *last <= field.most;
}

// "" or what is wrong with it.
std::string ScheduleProblem(std::string_view text) {
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    return "names a time zone; write that into timeZone";
  }
  if (text.starts_with(kEvery)) {
    const Result<Duration> every = ParseGoDuration(text.substr(kEvery.size()));
    return every && every->ns > 0 ? "" : "@every needs a duration above zero, such as 1h30m";
  }
  if (text.starts_with('@')) {
    const bool known = std::ranges::find(kMacros, text) != kMacros.end();
    return known ? "" : fmt::format("is none of {}", fmt::join(kMacros, ", "));
  }
  std::vector<std::string_view> parts;
  for (size_t begin = text.find_first_not_of(" \t"); begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(" \t", end);
  }
  if (parts.size() != kFields.size()) {
    return fmt::format(
        "has {} fields; needed are minute, hour, day of month, month and day of week",
        parts.size());
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string_view rest = parts[i];
    for (size_t begin = 0; begin <= rest.size();) {
      const size_t end = std::min(rest.find(',', begin), rest.size());
      if (!IsPart(kFields[i], rest.substr(begin, end - begin))) {
        return fmt::format("its {}, \"{}\", is not made of values from {} to {}", kFields[i].name,
                           rest, kFields[i].least, kFields[i].most);
      }
      begin = end + 1;
    }
  }
  return "";
}

// Area/Place: never a way to a file of another kind.
bool CanBeZone(std::string_view zone) {
  return !zone.empty() && zone.find("..") == std::string_view::npos && zone.front() != '/' &&
         std::ranges::all_of(zone, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '/' || c == '_' || c == '-' || c == '+';
         });
}

void CheckZone(const Json& object, const AdmissionContext& context, Findings& findings) {
  const Json* zone = Get(object, {"spec", "timeZone"});
  if (zone == nullptr || zone->is_null()) return;
  const std::string name = Text(object, {"spec", "timeZone"});
  const auto& knows = context.view.knows_time_zone;
  // "Local" is that of whatever machine the controller runs on.
  if (!CanBeZone(name) || name == "Local" || (knows != nullptr && !knows(name))) {
    findings.Refuse("spec.timeZone",
                    fmt::format("\"{}\" is no time zone, such as Europe/Berlin or UTC", name));
  }
}

}  // namespace

void AdmitCronJob(const AdmissionRequest& request, const AdmissionContext& context,
                  Findings& findings) {
  const Json& object = request.object;
  if (request.updates() && (IsLeaving(object) || SamePart(object, request.old_object, {"spec"}))) {
    return;
  }
  const std::string name = Name(object);
  if (request.creates() && name.size() > kLongestCronName) {
    findings.Refuse("metadata.name",
                    fmt::format("is {} characters long; at most {} are allowed, as its Jobs' names "
                                "are longer",
                                name.size(), kLongestCronName));
  }
  const std::string schedule = Text(object, {"spec", "schedule"});
  if (const std::string problem = ScheduleProblem(schedule); !problem.empty()) {
    findings.Refuse("spec.schedule", fmt::format("\"{}\" {}", schedule, problem));
  }
  CheckZone(object, context, findings);
  if (SamePart(object, request.old_object, {"spec", "jobTemplate"})) {
    if (request.creates()) findings.Refuse("spec.jobTemplate", "is missing: the Job to make");
    return;
  }
  // Its Jobs get names of their own, which are checked when they are made.
  Json job = Json::object();
  if (const Json* spec = Get(object, {"spec", "jobTemplate", "spec"})) job["spec"] = *spec;
  CheckNewJob(job, "spec.jobTemplate.", context, findings);
}

}  // namespace hopwise::control
