#include "sched/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hopwise::sched {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Config Parse(const std::string& text) {
  auto config = ParseConfig(text);
  EXPECT_TRUE(config.has_value()) << config.error().message << "\n" << text;
  return config.has_value() ? *config : Config();
}

std::string ErrorOf(const std::string& text) {
  const auto config = ParseConfig(text);
  EXPECT_FALSE(config.has_value()) << text;
  return config.has_value() ? "" : config.error().message;
}

// A file with one plugin whose entry is `plugin`, each line of it indented by the caller.
std::string WithPlugin(const std::string& plugin) {
  return "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - " + plugin;
}

// Arguments of one plugin, one "key: value" a line.
std::string WithArguments(const std::string& plugin, const std::vector<std::string>& arguments) {
  std::string text = WithPlugin("name: " + plugin + "\n    arguments:\n");
  for (const std::string& argument : arguments) text += "      " + argument + "\n";
  return text;
}

TEST(DefaultConfig, IsTheDocumentedOneWithTopology) {
  const Config config = DefaultConfig();
  EXPECT_THAT(config.actions, ElementsAre("enqueue", "allocate", "backfill"));
  EXPECT_THAT(config.plugins,
              ElementsAre("priority", "gang", "conformance", "overcommit", "drf", "predicates",
                          "proportion", "nodeorder", "network-topology-aware"));
  EXPECT_TRUE(config.network_topology_aware.enabled);
  EXPECT_TRUE(config.node_order.enabled);
  EXPECT_FALSE(config.binpack.enabled);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(ParseConfig, TakesTheDefaultForAnEmptyFile) {
  for (const char* text : {"", "\n\n", "# nothing\n", "---\n"}) {
    const Config config = Parse(text);
    EXPECT_EQ(config.plugins, DefaultConfig().plugins) << text;
    EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("built-in default"))) << text;
  }
}

// The file that Volcano's chart installs, with the topology plugin as its guide adds it.
TEST(ParseConfig, ReadsTheUsualFileAndNamesWhatOfItIsNotServed) {
  const Config config = Parse(R"(actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
    arguments:
      weight: 10
)");
  EXPECT_THAT(config.warnings,
              ElementsAre(HasSubstr("\"overcommit\" is not"), HasSubstr("\"drf\" is not"),
                          HasSubstr("\"proportion\" is not")));
  EXPECT_EQ(config.plugins.size(), 10U);
  EXPECT_TRUE(config.binpack.enabled);
  EXPECT_TRUE(config.node_order.enabled);
  EXPECT_TRUE(config.network_topology_aware.enabled);
  EXPECT_EQ(config.network_topology_aware.weight, 10);
}

TEST(ReadConfig, NamesTheLineOfWhatIsUnknownAndListsAllOfIt) {
  const ConfigReport report = ReadConfig(R"(# fly is no action
actions: "enqueue, fly"
tiers:
- plugins:
  - name: gang
  - name: sla          # warned of
- plugins:
  - {name: "gangs"}
  - name: cdp
    order: first
)");
  EXPECT_THAT(report.errors,
              ElementsAre(testing::StartsWith("line 2: actions: unknown action \"fly\""),
                          testing::StartsWith("line 8: tiers[1].plugins[0].name: unknown plugin")));
  EXPECT_THAT(report.config.warnings,
              testing::IsSupersetOf({HasSubstr("\"sla\""), HasSubstr("\"cdp\""),
                                     HasSubstr("tiers[1].plugins[1].order: unknown key")}));
}

TEST(ParseConfig, LeavesScoresOffThatAreNotListed) {
  const Config config = Parse(WithPlugin("name: gang\n"));
  EXPECT_FALSE(config.network_topology_aware.enabled);
  EXPECT_FALSE(config.binpack.enabled);
  EXPECT_FALSE(config.node_order.enabled);
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_THAT(Parse("actions: allocate\n").warnings, ElementsAre(HasSubstr("no plugin")));
}

TEST(ParseConfig, ReadsActions) {
  const Config config = Parse("actions: \" allocate ,preempt,shuffle\"\ntiers: []\n");
  EXPECT_THAT(config.actions, ElementsAre("allocate", "preempt", "shuffle"));
  EXPECT_THAT(config.warnings, testing::Contains(HasSubstr("\"shuffle\" is not implemented")));
  EXPECT_THAT(config.warnings, testing::Not(testing::Contains(HasSubstr("preempt"))));
}

