// What the daemon's core makes of what the API server says, without an API server: events in,
// effects out, the time moved by hand.
#include "daemon/core.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/json.h"
#include "daemon/test_core.h"

namespace hopwise::daemon {
namespace {

TEST_F(CoreTest, BindsAGangWholeOnceItsMinimumIsThere) {
  Lead();
  MakeGang("train", 3, 4);
  EXPECT_TRUE(Step().binds.empty());
  Apply(kube::kPods, MakePod("train-3", "train"));
  EXPECT_EQ(NodesOf(Step(kFirstQuiet)), (std::set<std::string>{"a0", "a1", "b0", "b1"}));
  EXPECT_TRUE(Step().binds.empty()) << "each pod is bound once";
  EXPECT_EQ(core_.binds_under_way(), 4U);
}

TEST_F(CoreTest, AnElasticGangGetsAPlaceForAllMembersThatAreBeingMade) {
  Lead();
  MakeGang("train", 0, 2);
  for (const char* name : {"train-0", "train-1", "train-2"}) {
    Apply(kube::kPods, MakePod(name, "train"));
    EXPECT_TRUE(Step(Millis(3)).binds.empty()) << name;
  }
  EXPECT_EQ(core_.next_wake(), now_ + Millis(4 * 3 - 3)) << "four gaps after the last";
  EXPECT_EQ(Step(kLeastQuiet).binds.size(), 3U);
  Apply(kube::kPods, MakePod("train-3", "train"));
  EXPECT_EQ(Step().binds.size(), 1U) << "surplus of a gang that has a place is not held";
}

TEST_F(CoreTest, BindsOfADeadLeaderAreToldOnceWhateverComesFirst) {
  const auto bound_by_another = [&](const std::string& name) {
    api::Pod pod = MakePod(name, "");
    pod.node_name = "a0";
    pod.conditions.push_back({"PodScheduled", "True", "", "", "", now_});
    return pod;
  };
  Apply(kube::kPods, bound_by_another("before"));
  core_.SetSynced(false);
  Lead();
  Apply(kube::kPods, bound_by_another("between"));
  EXPECT_EQ(CountEvents(Step(), "Scheduled"), 0);
  core_.SetSynced(true);
  EXPECT_EQ(CountEvents(Step(), "Scheduled"), 2);
  Apply(kube::kPods, bound_by_another("after"));
  Apply(kube::kPods, bound_by_another("before"));
  EXPECT_EQ(CountEvents(Step(), "Scheduled"), 1);
}

TEST_F(CoreTest, ABrokenHyperNodeIsToldOnItOnceItStaysBroken) {
  Lead();
  Apply(kube::kHyperNodes,
        MakeHyperNode("spine-2", 2, api::MemberType::kHyperNode, {"leaf-a", "leaf-z"}));
  EXPECT_EQ(CountEvents(Step(Seconds(1)), "MissingChild"), 0) << "it may be about to come";
  EXPECT_EQ(core_.next_wake(), now_ + kFaultStands);
  const Effects told = Step(kFaultStands);
  ASSERT_EQ(CountEvents(told, "MissingChild"), 1);
  EXPECT_EQ(CountEvents(told, "TwoParents"), 1);
  EXPECT_EQ(CountEvents(Step(Seconds(60)), "MissingChild"), 0);
  Apply(kube::kHyperNodes, MakeHyperNode("spine-2", 2, api::MemberType::kHyperNode, {"leaf-z"}));
  EXPECT_EQ(CountEvents(Step(Seconds(60)), "TwoParents"), 0);
}

TEST_F(CoreTest, WhatIsCountedOfAGangByNameGoesWithIt) {
  Lead();
  MakeGang("wide", 5, 5);
  MakeGang("train", 1, 1);
  Step();
  const server::Labels wide = {{"job_id", "ml/wide"}};
  EXPECT_EQ(metrics_.Value("volcano_unschedule_task_count", wide), 5);
  EXPECT_EQ(metrics_.Value("volcano_unschedule_job_count"), 1);
  EXPECT_EQ(metrics_.Value("volcano_job_retry_counts", wide), 1);
  EXPECT_NE(metrics_.Text().find("job_name=\"train\""), std::string::npos);
  for (int i = 0; i < 5; ++i) {
    Delete(kube::kPods, MakePod("wide-" + std::to_string(i), "wide"));
  }
  Delete(kube::kPods, MakePod("train-0", "train"));
  Delete(kube::kPodGroups, MakeGroup("wide", 5));
  Delete(kube::kPodGroups, MakeGroup("train", 1));
  Step(Seconds(2));
  const std::string text = metrics_.Text();
  EXPECT_EQ(text.find("wide"), std::string::npos) << text;
  EXPECT_EQ(text.find("train"), std::string::npos) << text;
}

TEST_F(CoreTest, AnElderFailureDoesNotTakeALaterBindBack) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  Fail(placed.binds[0], kube::Failure::kForbidden);
  Step();
  Delete(kube::kNodes, MakeNode(placed.binds[0].node));
  const Effects again = Step();
  ASSERT_FALSE(again.binds.empty());
  EXPECT_TRUE(Step(kFirstBindPause).binds.empty()) << "the new bind is under way";
}

TEST_F(CoreTest, ABindOfUnknownFateKeepsItsRoomUntilSomebodyLooked) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  Fail(placed.binds[0], kube::Failure::kUnreachable);
  EXPECT_EQ(Step().look_ups.size(), 1U);
  const Effects later = Step(kFirstBindPause);
  EXPECT_TRUE(later.binds.empty());
  EXPECT_EQ(Step().look_ups.size(), 1U) << "asked again";
  LookUp(placed.binds[0], MakePod(placed.binds[0].pod.name, "train"));
  EXPECT_EQ(Step(kFirstBindPause).binds.size(), 1U);
}

