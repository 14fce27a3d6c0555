#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/decode.h"

namespace hopwise::api {
namespace {

Result<Decoded> DecodeSpec(const std::string& spec) {
  return DecodeObject(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":)" + spec +
                      "}");
}
Pod PodOf(const std::string& spec) {
  auto decoded = DecodeSpec(spec);
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded ? std::get<Pod>(std::move(decoded->object)) : Pod();
}

TEST(DecodePodTest, TheRequestIsThatOfThePodAsAWhole) {
  const Pod pod = PodOf(R"({"initContainers":[
      {"restartPolicy":"Always","resources":{"requests":{"cpu":"50m"}}},
      {"resources":{"requests":{"cpu":"500m"}}}],
      "containers":[{"resources":{"requests":{"cpu":0.1,"memory":"1Gi"},
                                  "limits":{"nvidia.com/gpu":2}}},
                    {"resources":{"requests":{"cpu":"0"}}}],
      "overhead":{"memory":"1Mi"}})");
  EXPECT_EQ(
      pod.request,
      (ResourceList{{"cpu", 550}, {"memory", (1LL << 30U) + (1LL << 20U)}, {"nvidia.com/gpu", 2}}));
  EXPECT_FALSE(pod.best_effort);
}

TEST(DecodePodTest, ThePodLevelIsHeard) {
  EXPECT_EQ(PodOf(R"({"resources":{"requests":{"cpu":"2"}},
                      "containers":[{"resources":{"requests":{"cpu":"3"}}}]})")
                .request,
            (ResourceList{{"cpu", 2'000}}));
}

TEST(DecodePodTest, WhatAResizedPodHasIsFoundByTheNamesOfItsContainers) {
  const auto request = [](const std::string& status) {
    auto decoded = DecodeObject(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":)" + status +
        R"(,"spec":{"initContainers":[
        {"name":"side","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
        {"name":"early","resources":{"requests":{"cpu":"1"}}}],
        "containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}},
                      {"name":"b","resources":{"requests":{"cpu":"1"}}}]}})");
    EXPECT_TRUE(decoded) << decoded.error().message;
    return decoded ? AmountOf(std::get<Pod>(decoded->object).request, "cpu") : -1;
  };
  const std::string of_b =
      R"("containerStatuses":[{"name":"b","allocatedResources":{"cpu":"3"},
                               "resources":{"requests":{"cpu":"2"}}}])";
  EXPECT_EQ(request("{}"), 3'000);
  EXPECT_EQ(request("{" + of_b + "}"), 5'000);
  EXPECT_EQ(request(R"({"initContainerStatuses":[
      {"name":"side","resources":{"requests":{"cpu":"2"}}},
      {"name":"early","resources":{"requests":{"cpu":"9"}}}]})"),
            4'000);
  EXPECT_EQ(request(R"({"containerStatuses":[{"name":"b","allocatedResources":{"cpu":"3"}},
                                             {"name":"c","resources":{"requests":{"cpu":"7"}}}]})"),
            3'000)
      << "without what is there, what is granted says nothing";
  EXPECT_EQ(request(R"({"conditions":[{"type":"PodResizePending","status":"True",
      "reason":"Infeasible"}],"containerStatuses":[
      {"name":"a","resources":{"requests":{"cpu":"500m"}}}]})"),
            2'500);
}

TEST(DecodePodTest, RequestsOfZeroAreBestEffort) {
  EXPECT_TRUE(
      PodOf(R"({"containers":[{"resources":{"requests":{"cpu":"0","memory":0}}}]})").best_effort);
  EXPECT_FALSE(PodOf(R"({"containers":[{"resources":{"limits":{"cpu":"1m"}}}]})").best_effort);
}

TEST(DecodePodTest, HostPortsAreTakenFromEveryContainerThatRunsOn) {
  const auto ports = [](const std::string& spec) {
    std::vector<std::string> text;
    for (const HostPort& port : PodOf(spec).host_ports) {
      text.push_back(port.ip + "/" + port.protocol + "/" + std::to_string(port.port));
    }
    return text;
  };
  const std::string lists =
      R"("initContainers":[{"restartPolicy":"Always","ports":[{"hostPort":1,"protocol":"UDP"}]},
      {"ports":[{"hostPort":2}]}],"containers":[{"ports":[
      {"containerPort":80},{"containerPort":81,"hostPort":8081,"hostIP":"10.0.0.1"}]}])";
  EXPECT_EQ(ports("{" + lists + "}"), (std::vector<std::string>{"/UDP/1", "10.0.0.1/TCP/8081"}));
  EXPECT_EQ(ports("{" + lists + R"(,"hostNetwork":true})"),
            (std::vector<std::string>{"/UDP/1", "/TCP/80", "10.0.0.1/TCP/8081"}));
}

