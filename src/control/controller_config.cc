#include "control/controller_config.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/decode.h"
#include "api/json.h"

namespace hopwise::control {
namespace {

using json::Json;

constexpr std::string_view kDiscoveries = "networkTopologyDiscovery";

bool IsOneOf(std::string_view key, std::initializer_list<std::string_view> known) {
  return std::ranges::find(known, key) != known.end();
}

class Reader {
 public:
  ControllerConfigReport Read(const Json& document) {
    WarnOfUnknown(document, "", {kDiscoveries});
    const Json* list = json::Get(document, {kDiscoveries});
    if (list != nullptr && !list->is_null() && !list->is_array()) {
      Refuse(kDiscoveries, "must be a list of sources");
    } else if (list != nullptr && list->is_array()) {
      std::set<std::string> seen;
      for (size_t i = 0; i < list->size(); ++i) {
        SourceSettings source = ReadSource((*list)[i], fmt::format("{}[{}]", kDiscoveries, i));
        if (!source.source.empty() && !seen.insert(source.source).second) {
          Refuse(fmt::format("{}[{}].source", kDiscoveries, i), source.source + " stands twice");
        }
        report_.config.sources.push_back(std::move(source));
      }
    }
    return std::move(report_);
  }

 private:
  void Refuse(std::string_view path, std::string_view why) {
    report_.errors.push_back(fmt::format("{}: {}", path, why));
  }
  void Warn(std::string_view path, std::string_view what) {
    report_.config.warnings.push_back(fmt::format("{}: {}", path, what));
  }
  void WarnOfUnknown(const Json& object, std::string_view path,
                     std::initializer_list<std::string_view> known) {
    if (!object.is_object()) return;
    for (const auto& [key, value] : object.items()) {
      if (!IsOneOf(key, known)) {
        Warn(path.empty() ? key : fmt::format("{}.{}", path, key), "nothing here is called so");
      }
    }
  }

  std::string ReadText(const Json& from, std::string_view key, const std::string& path) {
    const Json* value = json::Get(from, {key});
    if (value == nullptr || value->is_null()) return "";
    if (!value->is_string()) {
      Refuse(fmt::format("{}.{}", path, key), "must be a string");
      return "";
    }
    return value->get<std::string>();
  }
  bool ReadFlag(const Json& from, std::string_view key, const std::string& path) {
    const Json* value = json::Get(from, {key});
    if (value == nullptr || value->is_null()) return false;
    if (!value->is_boolean()) {
      Refuse(fmt::format("{}.{}", path, key), "must be true or false");
      return false;
    }
    return value->get<bool>();
  }
  void ReadDuration(const Json& from, std::string_view key, const std::string& path, Duration least,
                    Duration& into) {
    const std::string text = ReadText(from, key, path);
    if (text.empty()) return;
    const Result<Duration> duration = ParseGoDuration(text);
    if (!duration || *duration < least) {
      Refuse(fmt::format("{}.{}", path, key),
             fmt::format("{} is no duration of at least {}, such as 30s or 10m", text,
                         FormatGoDuration(least)));
    } else {
      into = *duration;
    }
  }

  SourceSettings ReadSource(const Json& entry, const std::string& path) {
    SourceSettings source;
    if (!entry.is_object()) {
      Refuse(path, "must be a map with source, enabled and config");
      return source;
    }
    WarnOfUnknown(entry, path,
                  {"source", "enabled", "interval", "credentials", "config", "mostDeletedPercent",
                   "believedAfter", "confirm"});
    source.source = ReadText(entry, "source", path);
    source.enabled = ReadFlag(entry, "enabled", path);
    ReadDuration(entry, "interval", path, kLeastDiscoveryInterval, source.interval);
    ReadDuration(entry, "believedAfter", path, Duration{}, source.hold.believed_after);
    source.confirm = ReadText(entry, "confirm", path);
    const int64_t percent =
        json::Number(entry, {"mostDeletedPercent"}, source.hold.most_deleted_percent);
    const Json* given = json::Get(entry, {"mostDeletedPercent"});
    const bool number = given == nullptr || given->is_number_integer();
    if (!number || percent < 0 || percent > 100) {
      Refuse(path + ".mostDeletedPercent", "must be a number from 0 to 100");
    } else {
      source.hold.most_deleted_percent = static_cast<int>(percent);
    }
    // What a source that is switched off lacks does no harm.
    const size_t errors = report_.errors.size();
    ReadConfigOf(entry, path, source);
    if (!source.enabled) {
      std::move(report_.errors.begin() + static_cast<ptrdiff_t>(errors), report_.errors.end(),
                std::back_inserter(report_.config.warnings));
      report_.errors.resize(errors);
    }
    return source;
  }

