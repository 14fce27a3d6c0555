// The rules for Queues, each kept and broken.
#include <string>
#include <vector>

#include "control/test_admission.h"

namespace hopwise::control {
namespace {

using testing::Desk;
using ::testing::ElementsAre;
using testing::ExpectProblem;
using testing::FromYaml;
using ::testing::HasSubstr;
using testing::RuleCase;
using testing::With;

constexpr std::string_view kQueue = R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team}
spec: {weight: 1, parent: root}
)";

// root
// ├─ org      capability 100 cpu, deserved 50, guarantee 20
// │  └─ old   capability 40, deserved 30, guarantee 10
// └─ busy     ten pods of its own
Desk ADesk() {
  Desk desk;
  desk.Queue("{metadata: {name: root}, spec: {weight: 1, reclaimable: false}}")
      .Queue(
          "{metadata: {name: org}, spec: {parent: root, capability: {cpu: 100}, deserved: "
          "{cpu: 50}, guarantee: {resource: {cpu: 20}}}}")
      .Queue(
          "{metadata: {name: old}, spec: {parent: org, capability: {cpu: 40}, deserved: {cpu: "
          "30}, guarantee: {resource: {cpu: 10}}}}")
      .Queue("{metadata: {name: busy}, status: {allocated: {pods: 10}}}");
  return desk;
}

void TryAll(const Desk& desk, const std::vector<RuleCase>& cases) {
  const Json good = FromYaml(kQueue);
  for (const RuleCase& rule : cases) {
    ExpectProblem(desk.Create("/queues/validate", With(good, rule.change)), rule);
  }
}

TEST(AdmitQueue, ItsAmountsFitEachOther) {
  TryAll(
      ADesk(),
      {
          {"a good one", "", ""},
          {"in their order",
           "spec: {capability: {cpu: 4}, deserved: {cpu: 2500m}, guarantee: {resource: {cpu: 1}}}",
           ""},
          {"deserved beyond capability", "spec: {capability: {cpu: 2}, deserved: {cpu: 2500m}}",
           "spec.deserved[cpu]: 2500m is more than spec.capability, 2"},
          {"guarantee beyond deserved",
           "spec: {deserved: {cpu: 2}, guarantee: {resource: {cpu: 3}}}",
           "spec.guarantee.resource[cpu]: 3 is more than spec.deserved, 2"},
          {"guarantee beyond capability",
           "spec: {capability: {memory: 1Gi}, guarantee: {resource: {memory: 2Gi}}}",
           "spec.guarantee.resource[memory]: 2Gi is more than spec.capability, 1Gi"},
          {"guaranteed and not deserved",
           "spec: {deserved: {cpu: 2}, guarantee: {resource: {memory: 1Gi}}}",
           "spec.guarantee.resource[memory]: what is guaranteed must be deserved"},
          {"guaranteed and nothing deserved", "spec: {guarantee: {resource: {memory: 1Gi}}}", ""},
          {"a negative amount", "spec: {capability: {cpu: -1}}",
           "spec.capability[cpu]: is negative"},
          {"no quantity", "spec: {capability: {cpu: much}}", "spec.capability.cpu: "},
          {"weight 0", "spec: {weight: 0}", "spec.weight: must be above zero"},
          {"closed", "status: {state: Closed}", ""},
          {"a state of controllers", "status: {state: Closing}",
           "status.state: \"Closing\" is neither Open nor Closed"},
      });
}

TEST(AdmitQueue, EachLevelOfAHierarchyHasAWeight) {
  const auto of = [](std::string_view levels, std::string_view weights) {
    return fmt::format(
        "metadata: {{annotations: {{volcano.sh/hierarchy: {}, "
        "volcano.sh/hierarchy-weights: '{}'}}}}",
        levels, weights);
  };
  TryAll(ADesk(),
         {
             {"as many", of("root/a/b", "1/2.5/8"), ""},
             {"too few", of("root/a/b", "1/2"),
              "metadata.annotations[volcano.sh/hierarchy-weights]: has 2 levels, and "
              "volcano.sh/hierarchy has 3"},
             {"a weight of 0", of("root/a", "1/0"),
              "metadata.annotations[volcano.sh/hierarchy-weights]: \"0\" is no number above zero"},
             {"a word", of("root/a", "1/much"),
              "metadata.annotations[volcano.sh/hierarchy-weights]: \"much\" is no number"},
         });
}

