// What is wrong with a manifest is named with file, document, object and field.
#include "sim/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hopwise::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Manifest Load(std::string_view yaml) {
  Manifest manifest;
  AddManifest("m.yaml", yaml, manifest);
  FinishManifest(manifest);
  return manifest;
}

std::vector<std::string> Problems(std::string_view yaml) {
  std::vector<std::string> texts;
  for (const Problem& problem : Load(yaml).problems) {
    texts.push_back(ToText(problem));
  }
  return texts;
}

constexpr std::string_view kGoodPod =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: c, image: "
    "i}]}\n";

TEST(ManifestFaults, ABadDocumentIsNamedAndTheGoodOnesStay) {
  const Manifest manifest =
      Load(std::string(kGoodPod) +
           "---\napiVersion: v1\nkind: Pod\nmetadata: {name: bad, namespace: prod}\nspec: "
           "{containers: [{name: c, image: i, resources: {requests: {cpu: much}}}]}\n");
  ASSERT_EQ(manifest.objects.size(), 1U);
  ASSERT_EQ(manifest.problems.size(), 1U);
  const std::string text = ToText(manifest.problems[0]);
  EXPECT_THAT(text, ::testing::StartsWith("m.yaml: document 2 (line 6), Pod prod/bad: "));
  EXPECT_THAT(text, HasSubstr("requests"));
}

TEST(ManifestFaults, TemplatesAreCheckedWithTheirPath) {
  EXPECT_THAT(
      Problems(
          "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: "
          "{containers: [{name: c, resources: {requests: {cpu: much}}}]}}}\n"),
      ElementsAre(HasSubstr("Deployment default/d: spec.template.spec.containers[0]")));
  EXPECT_THAT(
      Problems("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: "
               "{tasks: [{name: a, "
               "template: {metadata: {annotations: {hopwise.dev/run-time: soon}}, spec: "
               "{containers: []}}}]}\n"),
      ElementsAre(HasSubstr("spec.tasks[0].template.metadata.annotations[hopwise.dev/run-time]")));
}

TEST(ManifestFaults, AbsurdCountsAreRefusedInsteadOfTried) {
  const std::string head =
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: "
      "{containers: [{name: c}]}}, replicas: ";
  EXPECT_THAT(Problems(head + "2000000000}\n"),
              ElementsAre(HasSubstr("Deployment default/d: spec.replicas")));
  EXPECT_THAT(Problems(head + "-1}\n"),
              ElementsAre(HasSubstr("Deployment default/d: spec.replicas")));
}

TEST(ManifestFaults, UnknownOperationsAndBrokenDocumentsAreNamed) {
  EXPECT_THAT(Problems("apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: "
                       "{hopwise.dev/simulate: explode}}\n"
                       "spec: {containers: [{name: c}]}\n"),
              ElementsAre(HasSubstr("'explode'")));
  EXPECT_THAT(Problems("{{{"), ElementsAre(::testing::StartsWith("m.yaml: document 1 (line 1)")));
  EXPECT_THAT(Problems("kind: Pod\n"), ElementsAre(HasSubstr("m.yaml: document 1")));
}

TEST(ManifestFaults, DeepNestingIsRefused) {
  std::string deep =
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":";
  deep += std::string(5000, '[') + std::string(5000, ']') + "}";
  EXPECT_EQ(Problems(deep).size(), 1U);
}

TEST(ManifestContents, EmptyFilesHoldNothing) {
  EXPECT_THAT(Load("").objects, IsEmpty());
  EXPECT_THAT(Load("---\n---\n# words\n").objects, IsEmpty());
  EXPECT_THAT(Load("---\n---\n# words\n").problems, IsEmpty());
}

TEST(ManifestContents, OfDuplicatesTheLastOneCountsWithAWarning) {
  const Manifest manifest = Load(std::string(kGoodPod) + "---\n" + std::string(kGoodPod));
  ASSERT_EQ(manifest.objects.size(), 1U);
  EXPECT_EQ(manifest.objects[0].origin.document, 2U);
  EXPECT_THAT(manifest.warnings, ElementsAre(HasSubstr("Pod default/good: given before")));
}

TEST(ManifestContents, OtherKindsAreCountedAndNamed) {
  const Manifest manifest = Load(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: "
      "ConfigMap\nmetadata: {name: b}\n"
      "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: c}\n");
  EXPECT_EQ(manifest.objects.size(), 3U);
  EXPECT_THAT(manifest.warnings,
              ElementsAre("kinds that take no part in scheduling: ConfigMap (2), Gadget (1)"));
}

TEST(ManifestContents, NamespacesAreFilledInOrDropped) {
  const Manifest manifest =
      Load(std::string(kGoodPod) +
           "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h, "
           "namespace: odd}\nspec: {tier: 1}\n");
  ASSERT_EQ(manifest.objects.size(), 2U);
  EXPECT_EQ(manifest.objects[0].key.ns, "default");
  EXPECT_EQ(manifest.objects[1].key.ns, "");
}

TEST(ManifestContents, WhatIsDeletedNeedsNoSpec) {
  const Manifest manifest = Load(
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, annotations: "
      "{hopwise.dev/simulate: delete}}\n");
  ASSERT_EQ(manifest.objects.size(), 1U);
  EXPECT_TRUE(manifest.objects[0].remove);
}

}  // namespace
}  // namespace hopwise::sim
