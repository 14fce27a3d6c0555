// The decoder itself, and the core kinds.
#include "api/decode.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hopwise::api {
namespace {

// An object with `rest` behind its name, decoded as a T.
template <class T>
T As(const std::string& json) {
  auto decoded = DecodeObject(json);
  EXPECT_TRUE(decoded) << decoded.error().message << "\n" << json;
  if (!decoded || !std::holds_alternative<T>(decoded->object)) {
    ADD_FAILURE() << "another kind: " << json;
    return {};
  }
  return std::get<T>(std::move(decoded->object));
}
std::string ErrorOf(std::string_view json) {
  const auto decoded = DecodeObject(json);
  return decoded ? "no error" : decoded.error().message;
}
std::string PodWith(const std::string& spec) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":)" + spec + "}";
}

TEST(DecodeTest, EveryKindIsFoundByItsGroupInAnyVersion) {
  struct Case {
    const char* api_version;
    const char* kind;
    size_t index;
    const char* ns;
  };
  const Case cases[] = {
      {"v1", "Node", 1, ""},
      {"v1", "Pod", 2, "default"},
      {"v1", "Namespace", 3, ""},
      {"scheduling.k8s.io/v1", "PriorityClass", 4, ""},
      {"v1", "ResourceQuota", 5, "default"},
      {"policy/v1beta1", "PodDisruptionBudget", 6, "default"},
      {"v1", "PersistentVolume", 7, ""},
      {"v1", "PersistentVolumeClaim", 8, "default"},
      {"scheduling.volcano.sh/v1beta1", "PodGroup", 9, "default"},
      {"scheduling.x-k8s.io/v1alpha1", "PodGroup", 9, "default"},
      {"scheduling.volcano.sh/v2", "Queue", 10, ""},
      {"topology.volcano.sh/v1alpha1", "HyperNode", 11, ""},
      {"batch.volcano.sh/v1alpha1", "Job", 12, "default"},
      {"batch/v1", "Job", 13, "default"},
      {"apps/v1", "Deployment", 13, "default"},
      {"apps/v1", "ReplicaSet", 13, "default"},
      {"apps/v1beta2", "StatefulSet", 13, "default"},
      {"apps/v1", "DaemonSet", 13, "default"},
      {"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", 14, "default"},
      {"v1", "ConfigMap", 0, ""},
      {"metrics.k8s.io/v1", "Node", 0, ""},
      {"apps/v1", "Job", 0, ""},
      {"example.org/v1", "Queue", 0, ""},
  };
  for (const Case& c : cases) {
    const std::string json = std::string(R"({"apiVersion":")") + c.api_version + R"(","kind":")" +
                             c.kind + R"(","metadata":{"name":"x"}})";
    const auto decoded = DecodeObject(json);
    ASSERT_TRUE(decoded) << json;
    EXPECT_EQ(decoded->object.index(), c.index) << json;
    EXPECT_EQ(decoded->kind, c.kind);
    EXPECT_EQ(decoded->api_version, c.api_version);
    EXPECT_EQ(MetaOf(decoded->object).ns, c.ns) << json;
    EXPECT_TRUE(decoded->warnings.empty());
  }
}

TEST(DecodeTest, FieldsMayComeInAnyOrderAndMayBeNull) {
  const Pod pod = As<Pod>(
      R"({"status":{"phase":"Failed"},"spec":{"priority":null,"nodeName":"n1","nodeSelector":null,
      "containers":[null,{"resources":null}],"unknown":[{"deep":[1,2,{}]}]},
      "metadata":{"namespace":"ml","labels":null,"name":"p","uid":null},
      "kind":"Pod","extra":null,"apiVersion":"v1"})");
  EXPECT_EQ(pod.phase, PodPhase::kFailed);
  EXPECT_EQ(pod.node_name, "n1");
  EXPECT_EQ(pod.meta.ns, "ml");
  EXPECT_FALSE(pod.priority);
  EXPECT_TRUE(pod.best_effort);
  EXPECT_EQ(pod.scheduler_name, "default-scheduler");
}

