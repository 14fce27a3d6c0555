#include "cli/migrate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "api/decode.h"
#include "cli/cluster_client.h"
#include "cli/migrate_rules.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/yaml.h"

namespace hopwise::cli {
namespace {

using json::Json;

constexpr const char* kCheckHelp = R"(
Looks at Volcano's kinds, at queues, jobs, workloads and pods, at its configuration, and at what of
it still runs. Writes nothing.

Examples:
  hopwise migrate check
  hopwise migrate check -o json
  kubectl get vcjobs,podgroups,queues,hypernodes,cm -A -o yaml | hopwise migrate check -f -

Exit status: 0 nothing differs; 1 something does, or something could not be looked at; 2 wrong use,
or no way to the cluster.)";

// Rows that say the same of so many objects of a kind become one.
constexpr size_t kMostAlike = 5;

struct MigrateOptions {
  ClusterFlags cluster;
  std::string volcano_ns = "volcano-system", output;
  std::vector<std::string> files;
};

// What is looked at. Pods of other schedulers are nobody's business here.
std::vector<std::pair<kube::Resource, ListQuery>> KindsOf(const std::string& volcano_ns) {
  const ListQuery all;
  const ListQuery own{volcano_ns, "", ""};
  return {
      {kVcJobs, all},
      {kube::kPodGroups, all},
      {kube::kQueues, all},
      {kube::kHyperNodes, all},
      {kube::kNodes, all},
      {kNamespaces, all},
      {kube::kPods, {"", "", "spec.schedulerName=volcano"}},
      {kube::kPods, {"", "", "spec.schedulerName=hopwise"}},
      {{"apps", "v1", "deployments", "Deployment"}, all},
      {{"apps", "v1", "statefulsets", "StatefulSet"}, all},
      {{"apps", "v1", "replicasets", "ReplicaSet"}, all},
      {{"apps", "v1", "daemonsets", "DaemonSet"}, all},
      {{"batch", "v1", "jobs", "Job"}, all},
      {{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"}, all},
      {{"batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob"}, all},
      {{"flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow"}, all},
      {{"flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate"}, all},
      {{"training.volcano.sh", "v1alpha1", "hyperjobs", "HyperJob"}, all},
      {{"nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "Numatopology", false}, all},
      {{"shard.volcano.sh", "v1alpha1", "nodeshards", "NodeShard", false}, all},
      {{"config.volcano.sh", "v1alpha1", "colocationconfigurations", "ColocationConfiguration"},
       all},
      {kube::kConfigMaps, own},
      {kube::kLeases, own},
      {{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration", false},
       all},
      {{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration", false},
       all},
  };
}

struct Looked {
  std::vector<Json> objects;
  std::vector<std::string> not_looked_at;  // sentences
};

// A kind that is not installed has no objects; one that may not be read is said.
int ReadCluster(const MigrateOptions& options, Looked& looked, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  if (!client->NamespaceExists(options.volcano_ns)) {
    looked.not_looked_at.push_back(
        fmt::format("Volcano's configuration and programs, as the namespace {} does not exist; "
                    "--volcano-namespace names another",
                    options.volcano_ns));
  }
  for (const auto& [resource, query] : KindsOf(options.volcano_ns)) {
    Answer<std::vector<Json>> found = client->List(resource, query);
    if (found) {
      std::ranges::move(*found, std::back_inserter(looked.objects));
    } else if (found.error().failure == kube::Failure::kForbidden) {
      looked.not_looked_at.push_back(found.error().message);
    } else if (found.error().failure != kube::Failure::kNoSuchKind) {
      Complain(io, found.error().message);
      return kUnusable;
    }
  }
  return kOk;
}

int ReadFiles(const MigrateOptions& options, Looked& looked, Io& io) {
  int status = kOk;
  for (const std::string& path : options.files) {
    const Result<std::vector<Source>> sources = ReadSources(io, path);
    if (!sources) {
      Complain(io, sources.error().message);
      return kUnusable;
    }
    for (const Source& source : *sources) {
      for (const api::Document& document : api::SplitDocuments(source.text)) {
        Json object = json::ParseOrNull(document.json);
        if (!document.error.empty() || !object.is_object()) {
          Complain(io, fmt::format("{}: document {} (line {}): {}", source.name, document.index,
                                   document.line,
                                   document.error.empty() ? "is no object" : document.error));
          status = kUnusable;
          continue;
        }
        looked.objects.push_back(std::move(object));
      }
    }
  }
  return status;
}

// Findings that differ in the object's name alone, when there are many, as one.
Findings Folded(const Findings& findings) {
  const auto kind_of = [](const Finding& finding) {
    return finding.object.substr(0, finding.object.find(' '));
  };
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<size_t>> alike;
  for (size_t i = 0; i < findings.size(); ++i) {
    alike[{kind_of(findings[i]), findings[i].field, findings[i].differs}].push_back(i);
  }
  std::vector<bool> gone(findings.size(), false);
  std::map<size_t, size_t> more;  // at the first of those alike: how many others it stands for
  for (const auto& [what, indexes] : alike) {
    if (indexes.size() > kMostAlike) {
      more[indexes.front()] = indexes.size() - 1;
      for (size_t k = 1; k < indexes.size(); ++k) {
        gone[indexes[k]] = true;
      }
    }
  }
  Findings folded;
  for (size_t i = 0; i < findings.size(); ++i) {
    if (gone[i]) {
      continue;
    }
    folded.push_back(findings[i]);
    if (const auto found = more.find(i); found != more.end()) {
      folded.back().object += fmt::format(" and {} more", found->second);
    }
  }
  return folded;
}

void PrintForPrograms(const MigrateOptions& options, const Findings& findings, const Looked& looked,
                      Io& io) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"object", finding.object},
                    {"field", finding.field},
                    {"differs", finding.differs},
                    {"todo", finding.todo}});
  }
  const Json report = {{"findings", std::move(list)}, {"notLookedAt", looked.not_looked_at}};
  io.out << (options.output == "json" ? json::Dump(report, 2) + "\n" : ToYaml(report));
}

void PrintForPeople(const Findings& findings, const Looked& looked, Io& io) {
  if (!findings.empty()) {
    Table table({"OBJECT", "FIELD", "DIFFERS", "TO DO"});
    for (const Finding& finding : Folded(findings)) {
      table.Add({finding.object, finding.field, finding.differs, finding.todo});
    }
    io.out << table.ToString(io.out_is_terminal) << "\n";
  }
  for (const std::string& sentence : looked.not_looked_at) {
    WarnUser(io, "not looked at: " + sentence);
  }
  io.out << (findings.empty() ? "nothing differs" : fmt::format("{} differences", findings.size()))
         << fmt::format(" in {} objects", looked.objects.size())
         << (looked.not_looked_at.empty()
                 ? "\n"
                 : fmt::format("; {} kinds could not be looked at\n", looked.not_looked_at.size()));
}

int MigrateCheck(const MigrateOptions& options, Io& io) {
  Looked looked;
  const int status =
      options.files.empty() ? ReadCluster(options, looked, io) : ReadFiles(options, looked, io);
  if (status != kOk) {
    return status;
  }
  Findings findings;
  FindInInstallation(looked.objects, options.volcano_ns, io.now, findings);
  FindInObjects(looked.objects, findings);
  if (options.output.empty()) {
    PrintForPeople(findings, looked, io);
  } else {
    PrintForPrograms(options, findings, looked, io);
  }
  return findings.empty() && looked.not_looked_at.empty() ? kOk : kFailed;
}

}  // namespace

void AddMigrateCommands(CLI::App& app, Commands& commands) {
  CLI::App* migrate = app.add_subcommand("migrate", "Come from Volcano");
  migrate->require_subcommand(1);
  CLI::App* command = migrate->add_subcommand(
      "check", "List what of a cluster would behave differently than under Volcano");
  command->footer(kCheckHelp);
  const auto options = std::make_shared<MigrateOptions>();
  command
      ->add_option("-f,--filename", options->files,
                   "Manifests, in place of a cluster; may be "
                   "repeated")
      ->allow_extra_args(false);
  command->add_option("--volcano-namespace", options->volcano_ns,
                      "Where Volcano is installed; default volcano-system");
  command->add_option("-o,--output", options->output, "In place of the table")
      ->check(CLI::IsMember({"json", "yaml"}));
  AddClusterFlags(command, Tool::kHopwise, options->cluster);
  commands.push_back({command, [options](Io& io) { return MigrateCheck(*options, io); }});
}

}  // namespace hopwise::cli