TEST_F(CoreTest, WhyAPodWaitsIsWrittenForTheVersionThatWeKnow) {
  Lead();
  MakeGang("wide", 5, 5);
  api::Pod pod = MakePod("wide-0", "wide");
  pod.meta.resource_version = "7";
  Apply(kube::kPods, pod);
  Effects told = Step();
  EXPECT_EQ(json::Text(PatchOf(told, "wide-0"), {"metadata", "resourceVersion"}), "7");
  kube::ApiError conflict;
  conflict.failure = kube::Failure::kConflict;
  for (const Patch& patch : told.patches) {
    if (patch.object.name == "wide-0") {
      core_.PatchEnded(patch, conflict, now_);
    }
  }
  pod.meta.resource_version = "9";
  Apply(kube::kPods, pod);
  told = Step(kCatchUp);
  EXPECT_EQ(json::Text(PatchOf(told, "wide-0"), {"metadata", "resourceVersion"}), "9");
  EXPECT_EQ(CountEvents(told, "FailedScheduling"), 0) << "the Event was told already";
  EXPECT_TRUE(PatchOf(Step(kCatchUp), "wide-0").is_null());
}

TEST_F(CoreTest, AnAnswerOlderThanWhatTheWatchToldIsPassedOver) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  const BindPod& bind = placed.binds[0];
  api::Pod pod = MakePod(bind.pod.name, "train");
  Fail(bind, kube::Failure::kUnreachable);
  pod.meta.resource_version = "1000";
  Apply(kube::kPods, pod);
  api::Pod older = pod;
  older.meta.resource_version = "999";
  older.meta.deletion = now_;
  LookUp(bind, older);
  const PodId id = core_.state().FindPod("ml", bind.pod.name);
  EXPECT_FALSE(core_.state().pod(id).terminating);
  Delete(kube::kPods, pod);
  LookUp(bind, pod);
  EXPECT_FALSE(core_.state().FindPod("ml", bind.pod.name).valid()) << "it does not come back";
}

