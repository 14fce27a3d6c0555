#include "cli/pod.h"

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/cluster_client.h"
#include "cli/output.h"
#include "cli/pod_text.h"
#include "cli/table.h"

namespace hopwise::cli {
namespace {

using json::Json;

constexpr std::string_view kGroupKey = "scheduling.k8s.io/group-name";
constexpr const char* kJobKey = "volcano.sh/job-name";

constexpr const char* kListHelp = R"(
Pods that Volcano or Hopwise place: those of a job, of a PodGroup, or with their schedulerName.

Examples:
  hopwise pod list -j train
  hopwise pod list -A -q research -o wide)";

struct PodOptions {
  Tool tool = Tool::kHopwise;
  ClusterFlags cluster;
  std::string queue, job, labels, fields, output;
};

std::string Mark(const Json& pod, std::string_view key) {
  std::string value = json::Label(pod, key);
  return value.empty() ? json::Annotation(pod, key) : value;
}

bool IsOurs(const Json& pod) {
  const std::string scheduler = json::Text(pod, {"spec", "schedulerName"});
  return scheduler == "volcano" || scheduler == "hopwise" || !Mark(pod, kJobKey).empty() ||
         !json::Annotation(pod, kGroupKey).empty();
}

// Queues of PodGroups by "namespace/name".
using Queues = std::map<std::string, std::string>;

// A pod says its queue itself, or its PodGroup does.
std::string QueueOf(const Json& pod, const Queues& queues) {
  for (const std::string_view key : {"volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"}) {
    if (std::string queue = Mark(pod, key); !queue.empty()) {
      return queue;
    }
  }
  const auto found = queues.find(json::Namespace(pod) + "/" + json::Annotation(pod, kGroupKey));
  return found == queues.end() ? "default" : found->second;
}

Answer<Queues> ReadQueues(ClusterClient& client) {
  const Answer<std::vector<Json>> groups =
      client.List(kube::kPodGroups, {client.list_ns(), "", ""});
  if (!groups) {
    return tl::unexpected(groups.error());
  }
  Queues queues;
  for (const Json& group : *groups) {
    queues[json::Namespace(group) + "/" + json::Name(group)] =
        TextOr(group, {"spec", "queue"}, "default");
  }
  return queues;
}

Answer<std::vector<Json>> ReadPods(const PodOptions& options, ClusterClient& client) {
  std::string labels = options.labels;
  if (!options.job.empty()) {
    labels += fmt::format("{}{}={}", labels.empty() ? "" : ",", kJobKey, options.job);
  }
  Answer<std::vector<Json>> pods =
      client.List(kube::kPods, {client.list_ns(), labels, options.fields});
  if (!pods) {
    return pods;
  }
  std::erase_if(*pods, [](const Json& pod) { return !IsOurs(pod); });
  if (options.queue.empty()) {
    return pods;
  }
  const Answer<Queues> queues = ReadQueues(client);
  if (!queues) {
    return tl::unexpected(queues.error());
  }
  std::erase_if(*pods, [&](const Json& pod) { return QueueOf(pod, *queues) != options.queue; });
  return pods;
}

std::vector<std::string> Row(const PodOptions& options, const Json& pod, Time now) {
  const PodText text = TextOfPod(pod);
  std::vector<std::string> cells = {json::Name(pod),
                                    fmt::format("{}/{}", text.ready, text.containers), text.status,
                                    std::to_string(text.restarts), AgeOf(pod, now)};
  if (options.cluster.all_namespaces) {
    cells.insert(cells.begin(), json::Namespace(pod));
  }
  if (options.output == "wide") {
    cells.insert(cells.end(),
                 {TextOr(pod, {"spec", "nodeName"}, "<none>"), Mark(pod, kJobKey),
                  Mark(pod, "volcano.sh/task-spec"), json::Annotation(pod, kGroupKey)});
  }
  return cells;
}

int PodList(const PodOptions& options, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  const Answer<std::vector<Json>> pods = ReadPods(options, *client);
  if (!pods) {
    return Refused(io, pods.error());
  }
  if (IsMachine(options.output)) {
    PrintList(io, options.output, SingularName(kube::kPods), *pods);
    return kOk;
  }
  if (pods->empty()) {
    return NothingFound(io, options.tool, *client);
  }
  std::vector<std::string> headers = {"Name", "Ready", "Status", "Restart", "Age"};
  if (options.cluster.all_namespaces) {
    headers.insert(headers.begin(), "Namespace");
  }
  if (options.output == "wide") {
    headers.insert(headers.end(), {"Node", "Job", "Task", "PodGroup"});
  }
  Table table(std::move(headers));
  for (const Json& pod : *pods) {
    table.Add(Row(options, pod, io.now));
  }
  io.out << table.ToString(io.out_is_terminal);
  return kOk;
}

}  // namespace

void AddPodCommands(CLI::App& app, Tool tool, Commands& commands) {
  CLI::App* pod = app.add_subcommand("pod", "Pods of a cluster that belong to jobs and queues");
  pod->require_subcommand(1);
  CLI::App* command = pod->add_subcommand("list", "List pods");
  command->footer(kListHelp);
  const auto options = std::make_shared<PodOptions>();
  options->tool = tool;
  command->add_option("-q,--queue", options->queue, "Only those of this queue");
  command->add_option("-j,--job", options->job, "Only those of this Volcano Job");
  command->add_option("-l,--selector", options->labels, "Only those with these labels");
  command->add_option("--field-selector", options->fields,
                      "Only those with these fields, such as spec.nodeName=node1");
  AddNamespaceFlags(command, tool, options->cluster);
  AddOutputFlag(command, options->output, true);
  AddClusterFlags(command, tool, options->cluster);
  commands.push_back({command, [options](Io& io) { return PodList(*options, io); }});
}

}  // namespace hopwise::cli
