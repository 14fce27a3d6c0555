// AdmissionReviews in and out, and the rules for PodGroups, Pods and HyperNodes.
#include "control/admission.h"

#include <algorithm>
#include <string>
#include <vector>

#include "control/fabric_trial.h"
#include "control/test_admission.h"

namespace hopwise::control {
namespace {

using ::testing::AllOf;
using testing::Desk;
using ::testing::ElementsAre;
using testing::ExpectProblem;
using testing::FromYaml;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RuleCase;
using ::testing::StartsWith;
using testing::With;

// --- reviews

std::string Review(std::string_view request) {
  return fmt::format(
      R"({{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}})", request);
}

constexpr std::string_view kGood =
    R"({"uid":"u","operation":"CREATE","name":"n","namespace":"ml",
        "resource":{"group":"batch.volcano.sh","version":"v1alpha1","resource":"jobs"},
        "object":{"kind":"Job"}})";

TEST(AdmissionReview, IsReadAsTheApiServerSendsIt) {
  const Result<AdmissionRequest> request = ReadReview(Review(kGood));
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->uid + request->operation + request->ns + request->name, "uCREATEmln");
  EXPECT_EQ(request->group, "batch.volcano.sh");
  EXPECT_EQ(Text(request->object, {"kind"}), "Job");
  EXPECT_TRUE(request->old_object.is_null());
}

TEST(AdmissionReview, WhatIsNoneIsToldSo) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "is not JSON"},
      {"{\"kind\":", "is not JSON"},
      {"[]", "no AdmissionReview"},
      {R"({"kind":"Pod","apiVersion":"v1"})", "its kind is \"Pod\", its apiVersion \"v1\""},
      {R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"})",
       "set admissionReviewVersions: [v1]"},
      {R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})", "has no request"},
      {Review("[]"), "has no request"},
      {Review("{}"), "lacks its uid, operation or resource"},
      {Review(R"({"uid":"u","operation":"CREATE","resource":{"resource":"jobs"}})"),
       "lacks its object"},
      {Review(R"({"uid":"u","operation":"LOOK","resource":{"resource":"jobs"},"object":{}})"),
       "operation is none of CREATE"},
      {Review(R"({"uid":"u","operation":"DELETE","resource":{"resource":"jobs"},"object":{}})"),
       "lacks its oldObject"},
      {std::string(1000, '['), "nested 1000 levels deep"},
  };
  for (const auto& [text, why] : cases) {
    const Result<AdmissionRequest> request = ReadReview(text);
    ASSERT_FALSE(request.has_value()) << text;
    EXPECT_THAT(request.error().message, HasSubstr(why));
  }
}

TEST(AdmissionReview, AnotherResourceIsNotJudged) {
  const Result<AdmissionRequest> request = ReadReview(Review(kGood));
  EXPECT_EQ(Mismatch(*FindAdmissionService("/jobs/validate"), *request), "");
  EXPECT_THAT(Mismatch(*FindAdmissionService("/pods/validate"), *request),
              HasSubstr("/pods/validate judges pods, and the request is about "
                        "jobs.batch.volcano.sh"));
  EXPECT_EQ(FindAdmissionService("/jobs"), nullptr);
}

TEST(AdmissionReview, TheAnswerBearsVerdictWordsAndPatch) {
  const auto base64 = [](std::string_view text) { return "<" + std::string(text) + ">"; };
  AdmissionAnswer answer;
  answer.uid = "u";
  EXPECT_EQ(ReviewText(answer, base64),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",)"
            R"("response":{"allowed":true,"uid":"u"}})");
  answer.patch = json::ParseOrNull(R"([{"op":"add","path":"/spec","value":1}])");
  answer.warnings = {"look"};
  EXPECT_EQ(ParseJson(ReviewText(answer, base64))->at("response"),
            FromYaml("{uid: u, allowed: true, warnings: [look], patchType: JSONPatch, patch: "
                     "'<[{\"op\":\"add\",\"path\":\"/spec\",\"value\":1}]>'}"));
  AdmissionAnswer no;
  no.uid = "u";
  no.allowed = false;
  no.code = 422;
  no.message = "spec: no";
  EXPECT_EQ(ParseJson(ReviewText(no, base64))->at("response"),
            FromYaml("{uid: u, allowed: false, status: {status: Failure, code: 422, reason: "
                     "Invalid, message: 'spec: no'}}"));
}

