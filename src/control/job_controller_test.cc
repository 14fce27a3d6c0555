// The life of a vcjob: what is written, and when.
#include "control/job_controller.h"

#include <gmock/gmock.h>

#include "control/testing.h"

namespace hopwise::control {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kTwoWorkers =
    "{minAvailable: 2, tasks: [{name: w, replicas: 2, template: {spec: {containers: [{}]}}}]}";

// A job of two workers that has these further fields.
std::string Workers(std::string_view fields, std::string_view task_fields = "") {
  std::string text = "{minAvailable: 2, ";
  text += std::string(fields) + (fields.empty() ? "" : ", ");
  text += "tasks: [{name: w, replicas: 2, ";
  text += std::string(task_fields) + (task_fields.empty() ? "" : ", ");
  return text + "template: {spec: {containers: [{}]}}}]}";
}

// --- coming up

TEST(JobLife, AGroupComesFirstAndPodsWhenItIsAdmitted) {
  JobPlane plane(kTwoWorkers);
  plane.admits = false;
  plane.Settle();
  EXPECT_THAT(plane.Names(kVolcanoScheduling, "PodGroup"), ElementsAre(plane.GroupKey().name));
  EXPECT_THAT(plane.Pods(), IsEmpty());
  EXPECT_EQ(plane.Phase(), "Pending");
  plane.admits = true;
  plane.Settle();
  EXPECT_THAT(plane.Pods(), ElementsAre("j-w-0", "j-w-1"));
  EXPECT_EQ(plane.Count("pending"), 2);
}

TEST(JobLife, NothingIsWrittenWhereNothingHappens) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  EXPECT_THAT(plane.Afresh(), IsEmpty());
}

TEST(JobLife, ItRunsOnceItsMinimumRuns) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.SetPhase("j-w-0", "Running");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Pending");
  plane.SetPhase("j-w-1", "Running");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Running");
  EXPECT_EQ(plane.Count("running"), 2);
  EXPECT_EQ(Number(plane.Job(), {"status", "taskStatusCount", "w", "phase", "Running"}, 0), 2);
}

TEST(JobLife, WhyTheGroupWaitsIsToldOnceForEachReason) {
  JobPlane plane(kTwoWorkers);
  plane.admits = false;
  plane.Settle();
  const auto say = [&](const char* why) {
    plane.store.Edit(plane.GroupKey())["status"]["conditions"] =
        Json::array({{{"type", "Unschedulable"}, {"status", "True"}, {"message", why}}});
    return plane.Afresh();
  };
  say("no room");
  EXPECT_THAT(plane.events, ElementsAre(HasSubstr("PodGroupPending: PodGroup j-")));
  say("no room");
  EXPECT_THAT(plane.events, IsEmpty());
  say("still no room");
  EXPECT_THAT(plane.events, ElementsAre(HasSubstr("still no room")));
}

TEST(JobLife, APodOfThatNameThatIsNotOursIsToldOnceAndLeftAlone) {
  JobPlane plane(kTwoWorkers);
  plane.Apply("{apiVersion: v1, kind: Pod, metadata: {name: j-w-0}}");
  plane.Settle();
  EXPECT_THAT(plane.events, ElementsAre("FailedCreate: cannot make pod j-w-0: it exists and does "
                                        "not belong to the job"));
  EXPECT_THAT(plane.Afresh(), IsEmpty());
  EXPECT_THAT(plane.events, IsEmpty());
}

TEST(JobLife, ALargeJobIsMadeInSeveralGoes) {
  JobPlane plane("{tasks: [{name: w, replicas: 2500, template: {spec: {containers: [{}]}}}]}");
  plane.Look();
  plane.Look();
  EXPECT_EQ(plane.Pods().size(), 1000U);
  plane.Settle();
  EXPECT_EQ(plane.Pods().size(), 2500U);
}

// --- tasks that wait for others

TEST(JobDependencies, ATaskStartsWhenTheOneItNeedsIsReady) {
  JobPlane plane(
      "{minAvailable: 1, tasks: [{name: a, replicas: 2, minAvailable: 1, template: {}}, {name: b, "
      "dependsOn: {name: [a]}, template: {}}]}");
  plane.Settle();
  EXPECT_THAT(plane.Pods(), ElementsAre("j-a-0", "j-a-1"));
  plane.store.Edit(PodKey("default", "j-a-0"))["status"]["phase"] = "Running";
  plane.Settle();
  EXPECT_THAT(plane.Pods(), Not(Contains("j-b-0"))) << "it runs, and is not ready";
  plane.SetPhase("j-a-0", "Running");
  plane.Settle();
  EXPECT_THAT(plane.Pods(), Contains("j-b-0"));
}