TEST(AdmitQueue, ItsParentExistsAndIsNotBelowIt) {
  TryAll(ADesk(),
         {
             {"below org", "spec: {parent: org}", ""},
             {"without one", "spec: {parent: null}", ""},
             {"unknown", "spec: {parent: nowhere}", "spec.parent: there is no queue nowhere"},
             {"itself", "spec: {parent: team}", "spec.parent: makes a cycle: team -> team"},
         });
  const Json moved = With(FromYaml(kQueue), "{metadata: {name: org}, spec: {parent: old}}");
  const Json before = With(FromYaml(kQueue), "{metadata: {name: org}}");
  EXPECT_THAT(ADesk().Update("/queues/validate", before, moved).message,
              HasSubstr("spec.parent: makes a cycle: org -> old -> org"));
  EXPECT_THAT(ADesk()
                  .Create("/queues/validate", With(FromYaml(kQueue), "spec: {parent: nowhere}"))
                  .missed_queues,
              ElementsAre("nowhere"));
}

TEST(AdmitQueue, TheTreeIsNotTooDeep) {
  Desk desk = ADesk();
  desk.settings.max_queue_depth = 3;
  TryAll(desk, {
                   {"on the third level", "spec: {parent: old}", ""},
               });
  desk.settings.max_queue_depth = 2;
  TryAll(desk, {
                   {"on the third level", "spec: {parent: old}",
                    "spec.parent: puts queues 3 levels below root; at most 2 are allowed"},
               });
  // With what is below it: org and old under busy.
  const Json before = With(FromYaml(kQueue), "{metadata: {name: org}}");
  EXPECT_THAT(desk.Update("/queues/validate", before, With(before, "spec: {parent: busy}")).message,
              HasSubstr("puts queues 3 levels below root"));
}

TEST(AdmitQueue, ChildrenTogetherHaveNoMoreThanTheirParent) {
  TryAll(
      ADesk(),
      {
          {"what is left",
           "spec: {parent: org, deserved: {cpu: 20}, guarantee: {resource: {cpu: 10}}}", ""},
          {"too much deserved", "spec: {parent: org, deserved: {cpu: 21}}",
           "spec.deserved[cpu]: with it the queues below org come to 51 cpu, and org has 50"},
          {"too much guaranteed",
           "spec: {parent: org, deserved: {cpu: 20}, guarantee: {resource: {cpu: 11}}}",
           "spec.guarantee.resource[cpu]: with it the queues below org come to 21 cpu, and org has "
           "20"},
          {"of what the parent does not name", "spec: {parent: org, deserved: {memory: 1Ti}}", ""},
      });
  const Desk desk = ADesk();
  const Json org = With(FromYaml(kQueue), "{metadata: {name: org}, spec: {deserved: {cpu: 50}}}");
  EXPECT_THAT(
      desk.Update("/queues/validate", org, With(org, "spec: {deserved: {cpu: 29}}")).message,
      HasSubstr("spec.deserved[cpu]: 29 is less than the 30 cpu of the queues below it"));
}

TEST(AdmitQueue, ItsCapabilityIsWithinThatOfTheQueuesAboveIt) {
  TryAll(ADesk(),
         {
             {"as much as its parent", "spec: {parent: org, capability: {cpu: 100}}", ""},
             {"more than its parent", "spec: {parent: org, capability: {cpu: 101}}",
              "spec.capability[cpu]: 101 is more than that of queue org above it, 100"},
             {"more than the nearest that names it", "spec: {parent: old, capability: {cpu: 50}}",
              "spec.capability[cpu]: 50 is more than that of queue old above it, 40"},
         });
  const Json org = With(FromYaml(kQueue), "{metadata: {name: org}}");
  EXPECT_THAT(
      ADesk().Update("/queues/validate", org, With(org, "spec: {capability: {cpu: 39}}")).message,
      HasSubstr("spec.capability[cpu]: 39 is less than that of queue old below it, 40"));
}

TEST(AdmitQueue, AQueueWithPodsGetsNoFirstChildWhereThatIsChecked) {
  Desk desk = ADesk();
  TryAll(desk, {{"not checked", "spec: {parent: busy}", ""}});
  desk.settings.check_allocated_pods = true;
  TryAll(desk,
         {{"checked", "spec: {parent: busy}", "spec.parent: pods of queue busy itself are running"},
          {"without pods", "spec: {parent: old}", ""}});
}

