#include "cli/output.h"

#include <ostream>

#include <CLI/CLI.hpp>

#include "cli/table.h"
#include "cli/yaml.h"

namespace hopwise::cli {

using json::Json;

void AddOutputFlag(CLI::App* command, std::string& output, bool wide) {
  std::vector<std::string> known = {"json", "yaml", "name"};
  if (wide) {
    known.insert(known.begin(), "wide");
  }
  command->add_option("-o,--output", output, "In place of the table")->check(CLI::IsMember(known));
}

bool IsMachine(const std::string& output) {
  return output == "json" || output == "yaml" || output == "name";
}

void PrintOne(Io& io, const std::string& output, const std::string& singular, const Json& object) {
  if (output == "name") {
    io.out << singular << "/" << json::Name(object) << "\n";
  } else {
    io.out << (output == "json" ? json::Dump(object, 2) + "\n" : ToYaml(object));
  }
}

void PrintList(Io& io, const std::string& output, const std::string& singular,
               const std::vector<Json>& objects) {
  if (output == "name") {
    for (const Json& object : objects) {
      PrintOne(io, output, singular, object);
    }
    return;
  }
  Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array()}};
  for (const Json& object : objects) {
    list["items"].push_back(object);
  }
  PrintOne(io, output, singular, list);
}

std::string AgeOf(const Json& object, Time now) {
  const Result<Time> created = ParseRfc3339(json::Text(object, {"metadata", "creationTimestamp"}));
  return created ? AgeText(now - *created) : "<unknown>";
}

std::string TextOr(const Json& object, json::Path path, const std::string& fallback) {
  std::string text = json::Text(object, path);
  return text.empty() ? fallback : text;
}

std::string Count(const Json& object, json::Path path) {
  return std::to_string(json::Number(object, path, 0));
}

}  // namespace hopwise::cli
