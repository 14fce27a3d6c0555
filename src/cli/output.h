// Objects of a cluster as -o asks for them, and what several lists show alike.
#pragma once

#include <string>
#include <vector>

#include "api/json.h"
#include "base/time.h"
#include "cli/io.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the option parser's name
class App;
}

namespace hopwise::cli {

// -o, --output: wide, json, yaml or name; `wide` only where a table has more to show.
void AddOutputFlag(CLI::App* command, std::string& output, bool wide);
// Whether the output is for programs: no table.
bool IsMachine(const std::string& output);

// As a List, kubectl's way; `singular`: "job.batch.volcano.sh", for -o name.
void PrintList(Io& io, const std::string& output, const std::string& singular,
               const std::vector<json::Json>& objects);
void PrintOne(Io& io, const std::string& output, const std::string& singular,
              const json::Json& object);

// "3h20m"; "<unknown>" without a time of creation.
std::string AgeOf(const json::Json& object, Time now);
// The text at the path, or the fallback where it is absent or empty.
std::string TextOr(const json::Json& object, json::Path path, const std::string& fallback);
// A number as a cell: "0" where there is none.
std::string Count(const json::Json& object, json::Path path);

}  // namespace hopwise::cli