TEST_F(CoreTest, AFailedBindThatHappenedIsToldWhenItIsSeen) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  Fail(placed.binds[0], kube::Failure::kUnreachable);
  Step();
  api::Pod pod = MakePod(placed.binds[0].pod.name, "train");
  pod.node_name = placed.binds[0].node;
  pod.conditions.push_back({"PodScheduled", "True", "", "", "", now_});
  Apply(kube::kPods, pod);
  EXPECT_EQ(CountEvents(Step(), "Scheduled"), 1);
}

// The answer was lost, the watch showed it, and then the Lease was gone before the binder had
// looked.
TEST_F(CoreTest, ABindThatWasSeenAndThenGivenUpIsToldOnceSomebodyLeads) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  api::Pod pod = MakePod(placed.binds[0].pod.name, "train");
  pod.node_name = placed.binds[0].node;
  pod.conditions.push_back({"PodScheduled", "True", "", "", "", now_});
  Apply(kube::kPods, pod);
  EXPECT_EQ(CountEvents(Step(), "Scheduled"), 0) << "the binder tells";
  core_.SetLeading(false, now_);
  Fail(placed.binds[0], kube::Failure::kUnreachable);
  core_.SetLeading(true, now_);
  EXPECT_EQ(CountEvents(Step(), "Scheduled"), 1);
}

TEST_F(CoreTest, APodThatIsBeingDeletedHoldsNoRoomBeforeItIsBound) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  api::Pod leaving = MakePod(placed.binds[0].pod.name, "train");
  leaving.meta.deletion = now_;
  Apply(kube::kPods, leaving);
  const Effects after = Step();
  ASSERT_EQ(after.cancelled.size(), 1U);
  EXPECT_EQ(core_.binds_under_way(), 1U);
}

TEST_F(CoreTest, AGangByLabelsThatIsFoundBoundIsTakenToHaveRun) {
  const auto member = [](const std::string& name) {
    api::Pod pod = Owned(MakePod(name, ""));
    pod.meta.labels = {{"pod-group.scheduling.sigs.k8s.io/min-available", "3"},
                       {"pod-group.scheduling.sigs.k8s.io/name", "band"}};
    return pod;
  };
  for (const bool at_start : {true, false}) {
    SCOPED_TRACE(at_start ? "found" : "made under another leader");
    Core next({}, sched::DefaultConfig(), metrics_);
    const auto see = [&](const kube::Resource& resource, const api::Object& object) {
      kube::WatchEvent event;
      event.decoded.object = object;
      next.Observe(resource, std::move(event), now_);
    };
    see(kube::kNodes, MakeNode("a0"));
    if (!at_start) {
      next.SetSynced(true);
    }
    api::Pod bound = member("band-0");
    bound.node_name = "a0";
    see(kube::kPods, bound);
    see(kube::kPods, member("band-1"));
    next.SetSynced(true);
    next.SetLeading(true, now_);
    EXPECT_TRUE(next.Step(now_).evictions.empty());
    EXPECT_EQ(next.Step(now_ + Seconds(61)).evictions.size(), at_start ? 0U : 1U);
  }
}

// Two of four are bound. What waits was made before they were bound, or after it.
TEST_F(CoreTest, AGangByLabelsThatWasLeftInTheMiddleOfItsBindsGivesItsRoomBack) {
  for (const bool made_before : {true, false}) {
    SCOPED_TRACE(made_before ? "left half bound" : "it lost two, which were made anew");
    Core next({}, sched::DefaultConfig(), metrics_);
    for (int i = 0; i < 4; ++i) {
      api::Pod pod = Owned(MakePod("band-" + std::to_string(i), ""));
      pod.meta.labels = {{"pod-group.scheduling.sigs.k8s.io/min-available", "4"},
                         {"pod-group.scheduling.sigs.k8s.io/name", "band"}};
      if (i < 2) {
        pod.node_name = "gone";
        pod.conditions.push_back({"PodScheduled", "True", "", "", "", kCoreStart + Seconds(10)});
      } else if (!made_before) {
        pod.meta.creation = kCoreStart + Seconds(60);
      }
      kube::WatchEvent event;
      event.decoded.object = pod;
      next.Observe(kube::kPods, std::move(event), now_);
    }
    next.SetSynced(true);
    next.SetLeading(true, now_);
    EXPECT_TRUE(next.Step(now_).evictions.empty());
    EXPECT_EQ(next.Step(now_ + Seconds(61)).evictions.size(), made_before ? 2U : 0U);
  }
}

