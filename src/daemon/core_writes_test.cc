// What the core does not write: what would conflict, and what the next write says anyway.
#include <string>

#include <gtest/gtest.h>

#include "api/json.h"
#include "daemon/core.h"
#include "daemon/test_core.h"

namespace hopwise::daemon {
namespace {

TEST_F(CoreTest, AGroupHasNoPlaceBeforeItsMinimumIsBound) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  const json::Json body = PatchOf(placed, "train");
  EXPECT_EQ(json::Text(body, {"status", "phase"}), "Inqueue");
  EXPECT_EQ(json::Text(body, {"metadata", "annotations", kPlacedTier}), "");
  core_.PatchEnded(placed.patches.front(), {}, now_);
  ShowGroup("train", 2, "Inqueue", "2");
  Confirm(placed.binds[0], MakePod(placed.binds[0].pod.name, "train"));
  EXPECT_TRUE(Step().patches.empty()) << "one of two is bound";
  Confirm(placed.binds[1], MakePod(placed.binds[1].pod.name, "train"));
  EXPECT_EQ(json::Text(PatchOf(Step(), "train"), {"metadata", "annotations", kPlacedTier}), "1");
}

TEST_F(CoreTest, WhatTheWatchHasNotShownYetIsNotWrittenAgainst) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  core_.PatchEnded(placed.patches.front(), {}, now_);
  for (const BindPod& bind : placed.binds) {
    Confirm(bind, MakePod(bind.pod.name, "train"));
  }
  EXPECT_TRUE(Step().patches.empty()) << "version 1 would conflict";
  ShowGroup("train", 2, "Inqueue", "2");
  const json::Json body = PatchOf(Step(), "train");
  EXPECT_EQ(json::Text(body, {"metadata", "resourceVersion"}), "2");
  EXPECT_EQ(json::Text(body, {"status", "phase"}), "Running");
}

TEST_F(CoreTest, AWatchThatIsFasterThanTheAnswerIsNotWaitedFor) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  ShowGroup("train", 2, "Inqueue", "2");
  core_.PatchEnded(placed.patches.front(), {}, now_);
  for (const BindPod& bind : placed.binds) {
    Confirm(bind, MakePod(bind.pod.name, "train"));
  }
  EXPECT_EQ(json::Text(PatchOf(Step(), "train"), {"status", "phase"}), "Running");
}

TEST_F(CoreTest, AWriteThatNoWatchEverShowsHoldsNothingUpForLong) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  core_.PatchEnded(placed.patches.front(), {}, now_);
  for (const BindPod& bind : placed.binds) {
    Confirm(bind, MakePod(bind.pod.name, "train"));
  }
  EXPECT_TRUE(Step().patches.empty());
  EXPECT_EQ(core_.next_wake(), now_ + kConflictRetry);
  EXPECT_EQ(json::Text(PatchOf(Step(kConflictRetry), "train"), {"status", "phase"}), "Running");
}

TEST_F(CoreTest, AGroupIsNotComplainedOfWhileItsMembersStillCome) {
  Lead();
  MakeGang("slow", 0, 4);
  EXPECT_EQ(CountEvents(Step(kMostGather), "Unschedulable"), 0) << "no member was made yet";
  for (const char* name : {"slow-0", "slow-1", "slow-2"}) {
    Apply(kube::kPods, MakePod(name, "slow"));
    EXPECT_EQ(CountEvents(Step(Millis(1'500)), "Unschedulable"), 0) << name;
  }
  EXPECT_EQ(CountEvents(Step(kMostGather), "FailedScheduling"), 3);
}

TEST_F(CoreTest, AGroupOfWhichNobodyMakesAMemberIsComplainedOf) {
  Lead();
  MakeGang("slow", 0, 4);
  const Effects first = Step();
  EXPECT_EQ(CountEvents(first, "Unschedulable"), 0);
  core_.PatchEnded(first.patches.front(), {}, now_);
  ShowGroup("slow", 4, "Inqueue", "2");
  EXPECT_EQ(CountEvents(Step(Seconds(9)), "Unschedulable"), 0);
  EXPECT_EQ(CountEvents(Step(Seconds(1)), "Unschedulable"), 1);
}

TEST_F(CoreTest, MembersThatComeForEverAreComplainedOfInTime) {
  Lead();
  MakeGang("slow", 0, 40);
  Step();
  int told = 0;
  for (int i = 0; i < 8 && told == 0; ++i) {
    Apply(kube::kPods, MakePod("slow-" + std::to_string(i), "slow"));
    told = CountEvents(Step(Millis(1'500)), "FailedScheduling");
    EXPECT_EQ(told > 0, Millis(1'500).ns * (i + 1) >= kMostMaking.ns) << i;
  }
  EXPECT_GT(told, 0);
}

TEST_F(CoreTest, WhatBecameOfAnEvictionIsCounted) {
  kube::ApiError error;
  core_.EvictionEnded({{"ml", "a", "uid-a"}, error, true}, now_);
  core_.EvictionEnded({{"ml", "a", "uid-a"}, NotLeading(), false}, now_);
  error.failure = kube::Failure::kThrottled;
  core_.EvictionEnded({{"ml", "a", "uid-a"}, error, true}, now_);
  error.failure = kube::Failure::kForbidden;
  core_.EvictionEnded({{"ml", "a", "uid-a"}, error, true}, now_);
  for (const char* result : {"evicted", "left", "forbidden", "failed"}) {
    EXPECT_EQ(metrics_.Value("hopwise_evictions_total", {{"result", result}}), 1) << result;
  }
}

}  // namespace
}  // namespace hopwise::daemon