TEST(DecodeTest, ClusterWideKindsHaveNoNamespaceWhateverTheySay) {
  EXPECT_EQ(As<Node>(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n","namespace":"x"}})")
                .meta.ns,
            "");
}

TEST(DecodeTest, MetadataIsReadWhole) {
  const Pod pod = As<Pod>(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u","resourceVersion":"77",
      "generateName":"p-","generation":3,"creationTimestamp":"1970-01-01T00:00:05Z",
      "deletionTimestamp":"1970-01-01T00:00:06Z",
      "labels":{"b\u002fc":"\"q\"\n\u00e9","a":"1","z":"","b\u002fc":"2"},
      "annotations":{"volcano.sh\/task":"w"},"managedFields":[{"fieldsV1":{"f:x":{}}}],
      "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"v",
      "controller":true,"blockOwnerDeletion":true}]}})");
  EXPECT_EQ(pod.meta.uid, "u");
  EXPECT_EQ(pod.meta.resource_version, "77");
  EXPECT_EQ(pod.meta.generate_name, "p-");
  EXPECT_EQ(pod.meta.generation, 3);
  EXPECT_EQ(pod.meta.creation.ns, 5'000'000'000);
  EXPECT_EQ(pod.meta.deletion.ns, 6'000'000'000);
  // Sorted, and of two equal keys the last counts.
  EXPECT_EQ(pod.meta.labels, (StringMap{{"a", "1"}, {"b/c", "2"}, {"z", ""}}));
  EXPECT_EQ(pod.meta.annotations, (StringMap{{"volcano.sh/task", "w"}}));
  ASSERT_NE(ControllerOf(pod.meta), nullptr);
  EXPECT_EQ(ControllerOf(pod.meta)->api_version, "batch/v1");
}

TEST(DecodeTest, AnErrorNamesThePathAndWhatWasExpected) {
  const std::pair<std::string, const char*> cases[] = {
      {R"({"kind":"Pod","metadata":{"name":"p"}})", "the apiVersion is missing"},
      {R"({"apiVersion":"v1","metadata":{"name":"p"}})", "the kind is missing"},
      {R"({"apiVersion":"v1","kind":"Pod"})", "metadata.name is missing"},
      {R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":""}})", "metadata.name is missing"},
      {R"({"apiVersion":"v1","kind":7,"metadata":{"name":"p"}})",
       "kind: expected a string, found a number"},
      {R"({"apiVersion":"v1","kind":"Pod","metadata":[]})",
       "metadata: expected an object, found a list"},
      {R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":true}})",
       "metadata.name: expected a string, found a boolean"},
      {R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a.b/c":1}}})",
       "metadata.labels[\"a.b/c\"]: expected a string, found a number"},
      {R"({"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"now"}})",
       "metadata.creationTimestamp: \"now\" is no RFC 3339 time like 2026-01-02T03:04:05Z"},
      {PodWith(R"({"nodeName":{}})"), "spec.nodeName: expected a string, found an object"},
      {PodWith(R"({"priority":"high"})"), "spec.priority: expected a whole number, found a string"},
      {PodWith(R"({"priority":1.5})"), "spec.priority: expected a whole number, found 1.5"},
      {PodWith(R"({"priority":2147483648})"),
       "spec.priority: expected a whole number of 32 bits, found 2147483648"},
      {PodWith(R"({"priority":99999999999999999999})"),
       "spec.priority: expected a whole number, found 99999999999999999999"},
      {PodWith(R"({"hostNetwork":"yes"})"), "spec.hostNetwork: expected a boolean, found a string"},
      {PodWith(R"({"containers":{}})"), "spec.containers: expected a list, found an object"},
      {PodWith(R"({"containers":[{},3]})"),
       "spec.containers[1]: expected an object, found a number"},
      {PodWith(R"({"containers":[{"resources":{"requests":{"nvidia.com/gpu":"x"}}}]})"),
       "spec.containers[0].resources.requests[\"nvidia.com/gpu\"]: \"x\" is no quantity (digits, "
       "then n u m k M G T P E, Ki … Ei or e3)"},
      {PodWith(R"({"initContainers":[{"resources":{"limits":{"cpu":-1}}}]})"),
       "spec.initContainers[0].resources.limits.cpu: expected an amount of at least 0, found -1"},
      {PodWith(R"({"overhead":{"memory":"99E"}})"),
       "spec.overhead.memory: \"99E\" is larger than any amount we count"},
      {PodWith(R"({"affinity":{"nodeAffinity":{
       "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
       {"matchExpressions":[{"key":"a","operator":"Near"}]}]}}}})"),
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms[0].matchExpressions[0].operator: expected In, NotIn, Exists, "
       "DoesNotExist, Gt or Lt, found \"Near\""},
  };
  for (const auto& [json, error] : cases) EXPECT_EQ(ErrorOf(json), error) << json;
}

