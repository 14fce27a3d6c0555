// `hopwise migrate check`: each difference is found, with its object and field, and what does not
// differ is not.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/migrate_rules.h"
#include "cli/test_api_server.h"

namespace hopwise::cli {
namespace {

using json::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// "Job ml/train spec.x": what was found of the manifests.
std::vector<std::string> Found(const std::string& manifests) {
  TestApiServer api;
  const Outcome outcome =
      api.Type({"migrate", "check", "-f", "-", "-o", "json"}, "hopwise", manifests);
  std::vector<std::string> found;
  const Json report = json::ParseOrNull(outcome.out);
  for (const Json& finding : json::List(report, {"findings"})) {
    found.push_back(json::Text(finding, {"object"}) + " " + json::Text(finding, {"field"}));
    EXPECT_FALSE(json::Text(finding, {"differs"}).empty());
    EXPECT_FALSE(json::Text(finding, {"todo"}).empty());
  }
  EXPECT_EQ(outcome.status, found.empty() ? 0 : 1) << outcome.err;
  return found;
}

constexpr const char* kLeaf = R"(
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf}
spec: {tier: 1, tierName: leaf, members: [{type: Node, selector: {regexMatch: {pattern: "^n"}}}]}
---
)";

TEST(MigrateRules, FindNothingInWhatIsServed) {
  EXPECT_THAT(Found(std::string(kLeaf) + R"(
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: ml, annotations: {volcano.sh/preemptable: "true"}}
spec:
  schedulerName: volcano
  networkTopology: {mode: hard, highestTierName: leaf}
  tasks:
  - name: w
    replicas: 2
    template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q}
spec: {weight: 2, capability: {cpu: 10}, parent: root}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml}
spec:
  template:
    metadata: {annotations: {volcano.sh/sla-waiting-time: 1h}}
    spec: {containers: [{name: c, image: i}]}
)"),
              IsEmpty());
}

TEST(MigrateRules, NameKindsThatNobodyServes) {
  const std::vector<std::string> found = Found(R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly, namespace: ml}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: ours, namespace: ml}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: flow, namespace: ml}
---
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata: {name: wide, namespace: ml}
---
apiVersion: nodeinfo.volcano.sh/v1alpha1
kind: Numatopology
metadata: {name: n1}
---
apiVersion: nodeinfo.volcano.sh/v1alpha1
kind: Numatopology
metadata: {name: n2}
)");
  EXPECT_THAT(found,
              ::testing::UnorderedElementsAre("CronJob ml/nightly -", "JobFlow ml/flow -",
                                              "HyperJob ml/wide -", "Numatopology (2 objects) -"));
}

TEST(MigrateRules, NameWhatOfAJobHasNoEffect) {
  const std::vector<std::string> found = Found(R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: ml, annotations: {sla-waiting-time: 1h}}
spec:
  tasks:
  - name: w
    topologyPolicy: single-numa-node
    template:
      metadata: {annotations: {volcano.sh/jdb-min-available: "1"}}
      spec:
        affinity:
          podAntiAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
            - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}
        containers:
        - {name: c, image: i, resources: {limits: {volcano.sh/gpu-memory: 1}}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: other, namespace: ml}
spec: {schedulerName: volcano-b, tasks: [{name: w, template: {spec: {containers: []}}}]}
)");
  EXPECT_THAT(found, Contains("Job ml/train metadata.annotations[sla-waiting-time]"));
  EXPECT_THAT(found, Contains("Job ml/train spec.tasks[0].topologyPolicy"));
  EXPECT_THAT(found, Contains("Job ml/train spec.tasks[0].template.metadata.annotations"
                              "[volcano.sh/jdb-min-available]"));
  EXPECT_THAT(found, Contains(HasSubstr("Job ml/train spec.tasks[0].template.spec.affinity."
                                        "podAntiAffinity")));
  EXPECT_THAT(found, Contains("Job ml/train spec.tasks[0].template.spec.containers.resources"
                              "[volcano.sh/gpu-memory]"));
  EXPECT_THAT(found, Contains("Job ml/other spec.schedulerName"));
  EXPECT_EQ(found.size(), 6U);
}

TEST(MigrateRules, NameHardRulesThatLapseUnderVolcano) {
  const std::vector<std::string> found = Found(std::string(kLeaf) + R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: misspelt, namespace: ml}
spec: {networkTopology: {mode: hard, highestTierName: laef}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: high, namespace: ml}
spec: {networkTopology: {highestTierAllowed: 5}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: bare, namespace: ml}
spec: {subGroupPolicy: [{name: s, networkTopology: {mode: hard}}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: soft, namespace: ml}
spec: {networkTopology: {mode: soft, highestTierName: laef}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: of-a-job
  namespace: ml
  ownerReferences:
  - {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: u, controller: true}
spec: {networkTopology: {mode: hard, highestTierName: laef}}
)");
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(
                         "PodGroup ml/misspelt spec.networkTopology.highestTierName",
                         "PodGroup ml/high spec.networkTopology.highestTierAllowed",
                         "PodGroup ml/bare spec.subGroupPolicy[0].networkTopology"));
}

TEST(MigrateRules, NameQueueSettingsThatAreReadOtherwise) {
  const std::vector<std::string> found = Found(R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q, annotations: {volcano.sh/hierarchy: root/q, volcano.sh/hierarchy-weights: 1/1}}
spec:
  deserved: {cpu: 1}
  guarantee: {resource: {cpu: 1}}
  capability: {cpu: 2, deviceclass/gpu.example.com: 3}
  affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a]}}
)");
  EXPECT_THAT(found,
              ::testing::UnorderedElementsAre(
                  "Queue q metadata.annotations[volcano.sh/hierarchy]",
                  "Queue q metadata.annotations[volcano.sh/hierarchy-weights]",
                  "Queue q spec.deserved", "Queue q spec.guarantee",
                  "Queue q spec.capability[deviceclass/gpu.example.com]", "Queue q spec.affinity"));
}

