// For tests: a simulator fed with YAML text, and short questions about the outcome.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/report.h"
#include "sim/simulator.h"

namespace hopwise::sim {

inline Manifest ManifestOf(std::string_view yaml) {
  Manifest manifest;
  AddManifest("test.yaml", yaml, manifest);
  FinishManifest(manifest);
  return manifest;
}

class Cluster {
 public:
  explicit Cluster(SimulatorOptions options = {}) : simulator(std::move(options)) {}

  void Step(std::string_view yaml) {
    const Manifest manifest = ManifestOf(yaml);
    for (const Problem& problem : manifest.problems) {
      ADD_FAILURE() << ToText(problem);
    }
    const Status status = simulator.ApplyStep(manifest);
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
  }

  [[nodiscard]] const Json* Find(std::string_view group, std::string_view kind,
                                 std::string_view name, std::string_view ns = "default") const {
    return simulator.world().store.FindObject(
        {std::string(group), std::string(kind), std::string(ns), std::string(name)});
  }
  // null when there is no such pod.
  [[nodiscard]] Json Pod(std::string_view name) const {
    const Json* pod = Find("", "Pod", name);
    return pod == nullptr ? Json() : *pod;
  }
  [[nodiscard]] std::string NodeOf(std::string_view pod) const {
    return Text(Pod(pod), {"spec", "nodeName"});
  }
  [[nodiscard]] std::string PhaseOf(std::string_view pod) const {
    return Text(Pod(pod), {"status", "phase"});
  }
  [[nodiscard]] std::vector<std::string> Names(std::string_view group,
                                               std::string_view kind) const {
    std::vector<std::string> names;
    simulator.world().store.Each(group, kind,
                                 [&](const Key& key, const Entry&) { names.push_back(key.name); });
    return names;
  }
  [[nodiscard]] std::vector<std::string> PodNames() const { return Names("", "Pod"); }
  [[nodiscard]] int64_t CountPods(std::string_view phase) const {
    int64_t count = 0;
    for (const std::string& name : PodNames()) {
      count += PhaseOf(name) == phase ? 1 : 0;
    }
    return count;
  }
  // "reason: message" of the events about an object.
  [[nodiscard]] std::vector<std::string> EventsOf(std::string_view name) const {
    std::vector<std::string> events;
    simulator.world().store.Each("", "Event", [&](const Key&, const Entry& entry) {
      if (Text(entry.object, {"involvedObject", "name"}) == name) {
        events.push_back(Text(entry.object, {"reason"}) + ": " + Text(entry.object, {"message"}));
      }
    });
    return events;
  }

  Simulator simulator;
};

// n nodes <prefix>1 … with this much cpu.
inline std::string Nodes(std::string_view prefix, int count, int cpu = 4) {
  std::string yaml;
  for (int i = 1; i <= count; ++i) {
    yaml += "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + std::string(prefix) +
            std::to_string(i) + "}\nstatus: {allocatable: {cpu: \"" + std::to_string(cpu) +
            "\", memory: 16Gi, pods: \"110\"}, conditions: [{type: Ready, status: \"True\"}]}\n";
  }
  return yaml;
}

// The "template:" of a workload whose pods ask for this much cpu; `annotations` in flow style, may
// be empty.
inline std::string Template(int cpu, std::string_view annotations = "",
                            std::string_view more_spec = "") {
  std::string yaml = "{metadata: {labels: {app: test}";
  if (!annotations.empty()) {
    yaml += ", annotations: {" + std::string(annotations) + "}";
  }
  return yaml + "}, spec: {schedulerName: volcano" + std::string(more_spec) +
         ", containers: [{name: main, image: pause, resources: {requests: {cpu: \"" +
         std::to_string(cpu) + "\"}}}]}}";
}

}  // namespace hopwise::sim