TEST(DecodeTest, WhatIsNoJsonObjectIsRefused) {
  for (const std::string_view json :
       {"",
        " ",
        "null",
        "7",
        "\"x\"",
        "[]",
        "{",
        "}",
        "{}}",
        "{} {}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{'a':1}",
        "apiVersion: v1",
        "{\"apiVersion\":\"v1\"",
        "\xff{}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"\xff\"}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"\\ud800\"}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\nb\"}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}x",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}}"}) {
    EXPECT_FALSE(DecodeObject(json)) << json;
  }
}

TEST(DecodeTest, DepthAloneDoesNoHarm) {
  const size_t depth = 200'000;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  EXPECT_EQ(As<Pod>(PodWith(R"({"unknown":)" + deep + "}")).meta.name, "p");
  EXPECT_EQ(ErrorOf(PodWith(R"({"unknown":)" + std::string(depth, '['))).substr(0, 20),
            "spec: malformed JSON");
  EXPECT_EQ(ErrorOf(PodWith(R"({"containers":)" + deep + "}")),
            "spec.containers[0]: expected an object, found a list");
}

TEST(DecodeTest, ADecoderIsGoodForOneTextAfterTheOther) {
  Decoder decoder;
  EXPECT_FALSE(decoder.Decode("{"));
  EXPECT_TRUE(decoder.Decode(PodWith("{}")));
  EXPECT_FALSE(decoder.Decode(PodWith("7")));
  std::string text = PodWith(R"({"nodeName":"n"})");
  EXPECT_TRUE(decoder.DecodeInPlace(text));
  EXPECT_EQ(text, PodWith(R"({"nodeName":"n"})"));
  Decoder moved = std::move(decoder);
  EXPECT_TRUE(moved.Decode(text));
}

// What a list's visitor was handed, one line per item.
std::vector<std::string> ItemsOf(std::string json, Result<ListMeta>* meta = nullptr) {
  std::vector<std::string> lines;
  Decoder decoder;
  auto result = decoder.DecodeList(json, [&](size_t index, Result<Decoded>&& item) {
    lines.push_back(std::to_string(index) + " " +
                    (item ? item->kind + "/" + MetaOf(item->object).name : item.error().message));
  });
  if (!result) lines.push_back(result.error().message);
  if (meta != nullptr) *meta = std::move(result);
  return lines;
}

TEST(DecodeTest, ADecoderOfTextsKeepsThemWhole) {
  const std::string text =
      R"({"spec":{"a":[1,{"b":"\u00e4"}]},"metadata":{"name":"x","uid":"u","namespace":"ml"},)"
      R"("kind":"Pod","apiVersion":"v1"})";
  const Result<Decoded> decoded = Decoder(Decoder::As::kText).Decode(text);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->kind, "Pod");
  EXPECT_EQ(std::get<Unknown>(decoded->object).json, text);
  EXPECT_EQ(MetaOf(decoded->object).uid, "u");
  EXPECT_EQ(std::get<Unknown>(DecodeObject(R"({"kind":"X","apiVersion":"v1","metadata":{"name":
      "x"}})")
                                  ->object)
                .json,
            "");
}

