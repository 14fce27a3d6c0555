// Requests to a cluster's API server that a command waits for. Every error is a sentence that names
// verb, resource and object, and what to do.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "api/json.h"
#include "base/result.h"
#include "cli/cluster_flags.h"
#include "cli/io.h"
#include "kube/errors.h"
#include "kube/resources.h"

namespace hopwise::cli {

using kube::kCommands;
using kube::kNamespaces;
using kube::kVcJobs;

// "job.batch.volcano.sh", as kubectl names an object of the kind.
std::string SingularName(const kube::Resource& resource);

// Not a Result: what failed decides what a command does next.
template <class T>
using Answer = tl::expected<T, kube::ApiError>;

struct ListQuery {
  std::string ns;              // "": all namespaces
  std::string labels, fields;  // selectors as kubectl takes them
};

class ClusterClient {
 public:
  // By the flags, through io.connect where that is set. Complains of what is wrong.
  static Result<ClusterClient> Connect(const ClusterFlags& flags, const Io& io);

  // What the flags say, else the context: never empty.
  [[nodiscard]] const std::string& ns() const { return ns_; }
  // "" with --all-namespaces.
  [[nodiscard]] std::string list_ns() const { return all_namespaces_ ? "" : ns_; }

  // All pages. Items have kind and apiVersion, and no managedFields.
  Answer<std::vector<json::Json>> List(const kube::Resource& resource, const ListQuery& query);
  Answer<json::Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name);
  // In the namespace that the object names.
  Answer<json::Json> Create(const kube::Resource& resource, const json::Json& object);
  Answer<json::Json> MergePatch(const kube::Resource& resource, const std::string& ns,
                                const std::string& name, const json::Json& change);
  Answer<json::Json> Delete(const kube::Resource& resource, const std::string& ns,
                            const std::string& name);
  // False only when the server says so.
  bool NamespaceExists(const std::string& ns);

 private:
  struct Call {
    kube::Method method;
    std::string_view verb;  // as RBAC names it
    std::string path, body;
    std::string_view content_type;
    std::string object;  // "ns/name", for messages
  };
  struct ObjectCall {
    kube::Method method;
    std::string_view verb;
    std::string ns, name;
    std::string_view query;
    std::string body;
    std::string_view content_type;
  };
  Answer<json::Json> Send(const kube::Resource& resource, Call call);
  Answer<json::Json> AskOf(const kube::Resource& resource, const ObjectCall& call);
  [[nodiscard]] kube::ApiError Advise(kube::ApiError error, bool answered) const;

  ApiServer server_;
  Duration timeout_;
  std::string ns_;
  bool all_namespaces_ = false;
};

// For commands: complains, and the exit status that the error stands for.
int Refused(Io& io, const kube::ApiError& error);
// After an empty list: says so, and says when it is the namespace that is missing. vcctl says it on
// standard output.
int NothingFound(Io& io, Tool tool, ClusterClient& client);

}  // namespace hopwise::cli