TEST_F(CoreTest, AGangByLabelsOfWhichNothingIsBoundAtTheStartHasNotRun) {
  Core next({}, sched::DefaultConfig(), metrics_);
  const auto see = [&](const std::string& node) {
    for (int i = 0; i < 2; ++i) {
      api::Pod pod = Owned(MakePod("band-" + std::to_string(i), ""));
      pod.meta.labels = {{"pod-group.scheduling.sigs.k8s.io/min-available", "2"},
                         {"pod-group.scheduling.sigs.k8s.io/name", "band"}};
      pod.node_name = i == 0 ? node : "";
      kube::WatchEvent event;
      event.decoded.object = pod;
      next.Observe(kube::kPods, std::move(event), now_);
    }
  };
  see("");
  next.SetSynced(true);
  next.SetLeading(true, now_);
  next.Step(now_);
  see("gone");  // half bound from here on
  EXPECT_TRUE(next.Step(now_).evictions.empty());
  EXPECT_EQ(next.Step(now_ + Seconds(61)).evictions.size(), 1U);
}

TEST_F(CoreTest, ABindThatWasDecidedAnewIsNotEndedByTheOneBefore) {
  Lead();
  MakeGang("train", 2, 2);
  const BindPod before = Step().binds[0];
  Delete(kube::kNodes, MakeNode(before.node));
  const Effects again = Step();
  const auto anew = std::ranges::find(again.binds, before.pod.uid,
                                      [](const BindPod& bind) { return bind.pod.uid; });
  ASSERT_NE(anew, again.binds.end());
  core_.BindEnded({before.pod, before.node, before.decision, NotLeading(), false, {}}, now_);
  EXPECT_EQ(core_.binds_under_way(), 2U);
  const PodId id = core_.state().FindPod("ml", before.pod.name);
  EXPECT_EQ(core_.state().pod(id).state, cluster::PodState::kAssumed);
  EXPECT_TRUE(Step().binds.empty());
}

TEST_F(CoreTest, ALongQueueOfBindsIsNoReasonToGiveAGangBack) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  Confirm(placed.binds[0], Owned(MakePod(placed.binds[0].pod.name, "train")));
  EXPECT_TRUE(Step(Seconds(61)).evictions.empty());
  EXPECT_EQ(core_.binds_under_way(), 1U);
}

TEST_F(CoreTest, AQueueThatIsGoneIsNotWrittenAgain) {
  Lead();
  api::Queue queue;
  queue.meta.name = "team";
  queue.meta.uid = "queue-team";
  Apply(kube::kQueues, queue);
  const Effects written = Step(Seconds(2));
  const auto at = std::ranges::find(written.patches, "team",
                                    [](const Patch& patch) { return patch.object.name; });
  ASSERT_NE(at, written.patches.end());
  kube::ApiError gone;
  gone.failure = kube::Failure::kNotFound;
  core_.PatchEnded(*at, gone, now_);
  EXPECT_TRUE(PatchOf(Step(Seconds(2)), "team").is_null());
}

TEST_F(CoreTest, AStandbyDecidesAndWritesNothing) {
  MakeGang("train", 2, 2);
  EXPECT_TRUE(Step().empty());
  Lead();
  EXPECT_EQ(Step().binds.size(), 2U);
}

