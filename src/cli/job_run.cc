#include "cli/job_run.h"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/decode.h"
#include "base/quantity.h"
#include "cli/cluster_client.h"
#include "cli/output.h"

namespace hopwise::cli {
namespace {

using json::Json;

// "cpu=1000m,memory=100Mi"; "" is none.
Result<Json> Resources(std::string_view flag, std::string_view text) {
  Json amounts = Json::object();
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return Invalid(fmt::format("{}: \"{}\" is not <resource>=<amount>, such as cpu=2,memory=4Gi",
                                 flag, pair));
    }
    const std::string name(pair.substr(0, equals));
    const std::string amount(pair.substr(equals + 1));
    if (const auto parsed = ParseQuantity(amount); !parsed) {
      return tl::unexpected(parsed.error().Prefix(fmt::format("{}: {}", flag, name)));
    }
    amounts[name] = amount;
  }
  return amounts;
}

Error At(const Source& source, const api::Document& document, const std::string& message) {
  return {ErrorCode::kInvalid, fmt::format("{}: document {} (line {}): {}", source.name,
                                           document.index, document.line, message)};
}

Result<Json> JobOfDocument(const Source& source, const api::Document& document) {
  if (!document.error.empty()) {
    return tl::unexpected(At(source, document, document.error));
  }
  Result<Json> object = json::ParseJson(document.json);
  if (!object) {
    return tl::unexpected(At(source, document, object.error().message));
  }
  const std::string api_version = json::Text(*object, {"apiVersion"});
  const std::string kind = json::Text(*object, {"kind"});
  if (api_version != kube::ApiVersionOf(kVcJobs) || kind != kVcJobs.kind) {
    return tl::unexpected(
        At(source, document,
           fmt::format("is a {} of {}; job run creates Jobs of {} and nothing else: use kubectl "
                       "apply -f for it",
                       kind.empty() ? "thing without a kind" : kind,
                       api_version.empty() ? "no apiVersion" : api_version,
                       kube::ApiVersionOf(kVcJobs))));
  }
  if (json::Name(*object).empty() && json::Text(*object, {"metadata", "generateName"}).empty()) {
    return tl::unexpected(At(source, document, "metadata.name is missing"));
  }
  return object;
}

Result<std::vector<Json>> JobsOfFile(const std::string& path, Io& io) {
  const Result<std::vector<Source>> sources = ReadSources(io, path);
  if (!sources) {
    return tl::unexpected(sources.error());
  }
  std::vector<Json> jobs;
  for (const Source& source : *sources) {
    for (const api::Document& document : api::SplitDocuments(source.text)) {
      Result<Json> job = JobOfDocument(source, document);
      if (!job) {
        return tl::unexpected(job.error());
      }
      jobs.push_back(*std::move(job));
    }
  }
  if (jobs.empty()) {
    return Invalid(path + ": holds no Job");
  }
  return jobs;
}

// Where the file names no namespace it is the one of the flags. vcctl has a default for -n, so that
// there the file's counts.
Status PutInNamespace(const JobRunOptions& options, const std::string& ns, Json& job) {
  const std::string own = json::Namespace(job);
  if (own.empty()) {
    json::Set(job, {"metadata", "namespace"}, ns);
  } else if (options.tool == Tool::kHopwise && !options.cluster.ns.empty() && own != ns) {
    return Invalid(fmt::format("{}: its namespace is not {}, which -n names; leave one of them out",
                               json::Describe(job), ns));
  }
  return {};
}

Result<std::vector<Json>> Wanted(const JobRunOptions& options, const std::string& ns, Io& io) {
  if (options.file.empty()) {
    Result<Json> job = JobOfFlags(options, ns);
    if (!job) {
      return tl::unexpected(job.error());
    }
    return std::vector<Json>{*std::move(job)};
  }
  Result<std::vector<Json>> jobs = JobsOfFile(options.file, io);
  if (jobs) {
    for (Json& job : *jobs) {
      if (Status status = PutInNamespace(options, ns, job); !status) {
        return tl::unexpected(status.error());
      }
    }
  }
  return jobs;
}

}  // namespace

Result<Json> JobOfFlags(const JobRunOptions& options, const std::string& ns) {
  if (options.name.empty()) {
    return Invalid("job run: give the job a name with -N, or a file with -f");
  }
  if (options.replicas < 1 || options.min < 0 || options.min > options.replicas) {
    return Invalid(
        fmt::format("job run: --min {} of --replicas {} pods can never start; min must "
                    "be from 0 to replicas, and replicas at least 1",
                    options.min, options.replicas));
  }
  Result<Json> requests = Resources("--requests", options.requests);
  Result<Json> limits = Resources("--limits", options.limits);
  if (!requests || !limits) {
    return requests ? limits : requests;
  }
  Json container = {{"name", options.name},
                    {"image", options.image},
                    {"imagePullPolicy", "IfNotPresent"},
                    {"resources", {{"requests", *requests}, {"limits", *limits}}}};
  // The name that Volcano's admission gives to a task without one.
  Json task = {{"name", "default0"}, {"replicas", options.replicas}};
  task["template"]["spec"] = {{"restartPolicy", "Never"},
                              {"containers", Json::array({std::move(container)})}};
  return Json{{"apiVersion", kube::ApiVersionOf(kVcJobs)},
              {"kind", kVcJobs.kind},
              {"metadata", {{"name", options.name}, {"namespace", ns}}},
              {"spec",
               {{"schedulerName", options.scheduler},
                {"minAvailable", options.min},
                {"tasks", Json::array({std::move(task)})}}}};
}

int JobRun(const JobRunOptions& options, Io& io) {
  Result<ClusterClient> client = ClusterClient::Connect(options.cluster, io);
  if (!client) {
    Complain(io, client.error().message);
    return kUnusable;
  }
  const Result<std::vector<Json>> jobs = Wanted(options, client->ns(), io);
  if (!jobs) {
    Complain(io, jobs.error().message);
    return kUnusable;
  }
  int status = kOk;
  for (const Json& job : *jobs) {
    const Answer<Json> made = client->Create(kVcJobs, job);
    if (!made) {
      status = std::max(status, Refused(io, made.error()));
    } else if (IsMachine(options.output)) {
      PrintOne(io, options.output, SingularName(kVcJobs), *made);
    } else {
      io.out << SingularName(kVcJobs) << "/" << json::Name(*made) << " created\n";
    }
  }
  return status;
}

}  // namespace hopwise::cli