TEST(ParseConfig, ReadsArgumentsOfEviction) {
  const Config config = Parse(R"(actions: gangreclaim, gangpreempt
tiers: [{plugins: [{name: gang}]}]
configurations:
- name: gangpreempt
  arguments: {maxDomains: 3, allowWholeBundle: false}
- name: gangreclaim
  arguments: {maxDomains: 0}
- name: preempt
  arguments: {maxDomains: 2}
)");
  EXPECT_EQ(config.gang_preempt.max_domains, 3);
  EXPECT_FALSE(config.gang_preempt.whole_gangs);
  EXPECT_EQ(config.gang_reclaim.max_domains, 8);
  EXPECT_TRUE(config.gang_reclaim.whole_gangs);
  EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("maxDomains: unknown argument")));
}

TEST(ParseConfig, ReadsArgumentsOfTopology) {
  const Config config =
      Parse(WithArguments("network-topology-aware",
                          {"weight: 3", "hypernode.binpack.cpu: 5", "hypernode.binpack.memory: 0",
                           "hypernode.binpack.resources: nvidia.com/gpu, example.com/foo,,cpu",
                           "hypernode.binpack.resources.nvidia.com/gpu: 7",
                           "hypernode.binpack.normal-pod.enable: \"false\"",
                           "hypernode.binpack.normal-pod.fading: 0.35"}));
  const NetworkTopologyAware& topology = config.network_topology_aware;
  EXPECT_EQ(topology.weight, 3);
  EXPECT_THAT(topology.resources,
              ElementsAre(Pair("cpu", 5), Pair("memory", 0), Pair("nvidia.com/gpu", 7),
                          Pair("example.com/foo", 1)));
  EXPECT_FALSE(topology.normal_pod);
  EXPECT_EQ(topology.fading_milli, 350);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(ParseConfig, ReadsFadingInThousandths) {
  const auto fading = [](const std::string& value) {
    return Parse(WithArguments("network-topology-aware",
                               {"hypernode.binpack.normal-pod.fading: " + value}))
        .network_topology_aware.fading_milli;
  };
  EXPECT_EQ(fading("0.8"), 800);
  EXPECT_EQ(fading("0.7"), 700);
  EXPECT_EQ(fading("0.0005"), 1);
  EXPECT_EQ(fading("0"), 0);
  EXPECT_EQ(fading("1"), 1000);
  EXPECT_EQ(fading("1.5"), 1500);
  EXPECT_EQ(fading("-1"), 800);
  EXPECT_EQ(fading("-0.1"), 800);
  EXPECT_EQ(fading("\"0.5\""), 800);
  EXPECT_EQ(fading("1e9"), kMaxFadingMilli);
}

TEST(ParseConfig, ReadsArgumentsOfBinpack) {
  const Config config = Parse(WithArguments(
      "binpack", {"binpack.weight: 10", "binpack.cpu: 5", "binpack.memory: 2",
                  "binpack.resources: nvidia.com/gpu", "binpack.resources.nvidia.com/gpu: 4"}));
  EXPECT_EQ(config.binpack.weight, 10);
  EXPECT_THAT(config.binpack.resources,
              ElementsAre(Pair("cpu", 5), Pair("memory", 2), Pair("nvidia.com/gpu", 4)));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(ParseConfig, ReadsArgumentsOfNodeOrder) {
  const Config config =
      Parse(WithArguments("nodeorder", {"leastrequested.weight: 0", "mostrequested.weight: 2",
                                        "balancedresource.weight: 3", "imagelocality.weight: 0",
                                        "podaffinity.weight: 2"}));
  EXPECT_EQ(config.node_order.least_requested, 0);
  EXPECT_EQ(config.node_order.most_requested, 2);
  EXPECT_EQ(config.node_order.balanced, 3);
  EXPECT_THAT(config.warnings,
              ElementsAre(AllOf(HasSubstr("podaffinity.weight"), HasSubstr("not implemented"))));
}

TEST(ParseConfig, MendsWeights) {
  const Config config =
      Parse(WithArguments("network-topology-aware",
                          {"weight: -2", "hypernode.binpack.cpu: \"5\"",
                           "hypernode.binpack.memory: 1.5", "hypernode.binpack.resources: foo",
                           "hypernode.binpack.resources.foo: 99999999999999999999"}));
  EXPECT_EQ(config.network_topology_aware.weight, 1);
  EXPECT_THAT(config.network_topology_aware.resources,
              ElementsAre(Pair("cpu", 1), Pair("memory", 1), Pair("foo", 1)));
  EXPECT_THAT(
      config.warnings,
      ElementsAre(
          "tiers[0].plugins[0].arguments.weight: -2 is negative, 1 is used instead",
          "tiers[0].plugins[0].arguments.hypernode.binpack.cpu: \"5\" is ignored, it must be an "
          "integer without quotes",
          "tiers[0].plugins[0].arguments.hypernode.binpack.memory: 1.5 is ignored, it must be an "
          "integer without quotes",
          HasSubstr("hypernode.binpack.resources.foo")));
  EXPECT_EQ(Parse(WithArguments("binpack", {"binpack.weight: 5000000"})).binpack.weight,
            kMaxWeight);
  EXPECT_EQ(
      Parse(WithArguments("nodeorder", {"mostrequested.weight: -3"})).node_order.most_requested, 0);
}

TEST(ParseConfig, ReadsBooleansAsGoDoes) {
  const auto normal_pod = [](const std::string& value) {
    return Parse(WithArguments("network-topology-aware",
                               {"hypernode.binpack.normal-pod.enable: " + value}))
        .network_topology_aware.normal_pod;
  };
  for (const char* no : {"false", "\"false\"", "\"F\"", "\"0\""}) {
    EXPECT_FALSE(normal_pod(no)) << no;
  }
  for (const char* yes : {"true", "\"T\"", "\"maybe\"", "0"}) {
    EXPECT_TRUE(normal_pod(yes)) << yes;
  }
}

TEST(ParseConfig, SwitchesScoresByFlags) {
  Config config =
      Parse(WithPlugin("name: network-topology-aware\n    enabledHyperNodeOrder: false\n    "
                       "enableNodeOrder: false\n"));
  EXPECT_TRUE(config.network_topology_aware.enabled);
  EXPECT_FALSE(config.network_topology_aware.hyper_node_order);
  EXPECT_FALSE(config.network_topology_aware.scores_nodes);
  EXPECT_THAT(config.warnings, IsEmpty());

  config = Parse(WithPlugin("name: binpack\n    enableNodeOrder: false\n"));
  EXPECT_FALSE(config.binpack.enabled);
  config = Parse(WithPlugin("name: nodeorder\n    enableNodeOrder: false\n"));
  EXPECT_FALSE(config.node_order.enabled);

  config = Parse(WithPlugin("name: network-topology-aware\n    enabledHyperNodeGradient: false\n"));
  EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("a topology rule always holds")));
  config = Parse(WithPlugin("name: gang\n    enableJobReady: false\n"));
  EXPECT_THAT(config.warnings,
              ElementsAre("tiers[0].plugins[0].enableJobReady: false has no effect yet"));
}