TEST(JobDependencies, OneOfThemIsEnoughWhereAnyIsAsked) {
  JobPlane plane(
      "{minAvailable: 1, tasks: [{name: a, template: {}}, {name: b, template: {}}, {name: c, "
      "dependsOn: {name: [a, b], iteration: any}, template: {}}]}");
  plane.Settle();
  EXPECT_THAT(plane.Pods(), ElementsAre("j-a-0", "j-b-0"));
  plane.SetPhase("j-b-0", "Succeeded");
  plane.Settle();
  EXPECT_THAT(plane.Pods(), Contains("j-c-0"));
}

TEST(JobDependencies, ATaskThatIsNotThereIsToldOf) {
  JobPlane plane("{tasks: [{name: a, dependsOn: {name: [x]}, template: {}}]}");
  plane.Settle();
  EXPECT_THAT(plane.events, ElementsAre(HasSubstr("task a depends on task x, which does not "
                                                  "exist")));
}

// --- the end

TEST(JobEnd, AllSucceededIsCompletedAndWhatHelpedIsRemoved) {
  JobPlane plane(Workers("plugins: {svc: []}"));
  plane.Settle();
  EXPECT_THAT(plane.Names("", "Service"), ElementsAre("j"));
  plane.SetAll("Running");
  plane.Settle();
  plane.SetAll("Succeeded");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Completed");
  EXPECT_THAT(plane.Names("", "Service"), IsEmpty());
  EXPECT_THAT(plane.Names("", "ConfigMap"), IsEmpty());
  EXPECT_THAT(plane.Pods(), ElementsAre("j-w-0", "j-w-1")) << "their logs may be wanted";
  EXPECT_THAT(plane.Afresh(), IsEmpty());
}

TEST(JobEnd, OneFailureTooManyIsFailed) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.SetPhase("j-w-0", "Succeeded");
  plane.SetPhase("j-w-1", "Failed");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Failed");
  EXPECT_EQ(plane.Count("failed"), 1);
}

TEST(JobEnd, MinSuccessEndsItEarlyAndTheRestIsRemoved) {
  JobPlane plane(Workers("minSuccess: 1"));
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.SetPhase("j-w-1", "Succeeded");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Completed");
  EXPECT_THAT(plane.Pods(), ElementsAre("j-w-1"));
}

TEST(JobEnd, ATaskBelowItsOwnMinimumFailsTheJob) {
  JobPlane plane(
      "{minAvailable: 1, tasks: [{name: ps, template: {}}, {name: w, replicas: 2, minAvailable: 1, "
      "template: {}}]}");
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.SetAll("Succeeded");
  plane.SetPhase("j-ps-0", "Failed");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Failed");
}

TEST(JobEnd, AFinishedJobGoesWhenItsTimeToLiveIsOver) {
  JobPlane plane(Workers("ttlSecondsAfterFinished: 60"));
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.SetAll("Succeeded");
  plane.Settle();
  EXPECT_EQ(plane.again, plane.now + Seconds(60));
  plane.now = plane.now + Seconds(60);
  EXPECT_THAT(plane.Afresh(), Contains("delete Job j"));
}

TEST(JobEnd, AnAbortedJobIsKeptForEver) {
  JobPlane plane(Workers("ttlSecondsAfterFinished: 0"));
  plane.Settle();
  plane.Command("AbortJob");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Aborted");
}

// --- more and fewer

TEST(JobScale, ReplicasComeAndGoAndTheGroupFollows) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  const auto scale = [&](int replicas) {
    Json job = plane.Job();
    Set(job, {"spec", "minAvailable"}, replicas);
    job["spec"]["tasks"][0]["replicas"] = replicas;
    plane.store.Replace(JobPlane::JobKey(), std::move(job));
    plane.Settle();
  };
  scale(3);
  EXPECT_THAT(plane.Pods(), ElementsAre("j-w-0", "j-w-1", "j-w-2"));
  EXPECT_EQ(Number(plane.Object(plane.GroupKey()), {"spec", "minMember"}, 0), 3);
  scale(1);
  EXPECT_THAT(plane.Pods(), ElementsAre("j-w-0"));
  scale(0);
  EXPECT_THAT(plane.Pods(), IsEmpty());
  EXPECT_THAT(plane.events, Not(Contains(HasSubstr("PodEvicted"))));
  scale(2);
  EXPECT_THAT(plane.Pods(), ElementsAre("j-w-0", "j-w-1"));
}

