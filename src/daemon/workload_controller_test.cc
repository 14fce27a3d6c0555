// Which objects are looked at, when, and what becomes of writes that fail. What each object needs
// is tested in control/.
#include "daemon/workload_controller.h"

#include <gmock/gmock.h>

#include "api/json.h"
#include "daemon/controller_metrics.h"
#include "daemon/object_cache.h"

namespace hopwise::daemon {
namespace {

using json::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

kube::WatchEvent Event(const Json& object, bool deleted = false) {
  kube::WatchEvent event;
  event.type = deleted ? kube::WatchEvent::Type::kDeleted : kube::WatchEvent::Type::kApplied;
  if (deleted) {
    // A reflector tells the end of an object as one of its kind, with its identity alone.
    api::Pod gone;
    gone.meta.ns = json::Namespace(object);
    gone.meta.name = json::Name(object);
    gone.meta.uid = json::Uid(object);
    event.decoded.object = std::move(gone);
    return event;
  }
  api::Unknown text;
  text.meta.ns = json::Namespace(object);
  text.meta.name = json::Name(object);
  text.meta.uid = json::Uid(object);
  text.json = json::Dump(object);
  event.decoded.object = std::move(text);
  return event;
}

Json ObjectOf(const char* api_version, const char* kind, const char* name, int version = 1) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata",
           {{"name", name},
            {"namespace", "ml"},
            {"uid", std::string("u-") + name},
            {"generation", 1},
            {"creationTimestamp", "2026-01-01T00:00:00Z"},
            {"resourceVersion", std::to_string(version)}}}};
}

Json JobOf(const char* name = "j", int version = 1) {
  Json job = ObjectOf("batch.volcano.sh/v1alpha1", "Job", name, version);
  job["spec"]["tasks"] =
      Json::array({{{"name", "w"}, {"replicas", 2}, {"template", Json::object()}}});
  return job;
}

// A controller that leads, with all that it asked for answered by the test.
class Desk {
 public:
  Desk() {
    DeclareControllerMetrics(metrics);
    controller.SetLeading(true, now);
    controller.SetSynced(true, now);
  }
  void See(const kube::Resource& resource, const Json& object, bool deleted = false) {
    controller.Observe(resource, Event(object, deleted), now);
  }
  // The batches of the next step that has any, "create Pod a, create Pod b; patch Job j".
  std::vector<std::string> Next() {
    std::vector<std::string> told;
    if (const Time wake = controller.next_wake(); wake.set()) {
      now = std::max(now, wake);
    }
    WorkEffects effects = controller.Step(now);
    for (Tell& tell : effects.events) {
      events.push_back(tell.text.reason + ": " + tell.text.message);
    }
    for (Batch& batch : effects.batches) {
      told.push_back(TextOf(batch));
      batches.push_back(std::move(batch));
    }
    return told;
  }
  // As the API server would.
  void Accept(const Batch& batch) {
    for (const std::vector<ObjectWrite>& step : batch.steps) {
      for (const ObjectWrite& write : step) {
        WriteResult result{write, {}, ""};
        if (write.verb != ObjectWrite::Verb::kDelete) {
          result.object = Stored(write);
        }
        controller.Wrote(batch.id, result, now);
      }
    }
    controller.Ended(batch.id, true, now);
  }
  void Refuse(const Batch& batch, kube::Failure failure, const char* message) {
    WriteResult result{batch.steps.front().front(), {}, ""};
    result.error.failure = failure;
    result.error.message = message;
    controller.Wrote(batch.id, result, now);
    controller.Ended(batch.id, false, now);
  }

  Time now{1'767'225'600LL * 1'000'000'000LL};
  ControllerOptions options;
  server::Metrics metrics;
  WorkloadController controller{options, metrics, [] { return std::nullopt; }};
  std::vector<Batch> batches;
  std::vector<std::string> events;

 private:
  static std::string TextOf(const Batch& batch) {
    std::string text;
    for (const std::vector<ObjectWrite>& step : batch.steps) {
      text += text.empty() ? "" : "; ";
      for (size_t i = 0; i < step.size(); ++i) {
        const ObjectWrite& write = step[i];
        using Verb = ObjectWrite::Verb;
        const char* verb = write.verb == Verb::kCreate        ? "create"
                           : write.verb == Verb::kPatch       ? "patch"
                           : write.verb == Verb::kPatchStatus ? "status"
                                                              : "delete";
        text += (i == 0 ? "" : ", ") + std::string(verb) + " " + std::string(write.resource.kind);
      }
    }
    return text;
  }
  std::string Stored(const ObjectWrite& write) {
    const std::string key = std::string(write.resource.plural) + "/" + write.name;
    Json object = json::ParseOrNull(write.body);
    if (write.verb != ObjectWrite::Verb::kCreate) {
      Json patch = std::move(object);
      object = stored_.contains(key) ? stored_[key] : JobOf(write.name.c_str());
      json::Unset(patch, {"metadata", "uid"});
      json::Unset(patch, {"metadata", "resourceVersion"});
      object.merge_patch(patch);
    }
    json::Set(object, {"metadata", "resourceVersion"}, std::to_string(++version_));
    if (json::Uid(object).empty()) {
      json::Set(object, {"metadata", "uid"}, "u-" + write.name);
    }
    stored_[key] = object;
    return json::Dump(object);
  }
  std::map<std::string, Json> stored_;
  int version_ = 100;
};