TEST_F(CoreTest, NothingIsDecidedBeforeTheCachesAreSynced) {
  core_.SetSynced(false);
  Lead();
  MakeGang("train", 2, 2);
  EXPECT_TRUE(Step().empty());
}

TEST_F(CoreTest, ADryRunDecidesAndHandsNothingOut) {
  CoreOptions options;
  options.dry_run = true;
  Core core(options, sched::DefaultConfig(), metrics_);
  core.SetSynced(true);
  core.SetLeading(true, now_);
  for (const auto& [resource, object] : std::vector<std::pair<kube::Resource, api::Object>>{
           {kube::kNodes, MakeNode("n")}, {kube::kPods, MakePod("lone", "")}}) {
    kube::WatchEvent event;
    event.decoded.object = object;
    core.Observe(resource, std::move(event), now_);
  }
  EXPECT_TRUE(core.Step(now_).empty());
  EXPECT_EQ(core.state().pod(core.state().FindPod("ml", "lone")).state,
            cluster::PodState::kAssumed);
}

TEST_F(CoreTest, APodGroupRunsWhenItsMinimumIsConfirmedAndSaysWhereItLies) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  ASSERT_EQ(placed.binds.size(), 2U);
  EXPECT_EQ(json::Text(PatchOf(placed, "train"), {"status", "phase"}), "Inqueue");
  core_.PatchEnded(placed.patches.front(), {}, now_);
  ShowGroup("train", 2, "Inqueue", "2");
  for (const BindPod& bind : placed.binds) {
    Confirm(bind, MakePod(bind.pod.name, "train"));
  }
  const Effects running = Step();
  const json::Json body = PatchOf(running, "train");
  EXPECT_EQ(json::Text(body, {"status", "phase"}), "Running");
  EXPECT_EQ(json::Text(body, {"metadata", "annotations", kPlacedTier}), "1");
  EXPECT_EQ(json::Text(body, {"metadata", "annotations", kPlacedDomain}), "leaf-a");
  EXPECT_EQ(json::Text(body, {"metadata", "annotations", kPredictedDistance}), "2");
  EXPECT_EQ(json::Text(body, {"metadata", "resourceVersion"}), "2");
  EXPECT_EQ(json::Text(json::List(body, {"status", "conditions"}).at(0), {"type"}), "Scheduled");
  EXPECT_EQ(CountEvents(running, "Scheduled"), 1);
  EXPECT_EQ(core_.binds_under_way(), 0U);
}

TEST_F(CoreTest, WhatIsUnderWayIsNotWrittenTwice) {
  Lead();
  MakeGang("train", 2, 2);
  ASSERT_FALSE(PatchOf(Step(), "train").is_null());
  Apply(kube::kPods, MakePod("train-2", "train"));
  EXPECT_TRUE(PatchOf(Step(), "train").is_null());
}

TEST_F(CoreTest, WaitingMembersAreToldWhyOnceEach) {
  Lead();
  MakeGang("wide", 5, 5);
  const Effects told = Step();
  EXPECT_EQ(CountEvents(told, "FailedScheduling"), 5);
  const json::Json body = PatchOf(told, "wide-0");
  const json::Json& condition = json::List(body, {"status", "conditions"}).at(0);
  EXPECT_EQ(json::Text(condition, {"reason"}), "Unschedulable");
  EXPECT_NE(json::Text(condition, {"message"}).find("5 pods"), std::string::npos);
  EXPECT_EQ(json::Text(body, {"metadata", "uid"}), "uid-wide-0");
  EXPECT_EQ(CountEvents(told, "Unschedulable"), 1) << "the PodGroup's";
  EXPECT_EQ(CountEvents(Step(), "FailedScheduling"), 0);
}

