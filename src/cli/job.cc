#include "cli/job.h"

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/bus.h"
#include "cli/cluster_client.h"
#include "cli/job_run.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/table.h"

namespace hopwise::cli {
namespace {

using json::Json;

constexpr const char* kRunHelp = R"(
Examples:
  hopwise job run -N train -i pytorch:2 -r 4 -m 4 -R cpu=8,nvidia.com/gpu=8 -L nvidia.com/gpu=8
  hopwise job run -f job.yaml -n ml)";

constexpr const char* kListHelp = R"(
Examples:
  hopwise job list -A
  hopwise job list -q research -l team=vision -o wide)";

constexpr const char* kSuspendHelp = R"(
The job's pods are ended and their room is free; `job resume` starts it anew. The order is a Command
object that the job controller carries out.)";

struct JobListOptions {
  Tool tool = Tool::kHopwise;
  ClusterFlags cluster;
  std::string queue, scheduler, labels, name_part, output;
};

int64_t Replicas(const Json& job) {
  int64_t sum = 0;
  for (const Json& task : json::List(job, {"spec", "tasks"})) {
    sum += json::Number(task, {"replicas"}, 1);
  }
  return sum;
}

std::string TypeOf(const Json& job) {
  constexpr std::string_view kType = "volcano.sh/job-type";
  std::string type = json::Label(job, kType);
  if (type.empty()) {
    type = json::Annotation(job, kType);
  }
  return type.empty() ? "Batch" : type;
}

std::string QueueOf(const Json& job) { return TextOr(job, {"spec", "queue"}, "default"); }

bool IsWanted(const JobListOptions& options, const Json& job) {
  return (options.queue.empty() || QueueOf(job) == options.queue) &&
         (options.scheduler.empty() ||
          json::Text(job, {"spec", "schedulerName"}) == options.scheduler) &&
         (options.name_part.empty() ||
          json::Name(job).find(options.name_part) != std::string::npos);
}

// vcctl's columns; wide has more behind them.
std::vector<std::string> Headers(const JobListOptions& options) {
  std::vector<std::string> headers = {"Name",      "Creation", "Phase",   "JobType",
                                      "Replicas",  "Min",      "Pending", "Running",
                                      "Succeeded", "Failed",   "Unknown", "RetryCount"};
  if (options.cluster.all_namespaces) {
    headers.insert(headers.begin(), "Namespace");
  }
  if (options.output == "wide") {
    headers.insert(headers.end(), {"Queue", "Scheduler", "Age"});
  }
  return headers;
}

std::vector<std::string> Row(const JobListOptions& options, const Json& job, Time now) {
  std::vector<std::string> cells = {
      json::Name(job),
      json::Text(job, {"metadata", "creationTimestamp"}).substr(0, std::size("2026-01-01") - 1),
      json::Text(job, {"status", "state", "phase"}),
      TypeOf(job),
      std::to_string(Replicas(job)),
      Count(job, {"spec", "minAvailable"}),
      Count(job, {"status", "pending"}),
      Count(job, {"status", "running"}),
      Count(job, {"status", "succeeded"}),
      Count(job, {"status", "failed"}),
      Count(job, {"status", "unknown"}),
      Count(job, {"status", "retryCount"})};
  if (options.cluster.all_namespaces) {
    cells.insert(cells.begin(), json::Namespace(job));
  }
  if (options.output == "wide") {
    cells.insert(cells.end(),
                 {QueueOf(job), json::Text(job, {"spec", "schedulerName"}), AgeOf(job, now)});
  }
  return cells;
}

int JobList(const JobListOptions& options, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  Answer<std::vector<Json>> jobs = client->List(kVcJobs, {client->list_ns(), options.labels, ""});
  if (!jobs) {
    return Refused(io, jobs.error());
  }
  std::erase_if(*jobs, [&](const Json& job) { return !IsWanted(options, job); });
  if (IsMachine(options.output)) {
    PrintList(io, options.output, SingularName(kVcJobs), *jobs);
    return kOk;
  }
  if (jobs->empty()) {
    return NothingFound(io, options.tool, *client);
  }
  Table table(Headers(options));
  for (const Json& job : *jobs) {
    table.Add(Row(options, job, io.now));
  }
  io.out << table.ToString(io.out_is_terminal);
  return kOk;
}

struct NamedOptions {
  ClusterFlags cluster;
  std::string name;
};

// suspend and resume: by a Command that the job controller carries out.
int OrderJob(const NamedOptions& options, std::string_view action, std::string_view done, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  const Answer<Json> job = client->Get(kVcJobs, client->ns(), options.name);
  if (!job) {
    return Refused(io, job.error());
  }
  const Answer<Json> made = client->Create(kCommands, CommandFor(*job, client->ns(), action));
  if (!made) {
    return Refused(io, made.error());
  }
  io.out << SingularName(kVcJobs) << "/" << options.name << " " << done << "\n";
  return kOk;
}

int JobDelete(const NamedOptions& options, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  const Answer<Json> gone = client->Delete(kVcJobs, client->ns(), options.name);
  if (!gone) {
    return Refused(io, gone.error());
  }
  io.out << SingularName(kVcJobs) << " \"" << options.name << "\" deleted\n";
  return kOk;
}

