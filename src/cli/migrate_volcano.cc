// The rules of migrate_rules.h about Volcano's own installation.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "cli/migrate_rules.h"
#include "cli/scheduler.h"
#include "control/controller_config.h"
#include "control/store.h"
#include "sched/config.h"

namespace hopwise::cli {
namespace {

using json::Json;

constexpr std::string_view kSchedulerConf = "volcano-scheduler.conf";
constexpr std::string_view kControllerConf = "volcano-controller.conf";

bool IsIn(const Json& object, std::string_view ns) { return json::Namespace(object) == ns; }

struct Program {
  std::string_view name, differs, todo;
};

constexpr std::array kPrograms = {
    Program{"vc-scheduler", "still runs: two schedulers would bind the same pods",
            "scale it to 0 before you start hopwise scheduler, which refuses to start beside it; "
            "--dry-run works beside it"},
    Program{"vc-controller-manager", "still runs: two controllers would write the same objects",
            "take from its --controllers what hopwise controller does, or scale it to 0"},
    Program{"vc-hypernode-controller-manager",
            "still runs: two controllers would write the same HyperNodes",
            "scale it to 0 when hopwise controller has its configuration"},
    Program{"vc-webhook-manager", "still runs: it judges by Volcano's rules",
            "stop it together with its webhook configurations"},
};

class Inspector {
 public:
  Inspector(const std::string& volcano_ns, Time now, Findings& findings)
      : ns_(volcano_ns), now_(now), findings_(findings) {}

  void Look(const Json& object) {
    const std::string kind = json::Text(object, {"kind"});
    shown_ = json::Describe(object);
    if (kind == "ConfigMap" && IsIn(object, ns_)) {
      LookAtConfigMap(object);
    } else if ((kind == "Deployment" || kind == "StatefulSet") && IsIn(object, ns_)) {
      LookAtProgram(object);
    } else if (kind == "Lease" && IsIn(object, ns_)) {
      LookAtLease(object);
    } else if (kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration") {
      LookAtWebhooks(object);
    }
  }

 private:
  void Add(std::string field, std::string differs, std::string todo) {
    findings_.push_back({shown_, std::move(field), std::move(differs), std::move(todo)});
  }

  // "tiers[0].plugins[1]: plugin … is not implemented": the path is the field.
  void AddSaid(std::string_view key, const std::string& said, const std::string& todo) {
    const size_t colon = said.find(": ");
    const bool has_path =
        colon != std::string::npos && said.find(' ') >= colon && !said.starts_with("line");
    Add(has_path ? fmt::format("{}: {}", key, said.substr(0, colon)) : std::string(key),
        has_path ? said.substr(colon + 2) : said, todo);
  }

  void AddReport(std::string_view key, std::string_view command,
                 const std::vector<std::string>& errors, const std::vector<std::string>& warnings) {
    for (const std::string& error : errors) {
      AddSaid(key, error, fmt::format("correct it: {} refuses the whole file with it", command));
    }
    for (const std::string& warning : warnings) {
      AddSaid(key, warning, "leave it out, or leave it: it has no effect here");
    }
  }

  void LookAtConfigMap(const Json& map) {
    if (const Json* text = json::Get(map, {"data", kSchedulerConf});
        text != nullptr && text->is_string()) {
      const sched::ConfigReport report = sched::ReadConfig(text->get_ref<const std::string&>());
      AddReport(kSchedulerConf, "hopwise scheduler", report.errors, report.config.warnings);
      const bool topology = std::ranges::find(report.config.plugins, "network-topology-aware") !=
                            report.config.plugins.end();
      if (report.errors.empty() && !topology) {
        Add(fmt::format("{}: tiers", kSchedulerConf),
            "without network-topology-aware Volcano lets hard topology rules lapse; Hopwise holds "
            "them",
            "add the plugin for its scores; soften the rules that were never meant to hold");
      }
    }
    if (const Json* text = json::Get(map, {"data", kControllerConf});
        text != nullptr && text->is_string()) {
      const control::ControllerConfigReport report =
          control::ReadControllerConfig(text->get_ref<const std::string&>());
      AddReport(kControllerConf, "hopwise controller", report.errors, report.config.warnings);
    }
  }

  // The words that start a container: image, command and arguments.
  static std::vector<std::string> WordsOf(const Json& container) {
    std::vector<std::string> words = {json::Text(container, {"image"})};
    for (const char* field : {"command", "args"}) {
      for (const Json& word : json::List(container, {field})) {
        if (word.is_string()) {
          words.push_back(word.get<std::string>());
        }
      }
    }
    return words;
  }