TEST(ParseConfig, ReadsHierarchy) {
  const Config config = Parse(WithPlugin("name: capacity\n    enableHierarchy: true\n"));
  EXPECT_TRUE(config.capacity_hierarchy);
  EXPECT_FALSE(Parse(WithPlugin("name: capacity\n")).capacity_hierarchy);
  EXPECT_THAT(ErrorOf(WithPlugin("name: proportion\n  - name: drf\n    enableHierarchy: true\n")),
              HasSubstr("exclude each other"));
}

TEST(ParseConfig, WarnsOfWhatIsNotImplemented) {
  EXPECT_THAT(Parse(WithPlugin("name: sla\n")).warnings,
              ElementsAre("tiers[0].plugins[0]: plugin \"sla\" is not implemented yet"));
  EXPECT_THAT(Parse(WithPlugin("name: overcommit\n")).warnings,
              ElementsAre(HasSubstr("overcommit")));
  EXPECT_THAT(Parse(WithArguments("overcommit", {"overcommit-factor: 1.5"})).warnings,
              ElementsAre("tiers[0].plugins[0]: plugin \"overcommit\" is not implemented yet, its "
                          "arguments have no effect"));
  EXPECT_THAT(Parse(WithArguments("predicates", {"predicate.NodeAffinityEnable: false",
                                                 "predicate.NodePortsEnable: \"true\"",
                                                 "predicate.CacheEnable: true"}))
                  .warnings,
              ElementsAre(HasSubstr("NodeAffinityEnable")));
}