TEST(Workloads, AJobIsLookedAtAndItsGroupAwaited) {
  Desk desk;
  desk.See(kube::kVcJobs, JobOf());
  EXPECT_THAT(desk.Next(), ElementsAre("create PodGroup; status Job"));
  desk.Accept(desk.batches[0]);
  EXPECT_THAT(desk.Next(), IsEmpty()) << "our own writes are no news";
  EXPECT_FALSE(desk.controller.next_wake().set());
}

TEST(Workloads, NothingIsDoneWithoutTheLeadOrBeforeAllIsListed) {
  Desk desk;
  desk.controller.SetLeading(false, desk.now);
  desk.See(kube::kVcJobs, JobOf());
  EXPECT_FALSE(desk.controller.next_wake().set());
  EXPECT_THAT(desk.Next(), IsEmpty());
  desk.controller.SetLeading(true, desk.now);
  EXPECT_THAT(desk.Next(), ElementsAre("create PodGroup; status Job"));
}

TEST(Workloads, AnObjectIsNotLookedAtWhileItsWritesAreUnderWay) {
  Desk desk;
  desk.See(kube::kVcJobs, JobOf());
  desk.Next();
  desk.See(kube::kVcJobs, JobOf("j", 2));
  EXPECT_THAT(desk.Next(), IsEmpty());
  desk.Accept(desk.batches[0]);
  desk.Next();
  EXPECT_EQ(desk.batches.size(), 1U) << "what came meanwhile changes nothing";
}

TEST(Workloads, OldNewsOfTheWatchIsNone) {
  Desk desk;
  desk.See(kube::kVcJobs, JobOf());
  desk.Next();
  desk.Accept(desk.batches[0]);
  desk.Next();
  desk.See(kube::kVcJobs, JobOf("j", 1));
  EXPECT_THAT(desk.Next(), IsEmpty());
  EXPECT_FALSE(desk.controller.next_wake().set());
}

TEST(Workloads, ARefusalIsToldAndTriedAgainLaterAndLater) {
  Desk desk;
  desk.See(kube::kVcJobs, JobOf());
  desk.Next();
  Time before = desk.now;
  desk.Refuse(desk.batches[0], kube::Failure::kForbidden, "no PodGroups for you");
  EXPECT_EQ(desk.controller.next_wake(), before + kRefusalWait);
  EXPECT_THAT(desk.Next(), ElementsAre("status Job; create PodGroup"))
      << "the reason stands in the status, whatever comes after";
  EXPECT_THAT(desk.batches[1].steps[0][0].body, HasSubstr("no PodGroups for you"));
  EXPECT_THAT(desk.events, ElementsAre("PodGroupError: no PodGroups for you"));
  before = desk.now;
  desk.Refuse(desk.batches[1], kube::Failure::kForbidden, "no PodGroups for you");
  EXPECT_EQ(desk.controller.next_wake(), before + Duration{2 * kRefusalWait.ns});
}

TEST(Workloads, AConflictIsNoFailure) {
  Desk desk;
  desk.See(kube::kVcJobs, JobOf());
  desk.Next();
  const Time before = desk.now;
  desk.Refuse(desk.batches[0], kube::Failure::kConflict, "somebody was faster");
  EXPECT_EQ(desk.controller.next_wake(), before + kConflictWait);
  desk.Next();
  EXPECT_THAT(desk.events, IsEmpty());
}

TEST(Workloads, AJobThatIsGoneIsForgotten) {
  Desk desk;
  desk.See(kube::kVcJobs, JobOf());
  desk.See(kube::kVcJobs, JobOf(), true);
  EXPECT_THAT(desk.Next(), IsEmpty());
  EXPECT_FALSE(desk.controller.next_wake().set());
}

TEST(Workloads, APodWithoutAGroupGetsOne) {
  Desk desk;
  Json pod = ObjectOf("v1", "Pod", "p");
  pod["spec"] = {{"schedulerName", "volcano"}};
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "apps/v1"},
                                                     {"kind", "ReplicaSet"},
                                                     {"name", "rs"},
                                                     {"uid", "r"},
                                                     {"controller", true}}});
  desk.See(kube::kPods, pod);
  EXPECT_THAT(desk.Next(), ElementsAre("create PodGroup; patch Pod"));
}