TEST(JobScale, TheHostsOfTheSvcPluginFollow) {
  JobPlane plane(Workers("plugins: {svc: [], ssh: []}"));
  plane.Settle();
  const auto hosts = [&] {
    return Text(plane.Object({"", "ConfigMap", "default", "j-svc"}), {"data", "VC_W_HOSTS"});
  };
  EXPECT_EQ(hosts(), "j-w-0.j,j-w-1.j");
  Json job = plane.Job();
  job["spec"]["tasks"][0]["replicas"] = 3;
  plane.store.Replace(JobPlane::JobKey(), std::move(job));
  EXPECT_THAT(plane.Afresh(), Contains("patch Secret j-ssh"));
  EXPECT_EQ(hosts(), "j-w-0.j,j-w-1.j,j-w-2.j");
}

TEST(JobScale, WhatOthersMakeOfTheGroupStays) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.store.Edit(plane.GroupKey())["spec"]["queue"] = "other";
  EXPECT_THAT(plane.Afresh(), IsEmpty());
}

// --- policies

struct PolicyCase {
  const char* name;
  const char* policy;
  const char* happens;  // fail, evict, succeed, unknown
  const char* phase;    // as it comes to rest
  int retries;
  int version;
};

class JobPolicies : public ::testing::TestWithParam<PolicyCase> {};

