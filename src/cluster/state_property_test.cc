// Whatever happens in whatever order, the state is what its objects say.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "cluster/state.h"
#include "cluster/test_objects.h"

namespace hopwise::cluster {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

std::string Pick(Prng& prng, const std::vector<std::string>& texts) {
  return texts[prng.Below(texts.size())];
}

// The objects that exist, by kind and name, and random changes to them. No two draws in one call:
// the order of arguments is the compiler's, and a seed is to mean the same everywhere.
class World {
 public:
  explicit World(uint64_t seed) : prng_(seed) {}

  void Step(State& state) {
    switch (prng_.Below(12)) {
      case 0:
      case 1:
        return Put(state, "node/", Node());
      case 2:
        return Put(state, "group/", Group());
      case 3:
        return Put(state, "queue/", Queue());
      case 4:
        return Put(state, "class/", Class());
      case 5:
      case 6:
        return RemoveAny(state);
      case 7:
        return AssumeAny(state);
      case 8:
        return ForgetAny(state);
      default:
        return Put(state, "pod/", Pod());
    }
  }

  void ForgetAll(State& state) const {
    for (size_t p = 0; p < state.pod_slots(); ++p) {
      if (state.pod(PodId(p)).state == PodState::kAssumed) state.Forget(PodId(p));
    }
  }

  void BuildAfresh(State& state) {
    std::vector<std::string> keys;
    for (const auto& [key, object] : objects_) keys.push_back(key);
    for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[prng_.Below(i)]);
    for (const std::string& key : keys) state.Apply(objects_.at(key));
  }

 private:
  template <class T>
  void Put(State& state, const std::string& kind, const T& object) {
    const std::string key = kind + object.meta.name;
    objects_.erase(key);
    objects_.emplace(key, object);
    state.Apply(objects_.at(key));
  }

  NodeSpec Node() {
    NodeSpec node(Pick(prng_, {"n0", "n1", "n2"}));
    if (prng_.Chance(1, 2)) node.Label("rack", Pick(prng_, {"r0", "r1"}));
    if (prng_.Chance(1, 4)) node.Taint("t", Pick(prng_, {"NoSchedule", "PreferNoSchedule"}));
    if (prng_.Chance(1, 4)) node.Allocatable("nvidia.com/gpu", prng_.Between(0, 4));
    if (prng_.Chance(1, 8)) node.allocatable.clear();
    node.unschedulable = prng_.Chance(1, 8);
    return node;
  }

  GroupSpec Group() {
    const std::string name = Pick(prng_, {"g0", "g1"});
    GroupSpec group(name, static_cast<int32_t>(prng_.Between(0, 4)));
    group.In(Pick(prng_, {"default", "team", "sub", "absent"}));
    group.meta.uid = Pick(prng_, {"one", "two"});
    if (prng_.Chance(1, 3)) group.Hard(1);
    if (prng_.Chance(1, 4)) group.Soft();
    if (prng_.Chance(1, 3)) group.Policy("p", {"part"}, 1, 1);
    if (prng_.Chance(1, 3)) group.Policy("q", {"part", "zone"}, 2, 0);
    if (prng_.Chance(1, 3)) group.min_task_member = {{"ps", 1}, {"worker", 2}};
    if (prng_.Chance(1, 3)) group.priority_class = "high";
    return group;
  }

  api::PriorityClass Class() {
    const std::string name = Pick(prng_, {"high", "low"});
    const auto value = static_cast<int32_t>(prng_.Below(3)) * 10;
    return PriorityClassSpec(name, value, prng_.Chance(1, 4));
  }

  QueueSpec Queue() {
    const std::string name = Pick(prng_, {"default", "team", "sub"});
    QueueSpec queue(name, Pick(prng_, {"", "team", "sub"}));
    if (prng_.Chance(1, 3)) queue.Capability("nvidia.com/gpu", prng_.Between(0, 9));
    if (prng_.Chance(1, 4)) queue.State(Pick(prng_, {"Closed", "Open"}));
    return queue;
  }

