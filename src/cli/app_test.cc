// The commands as a person types them.
#include "cli/app.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json.h"
#include "cli/table.h"
#include "cli/yaml.h"

namespace hopwise::cli {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int status = 0;
  std::string out, err;
};

Outcome Type(const std::vector<std::string>& args, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  Io io{in, out, err, false, false, *ParseRfc3339("2026-01-02T00:00:00Z")};
  const int status = Main(args, io);
  return {status, out.str(), err.str()};
}

// A folder that is gone after the test.
class Folder {
 public:
  Folder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            ("hopwise-" + std::string(info->test_suite_name()) + "-" + info->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string Read(const std::string& name) const {
    std::ifstream file(path_ / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Two leaves of two nodes below one spine.
//   spine ─┬─ leaf-a ── a1 a2
//          └─ leaf-b ── b1 b2
const char* const kCluster = R"(
apiVersion: v1
kind: Node
metadata: {name: a1}
status: {allocatable: {cpu: "4", pods: "10", nvidia.com/gpu: "8"}}
---
apiVersion: v1
kind: Node
metadata: {name: a2}
status: {allocatable: {cpu: "4", pods: "10", nvidia.com/gpu: "8"}}
---
apiVersion: v1
kind: Node
metadata: {name: b1}
status: {allocatable: {cpu: "4", pods: "10", nvidia.com/gpu: "8"}}
---
apiVersion: v1
kind: Node
metadata: {name: b2}
spec: {unschedulable: true}
status: {allocatable: {cpu: "4", pods: "10", nvidia.com/gpu: "8"}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf-a, creationTimestamp: "2026-01-01T21:00:00Z"}
spec: {tier: 1, tierName: leaf, members: [{type: Node, selector: {regexMatch: {pattern: "^a"}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf-b}
spec: {tier: 1, tierName: leaf, members: [{type: Node, selector: {regexMatch: {pattern: "^b"}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: spine}
spec:
  tier: 2
  tierName: spine
  members:
  - {type: HyperNode, selector: {exactMatch: {name: leaf-a}}}
  - {type: HyperNode, selector: {exactMatch: {name: leaf-b}}}
)";

std::string VcJob(const std::string& name, int replicas) {
  return "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: " + name +
         "}\nspec: {networkTopology: {mode: hard, highestTierAllowed: 1}, tasks: [{name: w, "
         "replicas: " +
         std::to_string(replicas) +
         ", template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3, "
         "nvidia.com/gpu: 8}}}]}}}]}\n";
}

TEST(SimulateCommand, PrintsTheTableOfAStep) {
  Folder folder;
  const std::string cluster = folder.Write("cluster.yaml", kCluster);
  const std::string job = folder.Write("job.yaml", VcJob("train", 2));
  const Outcome outcome = Type({"simulate", cluster, job});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "STEP 1   2026-01-01T21:00:00Z\n"
            "no gangs\n"
            "\n"
            "STEP 2   2026-01-01T21:00:00Z\n"
            "NAMESPACE   GANG    PLACED   TIER       DOMAIN   NODES\n"
            "default     train   2/2      1 (leaf)   leaf-a   a1,a2\n");
}

TEST(SimulateCommand, SaysWhatWaitsAndWhy) {
  const Outcome outcome =
      Type({"simulate", "-"}, std::string(kCluster) + "---\n" + VcJob("big", 3));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("default     big    0/3      -      -        -\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nNAMESPACE   WAITING   PODS   REASON"));
}

TEST(SimulateCommand, GivesTheMachineForm) {
  Folder folder;
  const std::string file =
      folder.Write("all.yaml", std::string(kCluster) + "---\n" + VcJob("train", 2));
  const Outcome outcome =
      Type({"simulate", file, "--output", "json", "--snapshot-dir", folder.path() + "/out"});
  EXPECT_EQ(outcome.status, 0);
  const Result<json::Json> parsed = json::ParseJson(outcome.out);
  ASSERT_TRUE(parsed);
  const json::Json& gang = json::List(json::List(*parsed, {"steps"})[0], {"gangs"})[0];
  EXPECT_EQ(json::Text(gang, {"workload"}), "Job/train");
  EXPECT_EQ(json::Text(gang, {"domain"}), "leaf-a");
  EXPECT_EQ(json::Number(gang, {"tier"}, 0), 1);
  EXPECT_EQ(json::Number(gang, {"placed"}, 0), 2);
  const Result<json::Json> snapshot = json::ParseJson(folder.Read("out/step-1.json"));
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(json::Text(*snapshot, {"kind"}), "List");
  const Outcome again = Type({"simulate", file, "-o", "json"});
  EXPECT_EQ(again.out, outcome.out);
  EXPECT_THAT(Type({"simulate", file, "-o", "yaml"}).out,
              HasSubstr("steps:\n- foreign: {}\n  gangs:\n  - domain: leaf-a\n"));
}

TEST(SimulateCommand, RefusesAllWhenOneDocumentIsBad) {
  Folder folder;
  const std::string file =
      folder.Write("mixed.yaml", std::string(kCluster) + "---\nkind: Pod\nmetadata: {name: x}\n");
  const Outcome refused = Type({"simulate", file});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, ::testing::StartsWith("hopwise: " + file + ": document 8 (line "));
  EXPECT_THAT(refused.err, HasSubstr("Pod default/x"));
  const Outcome kept = Type({"simulate", file, "--keep-going"});
  EXPECT_EQ(kept.status, 0);
  EXPECT_THAT(kept.err, HasSubstr("going on without 1 documents"));
}

TEST(SimulateCommand, ReadsDirectoriesInTheOrderOfNames) {
  Folder folder;
  folder.Write("b.yaml", VcJob("second", 1));
  folder.Write("a.yaml", VcJob("first", 1));
  folder.Write("notes.txt", "not YAML: [");
  const Outcome outcome = Type({"simulate", "-", folder.path(), "--explain", "first"}, kCluster);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\n\nGang:       default/first\n"));
}

TEST(SimulateCommand, NamesFilesThatCannotBeRead) {
  const Outcome outcome = Type({"simulate", "/no/such/file.yaml"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "hopwise: /no/such/file.yaml: No such file or directory\n");
}

TEST(SimulateCommand, WhatHasNoEndIsNotRead) {
  const Outcome outcome = Type({"simulate", "/dev/zero"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("/dev/zero is a device"), std::string::npos) << outcome.err;
}

TEST(SimulateCommand, ADirectoryIsNoConfiguration) {
  Folder folder;
  const Outcome outcome = Type({"simulate", "-", "--config", folder.path()}, kCluster);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "hopwise: " + folder.path() + ": Is a directory\n");
}

TEST(SimulateCommand, OptionsThatMayBeRepeatedTakeOneValueEach) {
  Folder folder;
  const std::string jobs = folder.Write("jobs.yaml", VcJob("first", 1));
  const Outcome outcome =
      Type({"simulate", "--scheduler-name", "volcano", "--explain", "first", "-", jobs}, kCluster);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("STEP 2"));
  EXPECT_THAT(outcome.out, HasSubstr("Gang:       default/first\n"));
}

TEST(SimulateCommand, AnUnknownGangToExplainSparesTheReport) {
  const Outcome outcome = Type({"simulate", "-", "-o", "json", "--explain", "ghost"}, kCluster);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.out, HasSubstr("\"steps\""));
  EXPECT_THAT(outcome.err, HasSubstr("ghost"));
}

TEST(SimulateCommand, WhatObjectsAreCalledDoesNotReachTheTerminalRaw) {
  const Outcome outcome =
      Type({"simulate", "-"},
           "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\\u001b[31m\"},"
           "\"spec\":5}");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome.err;
}

TEST(WrongUse, EndsWithTwo) {
  EXPECT_EQ(Type({}).status, 2);
  EXPECT_EQ(Type({"simulate"}).status, 2);
  EXPECT_EQ(Type({"simulate", "-", "-"}).status, 2);
  EXPECT_EQ(Type({"simulate", "-", "--output", "xml"}).status, 2);
  EXPECT_EQ(Type({"get", "gadgets", "-f", "-"}).status, 2);
  EXPECT_EQ(Type({"simulate", "--help"}).status, 0);
  EXPECT_THAT(Type({"simulate", "--help"}).out, HasSubstr("Examples:"));
  EXPECT_EQ(Type({"version"}).status, 0);
}

TEST(TopologyTree, ShowsFreeAndTotalOfTheExtendedResource) {
  const Outcome outcome = Type({"topology", "tree", "-"}, kCluster);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out,
            "DOMAIN         TIER        NODES   FREE/TOTAL nvidia.com/gpu   MEMBERS\n"
            "cluster        -           4       24/32\n"
            "└─ spine       2 (spine)   4       24/32\n"
            "   ├─ leaf-a   1 (leaf)    2       16/16                       a1,a2\n"
            "   └─ leaf-b   1 (leaf)    2       8/16                        b1,b2 (1 cordoned)\n");
  EXPECT_THAT(Type({"topology", "tree", "-", "--ascii", "--resource", "cpu"}, kCluster).out,
              HasSubstr("   |- leaf-a   1 (leaf)    2       8/8"));
}

TEST(TopologyTree, HasAFormForPrograms) {
  const Result<json::Json> report =
      json::ParseJson(Type({"topology", "tree", "-", "-o", "json"}, kCluster).out);
  ASSERT_TRUE(report);
  EXPECT_EQ(json::Text(*report, {"resource"}), "nvidia.com/gpu");
  const json::Json& domains = json::List(json::List(*report, {"trees"})[0], {"domains"});
  ASSERT_EQ(domains.size(), 4U);
  EXPECT_EQ(json::Text(domains[1], {"name"}), "spine");
  EXPECT_EQ(json::Text(domains[3], {"name"}), "leaf-b");
  EXPECT_EQ(json::Text(domains[3], {"parent"}), "spine");
  EXPECT_EQ(json::Text(domains[3], {"free"}), "8");
  EXPECT_EQ(json::Text(domains[3], {"total"}), "16");
  EXPECT_EQ(json::Number(domains[3], {"tier"}, 0), 1);
  EXPECT_EQ(json::Dump(domains[3]["nodes"]), R"(["b1","b2"])");
  EXPECT_THAT(Type({"topology", "check", "-", "-o", "yaml"}, kCluster).out,
              HasSubstr("hyperNodes: 3\n"));
}

TEST(TopologyCheck, ListsFaultsAndFailsWhenOneIsolates) {
  const Outcome fine = Type({"topology", "check", "-"}, kCluster);
  EXPECT_EQ(fine.status, 0);
  EXPECT_EQ(fine.out, "no faults in 3 HyperNodes\n");
  const Outcome broken = Type(
      {"topology", "check", "-"},
      std::string(kCluster) +
          "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: self}\n"
          "spec: {tier: 1, members: [{type: HyperNode, selector: {exactMatch: {name: self}}}]}\n");
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.out, HasSubstr("HyperNode/self   error      Cycle"));
}

TEST(GetHyperNodes, PrintsWhatKubectlWould) {
  const Outcome outcome = Type({"get", "hypernodes", "-o", "wide", "-f", "-"}, kCluster);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out,
            "NAME     TIER   TIERNAME   NODECOUNT   AGE\n"
            "leaf-a   1      leaf       2           3h\n"
            "leaf-b   1      leaf       2           <unknown>\n"
            "spine    2      spine      2           <unknown>\n");
}

TEST(TableText, AlignsByWhatIsSeen) {
  Table table({"A", "B"});
  table.Add({"├─ x", "1"});
  table.Add({"longer", "2\x1b[31m"});
  EXPECT_EQ(table.ToString(), "A        B\n├─ x     1\nlonger   2?[31m\n");
}

TEST(AgeTexts, AreKubectls) {
  EXPECT_EQ(AgeText(Seconds(119)), "119s");
  EXPECT_EQ(AgeText(Seconds(330)), "5m30s");
  EXPECT_EQ(AgeText(Seconds(3600 * 3)), "3h");
  EXPECT_EQ(AgeText(Seconds(86400 * 3 + 7200)), "3d2h");
  EXPECT_EQ(AgeText(Seconds(86400 * 30)), "30d");
}

TEST(YamlText, QuotesWhatCouldBeMistaken) {
  const json::Json value = {{"a", "no"},        {"b", "plain-word"},        {"c", "1"},
                            {"d", {1, "x: y"}}, {"e", json::Json::array()}, {"f", nullptr}};
  EXPECT_EQ(ToYaml(value),
            "a: \"no\"\nb: plain-word\nc: \"1\"\nd:\n- 1\n- \"x: y\"\ne: []\nf: null\n");
}

}  // namespace
}  // namespace hopwise::cli