TEST_P(JobPolicies, DoWhatTheySay) {
  for (const bool of_task : {false, true}) {
    const std::string policies = std::string("policies: [") + GetParam().policy + "]";
    JobPlane plane(of_task ? Workers("", policies) : Workers(policies));
    plane.Settle();
    plane.SetAll("Running");
    plane.Settle();
    const std::string happens = GetParam().happens;
    if (happens == "fail") {
      plane.SetPhase("j-w-1", "Failed", 137);
    } else if (happens == "evict") {
      plane.Evict("j-w-1");
    } else if (happens == "succeed") {
      plane.SetAll("Succeeded");
    } else {
      plane.store.Edit(plane.GroupKey())["status"]["phase"] = "Unknown";
    }
    if (happens == "unknown" && of_task) {
      continue;  // of the whole job
    }
    plane.Afresh();
    EXPECT_EQ(plane.Phase(), GetParam().phase) << "of the task: " << of_task;
    EXPECT_EQ(plane.Count("retryCount"), GetParam().retries);
    EXPECT_EQ(plane.Count("version"), GetParam().version);
    EXPECT_THAT(plane.Afresh(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, JobPolicies,
    ::testing::Values(
        PolicyCase{"Restart", "{event: PodFailed, action: RestartJob}", "fail", "Pending", 1, 1},
        PolicyCase{"Abort", "{event: PodFailed, action: AbortJob}", "fail", "Aborted", 0, 1},
        PolicyCase{"Terminate", "{event: PodFailed, action: TerminateJob}", "fail", "Terminated", 0,
                   1},
        PolicyCase{"Complete", "{event: TaskCompleted, action: CompleteJob}", "succeed",
                   "Completed", 0, 1},
        PolicyCase{"RestartTask", "{event: PodFailed, action: RestartTask}", "fail", "Pending", 1,
                   0},
        PolicyCase{"RestartPod", "{event: PodFailed, action: RestartPod}", "fail", "Pending", 1, 0},
        PolicyCase{"Evicted", "{event: PodEvicted, action: TerminateJob}", "evict", "Terminated", 0,
                   1},
        PolicyCase{"EvictedRestart", "{event: PodEvicted, action: RestartJob}", "evict", "Pending",
                   1, 1},
        PolicyCase{"Any", "{event: '*', action: AbortJob}", "evict", "Aborted", 0, 1},
        PolicyCase{"List", "{events: [PodEvicted, PodFailed], action: AbortJob}", "fail", "Aborted",
                   0, 1},
        PolicyCase{"ExitCode", "{exitCode: 137, action: AbortJob}", "fail", "Aborted", 0, 1},
        PolicyCase{"OtherExitCode", "{exitCode: 3, action: AbortJob}", "fail", "Running", 0, 0},
        PolicyCase{"OtherEvent", "{event: PodEvicted, action: AbortJob}", "fail", "Running", 0, 0},
        PolicyCase{"Unknown", "{event: Unknown, action: AbortJob}", "unknown", "Aborted", 0, 1},
        PolicyCase{"FirstCounts",
                   "{event: PodFailed, action: AbortJob}, {event: PodFailed, action: TerminateJob}",
                   "fail", "Aborted", 0, 1}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(JobPolicy, TheTasksOwnStandsBeforeTheJobs) {
  JobPlane plane(Workers("policies: [{event: PodFailed, action: AbortJob}]",
                         "policies: [{event: PodFailed, action: TerminateJob}]"));
  plane.Settle();
  plane.SetPhase("j-w-0", "Failed");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Terminated");
}

TEST(JobPolicy, ATimeoutDelaysItAndAPodThatRecoversCancelsIt) {
  JobPlane plane(Workers("policies: [{event: PodPending, action: AbortJob, timeout: 5m}]"));
  plane.Settle();
  EXPECT_EQ(plane.again, plane.now + Seconds(300));
  plane.SetAll("Running");
  plane.now = plane.now + Seconds(301);
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Running");
  plane.SetPhase("j-w-0", "Pending");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Aborted") << "it is pending since it was made";
}

TEST(JobPolicy, PendingAloneIsNoEvent) {
  JobPlane plane(Workers("policies: [{event: PodPending, action: AbortJob}]"));
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Pending");
}

TEST(JobPolicy, WithoutOneAPodThatIsEvictedIsMadeAnew) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.Evict("j-w-0");
  EXPECT_THAT(plane.Afresh(), Contains("create Pod j-w-0"));
}

TEST(JobPolicy, APartitionIsRestartedAlone) {
  JobPlane plane(
      "{minAvailable: 4, policies: [{event: PodFailed, action: RestartPartition}], tasks: [{name: "
      "w, partitionPolicy: {totalPartitions: 2, partitionSize: 2}, template: {}}]}");
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.SetPhase("j-w-2", "Failed");
  const std::vector<std::string> writes = plane.Afresh();
  EXPECT_THAT(writes, Contains("delete Pod j-w-2"));
  EXPECT_THAT(writes, Contains("delete Pod j-w-3"));
  EXPECT_THAT(writes, Not(Contains("delete Pod j-w-0")));
  EXPECT_THAT(writes, Not(Contains(StartsWith("delete PodGroup"))));
}

TEST(JobPolicy, ContainersThatRestartTooOftenFailTheTask) {
  JobPlane plane(Workers("policies: [{event: TaskFailed, action: AbortJob}]", "maxRetry: 2"));
  plane.Settle();
  plane.SetAll("Running");
  const auto restarts = [&](int count) {
    Set(plane.store.Edit(PodKey("default", "j-w-0")), {"status", "containerStatuses"},
        Json::array({{{"restartCount", count}}}));
    plane.Settle();
    return plane.Phase();
  };
  EXPECT_EQ(restarts(2), "Running");
  EXPECT_EQ(restarts(3), "Aborted");
}

// --- restarts

TEST(JobRestart, TheActionIsWrittenBeforeItIsDone) {
  JobPlane plane(Workers("policies: [{event: PodFailed, action: RestartJob}]"));
  plane.Settle();
  plane.SetPhase("j-w-0", "Failed");
  plane.writes.clear();
  plane.Look();
  EXPECT_EQ(plane.writes.front(), "status Job j");
  EXPECT_THAT(plane.writes, Contains("delete Pod j-w-0"));
  EXPECT_THAT(plane.writes, Contains("delete Pod j-w-1"));
}

TEST(JobRestart, AControllerThatStartsAnewFinishesIt) {
  JobPlane plane(Workers("policies: [{event: PodFailed, action: RestartJob}]"));
  plane.Settle();
  // As it is when the controller dies between the status and the deletions.
  Json& job = plane.store.Edit(JobPlane::JobKey());
  job["status"]["state"]["phase"] = "Restarting";
  job["status"]["version"] = 1;
  job["status"]["retryCount"] = 1;
  plane.memory = {};
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Pending");
  for (const std::string& pod : plane.Pods()) {
    EXPECT_EQ(Annotation(plane.Object(PodKey("default", pod)), "volcano.sh/job-version"), "1");
  }
  EXPECT_EQ(plane.Pods().size(), 2U);
  EXPECT_EQ(plane.Count("retryCount"), 1);
}

TEST(JobRestart, TheLastRetryFailsItAndKeepsWhatHasEnded) {
  JobPlane plane(Workers("maxRetry: 1, policies: [{event: PodFailed, action: RestartJob}]"));
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.SetPhase("j-w-0", "Failed");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Failed");
  EXPECT_THAT(plane.Pods(), ElementsAre("j-w-0"));
}

TEST(JobRestart, ItWaitsUntilEnoughPodsAreGone) {
  JobPlane plane(Workers("policies: [{event: PodFailed, action: RestartJob}]"));
  plane.Settle();
  plane.SetPhase("j-w-0", "Failed");
  plane.Look();
  EXPECT_EQ(plane.Phase(), "Restarting");
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Pending");
}

// --- commands

TEST(JobCommands, SuspendAndResume) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.SetAll("Running");
  plane.Settle();
  plane.Command("AbortJob");
  EXPECT_THAT(plane.Afresh(), Contains("delete Command c1"));
  EXPECT_EQ(plane.writes.front(), "delete Command c1") << "at most once";
  EXPECT_EQ(plane.Phase(), "Aborted");
  EXPECT_THAT(plane.Pods(), IsEmpty());
  EXPECT_THAT(plane.Names(kVolcanoScheduling, "PodGroup"), IsEmpty());
  plane.Command("ResumeJob");
  plane.Afresh();
  EXPECT_EQ(plane.Phase(), "Pending");
  EXPECT_EQ(plane.Pods().size(), 2U);
  EXPECT_EQ(plane.Count("retryCount"), 1);
}

TEST(JobCommands, OneThatIsNotKnownIsDeletedAndToldOf) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.Command("Dance");
  plane.Afresh();
  EXPECT_THAT(plane.events, ElementsAre("CommandIssued: command Dance is not known"));
  EXPECT_THAT(plane.Names(kVolcanoBus, "Command"), IsEmpty());
}

TEST(JobCommands, OneForAPredecessorOfTheNameIsNotObeyed) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.Apply(
      "{apiVersion: bus.volcano.sh/v1alpha1, kind: Command, metadata: {name: c}, action: AbortJob, "
      "target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: old}}");
  EXPECT_THAT(plane.Afresh(), IsEmpty());
}

// --- what fails

TEST(JobTrouble, StandsInTheStatusUntilItIsOver) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.memory.failures = 1;
  plane.memory.trouble = {"FailedCreate", "quota exceeded"};
  plane.Settle();
  EXPECT_EQ(Text(plane.Job(), {"status", "state", "message"}), "quota exceeded");
  EXPECT_EQ(Text(plane.Job(), {"status", "state", "reason"}), "FailedCreate");
  plane.memory = {};  // another controller
  plane.Settle();
  EXPECT_EQ(Text(plane.Job(), {"status", "state", "message"}), "");
}

