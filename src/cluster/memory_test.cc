// The budgets of the design: what a pod and a node may cost, measured at the allocator.
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include "cluster/state.h"
#include "cluster/test_objects.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOPWISE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HOPWISE_ASAN 1
#endif
#if defined(HOPWISE_ASAN)
#include <sanitizer/allocator_interface.h>
#endif

namespace hopwise::cluster {
namespace {

using testing::NodeSpec;
using testing::PodSpec;

constexpr size_t kCount = 10'000;

size_t AllocatedBytes() {
#if defined(HOPWISE_ASAN)
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

NodeSpec MakeNode(size_t i) {
  NodeSpec node("node-" + std::to_string(i) + ".cluster.example.com");
  for (size_t k = 0; k < 9; ++k) {
    node.Label("topology.example.com/level-" + std::to_string(k), std::to_string(i / (k * 8 + 8)));
  }
  node.Label("kubernetes.io/hostname", node.meta.name);
  return node;
}

// As a ReplicaSet's or a Job's pods are: ten labels, of which few are their own, two annotations.
PodSpec MakePod(size_t i) {
  PodSpec pod("training-job-" + std::to_string(i / 8) + "-worker-" + std::to_string(i % 8));
  pod.Uid("12345678-1234-1234-1234-" + std::to_string(100'000'000'000 + i));
  for (size_t k = 0; k < 10; ++k) {
    pod.Label("app.example.com/label-" + std::to_string(k), "value-" + std::to_string(i / 8));
  }
  pod.Group("training-job-" + std::to_string(i / 8)).Role("worker");
  pod.On("node-" + std::to_string(i) + ".cluster.example.com");
  return pod;
}

TEST(Memory, NodeCostsAtMostFourKibibytes) {
  const size_t before = AllocatedBytes();
  State state;
  for (size_t i = 0; i < kCount; ++i) state.Apply(MakeNode(i));
  state.trees();
  EXPECT_LE((AllocatedBytes() - before) / kCount, 4'096U);
  EXPECT_LE(state.MemoryBytes().nodes / kCount, 4'096U);
}

TEST(Memory, BoundPodCostsAtMostOneKibibyte) {
  State state;
  for (size_t i = 0; i < kCount; ++i) state.Apply(MakeNode(i));
  const size_t before = AllocatedBytes();
  for (size_t i = 0; i < kCount; ++i) state.Apply(MakePod(i));
  const size_t each = (AllocatedBytes() - before) / kCount;
  EXPECT_LE(each, 1'024U);
  EXPECT_LE(state.MemoryBytes().pods / kCount, 1'024U);
  EXPECT_GE(state.MemoryBytes().pods / kCount * 2, each) << "the estimate leaves half out";
  for (size_t i = 0; i < kCount; ++i) state.Apply(MakePod(i));
  EXPECT_LE((AllocatedBytes() - before) / kCount, each + 64) << "the second sight costs again";
}

// A scheduler runs for months.
TEST(Memory, PodsThatCameAndWentLeaveNothingBehind) {
  State state;
  for (size_t i = 0; i < kCount; ++i) state.Apply(MakeNode(i));
  const auto come_and_go = [&](size_t round) {
    for (size_t i = 0; i < kCount; ++i) {
      PodSpec pod = MakePod(i);
      pod.meta.name += "-" + std::to_string(round);
      pod.Label("batch.example.com/its-own-label", pod.meta.name).Group(pod.meta.name);
      state.Apply(pod);
      state.RemovePod(pod.meta.ns, pod.meta.name);
    }
    state.TakeChanges();
  };
  come_and_go(0);
  const size_t before = AllocatedBytes();
  for (size_t round = 1; round < 5; ++round) come_and_go(round);
  EXPECT_LE(AllocatedBytes(), before + 64 * 1'024);
}

}  // namespace
}  // namespace hopwise::cluster
