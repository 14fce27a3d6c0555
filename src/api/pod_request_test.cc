#include "api/pod_request.h"

#include <gtest/gtest.h>

namespace hopwise::api {
namespace {

ContainerResources Asks(int64_t cpu) { return {.requests = {{"cpu", cpu}}}; }
ContainerResources Sidecar(int64_t cpu) { return {.requests = {{"cpu", cpu}}, .sidecar = true}; }

TEST(PodRequestTest, WhatRunsTogetherAddsUpAndTheLargestPhaseCounts) {
  struct Case {
    const char* name;
    PodResources resources;
    int64_t cpu;
  };
  const Case cases[] = {
      {"containers add up", {.containers = {Asks(100), Asks(200)}}, 300},
      {"a small init container hides behind them",
       {.init = {Asks(50)}, .containers = {Asks(100)}},
       100},
      {"a large init container counts alone",
       {.init = {Asks(500)}, .containers = {Asks(100)}},
       500},
      {"init containers run one by one",
       {.init = {Asks(400), Asks(300)}, .containers = {Asks(100)}},
       400},
      {"a sidecar runs beside the containers",
       {.init = {Sidecar(50)}, .containers = {Asks(100)}},
       150},
      {"a sidecar started before an init container counts with it",
       {.init = {Sidecar(50), Asks(500)}, .containers = {Asks(100)}},
       550},
      {"one started after does not",
       {.init = {Asks(500), Sidecar(50)}, .containers = {Asks(100)}},
       500},
      {"sidecars add up",
       {.init = {Sidecar(10), Asks(100), Sidecar(20), Asks(100)}, .containers = {Asks(1)}},
       130},
      {"the overhead comes on top",
       {.init = {Asks(500)}, .containers = {Asks(100)}, .overhead = {{"cpu", 7}}},
       507},
      {"no container at all", {}, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(AmountOf(EffectiveRequest(c.resources), "cpu"), c.cpu) << c.name;
  }
}

TEST(PodRequestTest, ALimitWithoutARequestIsTheRequest) {
  const PodResources resources = {
      .containers = {{.requests = {{"memory", 10}}, .limits = {{"cpu", 500}, {"memory", 20}}},
                     {.requests = {{"cpu", 0}}, .limits = {{"cpu", 900}}}}};
  EXPECT_EQ(EffectiveRequest(resources), (ResourceList{{"cpu", 500}, {"memory", 10}}));
}

TEST(PodRequestTest, ThePodLevelReplacesTheResourcesItNames) {
  const PodResources resources = {
      .init = {Asks(9'000)},
      .containers = {{.requests = {{"cpu", 100}, {"gpu", 2}, {"memory", 10}}}},
      .pod = {.requests = {{"cpu", 3'000}, {"gpu", 8}}, .limits = {{"memory", 99}}},
      .overhead = {{"cpu", 5}}};
  // gpu is no pod-level resource; memory has a request below, so that the pod's limit is none.
  EXPECT_EQ(EffectiveRequest(resources),
            (ResourceList{{"cpu", 3'005}, {"gpu", 2}, {"memory", 10}}));
}

TEST(PodRequestTest, APodLevelLimitCountsWhereNobodyAsks) {
  const PodResources resources = {.containers = {Asks(100)},
                                  .pod = {.limits = {{"cpu", 700}, {"hugepages-2Mi", 4}}}};
  EXPECT_EQ(EffectiveRequest(resources), (ResourceList{{"cpu", 100}, {"hugepages-2Mi", 4}}));
}

TEST(PodRequestTest, APodLevelLimitOfHugePagesIsTheRequestWhateverTheContainersAsk) {
  const PodResources resources = {
      .containers = {{.requests = {{"hugepages-2Mi", 2}}, .limits = {{"hugepages-2Mi", 2}}}},
      .pod = {.limits = {{"hugepages-2Mi", 4}}}};
  EXPECT_EQ(EffectiveRequest(resources), (ResourceList{{"hugepages-2Mi", 4}}));
}

TEST(PodRequestTest, WhoIsResizedHoldsTheMostOfWhatIsAskedGrantedAndThere) {
  struct Case {
    const char* name;
    int64_t asked, granted, actual;
    bool infeasible;
    int64_t held;
  };
  const Case cases[] = {
      {"it grows: asked", 400, 200, 100, false, 400},
      {"it grows: granted", 100, 400, 200, false, 400},
      {"it shrinks, and still has it", 100, 200, 400, false, 400},
      {"what cannot be given is not held", 400, 200, 100, true, 200},
      {"nor is what it asked to give back", 100, 200, 400, true, 400},
  };
  for (const Case& c : cases) {
    const HeldResources held{.actual = {{"cpu", c.actual}}, .granted = {{"cpu", c.granted}}};
    const ContainerResources resized{.requests = {{"cpu", c.asked}}, .held = held};
    EXPECT_EQ(AmountOf(EffectiveRequest(
                           {.containers = {Asks(5), resized}, .resize_infeasible = c.infeasible}),
                       "cpu"),
              c.held + 5)
        << c.name;
    EXPECT_EQ(
        AmountOf(EffectiveRequest(
                     {.containers = {Asks(5)}, .pod = resized, .resize_infeasible = c.infeasible}),
                 "cpu"),
        c.held)
        << c.name << ", the pod as a whole";
  }
}

TEST(PodRequestTest, AnInitContainerThatEndsHoldsWhatItAsks) {
  const HeldResources held{.actual = {{"cpu", 900}}};
  const PodResources resources = {.init = {{.requests = {{"cpu", 300}}, .held = held},
                                           {.requests = {{"cpu", 10}},
                                            .sidecar = true,
                                            .held = HeldResources{.actual = {{"cpu", 20}}}}},
                                  .containers = {Asks(100)}};
  EXPECT_EQ(AmountOf(EffectiveRequest(resources), "cpu"), 300);
  PodResources alone = resources;
  alone.init.erase(alone.init.begin());
  EXPECT_EQ(AmountOf(EffectiveRequest(alone), "cpu"), 120);
}

TEST(PodRequestTest, ThePodLevelReplacesWhatItsContainersHave) {
  const HeldResources held{.actual = {{"cpu", 900}}};
  const PodResources resources = {.containers = {{.requests = {{"cpu", 100}}, .held = held}},
                                  .pod = {.limits = {{"memory", 99}}}};
  EXPECT_EQ(EffectiveRequest(resources), (ResourceList{{"cpu", 100}, {"memory", 99}}));
}

TEST(PodRequestTest, BestEffortIsWhoAsksForNothing) {
  EXPECT_TRUE(IsBestEffort({}));
  EXPECT_TRUE(IsBestEffort({.containers = {Asks(0)}}));
  EXPECT_FALSE(IsBestEffort({.containers = {Asks(1)}}));
  EXPECT_FALSE(IsBestEffort({.init = {Asks(1)}, .containers = {Asks(0)}}));
  EXPECT_FALSE(IsBestEffort({.containers = {{.limits = {{"gpu", 1}}}}}));
  EXPECT_FALSE(IsBestEffort({.pod = Asks(1)}));
  EXPECT_TRUE(IsBestEffort({.overhead = {{"cpu", 1}}}));
}

}  // namespace
}  // namespace hopwise::api