TEST(DecodeListTest, ADecoderOfTextsKeepsEachItem) {
  std::string json = R"({"kind":"PodList","apiVersion":"v1","items":[
      {"metadata":{"name":"a"},"spec":{"x":[1,2]}},3,{"metadata":{"name":"b"}} ]})";
  std::vector<std::string> texts;
  Decoder decoder(Decoder::As::kText);
  const Result<ListMeta> meta = decoder.DecodeList(json, [&](size_t, Result<Decoded>&& item) {
    texts.push_back(item ? std::get<Unknown>(item->object).json : item.error().message);
  });
  ASSERT_TRUE(meta) << meta.error().message;
  EXPECT_EQ(texts, (std::vector<std::string>{R"({"metadata":{"name":"a"},"spec":{"x":[1,2]}})",
                                             "expected an object, found a number",
                                             R"({"metadata":{"name":"b"}})"}));
}

TEST(DecodeListTest, ItemsOfATypedListNeedNoKind) {
  Result<ListMeta> meta;
  EXPECT_EQ(ItemsOf(R"({"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},
      "kind":"Pod","apiVersion":"v1"}],"kind":"PodList","apiVersion":"v1",
      "metadata":{"resourceVersion":"5","continue":"c","remainingItemCount":9}})",
                    &meta),
            (std::vector<std::string>{"0 Pod/a", "1 Pod/b"}));
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->kind, "PodList");
  EXPECT_EQ(meta->resource_version, "5");
  EXPECT_EQ(meta->continue_token, "c");
  EXPECT_EQ(meta->remaining_items, 9);
}

TEST(DecodeListTest, ABadItemHidesNoOther) {
  EXPECT_EQ(ItemsOf(R"({"kind":"List","apiVersion":"v1","items":[
      {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"x":[{"y":[1]}]}},"spec":{}},
      {"metadata":{"name":"b"}},3,null,[{}],
      {"kind":"Pod","apiVersion":"v1","spec":{"nodeName":7,"a":{"b":[{}]}},"metadata":{}},
      {"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"resources":{"requests":{"cpu":"q"}}},
       {}]},"metadata":{"name":"c"}},
      {"kind":"Node","apiVersion":"v1","metadata":{"name":"d"}}]})"),
            (std::vector<std::string>{
                "0 metadata.labels.x: expected a string, found a list", "1 the kind is missing",
                "2 expected an object, found a number", "4 expected an object, found a list",
                "5 spec.nodeName: expected a string, found a number",
                "6 spec.containers[0].resources.requests.cpu: \"q\" is no quantity (digits, then n "
                "u m k M G T P E, Ki … Ei or e3)",
                "7 Node/d"}));
}

TEST(DecodeListTest, WhatIsNoListIsRefused) {
  EXPECT_EQ(ItemsOf(PodWith("{}")),
            (std::vector<std::string>{"expected a List, found kind \"Pod\""}));
  EXPECT_EQ(ItemsOf(R"({"kind":"List","apiVersion":"v1","items":{}})"),
            (std::vector<std::string>{"items: expected a list, found an object"}));
  EXPECT_EQ(ItemsOf("[]"), (std::vector<std::string>{"expected an object"}));
  EXPECT_EQ(ItemsOf(R"({"kind":"List","apiVersion":"v1"})"), (std::vector<std::string>{}));
  EXPECT_EQ(ItemsOf(R"({"kind":"List","apiVersion":"v1","items":null})"),
            (std::vector<std::string>{}));
  const auto cut =
      ItemsOf(R"({"kind":"List","apiVersion":"v1","items":[{"metadata":{"name":"a"}})");
  EXPECT_EQ(cut.back().substr(0, 21), "items: malformed JSON");
}

