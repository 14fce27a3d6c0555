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