void AddName(CLI::App* command, std::string& name) {
  command->add_option("-N,--name,NAME", name, "The job's name")->required();
}

// A file says all of its jobs; a flag beside it would be lost. vcctl passes over it in silence.
bool DescribedTwice(const JobRunOptions& options, const std::vector<CLI::Option*>& described,
                    Io& io) {
  if (options.file.empty() || options.tool == Tool::kVcctl) {
    return false;
  }
  const auto given = std::ranges::find_if(
      described, [](const CLI::Option* option) { return option->count() > 0; });
  if (given == described.end()) {
    return false;
  }
  Complain(io, fmt::format("job run: {} describes a job, and so does -f; leave one of them out",
                           (*given)->get_name()));
  return true;
}

void AddRun(CLI::App& job, Tool tool, Commands& commands) {
  CLI::App* command = job.add_subcommand("run", "Create a job of flags or of a file");
  command->footer(kRunHelp);
  const auto options = std::make_shared<JobRunOptions>();
  options->tool = tool;
  const std::vector<CLI::Option*> described = {
      command->add_option("-N,--name,NAME", options->name, "The job's name"),
      command->add_option("-i,--image", options->image, "Image; default busybox"),
      command->add_option("-m,--min", options->min, "Pods that must start together; default 1"),
      command->add_option("-r,--replicas", options->replicas, "Pods; default 1"),
      command->add_option("-R,--requests", options->requests,
                          "Requests of a pod; default cpu=1000m,memory=100Mi"),
      command->add_option("-L,--limits", options->limits,
                          "Limits of a pod; default cpu=1000m,memory=100Mi"),
      command->add_option("-S,--scheduler", options->scheduler, "schedulerName; default volcano")};
  command->add_option("-f,--filename", options->file,
                      "Jobs as they stand there, in place of the flags above; - is standard input");
  AddNamespaceFlag(command, tool, options->cluster);
  AddOutputFlag(command, options->output, false);
  AddClusterFlags(command, tool, options->cluster);
  commands.push_back({command, [options, described](Io& io) {
                        return DescribedTwice(*options, described, io) ? kUnusable
                                                                       : JobRun(*options, io);
                      }});
}

void AddList(CLI::App& job, Tool tool, Commands& commands) {
  CLI::App* command = job.add_subcommand("list", "List jobs");
  command->footer(kListHelp);
  const auto options = std::make_shared<JobListOptions>();
  options->tool = tool;
  command->add_option("-q,--queue", options->queue, "Only those of this queue");
  command->add_option("-S,--scheduler", options->scheduler, "Only those of this schedulerName");
  if (tool == Tool::kVcctl) {
    command->add_option("--selector", options->name_part, "Only those with this in their name");
  } else {
    command->add_option("-l,--selector", options->labels, "Only those with these labels");
  }
  AddNamespaceFlags(command, tool, options->cluster);
  AddOutputFlag(command, options->output, true);
  AddClusterFlags(command, tool, options->cluster);
  commands.push_back({command, [options](Io& io) { return JobList(*options, io); }});
}

void AddView(CLI::App& job, Tool tool, Commands& commands) {
  CLI::App* command =
      job.add_subcommand("view", "Show a job, its pods, why it waits, and its Events");
  const auto options = std::make_shared<JobViewOptions>();
  AddName(command, options->name);
  AddNamespaceFlag(command, tool, options->cluster);
  AddOutputFlag(command, options->output, false);
  AddClusterFlags(command, tool, options->cluster);
  commands.push_back({command, [options](Io& io) { return JobView(*options, io); }});
}

CLI::App* AddNamed(CLI::App& job, Tool tool, const char* name, const char* what,
                   NamedOptions& options) {
  CLI::App* command = job.add_subcommand(name, what);
  AddName(command, options.name);
  AddNamespaceFlag(command, tool, options.cluster);
  AddClusterFlags(command, tool, options.cluster);
  return command;
}

}  // namespace

void AddJobCommands(CLI::App& app, Tool tool, Commands& commands) {
  CLI::App* job = app.add_subcommand("job", "Volcano Jobs of a cluster");
  job->require_subcommand(1);
  AddRun(*job, tool, commands);
  AddList(*job, tool, commands);
  AddView(*job, tool, commands);
  const auto suspend = std::make_shared<NamedOptions>();
  CLI::App* command =
      AddNamed(*job, tool, "suspend", "End a job's pods and keep the job", *suspend);
  command->footer(kSuspendHelp);
  commands.push_back({command, [suspend](Io& io) {
                        return OrderJob(*suspend, "AbortJob", "is told to stop", io);
                      }});
  const auto resume = std::make_shared<NamedOptions>();
  command = AddNamed(*job, tool, "resume", "Start a suspended job anew", *resume);
  commands.push_back({command, [resume](Io& io) {
                        return OrderJob(*resume, "ResumeJob", "is told to start anew", io);
                      }});
  const auto remove = std::make_shared<NamedOptions>();
  command = AddNamed(*job, tool, "delete", "Delete a job and its pods", *remove);
  commands.push_back({command, [remove](Io& io) { return JobDelete(*remove, io); }});
}

}  // namespace hopwise::cli
