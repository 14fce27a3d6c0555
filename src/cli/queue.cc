#include "cli/queue.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/bus.h"
#include "cli/cluster_client.h"
#include "cli/output.h"
#include "cli/table.h"

namespace hopwise::cli {
namespace {

using json::Json;

constexpr int64_t kMostWeight = 65'535;  // the CRD's
// Commands have a namespace and queues have none: vcctl's choice.
constexpr const char* kCommandNamespace = "default";

constexpr const char* kOperateHelp = R"(
open and close are orders to the queue controller, by a Command object; a closed queue takes no new
jobs. update writes the weight.

Examples:
  hopwise queue operate research -a close
  hopwise queue operate research -a update -w 4)";

struct QueueOptions {
  Tool tool = Tool::kHopwise;
  ClusterFlags cluster;
  std::string name, output, labels, state = "Open", action;
  int64_t weight = 0;  // 0: not given
};

// PodGroups of each queue by phase.
using PhaseCounts = std::map<std::string, std::map<std::string, int64_t>>;

PhaseCounts CountPhases(const std::vector<Json>& groups) {
  PhaseCounts counts;
  for (const Json& group : groups) {
    ++counts[TextOr(group, {"spec", "queue"}, "default")]
            [TextOr(group, {"status", "phase"}, "Pending")];
  }
  return counts;
}

std::vector<std::string> Headers(const QueueOptions& options) {
  std::vector<std::string> headers = {"Name",    "Weight",  "State",   "Parent",   "Inqueue",
                                      "Pending", "Running", "Unknown", "Completed"};
  if (options.output == "wide") {
    headers.insert(headers.end(), {"Priority", "Reclaimable", "Age"});
  }
  return headers;
}

std::vector<std::string> Row(const QueueOptions& options, const Json& queue, PhaseCounts& counts,
                             Time now) {
  const std::string name = json::Name(queue);
  std::vector<std::string> cells = {
      name, std::to_string(json::Number(queue, {"spec", "weight"}, 1)),
      TextOr(queue, {"status", "state"}, "Open"), json::Text(queue, {"spec", "parent"})};
  for (const char* phase : {"Inqueue", "Pending", "Running", "Unknown", "Completed"}) {
    cells.push_back(std::to_string(counts[name][phase]));
  }
  if (options.output == "wide") {
    cells.insert(cells.end(), {Count(queue, {"spec", "priority"}),
                               json::Flag(queue, {"spec", "reclaimable"}, true) ? "true" : "false",
                               AgeOf(queue, now)});
  }
  return cells;
}

// The counters in a Queue's status are no longer written by anybody: they are counted here.
int PrintQueues(const QueueOptions& options, ClusterClient& client, const std::vector<Json>& queues,
                Io& io) {
  Answer<std::vector<Json>> groups = client.List(kube::kPodGroups, {});
  if (!groups) {
    WarnUser(io, groups.error().message + "; the counts of jobs are left at 0");
    groups = std::vector<Json>{};
  }
  PhaseCounts counts = CountPhases(*groups);
  Table table(Headers(options));
  for (const Json& queue : queues) {
    table.Add(Row(options, queue, counts, io.now));
  }
  io.out << table.ToString(io.out_is_terminal);
  return kOk;
}

int QueueList(const QueueOptions& options, ClusterClient& client, Io& io) {
  const Answer<std::vector<Json>> queues = client.List(kube::kQueues, {"", options.labels, ""});
  if (!queues) {
    return Refused(io, queues.error());
  }
  if (IsMachine(options.output)) {
    PrintList(io, options.output, SingularName(kube::kQueues), *queues);
    return kOk;
  }
  if (queues->empty()) {
    (options.tool == Tool::kVcctl ? io.out : io.err)
        << (options.tool == Tool::kVcctl ? "" : "hopwise: ") << "No resources found\n";
    return kOk;
  }
  return PrintQueues(options, client, *queues, io);
}

int QueueGet(const QueueOptions& options, ClusterClient& client, Io& io) {
  const Answer<Json> queue = client.Get(kube::kQueues, "", options.name);
  if (!queue) {
    return Refused(io, queue.error());
  }
  if (IsMachine(options.output)) {
    PrintOne(io, options.output, SingularName(kube::kQueues), *queue);
    return kOk;
  }
  return PrintQueues(options, client, {*queue}, io);
}

void Told(Io& io, const std::string& name, std::string_view what) {
  io.out << SingularName(kube::kQueues) << "/" << name << " " << what << "\n";
}

// By a Command that the queue controller carries out.
int Order(ClusterClient& client, const Json& queue, bool open, Io& io) {
  const Answer<Json> made = client.Create(
      kCommands, CommandFor(queue, kCommandNamespace, open ? "OpenQueue" : "CloseQueue"));
  if (!made) {
    return Refused(io, made.error());
  }
  Told(io, json::Name(queue), open ? "is told to open" : "is told to close");
  return kOk;
}

int QueueCreate(const QueueOptions& options, ClusterClient& client, Io& io) {
  const int64_t weight = std::max<int64_t>(1, options.weight);
  const Json queue = {{"apiVersion", kube::ApiVersionOf(kube::kQueues)},
                      {"kind", kube::kQueues.kind},
                      {"metadata", {{"name", options.name}}},
                      {"spec", {{"weight", weight}}}};
  Answer<Json> made = client.Create(kube::kQueues, queue);
  if (!made) {
    return Refused(io, made.error());
  }
  Told(io, options.name, "created");
  (*made)["apiVersion"] = queue["apiVersion"];
  (*made)["kind"] = queue["kind"];
  return options.state == "Closed" ? Order(client, *made, false, io) : kOk;
}

int QueueOperate(const QueueOptions& options, ClusterClient& client, Io& io) {
  const bool update = options.action == "update" || (options.action.empty() && options.weight > 0);
  if (options.action.empty() && !update) {
    Complain(io, "queue operate: say what to do: -a open, -a close, or -a update with -w");
    return kUnusable;
  }
  if (update != (options.weight > 0)) {
    Complain(io, update ? "queue operate: -a update needs the new weight, -w"
                        : "queue operate: -w goes with -a update alone");
    return kUnusable;
  }
  if (update) {
    const Answer<Json> done = client.MergePatch(kube::kQueues, "", options.name,
                                                {{"spec", {{"weight", options.weight}}}});
    if (!done) {
      return Refused(io, done.error());
    }
    Told(io, options.name, fmt::format("has weight {}", options.weight));
    return kOk;
  }
  const Answer<Json> queue = client.Get(kube::kQueues, "", options.name);
  if (!queue) {
    return Refused(io, queue.error());
  }
  return Order(client, *queue, options.action == "open", io);
}

int QueueDelete(const QueueOptions& options, ClusterClient& client, Io& io) {
  const Answer<Json> gone = client.Delete(kube::kQueues, "", options.name);
  if (!gone) {
    return Refused(io, gone.error());
  }
  io.out << SingularName(kube::kQueues) << " \"" << options.name << "\" deleted\n";
  return kOk;
}

using Act = int (*)(const QueueOptions&, ClusterClient&, Io&);

int Run(const QueueOptions& options, Act act, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  return act(options, *client, io);
}

class Builder {
 public:
  Builder(CLI::App& queue, Tool tool, Commands& commands)
      : queue_(queue), tool_(tool), commands_(commands) {}