TEST_F(CoreTest, APodThatShowsTheWordsAlreadyIsNotToldAgain) {
  Lead();
  api::Pod shown = MakePod("wide-0", "wide");
  MakeGang("wide", 5, 5);
  const json::Json body = PatchOf(Step(), "wide-0");
  const json::Json& condition = json::List(body, {"status", "conditions"}).at(0);
  shown.conditions.push_back(
      {"PodScheduled", "False", "Unschedulable", json::Text(condition, {"message"}), "", now_});
  Core next({}, sched::DefaultConfig(), metrics_);
  // The same cluster, seen by a scheduler that has just started.
  kube::WatchEvent group, pod;
  group.decoded.object = MakeGroup("wide", 5);
  pod.decoded.object = shown;
  next.Observe(kube::kPodGroups, std::move(group), now_);
  next.Observe(kube::kPods, std::move(pod), now_);
  next.SetSynced(true);
  next.SetLeading(true, now_);
  next.Step(now_);
  const Effects later = next.Step(now_ + kMostGather);
  EXPECT_EQ(CountEvents(later, "FailedScheduling"), 1) << "another reason: 1 of 5 members";
}

TEST_F(CoreTest, AGangWhoseMembersAreBeingMadeIsLeftAloneForAWhile) {
  Lead();
  MakeGang("slow", 2, 4);
  EXPECT_EQ(CountEvents(Step(), "FailedScheduling"), 0);
  EXPECT_EQ(core_.next_wake(), now_ + kMostGather);
  EXPECT_EQ(CountEvents(Step(Seconds(1)), "FailedScheduling"), 0);
  EXPECT_EQ(CountEvents(Step(Seconds(1)), "FailedScheduling"), 2);
}

TEST_F(CoreTest, AFailedBindIsLookedUpAndTriedAgainAfterAPause) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  Confirm(placed.binds[0], MakePod(placed.binds[0].pod.name, "train"));
  Fail(placed.binds[1], kube::Failure::kServer);
  const Effects failed = Step();
  ASSERT_EQ(failed.look_ups.size(), 1U);
  EXPECT_EQ(failed.look_ups[0].uid, placed.binds[1].pod.uid);
  EXPECT_TRUE(failed.binds.empty());
  const std::string name = placed.binds[1].pod.name;
  const json::Json told = PatchOf(failed, name);
  EXPECT_EQ(json::Text(told, {"status", "nominatedNodeName"}), placed.binds[1].node);
  EXPECT_EQ(json::Text(json::List(told, {"status", "conditions"}).at(0), {"reason"}),
            "SchedulerError");
  EXPECT_EQ(CountEvents(failed, "FailedScheduling"), 1);
  LookUp(placed.binds[1], MakePod(placed.binds[1].pod.name, "train"));
  const Effects again = Step(kFirstBindPause);
  ASSERT_EQ(again.binds.size(), 1U);
  EXPECT_EQ(again.binds[0].node, placed.binds[1].node) << "beside its gang";
  Fail(again.binds[0], kube::Failure::kServer);
  LookUp(again.binds[0], MakePod(again.binds[0].pod.name, "train"));
  EXPECT_TRUE(Step(kFirstBindPause).binds.empty()) << "the second pause is longer";
  EXPECT_EQ(Step(kFirstBindPause).binds.size(), 1U);
}

TEST_F(CoreTest, APodThatLostItsRoomShowsNoNominatedNodeAnyMore) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  const std::string name = placed.binds[0].pod.name;
  Fail(placed.binds[0], kube::Failure::kServer);
  LookUp(placed.binds[0], MakePod(placed.binds[0].pod.name, "train"));
  Step();
  for (const char* node : {"a0", "a1", "b0", "b1"}) {
    Delete(kube::kNodes, MakeNode(node));
  }
  const json::Json told = PatchOf(Step(kFirstBindPause), name);
  ASSERT_TRUE(told.is_object());
  EXPECT_TRUE(told.at("status").at("nominatedNodeName").is_null());
  EXPECT_EQ(json::Text(json::List(told, {"status", "conditions"}).at(0), {"reason"}),
            "Unschedulable");
}