TEST(AdmissionReview, WhatAServiceDoesNotJudgeIsAllowed) {
  const Desk desk;
  const Json bad = FromYaml("{metadata: {name: j}, spec: {tasks: []}}");
  EXPECT_FALSE(desk.Create("/jobs/validate", bad).allowed);
  EXPECT_TRUE(desk.Ask("/jobs/validate", "DELETE", nullptr, bad).allowed);
  EXPECT_TRUE(desk.Ask("/jobs/validate", "CONNECT", bad).allowed);
  AdmissionRequest status;
  status.operation = "UPDATE";
  status.subresource = "status";
  status.object = bad;
  EXPECT_TRUE(
      Admit(*FindAdmissionService("/jobs/validate"), status, {desk.settings, desk.view}).allowed);
}

TEST(AdmissionReview, ManyProblemsAreCounted) {
  std::string tasks;
  for (int i = 0; i < 30; ++i) tasks += fmt::format("{{name: A{}}}, ", i);
  const AdmissionAnswer answer = Desk().Create(
      "/jobs/validate", FromYaml("{metadata: {name: j}, spec: {tasks: [" + tasks + "]}}"));
  EXPECT_THAT(answer.message, ::testing::EndsWith("; and 40 more"));
}

// --- PodGroups

TEST(AdmitPodGroup, ItsQueueTakesItAndItsTopologyHasOneLimit) {
  Desk desk;
  desk.Queue("{metadata: {name: open}}")
      .Queue("{metadata: {name: closing}, status: {state: Closing}}")
      .Queue("{metadata: {name: below}, spec: {parent: open}}");
  const Json good = FromYaml("{metadata: {name: g, namespace: ml}, spec: {queue: open}}");
  const std::vector<RuleCase> cases = {
      {"an open queue", "", ""},
      {"the default queue", "spec: {queue: default}", ""},
      {"an unknown queue", "spec: {queue: x}", "spec.queue: there is no queue x"},
      {"a closing queue", "spec: {queue: closing}", "spec.queue: the queue closing is Closing"},
      {"one limit", "spec: {networkTopology: {highestTierAllowed: 1}}", ""},
      {"two limits", "spec: {networkTopology: {highestTierAllowed: 1, highestTierName: x}}",
       "spec.networkTopology: highestTierAllowed and"},
      {"two limits of a part",
       "spec: {subGroupPolicy: [{name: a}, {networkTopology: {highestTierAllowed: 1, "
       "highestTierName: x}}]}",
       "spec.subGroupPolicy[1].networkTopology: highestTierAllowed and"},
  };
  for (const RuleCase& rule : cases) {
    ExpectProblem(desk.Create("/podgroups/validate", With(good, rule.change)), rule);
  }
}

TEST(AdmitPodGroup, ItsStatusIsWrittenWhateverItsQueueDoes) {
  const Json group = FromYaml("{metadata: {name: g}, spec: {queue: gone}}");
  const Desk desk;
  EXPECT_TRUE(
      desk.Update("/podgroups/validate", group, With(group, "status: {phase: Running}")).allowed);
  EXPECT_TRUE(
      desk.Update("/podgroups/validate", group, With(group, "spec: {minMember: 2}")).allowed);
  EXPECT_FALSE(
      desk.Update("/podgroups/validate", group, With(group, "spec: {queue: lost}")).allowed);
}

