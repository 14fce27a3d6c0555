// Damaged input must be refused or read, never crash: a corpus of manifests, cut short and with
// bytes flipped. HOPWISE_SEED chooses other damage; a failure prints the seed it ran with.
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/decode.h"
#include "base/prng.h"

namespace hopwise::api {
namespace {

const char* const kCorpus[] = {
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ml","labels":{"a":"1",
"b\u002fc":"\"x\"\\"},"creationTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"f":{".":{}}}],
"ownerReferences":[{"kind":"Job","name":"j","controller":true}]},"spec":{"containers":[{"name":"m",
"resources":{"requests":{"cpu":"1500m","memory":"1.5Gi","nvidia.com/gpu":8},"limits":{"cpu":2}},
"ports":[{"hostPort":80}]}],"tolerations":[{"operator":"Exists"}],"priority":-5,"affinity":
{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
{"matchExpressions":[{"key":"z","operator":"In","values":["a","b"]}]}]}}}},"status":null})",
    R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"4","pods":"110"}}},
{"metadata":{"name":"b","labels":{"x":[1,{"y":2}]}}},{"metadata":{"name":"c"}}]}
{"kind":"Queue","apiVersion":"scheduling.volcano.sh/v1beta1","metadata":{"name":"q"}})",
    R"(%YAML 1.1
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: default, labels: &labels {app: "x\ty", tier: 'it''s'}}
spec:
  minAvailable: 0x4
  networkTopology: {mode: hard, highestTierAllowed: 2}
  plugins: {svc: [], env: ~}
  tasks:
  - name: w
    replicas: 4
    template: &t
      metadata: {labels: {<<: *labels, extra: yes}}
      spec:
        containers: [{name: main, resources: {requests: {cpu: 500m, memory: 1e9}}}]
  - {name: m, template: *t, minAvailable: !!int "1"}
------
# comment
---
apiVersion: v1
kind: List
items:
- apiVersion: topology.volcano.sh/v1alpha1
  kind: HyperNode
  metadata:
    name: leaf
    annotations:
      text: |+
        block
          --- inside
      folded: >-
        one
        two
  spec: {tier: 1, members: [{type: Node, selector: {regexMatch: {pattern: "n-[0-9]+"}}}]}
...
)"};

uint64_t Seed() {
  const char* text = std::getenv("HOPWISE_SEED");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? 20'260'101 : std::strtoull(text, nullptr, 10);
}

void ReadEveryWay(const std::string& text, Decoder& decoder) {
  for (const Document& document : SplitDocuments(text)) {
    EXPECT_EQ(document.json.empty(), !document.error.empty());
    if (document.error.empty()) static_cast<void>(decoder.Decode(document.json));
  }
  static_cast<void>(decoder.Decode(text));
  std::string copy = text;
  static_cast<void>(
      decoder.DecodeList(copy, [](size_t, Result<Decoded>&& item) { EXPECT_TRUE(item || true); }));
}

TEST(RobustnessTest, EveryPrefixIsReadOrRefused) {
  Decoder decoder;
  for (const std::string text : kCorpus) {
    for (size_t size = 0; size <= text.size(); ++size) {
      ReadEveryWay(text.substr(0, size), decoder);
    }
  }
}

TEST(RobustnessTest, DamagedBytesAreReadOrRefused) {
  const uint64_t seed = Seed();
  SCOPED_TRACE("HOPWISE_SEED=" + std::to_string(seed));
  Prng prng(seed);
  Decoder decoder;
  const std::string marks = "{}[]\",:\\ \n-&*<#|!'%\t0e~";
  for (int round = 0; round < 1'500; ++round) {
    std::string text = kCorpus[prng.Below(std::size(kCorpus))];
    for (uint64_t damage = prng.Below(4) + 1; damage > 0; --damage) {
      const size_t at = prng.Below(text.size());
      switch (prng.Below(4)) {
        case 0:
          text[at] = static_cast<char>(prng.Below(256));
          break;
        case 1:
          text[at] = marks[prng.Below(marks.size())];
          break;
        case 2:
          text.erase(at, prng.Below(20));
          break;
        default:
          text.insert(at, text.substr(prng.Below(text.size()), prng.Below(40)));
          break;
      }
      if (text.empty()) text = "x";
    }
    ReadEveryWay(text, decoder);
  }
}

}  // namespace
}  // namespace hopwise::api
