// What of a cluster made for Volcano behaves differently under Hopwise: the rules of `hopwise
// migrate check`. They look at objects alone, so that a dump will do.
//
// docs/migrating-from-volcano.md explains each difference; what Hopwise comes to serve goes out of
// the tables in migrate_rules.cc.
#pragma once

#include <string>
#include <vector>

#include "api/json.h"
#include "base/time.h"

namespace hopwise::cli {

struct Finding {
  std::string object;   // "Job ml/train"
  std::string field;    // "spec.tasks[0].topologyPolicy"
  std::string differs;  // what Volcano does and Hopwise does not, or does otherwise
  std::string todo;
};
using Findings = std::vector<Finding>;

// Of jobs, groups, queues, workloads, pods, HyperNodes, and of kinds that nobody serves here.
// Objects may come in any order.
void FindInObjects(const std::vector<json::Json>& objects, Findings& findings);

// Of Volcano's own installation: its configuration, and what of it still runs in its namespace.
void FindInInstallation(const std::vector<json::Json>& objects, const std::string& volcano_ns,
                        Time now, Findings& findings);

}  // namespace hopwise::cli
