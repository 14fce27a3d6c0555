#include "cli/job_view.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <ostream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/cluster_client.h"
#include "cli/output.h"
#include "cli/pod_text.h"
#include "cli/table.h"
#include "control/conditions.h"

namespace hopwise::cli {
namespace {

using json::Json;

// What belongs to a job. What cannot be read is left empty, and said.
struct Parts {
  Json group;  // its PodGroup; null when there is none
  std::vector<Json> pods, events;
};

void Line(Io& io, std::string_view label, const std::string& text) {
  io.out << fmt::format("{:<12} {}\n", fmt::format("{}:", label), Printable(text));
}

std::string TopologyText(const Json& job) {
  const Json* topology = json::Get(job, {"spec", "networkTopology"});
  if (topology == nullptr || !topology->is_object()) {
    return "no rule";
  }
  std::string text = TextOr(*topology, {"mode"}, "hard");
  if (const std::string name = json::Text(*topology, {"highestTierName"}); !name.empty()) {
    text += ", highest tier " + name;
  } else if (json::Get(*topology, {"highestTierAllowed"}) != nullptr) {
    text += ", highest tier " + Count(*topology, {"highestTierAllowed"});
  }
  return text;
}

std::string PhaseText(const Json& job) {
  std::string text =
      TextOr(job, {"status", "state", "phase"}, "no controller has looked at it yet");
  for (const std::string_view field : {"reason", "message"}) {
    const std::string more = json::Text(job, {"status", "state", field});
    text += more.empty() ? "" : ", " + more;
  }
  return text;
}

// Why the PodGroup is not placed, in the scheduler's words; "" when it is.
std::string WaitText(const Json& group) {
  const std::string phase = json::Text(group, {"status", "phase"});
  if (phase == "Running" || phase == "Completed") {
    return "";
  }
  const Json* why = control::ConditionOf(group, "Unschedulable");
  return why != nullptr && json::Text(*why, {"status"}) == "True"
             ? fmt::format("{}: {}", json::Text(*why, {"reason"}), json::Text(*why, {"message"}))
             : "";
}

void PrintHead(Io& io, const Json& job, const Parts& parts) {
  Line(io, "Name", json::Name(job));
  Line(io, "Namespace", json::Namespace(job));
  Line(io, "Queue", TextOr(job, {"spec", "queue"}, "default"));
  Line(io, "Scheduler", TextOr(job, {"spec", "schedulerName"}, "<none>"));
  Line(io, "Created",
       fmt::format("{}, {} ago", json::Text(job, {"metadata", "creationTimestamp"}),
                   AgeOf(job, io.now)));
  Line(io, "Phase", PhaseText(job));
  Line(io, "Topology", TopologyText(job));
  Line(io, "Minimum", Count(job, {"spec", "minAvailable"}));
  Line(io, "Retries",
       fmt::format("{} of {}", Count(job, {"status", "retryCount"}),
                   json::Number(job, {"spec", "maxRetry"}, 3)));
  std::string counts;
  for (const std::string_view field :
       {"pending", "running", "succeeded", "failed", "terminating", "unknown"}) {
    const int64_t count = json::Number(job, {"status", field}, 0);
    if (count > 0) {
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, field);
    }
  }
  Line(io, "Pods", counts.empty() ? "none" : counts);
  if (parts.group.is_object()) {
    Line(io, "PodGroup",
         fmt::format("{}, {}", json::Name(parts.group),
                     TextOr(parts.group, {"status", "phase"}, "Pending")));
  }
  if (const std::string wait = WaitText(parts.group); !wait.empty()) {
    Line(io, "Waits", wait);
  }
}

void PrintTasks(Io& io, const Json& job) {
  Table table({"TASK", "REPLICAS", "MIN", "PENDING", "RUNNING", "SUCCEEDED", "FAILED"});
  for (const Json& task : json::List(job, {"spec", "tasks"})) {
    const std::string name = json::Text(task, {"name"});
    const int64_t replicas = json::Number(task, {"replicas"}, 1);
    const auto count = [&](std::string_view phase) {
      return Count(job, {"status", "taskStatusCount", name, "phase", phase});
    };
    table.Add({name, std::to_string(replicas),
               std::to_string(json::Number(task, {"minAvailable"}, replicas)), count("Pending"),
               count("Running"), count("Succeeded"), count("Failed")});
  }
  io.out << "\n" << table.ToString(io.out_is_terminal);
}

void PrintPods(Io& io, const std::vector<Json>& pods) {
  if (pods.empty()) {
    return;
  }
  Table table({"POD", "READY", "STATUS", "RESTARTS", "NODE", "AGE"});
  for (const Json& pod : pods) {
    const PodText text = TextOfPod(pod);
    table.Add({json::Name(pod), fmt::format("{}/{}", text.ready, text.containers), text.status,
               std::to_string(text.restarts), TextOr(pod, {"spec", "nodeName"}, "<none>"),
               AgeOf(pod, io.now)});
  }
  io.out << "\n" << table.ToString(io.out_is_terminal);
}

// When it was last seen, as whichever of the three fields has it.
std::string SeenAt(const Json& event) {
  return TextOr(event, {"lastTimestamp"},
                TextOr(event, {"eventTime"}, json::Text(event, {"metadata", "creationTimestamp"})));
}

void PrintEvents(Io& io, std::vector<Json> events) {
  if (events.empty()) {
    return;
  }
  std::ranges::sort(events, {},
                    [](const Json& event) { return std::pair(SeenAt(event), json::Name(event)); });
  Table table({"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"});
  for (const Json& event : events) {
    const Result<Time> seen = ParseRfc3339(SeenAt(event));
    table.Add({seen ? AgeText(io.now - *seen) : "<unknown>", json::Text(event, {"type"}),
               json::Text(event, {"reason"}),
               fmt::format("{}/{}", json::Text(event, {"involvedObject", "kind"}),
                           json::Text(event, {"involvedObject", "name"})),
               json::Text(event, {"message"})});
  }
  io.out << "\n" << table.ToString(io.out_is_terminal);
}

// The PodGroup's name is that of the job and its uid; of old it was the job's alone.
Json GroupOf(ClusterClient& client, const Json& job, Io& io) {
  for (const std::string& name :
       {fmt::format("{}-{}", json::Name(job), json::Uid(job)), json::Name(job)}) {
    Answer<Json> group = client.Get(kube::kPodGroups, json::Namespace(job), name);
    if (group) {
      return *std::move(group);
    }
    if (group.error().failure != kube::Failure::kNotFound) {
      WarnUser(io, group.error().message);
      return {};
    }
  }
  return {};
}

std::vector<Json> ListOrWarn(ClusterClient& client, const kube::Resource& resource,
                             const ListQuery& query, Io& io) {
  Answer<std::vector<Json>> found = client.List(resource, query);
  if (!found) {
    WarnUser(io, found.error().message);
    return {};
  }
  return *std::move(found);
}

Parts PartsOf(ClusterClient& client, const Json& job, Io& io) {
  const std::string ns = json::Namespace(job);
  Parts parts;
  parts.group = GroupOf(client, job, io);
  parts.pods =
      ListOrWarn(client, kube::kPods, {ns, "volcano.sh/job-name=" + json::Name(job), ""}, io);
  for (const Json* about : std::initializer_list<const Json*>{&job, &parts.group}) {
    if (const std::string uid = json::Uid(*about); !uid.empty()) {
      std::ranges::move(
          ListOrWarn(client, kube::kEvents, {ns, "", "involvedObject.uid=" + uid}, io),
          std::back_inserter(parts.events));
    }
  }
  return parts;
}

}  // namespace

int JobView(const JobViewOptions& options, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  const Answer<Json> job = client->Get(kVcJobs, client->ns(), options.name);
  if (!job) {
    return Refused(io, job.error());
  }
  if (IsMachine(options.output)) {
    PrintOne(io, options.output, SingularName(kVcJobs), *job);
    return kOk;
  }
  Parts parts = PartsOf(*client, *job, io);
  PrintHead(io, *job, parts);
  PrintTasks(io, *job);
  PrintPods(io, parts.pods);
  PrintEvents(io, std::move(parts.events));
  return kOk;
}

}  // namespace hopwise::cli