TEST(MigrateRules, NameWhatIsWrongWithTheFabric) {
  const std::vector<std::string> found = Found(R"(
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: self}
spec: {tier: 1, members: [{type: HyperNode, selector: {exactMatch: {name: self}}}]}
)");
  EXPECT_THAT(found, ::testing::ElementsAre("HyperNode self spec"));
}

// The configuration that Volcano's chart installs, a webhook, and programs that still run.
constexpr const char* kInstallation = R"(
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate, shuffle"
    tiers:
    - plugins: [{name: priority}, {name: gang}, {name: sla}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: volcano-scheduler, namespace: volcano-system}
spec:
  template:
    spec:
      containers:
      - name: s
        image: docker.io/volcanosh/vc-scheduler:v1.15.0
        args: ["--logtostderr", "--schedule-period=1s", "--node-selector=a:b", "-v=3"]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stopped, namespace: volcano-system}
spec: {replicas: 0, template: {spec: {containers: [{name: s, image: vc-controller-manager}]}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: volcano-admission-service-jobs-validate}
webhooks:
- name: validatejob.volcano.sh
  clientConfig: {service: {name: volcano-admission-service, namespace: volcano-system}}
  rules: [{apiGroups: [batch.volcano.sh], resources: [jobs], apiVersions: ["*"], operations: ["*"]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: foreign}
webhooks:
- name: a.example.com
  clientConfig: {service: {name: a, namespace: b}}
  rules: [{apiGroups: [apps], resources: [deployments], apiVersions: ["*"], operations: ["*"]}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: vc-scheduler, namespace: volcano-system}
spec: {holderIdentity: host_1, leaseDurationSeconds: 15, renewTime: "2026-01-01T23:59:55.000000Z"}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: volcano, namespace: volcano-system}
spec: {holderIdentity: host_1, leaseDurationSeconds: 15, renewTime: "2025-01-01T23:59:55.000000Z"}
)";

TEST(MigrateRules, LookAtVolcanosInstallation) {
  const std::vector<std::string> found = Found(kInstallation);
  const std::string map = "ConfigMap volcano-system/volcano-scheduler-configmap ";
  EXPECT_THAT(found, Contains(map + "volcano-scheduler.conf: actions"));
  EXPECT_THAT(found, Contains(HasSubstr(map + "volcano-scheduler.conf: tiers[0].plugins[2]")));
  EXPECT_THAT(found, Contains(map + "volcano-scheduler.conf: tiers"));
  const std::string deployment = "Deployment volcano-system/volcano-scheduler ";
  EXPECT_THAT(found, Contains(deployment + "spec.replicas"));
  EXPECT_EQ(std::ranges::count(found, deployment + "spec.template.spec.containers[0].args"), 2);
  EXPECT_THAT(found, Contains("ValidatingWebhookConfiguration "
                              "volcano-admission-service-jobs-validate "
                              "webhooks[validatejob.volcano.sh]"));
  EXPECT_THAT(found, Contains("Lease volcano-system/vc-scheduler spec.renewTime"));
  for (const std::string& each : found) {
    EXPECT_THAT(each, Not(HasSubstr("stopped")));
    EXPECT_THAT(each, Not(HasSubstr("foreign")));
    EXPECT_THAT(each, Not(HasSubstr("Lease volcano-system/volcano ")));
  }
}

TEST(MigrateCheck, SaysWhatItCouldNotLookAt) {
  TestApiServer api;  // serves no kind at all: then nothing differs
  const Outcome nothing = api.Type({"migrate", "check"});
  EXPECT_EQ(nothing.status, 0) << nothing.err;
  EXPECT_EQ(nothing.out, "nothing differs in 0 objects\n");
  api.Refuse("GET /api/v1/nodes", 403, "Forbidden", "nodes is forbidden: User \"eve\" cannot");
  const Outcome outcome = api.Type({"migrate", "check"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("not looked at: cannot list nodes: forbidden: User \"eve\""));
  EXPECT_EQ(outcome.out, "nothing differs in 0 objects; 1 kinds could not be looked at\n");
}

TEST(MigrateCheck, ANamespaceThatIsNotThereWasNotLookedAt) {
  TestApiServer api;
  api.Refuse("GET /api/v1/namespaces/nope", 404, "NotFound", "namespaces \"nope\" not found",
             "nope");
  const Outcome outcome = api.Type({"migrate", "check", "--volcano-namespace", "nope"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the namespace nope does not exist"));
}

TEST(MigrateCheck, FoldsRowsThatSayTheSame) {
  std::string manifests;
  for (int i = 0; i < 8; ++i) {
    manifests += "apiVersion: v1\nkind: Node\nmetadata: {name: n" + std::to_string(i) +
                 ", labels: {volcano.sh/nodegroup-name: a}}\n---\n";
  }
  TestApiServer api;
  const Outcome outcome = api.Type({"migrate", "check", "-f", "-"}, "hopwise", manifests);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("\nNode n0 and 7 more   metadata.labels"));
  EXPECT_THAT(outcome.out, HasSubstr("\n8 differences in 8 objects\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("Node n3")));
}

TEST(MigrateCheck, RefusesFilesThatCannotBeRead) {
  TestApiServer api;
  const Outcome outcome = api.Type({"migrate", "check", "-f", "-"}, "hopwise", "a: [");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("<stdin>: document 1 (line 1)"));
}

}  // namespace
}  // namespace hopwise::cli
