// Answers the cases of tests/oracle/generate.py: a JSON case a line on stdin, an answer a line on
// stdout, in the form of the judge in tests/oracle/go.
//
// {"passes": [node …] in the case's order, "reasons": {node: why not}, "scores": {term: {node:
// parts of a point, see sched::kPoint}}, "blocker": why the pod is not judged, or ""}.
#include <array>
#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/decode.h"
#include "cluster/fit.h"
#include "cluster/state.h"
#include "sched/config.h"
#include "sched/score.h"

namespace hopwise {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAsked = "pod";

// What we score, by the plugin of kube-scheduler that scores the same.
struct Term {
  const char* plugin;
  void (*only)(sched::NodeOrder& order);  // turns this term on; all are off
};
constexpr std::array<Term, 3> kTerms = {{
    {"NodeResourcesFit", [](sched::NodeOrder& order) { order.least_requested = 1; }},
    {"nodeorder/NodeResourcesFit", [](sched::NodeOrder& order) { order.most_requested = 1; }},
    {"nodeorder/NodeResourcesBalancedAllocation",
     [](sched::NodeOrder& order) { order.balanced = 1; }},
}};

// For people; a verdict that has no word here is told by its number.
std::string Words(cluster::NodeVerdict verdict) {
  using cluster::NodeVerdict;
  switch (verdict) {
    case NodeVerdict::kFits:
      return "fits";
    case NodeVerdict::kNotReady:
      return "not ready";
    case NodeVerdict::kUnschedulable:
      return "unschedulable";
    case NodeVerdict::kTaint:
      return "taint";
    case NodeVerdict::kSelector:
      return "selector";
    case NodeVerdict::kAffinity:
      return "affinity";
    case NodeVerdict::kPort:
      return "port";
    case NodeVerdict::kPodAffinity:
      return "pod affinity";
    case NodeVerdict::kPodAntiAffinity:
      return "pod anti-affinity";
    case NodeVerdict::kKeptAway:
      return "pod anti-affinity of another";
    case NodeVerdict::kSpread:
      return "topology spread";
    case NodeVerdict::kResources:
      return "resources";
    default:
      return "verdict " + std::to_string(static_cast<int>(verdict));
  }
}

void Apply(cluster::State& state, api::Decoder& decoder, const Json& object) {
  Result<api::Decoded> decoded = decoder.Decode(object.dump());
  if (!decoded) {
    throw std::runtime_error(object.value("kind", "?") + ": " + decoded.error().message);
  }
  state.Apply(decoded->object);
}

// Judged in each of the ways in which the scheduler does, which must agree.
void Judge(cluster::State& state, NodeId node, ShapeId shape, Json& answer) {
  const cluster::NodeVerdict verdict = state.fits().Judge(node, shape);
  const bool fits = verdict == cluster::NodeVerdict::kFits;
  const cluster::ShapeFit& swept = state.fits().Get(shape, {}, 0);
  const bool swept_fits = swept.fit[node.index()] > 0;
  const bool counted_fits = state.fits().FitAfresh(node, shape) > 0;
  const std::string& name = state.node(node).name;
  if (fits != swept_fits || fits != counted_fits) {
    answer["error"] = "node " + name + ": " + Words(verdict) + " when judged alone, " +
                      (swept_fits ? "fits" : "does not fit") + " in the sweep, " +
                      (counted_fits ? "fits" : "does not fit") + " when counted";
  }
  if (fits) {
    answer["passes"].push_back(name);
  } else {
    answer["reasons"][name] = Words(verdict);
  }
}

void Score(const cluster::State& state, PodId pod, const std::vector<NodeId>& nodes, Json& answer) {
  for (const Term& term : kTerms) {
    sched::Config config;
    config.node_order = {true, 0, 0, 0};
    term.only(config.node_order);
    const sched::Scorer scorer(config, state.columns());
    for (const NodeId node : nodes) {
      answer["scores"][term.plugin][state.node(node).name] =
          scorer.NodeScore(node, state.RequestOf(pod), nullptr);
    }
  }
}

Json Answer(const Json& json) {
  cluster::State state;
  api::Decoder decoder;
  for (const auto& [kind, objects] : json.items()) {
    if (!objects.is_array() || kind == "features") continue;
    for (const Json& object : objects) Apply(state, decoder, object);
  }
  Apply(state, decoder, json[kAsked]);
  Json answer = {{"passes", Json::array()},
                 {"reasons", Json::object()},
                 {"scores", Json::object()},
                 {"blocker", ""}};
  const Json& meta = json[kAsked]["metadata"];
  const PodId id =
      state.FindPod(meta["namespace"].get<std::string>(), meta["name"].get<std::string>());
  const cluster::PodRecord& pod = state.pod(id);
  if (pod.state == cluster::PodState::kGated) return answer;
  if (pod.state != cluster::PodState::kPending) {
    answer["blocker"] = "not waiting for us";
    return answer;
  }
  if (!pod.blocker.empty()) {
    answer["blocker"] = pod.blocker;
    return answer;
  }
  const ShapeId shape = state.ShapeOf(id);
  std::vector<NodeId> nodes;
  for (const Json& node : json["nodes"]) {
    nodes.push_back(state.FindNode(node["metadata"]["name"].get<std::string>()));
    Judge(state, nodes.back(), shape, answer);
  }
  Score(state, id, nodes, answer);
  return answer;
}

}  // namespace
}  // namespace hopwise

int main() {
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    try {
      std::cout << hopwise::Answer(hopwise::Json::parse(line)).dump() << '\n' << std::flush;
    } catch (const std::exception& error) {
      std::cerr << "hopwise_oracle_answer: line " << number << ": " << error.what() << '\n';
      return 1;
    }
  }
  return 0;
}