TEST_F(CoreTest, AReplacementTakesTheSlotOfAPodThatIsGone) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  Confirm(placed.binds[0], MakePod(placed.binds[0].pod.name, "train"));
  api::Pod second = MakePod(placed.binds[1].pod.name, "train");
  Fail(placed.binds[1], kube::Failure::kConflict);
  Delete(kube::kPods, second);
  second.meta.uid = "uid-new";
  Apply(kube::kPods, second);
  const Effects again = Step();
  ASSERT_EQ(again.binds.size(), 1U);
  EXPECT_EQ(again.binds[0].pod.uid, "uid-new");
  EXPECT_EQ(again.binds[0].node, placed.binds[1].node);
}

TEST_F(CoreTest, MembersWhoseNodeIsGoneArePlacedElsewhere) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  ASSERT_EQ(NodesOf(placed), (std::set<std::string>{"a0", "a1"}));
  const size_t lost = placed.binds[0].node == "a0" ? 0 : 1;
  Confirm(placed.binds[1 - lost], MakePod(placed.binds[1 - lost].pod.name, "train"));
  Delete(kube::kNodes, MakeNode("a0"));
  const Effects again = Step();
  ASSERT_EQ(again.cancelled.size(), 1U);
  EXPECT_EQ(again.cancelled[0].uid, placed.binds[lost].pod.uid);
  ASSERT_EQ(again.binds.size(), 1U);
  EXPECT_EQ(again.binds[0].pod.uid, placed.binds[lost].pod.uid);
  EXPECT_NE(again.binds[0].node, "a0");
}

TEST_F(CoreTest, AGangThatWasNeverCompleteGivesItsRoomBack) {
  Lead();
  Apply(kube::kPodGroups, MakeGroup("half", 2));
  api::Pod bound = Owned(MakePod("half-0", "half"));
  bound.node_name = "a0";
  Apply(kube::kPods, bound);
  EXPECT_TRUE(Step().evictions.empty());
  EXPECT_TRUE(Step(Seconds(59)).evictions.empty());
  const Effects over = Step(Seconds(1));
  ASSERT_EQ(over.evictions.size(), 1U);
  EXPECT_EQ(over.evictions[0].pod.uid, "uid-half-0");
}

TEST_F(CoreTest, AMemberThatNobodyWouldMakeAnewIsLeftAndTold) {
  Lead();
  Apply(kube::kPodGroups, MakeGroup("half", 2));
  api::Pod bound = MakePod("half-0", "half");
  bound.node_name = "a0";
  Apply(kube::kPods, bound);
  Step();
  const Effects over = Step(Seconds(60));
  EXPECT_TRUE(over.evictions.empty());
  EXPECT_TRUE(std::ranges::any_of(over.events, [](const Tell& event) {
    return event.text.message.find("nobody would make them anew") != std::string::npos;
  }));
}

TEST_F(CoreTest, AGangThatRanIsNeverTakenBack) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  for (const BindPod& bind : placed.binds) {
    Confirm(bind, Owned(MakePod(bind.pod.name, "train")));
  }
  Step();
  Delete(kube::kPods, MakePod("train-1", "train"));
  Step();
  EXPECT_TRUE(Step(Seconds(600)).evictions.empty());
}

TEST_F(CoreTest, ANodeWhoseKubeletRefusedAPodIsAvoidedForAWhile) {
  Lead();
  Apply(kube::kPods, MakePod("lone", ""));
  const Effects placed = Step();
  ASSERT_EQ(placed.binds.size(), 1U);
  const std::string refuser = placed.binds[0].node;
  api::Pod refused = MakePod("lone", "");
  refused.node_name = refuser;
  Apply(kube::kPods, refused);
  refused.phase = api::PodPhase::kFailed;
  refused.reason = "OutOfgpu";
  Apply(kube::kPods, refused);
  for (int i = 0; i < 3; ++i) {
    Apply(kube::kPods, MakePod("next-" + std::to_string(i), ""));
  }
  EXPECT_FALSE(NodesOf(Step()).contains(refuser));
  Apply(kube::kPods, MakePod("last", ""));
  EXPECT_TRUE(Step().binds.empty()) << "the three others are full";
  EXPECT_EQ(NodesOf(Step(kAvoidNode)), (std::set<std::string>{refuser}));
}