  void LookAtProgram(const Json& deployment) {
    if (json::Number(deployment, {"spec", "replicas"}, 1) == 0) {
      return;
    }
    const Json& containers = json::List(deployment, {"spec", "template", "spec", "containers"});
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::vector<std::string> words = WordsOf(containers[i]);
      const auto* program = std::ranges::find_if(kPrograms, [&](const Program& known) {
        return std::ranges::any_of(words, [&](const std::string& word) {
          return word.find(known.name) != std::string::npos;
        });
      });
      if (program == kPrograms.end()) {
        continue;
      }
      Add("spec.replicas", fmt::format("{} {}", program->name, program->differs),
          std::string(program->todo));
      if (program == kPrograms.begin()) {
        LookAtFlags(words, fmt::format("spec.template.spec.containers[{}].args", i));
      }
    }
  }

  // Whether a word of the command line sets the flag: "--a", "--a=b", "-a b".
  static bool Sets(const std::string& word, const char* flags) {
    std::string_view rest = flags;  // "-v,--v"
    while (!rest.empty()) {
      const std::string_view flag = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(flag.size() + 1, rest.size()));
      for (const std::string& line : Lines(word)) {
        if (line == flag || line.starts_with(std::string(flag) + "=") ||
            line.starts_with(std::string(flag) + " ")) {
          return true;
        }
      }
    }
    return false;
  }

  // Charts put a whole command line into one word.
  static std::vector<std::string> Lines(const std::string& word) {
    std::vector<std::string> lines;
    for (size_t at = word.find('-'); at != std::string::npos; at = word.find(" -", at + 1)) {
      lines.push_back(word.substr(word[at] == ' ' ? at + 1 : at));
    }
    return lines;
  }

  static std::vector<std::string> Given(const std::vector<std::string>& words,
                                        std::span<const char* const> flags) {
    std::vector<std::string> given;
    for (const char* flag : flags) {
      if (std::any_of(words.begin() + 1, words.end(),
                      [&](const std::string& word) { return Sets(word, flag); })) {
        given.emplace_back(flag);
      }
    }
    return given;
  }

  void LookAtFlags(const std::vector<std::string>& words, const std::string& field) {
    const std::vector<std::string> refused = Given(words, RefusedSchedulerFlags());
    if (!refused.empty()) {
      Add(field,
          fmt::format("hopwise scheduler refuses {}: it places on the whole cluster",
                      fmt::join(refused, ", ")),
          "leave it out, and keep pods away from nodes by taints");
    }
    const std::vector<std::string> ignored = Given(words, IgnoredSchedulerFlags());
    if (!ignored.empty()) {
      Add(field, fmt::format("hopwise scheduler takes and ignores {}", fmt::join(ignored, ", ")),
          "leave it out, or leave it");
    }
  }

  void LookAtLease(const Json& lease) {
    const std::string name = json::Name(lease);
    if (name != "vc-scheduler" && name != "volcano") {
      return;
    }
    const Result<Time> renewed = ParseRfc3339(json::Text(lease, {"spec", "renewTime"}));
    const int64_t seconds = json::Number(lease, {"spec", "leaseDurationSeconds"}, 15);
    const std::string holder = json::Text(lease, {"spec", "holderIdentity"});
    if (renewed && !holder.empty() && *renewed + Seconds(seconds) > now_) {
      Add("spec.renewTime",
          fmt::format("{} renews it: Volcano's scheduler is alive, and hopwise scheduler refuses "
                      "to start",
                      holder),
          "stop it first; hopwise scheduler --dry-run works beside it");
    }
  }

  void LookAtWebhooks(const Json& configuration) {
    for (const Json& hook : json::List(configuration, {"webhooks"})) {
      const std::string name = json::Text(hook, {"name"});
      const std::string service_ns = json::Text(hook, {"clientConfig", "service", "namespace"});
      const std::string service = json::Text(hook, {"clientConfig", "service", "name"});
      if (service.find("hopwise") != std::string::npos || !IsAboutVolcano(hook, service_ns)) {
        continue;
      }
      const std::string policy = json::Text(hook, {"failurePolicy"}, "Fail");
      Add(fmt::format("webhooks[{}]", name),
          fmt::format("still asks {}/{}{}", service_ns, service,
                      policy == "Fail" ? ": when that is gone, what it is asked about cannot be "
                                         "written (failurePolicy Fail)"
                                       : ", by Volcano's rules"),
          "delete the configuration when you stop Volcano's webhook manager");
    }
  }

  [[nodiscard]] bool IsAboutVolcano(const Json& hook, const std::string& service_ns) const {
    if (service_ns == ns_) {
      return true;
    }
    for (const Json& rule : json::List(hook, {"rules"})) {
      for (const Json& group : json::List(rule, {"apiGroups"})) {
        if (group.is_string() && group.get_ref<const std::string&>().ends_with(".volcano.sh")) {
          return true;
        }
      }
    }
    return false;
  }

  const std::string& ns_;
  Time now_;
  Findings& findings_;
  std::string shown_;
};

}  // namespace

void FindInInstallation(const std::vector<Json>& objects, const std::string& volcano_ns, Time now,
                        Findings& findings) {
  Inspector inspector(volcano_ns, now, findings);
  for (const Json& object : objects) {
    inspector.Look(object);
  }
}

}  // namespace hopwise::cli