TEST(DecodeNodeTest, ReadsWhatSchedulingNeeds) {
  const Node node = As<Node>(
      R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"unschedulable":true,
      "taints":[{"key":"gpu","value":"yes","effect":"NoSchedule","timeAdded":null}]},
      "status":{"capacity":{"cpu":"4","memory":"1Ki"},"allocatable":{"pods":"110","cpu":"3500m",
      "memory":1000,"nvidia.com/gpu":"8","odd":"-1"},"conditions":[{"type":"Ready",
      "status":"False","reason":"R","message":"M",
      "lastTransitionTime":"1970-01-01T00:00:01Z"}]}})");
  EXPECT_TRUE(node.unschedulable);
  EXPECT_EQ(node.capacity, (ResourceList{{"cpu", 4'000}, {"memory", 1'024}}));
  EXPECT_EQ(
      node.allocatable,
      (ResourceList{
          {"cpu", 3'500}, {"memory", 1'000}, {"nvidia.com/gpu", 8}, {"odd", -1}, {"pods", 110}}));
  ASSERT_EQ(node.taints.size(), 1U);
  EXPECT_EQ(node.taints[0].effect, "NoSchedule");
  ASSERT_EQ(node.conditions.size(), 1U);
  EXPECT_EQ(node.conditions[0].message, "M");
  EXPECT_EQ(node.conditions[0].last_transition.ns, 1'000'000'000);
  EXPECT_FALSE(IsReady(node));
}

TEST(DecodeCoreTest, ReadsTheSmallKinds) {
  const auto priority = As<PriorityClass>(
      R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"p"},
      "value":-5,"globalDefault":true,"preemptionPolicy":"Never"})");
  EXPECT_EQ(priority.value, -5);
  EXPECT_TRUE(priority.global_default);
  EXPECT_EQ(priority.preemption_policy, "Never");

  const auto quota = As<ResourceQuota>(
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},
      "spec":{"hard":{"pods":"4"}},"status":{"hard":{"pods":"9"},"used":{"pods":"1"}}})");
  EXPECT_EQ(quota.hard, (ResourceList{{"pods", 4}}));
  EXPECT_EQ(quota.used, (ResourceList{{"pods", 1}}));

  const auto budget = As<PodDisruptionBudget>(
      R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},
      "spec":{"minAvailable":2,"maxUnavailable":"50%","selector":{"matchLabels":{"a":"b"}}},
      "status":{"disruptionsAllowed":1}})");
  EXPECT_EQ(budget.min_available, "2");
  EXPECT_EQ(budget.max_unavailable, "50%");
  ASSERT_TRUE(budget.selector);
  EXPECT_EQ(budget.disruptions_allowed, 1);

  const auto volume = As<PersistentVolume>(
      R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{
      "capacity":{"storage":"1Gi"},"storageClassName":"fast","claimRef":{"namespace":"ml",
      "name":"c"}},"status":{"phase":"Bound"}})");
  EXPECT_EQ(AmountOf(volume.capacity, "storage"), 1 << 30U);
  EXPECT_EQ(volume.claim_namespace + "/" + volume.claim_name, "ml/c");
  EXPECT_EQ(volume.phase, "Bound");

  const auto claim = As<PersistentVolumeClaim>(
      R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{
      "resources":{"requests":{"storage":"1Mi"}},"storageClassName":"fast","volumeName":"v"},
      "status":{"phase":"Lost"}})");
  EXPECT_EQ(AmountOf(claim.requests, "storage"), 1 << 20U);
  EXPECT_EQ(claim.volume_name, "v");
  EXPECT_EQ(claim.storage_class, "fast");
  EXPECT_EQ(claim.phase, "Lost");
}

}  // namespace
}  // namespace hopwise::api