TEST(ParseConfig, WarnsOfUnknownKeys) {
  const Config config = Parse(R"(actions: allocate
tiers:
- plugins:
  - name: binpack
    enableNodeorder: true
    arguments:
      binpack.wieght: 3
      binpack.resources.foo: 2
  colour: red
- plugins:
  - name: binpack
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: true
    other: 1
- name: alocate
- name: shuffle
  arguments: {any: 4}
metrics: {type: prometheus, address: http://localhost}
scheduler: 1
)");
  EXPECT_THAT(
      config.warnings,
      ElementsAre("tiers[0].plugins[0].enableNodeorder: unknown key, true is ignored",
                  "tiers[0].plugins[0].arguments.binpack.resources.foo: unknown argument, 2 is "
                  "ignored",
                  "tiers[0].plugins[0].arguments.binpack.wieght: unknown argument, 3 is ignored",
                  "tiers[0].colour: unknown key, \"red\" is ignored",
                  HasSubstr("tiers[1].plugins[0]: plugin \"binpack\" is listed again"),
                  "configurations[0].arguments.other: unknown argument, 1 is ignored",
                  HasSubstr("configurations[1].name: unknown action \"alocate\""),
                  HasSubstr("configurations[2]: action \"shuffle\" is not implemented"),
                  HasSubstr("metrics: has no effect"), "scheduler: unknown key, 1 is ignored"));
}

TEST(ParseConfig, ReadsOnlyTheFirstDocument) {
  const Config config = Parse("actions: allocate\ntiers: []\n---\nactions: nonsense\n");
  EXPECT_THAT(config.actions, ElementsAre("allocate"));
  EXPECT_THAT(config.warnings, testing::Contains(HasSubstr("line 4: only the first document")));
}

struct ErrorCase {
  const char* text;
  std::vector<std::string> want;  // parts of the message
};

TEST(ParseConfig, RefusesWhatItCannotRead) {
  const std::vector<ErrorCase> cases = {
      {"actions: \"allocate\"\ntiers:\n- plugins: [\n", {"line "}},
      {"- a list\n", {"line 1"}},
      {"just text\n", {"line 1"}},
      {"tiers: []\n", {"actions: is missing", "gangreclaim"}},
      {"actions: [allocate]\n", {"actions: must be one text with commas", "[\"allocate\"]"}},
      {"actions: \"allocate, alocate\"\n", {"unknown action \"alocate\"", "enqueue, allocate"}},
      {"actions: \"allocate,\"\n", {"unknown action \"\""}},
      {"actions: allocate\ntiers: 3\n", {"tiers: must be a list"}},
      {"actions: allocate\ntiers: [3]\n", {"tiers[0]: must be a map"}},
      {"actions: allocate\ntiers: [{plugins: {}}]\n", {"tiers[0].plugins: must be a list"}},
      {"actions: allocate\ntiers: [{plugins: [gang]}]\n", {"tiers[0].plugins[0]: must be a map"}},
      {"actions: allocate\ntiers: [{plugins: [{}]}]\n", {"tiers[0].plugins[0].name: is missing"}},
      {"actions: allocate\ntiers: [{plugins: [{name: 1}]}]\n", {"plugins[0].name: must be text"}},
      {"actions: allocate\ntiers: [{plugins: [{name: gnag}]}]\n",
       {"tiers[0].plugins[0].name: unknown plugin \"gnag\"", "network-topology-aware"}},
      {"actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: \"no\"}]}]\n",
       {"tiers[0].plugins[0].enableJobOrder: must be true or false", "\"no\""}},
      {"actions: allocate\ntiers: [{plugins: [{name: gang, arguments: [1]}]}]\n",
       {"tiers[0].plugins[0].arguments: must be a map"}},
      {"actions: allocate\nconfigurations: {}\n", {"configurations: must be a list"}},
      {"actions: allocate\nconfigurations: [{}]\n", {"configurations[0].name: is missing"}},
      {"actions: allocate\nmetrics: text\n", {"metrics: must be a map"}},
      {"actions: allocate\nmetrics: {type: [a]}\n", {"metrics.type: must be text"}},
  };
  for (const ErrorCase& c : cases) {
    const std::string message = ErrorOf(c.text);
    for (const std::string& part : c.want) EXPECT_THAT(message, HasSubstr(part)) << c.text;
  }
}

TEST(ParseConfig, ShortensWhatItShows) {
  const std::string message = ErrorOf("actions: [" + std::string(500, 'a') + "]\n");
  EXPECT_LT(message.size(), 200U);
}

}  // namespace
}  // namespace hopwise::sched