  PodSpec Pod() {
    const std::string name = Pick(prng_, {"a-0", "a-1", "a-2", "b-0", "b-1", "c", "d"});
    PodSpec pod(name);
    pod.Uid(name + Pick(prng_, {"-x", "-x", "-x", "-y"}));
    pod.Created(prng_.Between(1, 3));
    if (prng_.Chance(2, 3)) pod.Group(Pick(prng_, {"g0", "g1"}));
    if (prng_.Chance(1, 4)) pod.LabelGroup("l0", Pick(prng_, {"1", "2", "x"}));
    if (prng_.Chance(1, 8)) pod.Label("scheduling.x-k8s.io/pod-group", "g0");
    if (prng_.Chance(1, 2)) pod.Label("part", Pick(prng_, {"0", "1", "10", ""}));
    if (prng_.Chance(1, 2)) pod.Label("zone", "z");
    if (prng_.Chance(1, 2)) pod.Role(Pick(prng_, {"ps", "worker"}));
    Declare(pod);
    if (prng_.Chance(1, 6)) pod.Scheduler("default-scheduler");
    if (prng_.Chance(1, 2)) pod.On(Pick(prng_, {"n0", "n1", "n2", "gone"}));
    if (prng_.Chance(1, 8)) pod.Phase(api::PodPhase::kSucceeded);
    if (prng_.Chance(1, 8)) pod.Phase(api::PodPhase::kFailed);
    if (prng_.Chance(1, 8)) pod.Deleted();
    if (prng_.Chance(1, 4)) pod.HostPort(80);
    if (prng_.Chance(1, 4)) pod.Request("nvidia.com/gpu", prng_.Between(0, 3));
    if (prng_.Chance(1, 8)) pod.Request("example.com/" + name, 1);
    if (prng_.Chance(1, 4)) pod.node_selector = {{"rack", "r0"}};
    if (prng_.Chance(1, 3)) pod.priority_class = Pick(prng_, {"high", "low", "none"});
    if (prng_.Chance(1, 3)) pod.priority = 7;
    if (name == "d") pod.scheduling_gates = {"wait"};
    return pod;
  }

  // What a pod asks of its gang.
  void Declare(PodSpec& pod) {
    if (prng_.Chance(1, 6)) {
      pod.Annotation("alibabacloud.com/topology-aware-constraint",
                     Pick(prng_, {R"({"required": {"topologies": [{"key": "rack"}]}})",
                                  R"({"preferred": {"topologies": [{"key": "rack"}]}})",
                                  R"({"required": {"nodeSelectors": [{}]}})", "{\"name\":"}));
    }
    if (prng_.Chance(1, 8)) pod.Annotation("scheduling.volcano.sh/queue-name", "team");
    if (prng_.Chance(1, 8)) {
      pod.Annotation("volcano.sh/network-topology-highest-tier", Pick(prng_, {"1", "2", "x"}));
    }
    if (prng_.Chance(1, 8)) pod.unevaluated = {{"spec.affinity.podAffinity"}};
  }

  void RemoveAny(State& state) {
    if (objects_.empty()) return;
    auto at = objects_.begin();
    std::advance(at, prng_.Below(objects_.size()));
    const std::string kind = at->first.substr(0, at->first.find('/'));
    const std::string name = at->first.substr(kind.size() + 1);
    if (kind == "node") state.RemoveNode(name);
    if (kind == "pod") state.RemovePod("ml", name);
    if (kind == "group") state.RemovePodGroup("ml", name, false);
    if (kind == "queue") state.RemoveQueue(name);
    if (kind == "class") state.RemovePriorityClass(name);
    objects_.erase(at);
  }

  void AssumeAny(State& state) {
    const NodeId node = state.FindNode(Pick(prng_, {"n0", "n1"}));
    for (size_t p = 0; node.valid() && p < state.pod_slots(); ++p) {
      if (state.pod(PodId(p)).state != PodState::kPending || prng_.Chance(1, 2)) continue;
      return state.Assume(PodId(p), node);
    }
  }

  void ForgetAny(State& state) {
    for (size_t p = 0; p < state.pod_slots(); ++p) {
      if (state.pod(PodId(p)).state != PodState::kAssumed || prng_.Chance(1, 2)) continue;
      return state.Forget(PodId(p));
    }
  }

  Prng prng_;
  std::map<std::string, api::Object> objects_;
};

class RandomHistory : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomHistory, AuditsAtEveryStepAndEndsAsItsObjectsSay) {
  World world(GetParam());
  State state;
  for (int step = 0; step < 300; ++step) {
    world.Step(state);
    ASSERT_EQ(state.Audit(), "") << "seed " << GetParam() << " step " << step;
    if (step % 7 == 0) state.TakeChanges();
  }
  world.ForgetAll(state);
  ASSERT_EQ(state.Audit(), "") << "seed " << GetParam();
  State afresh;
  world.BuildAfresh(afresh);
  EXPECT_EQ(Dump(state), Dump(afresh)) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomHistory, ::testing::Range<uint64_t>(1, 101));

}  // namespace
}  // namespace hopwise::cluster