TEST(JobTrouble, TooOftenEndsTheJob) {
  JobPlane plane(kTwoWorkers);
  plane.Settle();
  plane.memory.failures = kMostFailures;
  plane.Settle();
  EXPECT_EQ(plane.Phase(), "Terminated");
}

// --- volumes and plugins

TEST(JobVolumes, AClaimIsMadeOnceAndMounted) {
  JobPlane plane(
      Workers("volumes: [{mountPath: /data, volumeClaim: {accessModes: "
              "[ReadWriteOnce]}}, {mountPath: /given, volumeClaimName: mine}, "
              "{mountPath: /tmp}]"));
  plane.Settle();
  const std::vector<std::string> claims = plane.Names("", "PersistentVolumeClaim");
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_THAT(claims.front(), StartsWith("j-volume-"));
  const Json& pod = plane.Object(PodKey("default", "j-w-0"));
  EXPECT_EQ(List(pod, {"spec", "volumes"}).size(), 3U);
  EXPECT_EQ(Text(List(pod, {"spec", "volumes"})[1], {"persistentVolumeClaim", "claimName"}),
            "mine");
  EXPECT_TRUE(List(pod, {"spec", "volumes"})[2].contains("emptyDir"));
  EXPECT_EQ(List(List(pod, {"spec", "containers"})[0], {"volumeMounts"}).size(), 3U);
  plane.Evict("j-w-0");
  EXPECT_THAT(plane.Afresh(), Not(Contains(StartsWith("create PersistentVolumeClaim"))));
}

TEST(JobKeys, TheJobWaitsWhileTheyAreMade) {
  JobPlane plane(Workers("plugins: {ssh: []}"));
  plane.keys.reset();
  plane.Settle();
  EXPECT_THAT(plane.Names(kVolcanoScheduling, "PodGroup"), IsEmpty());
  EXPECT_EQ(plane.again, plane.now + kKeysPause);
  plane.keys = SshKeys{"private", "public"};
  plane.Settle();
  EXPECT_EQ(Text(plane.Object({"", "Secret", "default", "j-ssh"}), {"stringData", "id_rsa"}),
            "private");
  EXPECT_EQ(plane.Pods().size(), 2U);
}

}  // namespace
}  // namespace hopwise::control
