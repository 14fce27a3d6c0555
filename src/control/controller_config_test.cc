// volcano-controller.conf, as it is written and as it is mistaken.
#include "control/controller_config.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hopwise::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kBoth = R"(
networkTopologyDiscovery:
  - source: ufm
    enabled: true
    interval: 10m
    credentials:
      secretRef: {name: ufm-login, namespace: fabric}
    config:
      endpoint: ufm.example.com/
      insecureSkipVerify: true
  - source: label
    enabled: true
    mostDeletedPercent: 20
    believedAfter: 5m
    confirm: abc
    config:
      networkTopologyTypes:
        leafspine:
          - nodeLabel: example.com/spine
          - nodeLabel: example.com/leaf
          - nodeLabel: kubernetes.io/hostname
        nvlink:
          - nodeLabel: nvidia.com/gpu.clique
          - nodeLabel: kubernetes.io/hostname
)";

TEST(ControllerConfig, ReadsBothSources) {
  const ControllerConfigReport report = ReadControllerConfig(kBoth);
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_THAT(report.config.warnings, IsEmpty());
  ASSERT_EQ(report.config.sources.size(), 2U);
  const SourceSettings& ufm = report.config.sources[0];
  EXPECT_EQ(ufm.ufm.endpoint, "https://ufm.example.com");
  EXPECT_TRUE(ufm.ufm.insecure_skip_verify);
  EXPECT_EQ(ufm.ufm.secret.ns + "/" + ufm.ufm.secret.name, "fabric/ufm-login");
  EXPECT_EQ(ufm.interval, Seconds(600));
  EXPECT_EQ(ufm.hold.most_deleted_percent, 50);
  const SourceSettings& label = report.config.sources[1];
  EXPECT_EQ(label.interval, kDiscoveryInterval);
  EXPECT_EQ(label.hold.most_deleted_percent, 20);
  EXPECT_EQ(label.hold.believed_after, Seconds(300));
  EXPECT_EQ(label.confirm, "abc");
  ASSERT_EQ(label.types.size(), 2U);
  EXPECT_EQ(label.types[0].name, "leafspine");
  EXPECT_THAT(label.types[0].labels,
              ElementsAre("example.com/spine", "example.com/leaf", "kubernetes.io/hostname"));
}

TEST(ControllerConfig, NothingAtAllIsNoSource) {
  for (const char* text : {"", "---\n", "# nothing\n", "networkTopologyDiscovery: []\n"}) {
    const ControllerConfigReport report = ReadControllerConfig(text);
    EXPECT_THAT(report.errors, IsEmpty()) << text;
    EXPECT_THAT(report.config.sources, IsEmpty()) << text;
  }
}

// One entry of the list, given in flow style.
std::string Entry(const std::string& fields) {
  return "networkTopologyDiscovery:\n  - {" + fields + "}\n";
}

TEST(ControllerConfig, WhatCannotBeUsedIsRefusedWithItsPath) {
  const std::string at = "networkTopologyDiscovery[0]";
  const std::string ufm =
      "source: ufm, enabled: true, credentials: {secretRef: {name: a, namespace: b}}, ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a: [", "line 2: "},
      {"- a\n", "line 1: "},
      {"networkTopologyDiscovery: 7\n", "networkTopologyDiscovery: must be a list of sources"},
      {"networkTopologyDiscovery: [7]\n", at + ": must be a map with source, enabled and config"},
      {Entry("enabled: true"), at + ".source: is missing; label and ufm are served"},
      {Entry("source: roce, enabled: true"), at + ".source: roce is not served; label and ufm are"},
      {Entry("source: label, enabled: perhaps"), at + ".enabled: must be true or false"},
      {Entry("source: label, enabled: true"),
       at + ".config.networkTopologyTypes: must be a map from a type's name to its node labels, "
            "from the widest"},
      {Entry("source: label, enabled: true, config: {networkTopologyTypes: {t: [{nodeLabel: a}, "
             "{nodeLabel: a}]}}"),
       at + ".config: networkTopologyTypes.t: nodeLabel a stands twice"},
      {Entry("source: label, enabled: true, interval: often, config: {networkTopologyTypes: {t: "
             "[{nodeLabel: a}]}}"),
       at + ".interval: often is no duration of at least 1s, such as 30s or 10m"},
      {Entry("source: label, enabled: true, mostDeletedPercent: 101, config: "
             "{networkTopologyTypes: {t: [{nodeLabel: a}]}}"),
       at + ".mostDeletedPercent: must be a number from 0 to 100"},
      {Entry(ufm + "config: {}"),
       at + ".config.endpoint: is missing: where UFM is, such as https://ufm.example.com"},
      {Entry(ufm + "config: {endpoint: 7}"), at + ".config.endpoint: must be a string"},
      {Entry(ufm + "config: {endpoint: 'ftp://x'}"),
       at + ".config.endpoint: ftp://x is no http or https address"},
      {Entry("source: ufm, enabled: true, config: {endpoint: x}"),
       at + ".credentials.secretRef: must name (name, namespace) a Secret with username and "
            "password"},
      {"networkTopologyDiscovery:\n  - {source: label}\n  - {source: label}\n",
       "networkTopologyDiscovery[1].source: label stands twice"},
  };
  for (const auto& [text, message] : cases) {
    const ControllerConfigReport report = ReadControllerConfig(text);
    ASSERT_FALSE(report.errors.empty()) << text;
    EXPECT_TRUE(report.errors.front().starts_with(message)) << report.errors.front();
  }
}

TEST(ControllerConfig, WhatASourceThatIsOffLacksIsAWarning) {
  const ControllerConfigReport report = ReadControllerConfig(Entry("source: ufm, enabled: false"));
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_EQ(report.config.warnings.size(), 2U) << "endpoint and secret";
}

TEST(ControllerConfig, WhatNobodyKnowsIsAWarningAndNoSilence) {
  const ControllerConfigReport report = ReadControllerConfig(
      "other: 1\nnetworkTopologyDiscovery:\n  - {source: label, enabled: true, when: now, config: "
      "{networkTopologyTypes: {t: [{nodeLabel: a, weight: 2}]}, more: 1}}\n---\na: 1\n");
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_THAT(
      report.config.warnings,
      ElementsAre("other: nothing here is called so",
                  "networkTopologyDiscovery[0].when: nothing here is called so",
                  "networkTopologyDiscovery[0].config.more: nothing here is called so",
                  "networkTopologyDiscovery[0].config.networkTopologyTypes.t[0].weight: nothing "
                  "here is called so",
                  "line 5: only the first document of the file counts"));
}

}  // namespace
}  // namespace hopwise::control