  void ReadConfigOf(const Json& entry, const std::string& path, SourceSettings& source) {
    static const Json kNone = Json::object();
    const Json* found = json::Get(entry, {"config"});
    const Json& config = found == nullptr || found->is_null() ? kNone : *found;
    if (!config.is_object()) {
      Refuse(path + ".config", "must be a map");
    } else if (source.source == kLabelSource) {
      ReadTypes(config, path + ".config", source);
    } else if (source.source == "ufm") {
      ReadUfm(entry, config, path, source.ufm);
    } else if (source.source.empty()) {
      Refuse(path + ".source", "is missing; label and ufm are served");
    } else {
      Refuse(path + ".source", source.source + " is not served; label and ufm are");
    }
  }

  void ReadTypes(const Json& config, const std::string& path, SourceSettings& source) {
    WarnOfUnknown(config, path, {"networkTopologyTypes"});
    const Json* types = json::Get(config, {"networkTopologyTypes"});
    const std::string at = path + ".networkTopologyTypes";
    if (types == nullptr || !types->is_object()) {
      Refuse(at, "must be a map from a type's name to its node labels, from the widest");
      return;
    }
    for (const auto& [name, labels] : types->items()) {
      LabelType type = {name, {}};
      if (!labels.is_array()) {
        Refuse(fmt::format("{}.{}", at, name), "must be a list of `nodeLabel: <key>`");
        continue;
      }
      for (size_t i = 0; i < labels.size(); ++i) {
        const std::string entry = fmt::format("{}.{}[{}]", at, name, i);
        WarnOfUnknown(labels[i], entry, {"nodeLabel"});
        type.labels.push_back(ReadText(labels[i], "nodeLabel", entry));
      }
      source.types.push_back(std::move(type));
    }
    if (const std::string problem = CheckLabelTypes(source.types); !problem.empty()) {
      Refuse(path, problem);
    }
  }

  void ReadUfm(const Json& entry, const Json& config, const std::string& path, UfmSettings& ufm) {
    WarnOfUnknown(config, path + ".config", {"endpoint", "insecureSkipVerify", "caFile"});
    ufm.endpoint = ReadText(config, "endpoint", path + ".config");
    ufm.insecure_skip_verify = ReadFlag(config, "insecureSkipVerify", path + ".config");
    ufm.ca_file = ReadText(config, "caFile", path + ".config");
    while (ufm.endpoint.ends_with('/')) ufm.endpoint.pop_back();
    if (ufm.endpoint.empty()) {
      Refuse(path + ".config.endpoint",
             "is missing: where UFM is, such as https://ufm.example.com");
    } else if (ufm.endpoint.find("://") == std::string::npos) {
      ufm.endpoint = "https://" + ufm.endpoint;
    } else if (!ufm.endpoint.starts_with("https://") && !ufm.endpoint.starts_with("http://")) {
      Refuse(path + ".config.endpoint", ufm.endpoint + " is no http or https address");
    }
    ufm.secret.ns = json::Text(entry, {"credentials", "secretRef", "namespace"});
    ufm.secret.name = json::Text(entry, {"credentials", "secretRef", "name"});
    if (ufm.secret.name.empty() || ufm.secret.ns.empty()) {
      Refuse(path + ".credentials.secretRef",
             "must name (name, namespace) a Secret with username and password");
    }
  }

  ControllerConfigReport report_;
};

}  // namespace

ControllerConfigReport ReadControllerConfig(std::string_view text) {
  const std::vector<api::Document> documents = api::SplitDocuments(text);
  if (documents.empty()) return {};
  const api::Document& first = documents.front();
  if (!first.error.empty()) return {{}, {first.error}};
  Result<Json> document = json::ParseJson(first.json);
  if (!document || !(document->is_object() || document->is_null())) {
    return {{}, {fmt::format("line {}: must be a map with {}", first.line, kDiscoveries)}};
  }
  ControllerConfigReport report = Reader().Read(*document);
  if (documents.size() > 1) {
    report.config.warnings.push_back(
        fmt::format("line {}: only the first document of the file counts", documents[1].line));
  }
  return report;
}

bool LooksLikeControllerConfig(std::string_view text) {
  const std::vector<api::Document> documents = api::SplitDocuments(text);
  return !documents.empty() &&
         json::Get(json::ParseOrNull(documents.front().json), {kDiscoveries}) != nullptr;
}

}  // namespace hopwise::control
