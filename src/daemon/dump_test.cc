// What leaves the cluster in a dump, and what must not.
#include "daemon/dump.h"

#include <string>

#include <gtest/gtest.h>

namespace hopwise::daemon {
namespace {

TEST(Prune, KeepsWhatASchedulerReadsAndNoSecret) {
  const json::Json pod = json::ParseJson(R"({
    "metadata": {"name": "a", "managedFields": [{"manager": "SECRET"}],
      "annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "w",
        "kubectl.kubernetes.io/last-applied-configuration": "SECRET", "vault/token": "SECRET",
        "evilvolcano.sh/x": "SECRET"}},
    "spec": {"schedulerName": "volcano", "imagePullSecrets": [{"name": "SECRET"}],
      "containers": [{"name": "c", "command": ["SECRET"], "args": ["SECRET"],
        "env": [{"name": "TOKEN", "value": "SECRET"}],
        "resources": {"requests": {"nvidia.com/gpu": "8"}}}],
      "initContainers": [{"name": "i", "env": [{"name": "T", "value": "SECRET"}]}],
      "volumes": [{"name": "s", "secret": {"secretName": "SECRET"}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]},
    "status": {"phase": "Pending", "containerStatuses": [{"state": "SECRET"}]}})")
                             .value();
  const std::string text = json::Dump(Prune(pod));
  EXPECT_EQ(text.find("SECRET"), std::string::npos) << text;
  for (const char* kept : {"group-name", "task-spec", "volcano", "nvidia.com/gpu", "data"}) {
    EXPECT_NE(text.find(kept), std::string::npos) << kept;
  }
}

TEST(Prune, LeavesOtherKindsWhole) {
  const json::Json node =
      json::ParseJson(
          R"({"metadata":{"name":"n","labels":{"rack":"r1"}},"spec":{"unschedulable":true}})")
          .value();
  EXPECT_EQ(Prune(node), node);
}

}  // namespace
}  // namespace hopwise::daemon
