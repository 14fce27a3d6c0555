#include "cli/bus.h"

#include <cctype>

#include <fmt/format.h>

#include "cli/cluster_client.h"

namespace hopwise::cli {

using json::Json;

Json CommandFor(const Json& target, const std::string& ns, std::string_view action) {
  const Json reference = {{"apiVersion", json::Text(target, {"apiVersion"})},
                          {"kind", json::Text(target, {"kind"})},
                          {"name", json::Name(target)},
                          {"uid", json::Uid(target)},
                          {"controller", true}};
  std::string word(action);
  for (char& c : word) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return Json{{"apiVersion", kube::ApiVersionOf(kCommands)},
              {"kind", kCommands.kind},
              {"metadata",
               {{"generateName", fmt::format("{}-{}-", json::Name(target), word)},
                {"namespace", ns},
                {"ownerReferences", Json::array({reference})}}},
              {"action", action},
              {"target", reference}};
}

}  // namespace hopwise::cli