TEST_F(CoreTest, BindsThatALeaderDidNotLiveToTellAreTold) {
  api::Pod bound = MakePod("lone", "");
  bound.node_name = "a0";
  bound.conditions.push_back({"PodScheduled", "True", "", "", "", now_ + Seconds(-20)});
  Apply(kube::kPods, bound);
  api::Pod older = MakePod("older", "");
  older.node_name = "a1";
  older.conditions.push_back({"PodScheduled", "True", "", "", "", now_ + Seconds(-3600)});
  Apply(kube::kPods, older);
  Lead();
  const Effects told = Step();
  ASSERT_EQ(CountEvents(told, "Scheduled"), 1);
  const auto event =
      std::ranges::find_if(told.events, [](const Tell& e) { return e.text.reason == "Scheduled"; });
  EXPECT_EQ(event->about.name, "lone");
  EXPECT_TRUE(event->text.important);
  EXPECT_EQ(event->text.key, "uid-lone/Scheduled") << "so that it is written once at most";
}

TEST_F(CoreTest, MissingQueuesAreMadeOnce) {
  api::Queue root, standard;
  root.meta.name = "root";
  standard.meta.name = "default";
  Lead();
  EXPECT_TRUE(Step().new_queues.empty());
  Delete(kube::kQueues, root);
  EXPECT_EQ(Step().new_queues, (std::vector<std::string>{"root"}));
  EXPECT_TRUE(Step().new_queues.empty());
  for (const int pause : {1, 2, 4}) {
    core_.QueueCreationEnded("root", NotLeading(), now_);
    EXPECT_TRUE(Step().new_queues.empty()) << "not at once";
    EXPECT_TRUE(Step(Millis(1000 * pause - 1)).new_queues.empty());
    EXPECT_EQ(Step(Millis(1)).new_queues, (std::vector<std::string>{"root"}));
  }
}

TEST_F(CoreTest, AQueueShowsWhatIsAllocatedAndWhoWaits) {
  Lead();
  MakeGang("train", 2, 2);
  const Effects placed = Step();
  EXPECT_EQ(json::Number(PatchOf(placed, "default"), {"status", "pending"}, 0), 1);
  for (const Patch& patch : placed.patches) {
    core_.PatchEnded(patch, {}, now_);
  }
  for (const BindPod& bind : placed.binds) {
    Confirm(bind, MakePod(bind.pod.name, "train"));
  }
  const json::Json body = PatchOf(Step(kQueueInterval), "default");
  EXPECT_EQ(json::Text(body, {"status", "allocated", "gpu"}), "16");
  EXPECT_EQ(json::Number(body, {"status", "pending"}, 0), 1);
}

TEST_F(CoreTest, TheDumpNamesWhoWaitsAndWhy) {
  Lead();
  MakeGang("wide", 5, 5);
  Step();
  const json::Json dump = json::ParseJson(core_.DumpText()).value();
  const json::Json& gang = json::List(dump, {"waitingGangs"}).at(0);
  EXPECT_EQ(json::Text(gang, {"gang"}), "ml/wide");
  EXPECT_EQ(json::Text(gang, {"reason"}), "NeverFits");
}

TEST_F(CoreTest, AnotherConfigurationDecidesEverybodyAnew) {
  Lead();
  MakeGang("wide", 5, 5);
  Step();
  const double before =
      metrics_.Value("volcano_schedule_attempts_total", {{"result", "unschedulable"}});
  core_.SetConfig(sched::DefaultConfig());
  Step();
  EXPECT_EQ(metrics_.Value("volcano_schedule_attempts_total", {{"result", "unschedulable"}}),
            before + 1);
}

}  // namespace
}  // namespace hopwise::daemon