TEST(Workloads, APodOfAnotherSchedulerIsNotEvenKept) {
  Desk desk;
  Json pod = ObjectOf("v1", "Pod", "p");
  pod["spec"] = {{"schedulerName", "default-scheduler"}};
  desk.See(kube::kPods, pod);
  EXPECT_FALSE(desk.controller.next_wake().set());
}

TEST(Workloads, AChildQueueIsLookedAtWhenItsParentChanges) {
  Desk desk;
  const auto queue = [](const char* name, const char* parent, const char* state, int version) {
    Json object = ObjectOf("scheduling.volcano.sh/v1beta1", "Queue", name, version);
    object["metadata"].erase("namespace");
    object["spec"] = {{"parent", parent}};
    object["status"] = {{"state", state}};
    return object;
  };
  desk.See(kube::kQueues, queue("dept", "root", "Open", 1));
  desk.See(kube::kQueues, queue("team", "dept", "Open", 1));
  EXPECT_THAT(desk.Next(), IsEmpty());
  desk.See(kube::kQueues, queue("dept", "root", "Closed", 2));
  EXPECT_THAT(desk.Next(), ElementsAre("patch Queue; status Queue"));
}

TEST(ObjectCache, AnAnswerThatComesAfterTheEndBringsNothingBack) {
  ObjectCache cache([](const control::Key&, const Json&) { return true; },
                    [](const control::Key&, const Json*, const Json*) {});
  const Json pod = ObjectOf("v1", "Pod", "p");
  cache.Observe(kube::kPods, Event(pod));
  cache.Observe(kube::kPods, Event(pod, true));
  ObjectWrite write;
  write.verb = ObjectWrite::Verb::kDelete;
  write.resource = kube::kPods;
  write.ns = "ml";
  write.name = "p";
  Json ending = ObjectOf("v1", "Pod", "p", 9);
  ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  cache.Wrote({write, {}, json::Dump(ending)});
  EXPECT_EQ(cache.store().size(), 0U);
}

TEST(ObjectCache, WhatWeDeletedIsNotBroughtBackByOldNews) {
  ObjectCache cache([](const control::Key&, const Json&) { return true; },
                    [](const control::Key&, const Json*, const Json*) {});
  cache.Observe(kube::kPods, Event(ObjectOf("v1", "Pod", "p")));
  ObjectWrite write;
  write.verb = ObjectWrite::Verb::kDelete;
  write.resource = kube::kPods;
  write.ns = "ml";
  write.name = "p";
  cache.Wrote({write, {}, ""});
  EXPECT_EQ(cache.store().size(), 0U);
  cache.Observe(kube::kPods, Event(ObjectOf("v1", "Pod", "p", 2)));
  EXPECT_EQ(cache.store().size(), 0U);
}

TEST(ObjectCache, AnotherObjectOfTheNameTakesItsPlace) {
  std::vector<std::string> told;
  ObjectCache cache([](const control::Key&, const Json&) { return true; },
                    [&](const control::Key&, const Json* before, const Json* now) {
                      told.push_back((before == nullptr ? "-" : json::Uid(*before)) + ">" +
                                     (now == nullptr ? "-" : json::Uid(*now)));
                    });
  Json pod = ObjectOf("v1", "Pod", "p", 5);
  cache.Observe(kube::kPods, Event(pod));
  pod["metadata"]["uid"] = "other";
  pod["metadata"]["resourceVersion"] = "6";
  cache.Observe(kube::kPods, Event(pod));
  EXPECT_THAT(told, ElementsAre("->u-p", "u-p>-", "->other"));
}

TEST(ObjectCacheTrims, WhatTheControllersDoNotRead) {
  Json pod = ObjectOf("v1", "Pod", "p");
  pod["metadata"]["managedFields"] = Json::array({1});
  pod["spec"] = {
      {"schedulerName", "volcano"},
      {"containers", Json::array({{{"name", "c"}, {"image", "x"}, {"resources", {{"a", 1}}}}})}};
  pod["status"] = {{"phase", "Running"}, {"podIP", "10.0.0.1"}};
  const Json trimmed = Trimmed(pod);
  EXPECT_EQ(json::Dump(trimmed["spec"]),
            R"({"containers":[{"name":"c","resources":{"a":1}}],"schedulerName":"volcano"})");
  EXPECT_EQ(json::Dump(trimmed["status"]), R"({"phase":"Running"})");
  EXPECT_FALSE(trimmed["metadata"].contains("managedFields"));
}

}  // namespace
}  // namespace hopwise::daemon