TEST(FillPodGroup, ANamespaceHasAQueueOfItsOwn) {
  Desk desk;
  desk.view.namespace_queues["ml"] = "team";
  const auto queue = [&](std::string_view yaml) {
    return Text(desk.Fill("/podgroups/mutate", FromYaml(yaml)), {"spec", "queue"});
  };
  EXPECT_EQ(queue("{metadata: {name: g, namespace: ml}, spec: {queue: default}}"), "team");
  EXPECT_EQ(queue("{metadata: {name: g, namespace: ml}, spec: {}}"), "team");
  EXPECT_EQ(queue("{metadata: {name: g, namespace: ml}, spec: {queue: other}}"), "other");
  EXPECT_EQ(queue("{metadata: {name: g, namespace: web}, spec: {queue: default}}"), "default");
}

// --- Pods

TEST(AdmitPod, ABudgetIsANumberOrAShareAndOneOfTwo) {
  const Json good = FromYaml("{metadata: {name: p}, spec: {schedulerName: volcano}}");
  const auto marks = [](std::string_view text) {
    return fmt::format("metadata: {{annotations: {{{}}}}}", text);
  };
  const std::vector<RuleCase> cases = {
      {"none", "", ""},
      {"a number", marks("volcano.sh/jdb-min-available: '2'"), ""},
      {"a share", marks("volcano.sh/jdb-max-unavailable: '99%'"), ""},
      {"zero", marks("volcano.sh/jdb-min-available: '0'"),
       "metadata.annotations[volcano.sh/jdb-min-available]: \"0\" is no number above zero"},
      {"all", marks("volcano.sh/jdb-max-unavailable: '100%'"),
       "metadata.annotations[volcano.sh/jdb-max-unavailable]: \"100%\" is no number"},
      {"a word", marks("volcano.sh/jdb-min-available: some"),
       "metadata.annotations[volcano.sh/jdb-min-available]: \"some\" is no number"},
      {"both", marks("volcano.sh/jdb-min-available: '1', volcano.sh/jdb-max-unavailable: '1'"),
       "metadata.annotations: volcano.sh/jdb-min-available and"},
      {"another scheduler's",
       "{metadata: {annotations: {volcano.sh/jdb-min-available: some}}, "
       "spec: {schedulerName: default-scheduler}}",
       ""},
  };
  for (const RuleCase& rule : cases) {
    ExpectProblem(Desk().Create("/pods/validate", With(good, rule.change)), rule);
  }
}

constexpr std::string_view kConf = R"(
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [ops, kube-ops]}
  schedulerName: default-scheduler
  labels: {node-type: management}
- resourceGroup: cpu
  object: {key: annotation, value: ["team/kind: cpu"]}
  tolerations: [{key: cpu, operator: Exists}]
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: gpu
  labels: {node-type: gpu}
)";

Desk WithGroups() {
  const AdmissionConfigReport report = ReadAdmissionConfig(kConf);
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_THAT(report.warnings, IsEmpty());
  Desk desk;
  desk.settings.config = report.config;
  return desk;
}

TEST(FillPod, ItsGroupSaysWhereItGoes) {
  const Desk desk = WithGroups();
  const auto spec = [&](std::string_view yaml) {
    return desk.Fill("/pods/mutate", FromYaml(yaml))["spec"];
  };
  EXPECT_EQ(spec("{metadata: {name: p, namespace: ops}, spec: {nodeSelector: {a: b}}}"),
            FromYaml("{nodeSelector: {a: b, node-type: management}, schedulerName: "
                     "default-scheduler}"));
  EXPECT_EQ(spec("{metadata: {name: p, namespace: ml, annotations: {team/kind: cpu}}, spec: "
                 "{tolerations: [{key: x}]}}"),
            FromYaml("{tolerations: [{key: x}, {key: cpu, operator: Exists}], affinity: "
                     "{nodeAffinity: {}}}"));
  EXPECT_EQ(spec("{metadata: {name: p, namespace: ml, annotations: {volcano.sh/resource-group: "
                 "gpu}}, spec: {}}"),
            FromYaml("{nodeSelector: {node-type: gpu}}"));
  EXPECT_EQ(spec("{metadata: {name: p, namespace: ml}, spec: {a: 1}}"), FromYaml("{a: 1}"));
}

