// For tests: objects in a store, and what a reconciler wants done to them, done at once. Writes
// that the API server would refuse fail the test.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "api/decode.h"
#include "control/commands.h"
#include "control/job_controller.h"
#include "control/queue_controller.h"
#include "control/store.h"
#include "control/writes.h"

namespace hopwise::control {

class Plane {
 public:
  Store store;
  Time now{1'767'225'600LL * 1'000'000'000LL};  // 2026-01-01T00:00:00Z
  // "create Pod a", "patch PodGroup g", "status Job j", "delete Pod a", and between two steps "-".
  std::vector<std::string> writes;
  // "FailedCreate: …", in the order told.
  std::vector<std::string> events;
  Time again;  // as last asked for

  // YAML; an object that is there gets the new spec.
  void Apply(std::string_view yaml) {
    for (const api::Document& document : api::SplitDocuments(yaml)) {
      ASSERT_EQ(document.error, "");
      Json object = *ParseJson(document.json);
      if (!IsClusterScoped(KeyOf(object).group, KeyOf(object).kind)) {
        Set(object, {"metadata", "namespace"}, "default");
      }
      store.Apply(std::move(object), now);
    }
  }

  void CarryOut(const Outcome& outcome) {
    for (const std::vector<Write>& step : outcome.steps) {
      if (!writes.empty()) {
        writes.emplace_back("-");
      }
      for (const Write& write : step) {
        Carry(write);
      }
    }
    for (const Happening& event : outcome.events) {
      events.push_back(event.reason + ": " + event.message);
    }
    again = outcome.again;
  }

  [[nodiscard]] const Json& Object(const Key& key) const {
    const Json* found = store.FindObject(key);
    static const Json kNone;
    EXPECT_NE(found, nullptr) << key.kind << " " << key.name;
    return found == nullptr ? kNone : *found;
  }
  [[nodiscard]] std::vector<std::string> Names(std::string_view group,
                                               std::string_view kind) const {
    std::vector<std::string> names;
    store.Each(group, kind, [&](const Key& key, const Entry&) { names.push_back(key.name); });
    return names;
  }
  [[nodiscard]] std::vector<std::string> Pods() const { return Names("", "Pod"); }

 private:
  void Carry(const Write& write) {
    using Verb = Write::Verb;
    const char* verb = write.verb == Verb::kCreate        ? "create"
                       : write.verb == Verb::kPatch       ? "patch"
                       : write.verb == Verb::kPatchStatus ? "status"
                                                          : "delete";
    writes.push_back(std::string(verb) + " " + write.key.kind + " " + write.key.name);
    const Json* present = store.FindObject(write.key);
    if (write.verb == Verb::kCreate) {
      EXPECT_TRUE(present == nullptr || write.exists_ok) << writes.back() << ": it exists";
      if (present == nullptr) {
        store.Create(write.body, now);
      }
      return;
    }
    if (present == nullptr) {
      EXPECT_EQ(write.verb, Verb::kDelete) << writes.back() << ": it does not exist";
      return;
    }
    const std::string uid =
        write.verb == Verb::kDelete ? write.uid : Text(write.body, {"metadata", "uid"});
    EXPECT_TRUE(uid.empty() || uid == Uid(*present)) << writes.back() << ": another object";
    if (write.verb == Verb::kDelete) {
      if (deleted) {
        deleted(*present);
      }
      store.Erase(write.key);
    } else if (write.verb == Verb::kPatchStatus) {
      Member(store.Edit(write.key), "status").merge_patch(write.body["status"]);
    } else {
      Json next = *present;
      next.merge_patch(write.body);
      store.Replace(write.key, std::move(next));
    }
  }

 public:
  std::function<void(const Json&)> deleted;  // is told what a write deletes
};

// One vcjob and its controller, with a scheduler that admits at once and kubelets that do what the
// test says.
class JobPlane : public Plane {
 public:
  explicit JobPlane(std::string_view spec) {
    Apply("{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}, spec: " +
          std::string(spec) + "}");
    deleted = [this](const Json& object) { Gone(object); };
  }

  JobMemory memory;
  bool admits = true;
  std::optional<SshKeys> keys = SshKeys{"private", "public"};
  static Key JobKey() { return {std::string(kVolcanoBatch), "Job", "default", "j"}; }
  Key GroupKey() { return PodGroupKey("default", "j-" + Uid(Job())); }
  const Json& Job() { return Object(JobKey()); }
  std::string Phase() { return Text(Job(), {"status", "state", "phase"}); }
  int64_t Count(std::string_view field) { return Number(Job(), {"status", field}, 0); }

  // Once.
  void Look() {
    const JobView view = {.store = store,
                          .job = JobKey(),
                          .now = now,
                          .commands = CommandsFor(store, JobKey()),
                          .priority_of = [](const std::string&) { return 0; },
                          .admitted = [this](const Json&) { return admits; },
                          .keys = [this] { return keys; }};
    CarryOut(ReconcileJob(view, memory));
  }
  // Until there is nothing to write.
  void Settle() {
    for (int round = 0; round < 20; ++round) {
      const size_t before = writes.size();
      Look();
      if (writes.size() == before || store.FindObject(JobKey()) == nullptr) {
        return;
      }
    }
    ADD_FAILURE() << "it does not come to rest";
  }
  // Until there is nothing to write, what was written before forgotten.
  std::vector<std::string> Afresh() {
    writes.clear();
    events.clear();
    Settle();
    return writes;
  }
  void SetPhase(std::string_view pod, std::string_view phase, int exit_code = -1) {
    Json& object = store.Edit(PodKey("default", pod));
    Set(object, {"status", "phase"}, std::string(phase));
    Set(object, {"status", "conditions"},
        Json::array({{{"type", "Ready"}, {"status", phase == "Running" ? "True" : "False"}}}));
    if (exit_code >= 0) {
      Set(object, {"status", "containerStatuses"},
          Json::array({{{"state", {{"terminated", {{"exitCode", exit_code}}}}}}}));
    }
  }
  void SetAll(std::string_view phase) {
    for (const std::string& pod : Pods()) {
      SetPhase(pod, phase);
    }
  }
  // By somebody else.
  void Evict(std::string_view pod) {
    const Json object = Object(PodKey("default", pod));
    store.Erase(PodKey("default", pod));
    Gone(object);
  }
  void Command(std::string_view action) {
    Apply("{apiVersion: bus.volcano.sh/v1alpha1, kind: Command, metadata: {name: c" +
          std::to_string(++commands_) +
          "}, target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j}, action: " +
          std::string(action) + "}");
  }

 private:
  void Gone(const Json& object) {
    if (KeyOf(object).kind == "Pod") {
      PodGone(object, now, memory);
    }
  }
  int commands_ = 0;
};

}  // namespace hopwise::control