  CLI::App* Add(const char* name, const char* what, bool named, Act act) {
    CLI::App* command = queue_.add_subcommand(name, what);
    options_ = std::make_shared<QueueOptions>();
    options_->tool = tool_;
    if (named) {
      // vcctl's queue commands have no namespace, and the name at -n.
      command
          ->add_option(tool_ == Tool::kVcctl ? "-n,--name,NAME" : "-N,--name,NAME", options_->name,
                       "The queue's name")
          ->required(tool_ != Tool::kVcctl || act != QueueCreate);
    }
    AddClusterFlags(command, tool_, options_->cluster);
    commands_.push_back(
        {command, [options = options_, act](Io& io) { return Run(*options, act, io); }});
    return command;
  }
  // Of the command added last.
  [[nodiscard]] QueueOptions& options() { return *options_; }

 private:
  CLI::App& queue_;
  Tool tool_;
  Commands& commands_;
  std::shared_ptr<QueueOptions> options_;
};

CLI::Option* AddWeight(CLI::App* command, QueueOptions& options, const char* what) {
  return command->add_option("-w,--weight", options.weight, what)
      ->check(CLI::Range(int64_t{1}, kMostWeight));
}

}  // namespace

void AddQueueCommands(CLI::App& app, Tool tool, Commands& commands) {
  CLI::App* queue = app.add_subcommand("queue", "Queues of a cluster");
  queue->require_subcommand(1);
  Builder builder(*queue, tool, commands);

  CLI::App* command = builder.Add("create", "Create a queue", true, QueueCreate);
  if (tool == Tool::kVcctl) {
    builder.options().name = "test";
  }
  AddWeight(command, builder.options(), "Its share beside its siblings; default 1");
  command->add_option("-S,--state", builder.options().state, "default Open")
      ->check(CLI::IsMember({"Open", "Closed"}));

  command = builder.Add("get", "Show one queue", true, QueueGet);
  AddOutputFlag(command, builder.options().output, true);

  command = builder.Add("list", "List queues", false, QueueList);
  AddOutputFlag(command, builder.options().output, true);
  command->add_option("-l,--selector", builder.options().labels, "Only those with these labels");

  command =
      builder.Add("operate", "Open or close a queue, or change its weight", true, QueueOperate);
  command->footer(kOperateHelp);
  AddWeight(command, builder.options(), "The new weight, with -a update");
  command->add_option("-a,--action", builder.options().action, "What to do")
      ->check(CLI::IsMember({"open", "close", "update"}));

  builder.Add("delete", "Delete a queue", true, QueueDelete);
}

}  // namespace hopwise::cli