TEST(FillPod, AnAffinityOfItsOwnStays) {
  const Json pod = WithGroups().Fill(
      "/pods/mutate", FromYaml("{metadata: {name: p, namespace: ml, annotations: {team/kind: "
                               "cpu}}, spec: {affinity: {podAffinity: {}}}}"));
  EXPECT_EQ(pod["spec"]["affinity"], FromYaml("{podAffinity: {}}"));
}

TEST(FillPod, TheGateIsPutInWhereItIsAskedForAndServed) {
  const Json pod = FromYaml(R"(
metadata:
  name: p
  annotations: {scheduling.volcano.sh/queue-allocation-gate: "true"}
spec: {schedulerName: volcano}
)");
  Desk desk;
  EXPECT_EQ(desk.Fill("/pods/mutate", pod), pod);
  desk.settings.gate_pods = true;
  const Json gated = desk.Fill("/pods/mutate", pod);
  EXPECT_EQ(gated["spec"]["schedulingGates"],
            json::ParseOrNull(R"([{"name":"scheduling.volcano.sh/queue-allocation-gate"}])"));
  EXPECT_EQ(desk.Fill("/pods/mutate", gated), gated);
  const Json other = With(pod, "spec: {schedulerName: default-scheduler}");
  EXPECT_EQ(desk.Fill("/pods/mutate", other), other);
}

TEST(AdmissionConfig, WhatCannotBeUsedIsNamedByItsPath) {
  const std::pair<const char*, const char*> cases[] = {
      {"resourceGroups: 1", "resourceGroups: must be a list"},
      {"- a", "line 1: expected an object"},
      {"a: [", "line "},
      {"resourceGroups: [1]", "resourceGroups[0]: must be a map"},
      {"resourceGroups: [{labels: {a: b}}]", "resourceGroups[0].resourceGroup: is missing"},
      {"resourceGroups: [{resourceGroup: g, object: {key: pod, value: [a]}}]",
       "resourceGroups[0].object.key: must be namespace or annotation"},
      {"resourceGroups: [{resourceGroup: g, object: {key: namespace}}]",
       "resourceGroups[0].object.value: must be a list"},
      {"resourceGroups: [{resourceGroup: g, object: {key: annotation, value: [a]}}]",
       "resourceGroups[0].object.value[0]: must be an annotation"},
      {"resourceGroups: [{resourceGroup: g, labels: {a: 1}}]",
       "resourceGroups[0].labels: must be a map of node labels"},
      {"resourceGroups: [{resourceGroup: g, tolerations: {}}]",
       "resourceGroups[0].tolerations: must be a list"},
      {"resourceGroups: [{resourceGroup: g, affinity: '{'}]",
       "resourceGroups[0].affinity: must be a pod's affinity"},
  };
  for (const auto& [text, problem] : cases) {
    const AdmissionConfigReport report = ReadAdmissionConfig(text);
    ASSERT_FALSE(report.errors.empty()) << text;
    EXPECT_THAT(report.errors.front(), StartsWith(problem));
  }
  EXPECT_THAT(ReadAdmissionConfig("").errors, IsEmpty());
  EXPECT_THAT(
      ReadAdmissionConfig("{resourceGroups: [{resourceGroup: g, colour: red}], x: 1}").warnings,
      ElementsAre("x: nothing here is called so",
                  "resourceGroups[0].colour: nothing here is called so"));
}

// --- HyperNodes