TEST(AdmitQueue, RootsAmountsAreProtected) {
  Desk desk = ADesk();
  const Json root = FromYaml(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: root}, spec: "
      "{weight: 1}}");
  EXPECT_TRUE(desk.Create("/queues/validate", root).allowed);
  EXPECT_TRUE(desk.Update("/queues/validate", root, With(root, "spec: {weight: 2}")).allowed);
  for (const char* change :
       {"capability: {cpu: 1}", "deserved: {cpu: 1}", "guarantee: {resource: {cpu: 1}}"}) {
    const Json next = With(root, fmt::format("spec: {{{}}}", change));
    EXPECT_THAT(desk.Update("/queues/validate", root, next).message,
                HasSubstr("root has the whole cluster"))
        << change;
  }
  EXPECT_THAT(desk.Update("/queues/validate", root, With(root, "spec: {parent: org}")).message,
              HasSubstr("spec.parent: root is above all queues"));
  desk.settings.protect_root = false;
  const Json more = With(root, "spec: {capability: {cpu: 1000}}");
  EXPECT_TRUE(desk.Update("/queues/validate", root, more).allowed);
}

TEST(AdmitQueue, WhatIsInUseIsNotDeleted) {
  const auto remove = [](std::string_view name, std::string_view change) {
    const Json queue =
        With(With(FromYaml(kQueue), change), fmt::format("metadata: {{name: {}}}", name));
    return ADesk().Ask("/queues/validate", "DELETE", nullptr, queue);
  };
  EXPECT_TRUE(remove("team", "status: {state: Open}").allowed);
  EXPECT_TRUE(remove("team", "status: {allocated: {pods: '0'}}").allowed);
  EXPECT_THAT(remove("team", "status: {allocated: {pods: '2'}}").message,
              HasSubstr("2 pods of the queue team are running"));
  EXPECT_THAT(remove("org", "").message,
              HasSubstr("the queue org holds other queues, such as old"));
  for (const char* name : {"root", "default"}) {
    const AdmissionAnswer answer = remove(name, "");
    EXPECT_EQ(answer.code, 403);
    EXPECT_THAT(answer.message, HasSubstr("is needed always")) << name;
  }
}

TEST(AdmitQueue, AnUpdateIsJudgedByWhatItChanges) {
  const Desk desk = ADesk();
  const Json bad = With(FromYaml(kQueue),
                        "{spec: {parent: nowhere, deserved: {cpu: 9}, capability: {cpu: 1}}, "
                        "status: {state: Closing}}");
  EXPECT_TRUE(desk.Update("/queues/validate", bad, With(bad, "spec: {weight: 3}")).allowed);
  EXPECT_TRUE(
      desk.Update("/queues/validate", bad, With(bad, "metadata: {labels: {a: b}}")).allowed);
  EXPECT_FALSE(
      desk.Update("/queues/validate", bad, With(bad, "spec: {deserved: {cpu: 8}}")).allowed);
}

TEST(FillQueue, SaysWhatIsLeftOut) {
  const Json filled = Desk().Fill("/queues/mutate", FromYaml("{metadata: {name: q}}"));
  EXPECT_EQ(filled["spec"], Json({{"reclaimable", true}, {"weight", 1}, {"parent", "root"}}));
  const Json said =
      FromYaml("{metadata: {name: q}, spec: {reclaimable: false, weight: 4, parent: org}}");
  EXPECT_EQ(Desk().Fill("/queues/mutate", said), said);
  const Json root = Desk().Fill("/queues/mutate", FromYaml("{metadata: {name: root}}"));
  EXPECT_FALSE(root["spec"].contains("parent"));
}

TEST(FillQueue, AHierarchyBeginsAtRoot) {
  const auto fill = [](std::string_view levels, std::string_view weights) {
    const Json queue = Desk().Fill(
        "/queues/mutate",
        FromYaml(fmt::format("{{metadata: {{name: q, annotations: {{volcano.sh/hierarchy: {}, "
                             "volcano.sh/hierarchy-weights: '{}'}}}}}}",
                             levels, weights)));
    return Annotation(queue, "volcano.sh/hierarchy") + " " +
           Annotation(queue, "volcano.sh/hierarchy-weights");
  };
  EXPECT_EQ(fill("a/b", "2/3"), "root/a/b 1/2/3");
  EXPECT_EQ(fill("root/a", "1/2"), "root/a 1/2");
  EXPECT_EQ(fill("rooted", "2"), "root/rooted 1/2");
}

}  // namespace
}  // namespace hopwise::control