TEST(DecodePodTest, WhatWeCannotJudgeIsNamed) {
  const auto fields = [](const std::string& spec) {
    std::vector<std::string> text;
    for (const auto& constraint : PodOf(spec).unevaluated) text.push_back(constraint.field);
    return text;
  };
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"{}", {}},
      {R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}}})",
       {"spec.affinity.podAffinity"}},
      {R"({"affinity":{"podAntiAffinity":{
       "requiredDuringSchedulingIgnoredDuringExecution":[{}]}}})",
       {"spec.affinity.podAntiAffinity"}},
      {R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[],
       "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1}]}}})",
       {}},
      {R"({"topologySpreadConstraints":[{"whenUnsatisfiable":"ScheduleAnyway"}]})", {}},
      {R"({"topologySpreadConstraints":[{"whenUnsatisfiable":"ScheduleAnyway"},
       {"whenUnsatisfiable":"DoNotSchedule"}]})",
       {"spec.topologySpreadConstraints"}},
      {R"({"volumes":[{"name":"a","emptyDir":{}},{"persistentVolumeClaim":{"claimName":"x"},
       "name":"data"},{"name":"scratch","ephemeral":{}},
       {"name":"c","persistentVolumeClaim":null}]})",
       {"spec.volumes[data] (PersistentVolumeClaim)", "spec.volumes[scratch] (ephemeral)"}},
      {R"({"resourceClaims":[{"name":"gpu"}]})", {"spec.resourceClaims"}},
      {R"({"resourceClaims":[]})", {}},
  };
  for (const auto& [spec, expected] : cases) EXPECT_EQ(fields(spec), expected) << spec;
}

TEST(DecodePodTest, RequiredNodeAffinityKeepsItsTerms) {
  const Pod pod = PodOf(R"({"nodeSelector":{"b":"2","a":"1"},"affinity":{"nodeAffinity":{
      "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":5}],
      "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
      {"matchExpressions":[{"key":"zone","operator":"In","values":["b","a"]},
                           {"key":"rank","operator":"Gt","values":["5"]}]},
      {"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]},{}]}}}})");
  EXPECT_EQ(pod.node_selector, (StringMap{{"a", "1"}, {"b", "2"}}));
  ASSERT_TRUE(pod.required_node_affinity);
  const auto& terms = *pod.required_node_affinity;
  ASSERT_EQ(terms.size(), 3U);
  ASSERT_EQ(terms[0].expressions.size(), 2U);
  EXPECT_EQ(terms[0].expressions[0].values, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(terms[0].expressions[1].op, Operator::kGt);
  ASSERT_EQ(terms[1].fields.size(), 1U);
  EXPECT_EQ(terms[1].fields[0].key, "metadata.name");
  EXPECT_TRUE(terms[2].expressions.empty() && terms[2].fields.empty());
  EXPECT_TRUE(PodOf(R"({"affinity":{"nodeAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}})")
                  .required_node_affinity->empty());
  EXPECT_FALSE(PodOf("{}").required_node_affinity);
}

TEST(DecodePodTest, AnUnknownTolerationOperatorToleratesNothing) {
  const auto decoded = DecodeSpec(R"({"tolerations":[{"key":"a","operator":"Exists"},
      {"key":"b","value":"c","effect":"NoExecute"},{"key":"d","operator":"Near"}]})");
  ASSERT_TRUE(decoded);
  const auto& tolerations = std::get<Pod>(decoded->object).tolerations;
  ASSERT_EQ(tolerations.size(), 2U);
  EXPECT_TRUE(tolerations[0].exists);
  EXPECT_EQ(tolerations[1].value, "c");
  EXPECT_EQ(decoded->warnings,
            (std::vector<std::string>{
                "spec.tolerations[2].operator: \"Near\" is no operator we know; not tolerated"}));
}

TEST(DecodePodTest, TheRestOfTheSpecAndStatus) {
  const auto decoded = DecodeObject(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"schedulerName":"hopwise",
      "priorityClassName":"high","priority":7,"preemptionPolicy":"Never",
      "restartPolicy":"OnFailure",
      "schedulingGates":[{"name":"a"},{"name":"b"}]},"status":{"phase":"Running",
      "nominatedNodeName":"n2","conditions":[{"type":"PodScheduled","status":"True"}]}})");
  ASSERT_TRUE(decoded);
  const Pod& pod = std::get<Pod>(decoded->object);
  EXPECT_EQ(pod.scheduler_name, "hopwise");
  EXPECT_EQ(pod.priority_class, "high");
  EXPECT_EQ(pod.priority, 7);
  EXPECT_EQ(pod.preemption_policy, "Never");
  EXPECT_EQ(pod.restart_policy, "OnFailure");
  EXPECT_EQ(pod.scheduling_gates, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(pod.nominated_node, "n2");
  ASSERT_EQ(pod.conditions.size(), 1U);
}

}  // namespace
}  // namespace hopwise::api