// s2 (tier 2) ── s0 (tier 1): n0 n1
//             └─ s1 (tier 1): n2 n3
// Further nodes: n4 n5.
struct FabricDesk : Desk {
  FabricTrial trial;

  FabricDesk() {
    for (const char* node : {"n0", "n1", "n2", "n3", "n4", "n5"}) trial.UpsertNode(node, {});
    Stand("s0", 1, {"n0", "n1"});
    Stand("s1", 1, {"n2", "n3"});
    Stand("s2", 2, {"/s0", "/s1"});
    view.faults_brought_by = [this](const api::HyperNode& next) {
      return trial.FaultsBroughtBy(next);
    };
  }
  FabricDesk(const FabricDesk&) = delete;
  FabricDesk& operator=(const FabricDesk&) = delete;

  // "/s0" is a child, others are nodes.
  static Json Manifest(const std::string& name, int tier, const std::vector<std::string>& members) {
    Json list = Json::array();
    for (const std::string& member : members) {
      const bool child = member.starts_with('/');
      list.push_back({{"type", child ? "HyperNode" : "Node"},
                      {"selector", {{"exactMatch", {{"name", member.substr(child ? 1 : 0)}}}}}});
    }
    return {{"apiVersion", "topology.volcano.sh/v1alpha1"},
            {"kind", "HyperNode"},
            {"metadata", {{"name", name}}},
            {"spec", {{"tier", tier}, {"members", std::move(list)}}}};
  }
  void Stand(const std::string& name, int tier, const std::vector<std::string>& members) {
    Result<api::Decoded> decoded = api::DecodeObject(Dump(Manifest(name, tier, members)));
    trial.UpsertHyperNode(std::get<api::HyperNode>(decoded->object));
  }
  AdmissionAnswer Add(const std::string& name, int tier, const std::vector<std::string>& members) {
    return Create("/hypernodes/validate", Manifest(name, tier, members));
  }
};

TEST(AdmitHyperNode, WhatCanNeverWorkIsRefused) {
  FabricDesk desk;
  EXPECT_THAT(desk.Add("x", 1, {}).message, StartsWith("spec.members: a HyperNode needs at least"));
  Json bad = FabricDesk::Manifest("x", 1, {"n4"});
  bad["spec"]["members"].push_back(
      FromYaml("{type: Node, selector: {regexMatch: {pattern: 'n[45'}}}"));
  EXPECT_THAT(desk.Create("/hypernodes/validate", bad).message,
              StartsWith("spec.members[1].selector.regexMatch.pattern: is no regular expression"));
  bad["spec"]["members"][1]["selector"]["regexMatch"]["pattern"] = "n[45]";
  EXPECT_TRUE(desk.Create("/hypernodes/validate", bad).allowed);
}

TEST(AdmitHyperNode, AGoodOneIsTakenWithoutAWord) {
  FabricDesk desk;
  const AdmissionAnswer answer = desk.Add("s3", 1, {"n4", "n5"});
  EXPECT_TRUE(answer.allowed);
  EXPECT_THAT(answer.warnings, IsEmpty());
}

struct FaultCase {
  const char* name;
  std::string object;
  int tier;
  std::vector<std::string> members;
  const char* words;
  bool isolates = true;
};

std::vector<FaultCase> FaultCases() {
  return {
      {"its own child", "x", 3, {"/x"}, "spec.members: HyperNode x is out: it names itself"},
      {"a second parent", "x", 2, {"/s0", "n4"}, "its child s0 is also a child of HyperNode s2"},
      {"a node of another", "x", 1, {"n0", "n4"}, "(Overlap)"},
      {"a tier that is not above", "x", 2, {"/s2"}, "spec.tier: HyperNode x is out: its tier 2"},
      {"a child that is not there", "x", 3, {"/s9", "n4"}, "(MissingChild)", false},
      {"no node that is there", "x", 1, {"n9"}, "(Empty)", false},
  };
}

TEST(AdmitHyperNode, WhatItBreaksIsAWarningByDefault) {
  for (const FaultCase& fault : FaultCases()) {
    FabricDesk desk;
    const AdmissionAnswer answer = desk.Add(fault.object, fault.tier, fault.members);
    EXPECT_TRUE(answer.allowed) << fault.name << ": " << answer.message;
    ASSERT_FALSE(answer.warnings.empty()) << fault.name;
    EXPECT_THAT(answer.warnings, ::testing::Contains(HasSubstr(fault.words))) << fault.name;
  }
}

TEST(AdmitHyperNode, WhatItBreaksIsRefusedOnRequest) {
  for (const FaultCase& fault : FaultCases()) {
    FabricDesk desk;
    desk.settings.refuse_hyper_node_faults = true;
    const AdmissionAnswer answer = desk.Add(fault.object, fault.tier, fault.members);
    EXPECT_EQ(answer.allowed, !fault.isolates) << fault.name;
    if (fault.isolates) EXPECT_THAT(answer.message, HasSubstr(fault.words)) << fault.name;
  }
}

TEST(AdmitHyperNode, ACycleOfTwoIsFoundWhenItIsClosed) {
  FabricDesk desk;
  desk.Stand("a", 4, {"/b"});
  const AdmissionAnswer answer = desk.Add("b", 3, {"/a"});
  EXPECT_THAT(answer.warnings,
              ::testing::Contains(AllOf(HasSubstr("HyperNode b is out"), HasSubstr("(Cycle)"))));
  EXPECT_THAT(answer.warnings, ::testing::Contains(HasSubstr("HyperNode a is out")));
}

TEST(AdmitHyperNode, FaultsThatWereThereBeforeAreNotItsOwn) {
  FabricDesk desk;
  desk.Stand("bad", 1, {"n0", "n5"});
  EXPECT_THAT(desk.Add("s3", 1, {"n4"}).warnings, IsEmpty());
  const Json bad = FabricDesk::Manifest("bad", 1, {"n0", "n5"});
  EXPECT_THAT(
      desk.Update("/hypernodes/validate", bad, With(bad, "metadata: {labels: {a: b}}")).warnings,
      IsEmpty());
}

TEST(AdmitHyperNode, AQuestionLeavesNothingBehind) {
  FabricDesk desk;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(desk.Add("x", 1, {"n0", "n4"}).warnings.size(), 1U) << i;
  EXPECT_THAT(desk.Add("s3", 1, {"n4", "n5"}).warnings, IsEmpty());
  // A change of s0 that is only asked about: n0 is still its own.
  const Json before = FabricDesk::Manifest("s0", 1, {"n0", "n1"});
  EXPECT_TRUE(
      desk.Update("/hypernodes/validate", before, FabricDesk::Manifest("s0", 1, {"n1"})).allowed);
  EXPECT_EQ(desk.Add("x", 1, {"n0", "n4"}).warnings.size(), 1U);
}

TEST(AdmitHyperNode, NodesAndHyperNodesComeAndGo) {
  FabricDesk desk;
  desk.trial.RemoveHyperNode("s0");
  EXPECT_THAT(desk.Add("x", 1, {"n0", "n4"}).warnings, IsEmpty());
  desk.trial.RemoveNode("n4");
  desk.trial.UpsertNode("n6", {{"rack", "r1"}});
  Json by_label = FabricDesk::Manifest("y", 1, {"n5"});
  by_label["spec"]["members"][0]["selector"] = FromYaml("{labelMatch: {matchLabels: {rack: r1}}}");
  EXPECT_THAT(desk.Create("/hypernodes/validate", by_label).warnings, IsEmpty());
  desk.trial.RemoveNode("n6");
  EXPECT_THAT(desk.Create("/hypernodes/validate", by_label).warnings,
              ElementsAre(HasSubstr("(Empty)")));
}

}  // namespace
}  // namespace hopwise::control
