// The rules for Jobs, each with a Job that keeps it and one that does not.
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

constexpr std::string_view kJob = R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  queue: default
  minAvailable: 3
  tasks:
  - name: head
    replicas: 1
    template: &template
      spec:
        containers: [{name: main, image: "busybox:1"}]
  - name: worker
    replicas: 4
    minAvailable: 2
    template: *template
)";

Desk ADesk() {
  Desk desk;
  desk.Queue("{metadata: {name: default}}")
      .Queue("{metadata: {name: closed}, status: {state: Closed}}")
      .Queue("{metadata: {name: team}}")
      .Queue("{metadata: {name: below}, spec: {parent: team}}");
  return desk;
}

void TryAll(const std::vector<RuleCase>& cases) {
  const Desk desk = ADesk();
  const Json good = FromYaml(kJob);
  for (const RuleCase& rule : cases) {
    ExpectProblem(desk.Create("/jobs/validate", With(good, rule.change)), rule);
  }
}

// One task in place of the two.
std::string Task(std::string_view fields) {
  return "spec: {minAvailable: 1, tasks: [{name: a, replicas: 2, " + std::string(fields) +
         "template: {spec: {containers: [{name: main, image: i}]}}}]}";
}
std::string Pod(std::string_view spec) {
  return "spec: {minAvailable: 1, tasks: [{name: a, replicas: 1, template: {spec: {" +
         std::string(spec) + "}}}]}";
}

TEST(AdmitJob, CountsFitEachOther) {
  TryAll({
      {"a good one", "", ""},
      {"no task", "spec: {tasks: [], minAvailable: 0}", "spec.tasks: a Job needs"},
      {"negative replicas",
       "spec: {tasks: [{name: a, replicas: -1, template: {spec: {containers: "
       "[{name: c, image: i}]}}}]}",
       "spec.tasks[0].replicas: -1 is negative"},
      {"as many as there are", Task("minAvailable: 2, "), ""},
      {"more than replicas", Task("minAvailable: 3, "),
       "spec.tasks[0].minAvailable: 3 is more than its replicas, 2"},
      {"a negative minimum", Task("minAvailable: -2, "),
       "spec.tasks[0].minAvailable: -2 is negative"},
      {"all of all tasks", "spec: {minAvailable: 5}", ""},
      {"more than all tasks", "spec: {minAvailable: 6}",
       "spec.minAvailable: 6 is more than the replicas of all tasks, 5"},
      {"a negative minimum of all", "spec: {minAvailable: -1}", "spec.minAvailable: -1 is"},
      {"no retries", "spec: {maxRetry: 0}", ""},
      {"negative retries", "spec: {maxRetry: -1}", "spec.maxRetry: -1 is negative"},
      {"a time to live", "spec: {ttlSecondsAfterFinished: 0}", ""},
      {"a negative time to live", "spec: {ttlSecondsAfterFinished: -5}",
       "spec.ttlSecondsAfterFinished: -5"},
      {"one success", "spec: {minSuccess: 1}", ""},
      {"no success", "spec: {minSuccess: 0}", "spec.minSuccess: must be above zero"},
  });
}

TEST(AdmitJob, NamesAreGoodAndDiffer) {
  const auto two = [](std::string_view first, std::string_view second) {
    return fmt::format(
        "spec: {{minAvailable: 1, tasks: [{{name: {}, template: &t {{spec: {{containers: [{{name: "
        "c, image: i}}]}}}}}}, {{name: {}, template: *t}}]}}",
        first, second);
  };
  TryAll({
      {"two names", two("a", "b-2"), ""},
      {"one name twice", two("a", "a"), "spec.tasks[1].name: a stands twice"},
      {"capitals", two("Head", "b"), "spec.tasks[0].name: \"Head\" must be"},
      {"a dash at the end", two("a-", "b"), "spec.tasks[0].name: \"a-\" must be"},
      {"a long name", "metadata: {name: " + std::string(53, 'j') + "}", ""},
      {"too long for its pods", "metadata: {name: " + std::string(55, 'j') + "}",
       "metadata.name: a pod of it would be called jjjj"},
  });
}

TEST(AdmitJob, PoliciesSayOneThingOnce) {
  const auto of = [](std::string_view policies) {
    return fmt::format("spec: {{policies: [{}]}}", policies);
  };
  TryAll({
      {"an event", of("{event: PodFailed, action: RestartJob}"), ""},
      {"events", of("{events: [PodFailed, PodEvicted], action: RestartJob}"), ""},
      {"an exit code", of("{exitCode: 3, action: AbortJob, timeout: 1m}"), ""},
      {"both", of("{event: PodFailed, exitCode: 3, action: AbortJob}"),
       "spec.policies[0]: event and exitCode exclude each other"},
      {"neither", of("{action: AbortJob}"), "spec.policies[0]: needs an event or an exitCode"},
      {"exit code 0", of("{exitCode: 0, action: AbortJob}"),
       "spec.policies[0].exitCode: 0 is success"},
      {"an event twice",
       of("{event: PodFailed, action: AbortJob}, {event: PodFailed, action: "
          "RestartJob}"),
       "spec.policies[1].event: PodFailed stands twice"},
      {"an exit code twice", of("{exitCode: 3, action: AbortJob}, {exitCode: 3, action: AbortJob}"),
       "spec.policies[1].exitCode: 3 stands twice"},
      {"all events alone", of("{event: '*', action: AbortJob}, {exitCode: 3, action: AbortJob}"),
       ""},
      {"all events and one",
       of("{event: '*', action: AbortJob}, {event: Unknown, action: "
          "AbortJob}"),
       "spec.policies: the event * stands for all"},
      {"an internal event", of("{event: OutOfSync, action: AbortJob}"),
       "spec.policies[0].event: \"OutOfSync\" is none of *, PodFailed"},
      {"an internal action", of("{event: Unknown, action: SyncJob}"),
       "spec.policies[0].action: \"SyncJob\" is none of AbortJob"},
      {"a bad time-out", of("{event: Unknown, action: AbortJob, timeout: soon}"),
       "spec.policies[0].timeout: \"soon\" is no duration"},
      {"a task's", Task("policies: [{event: TaskCompleted, action: CompleteJob}], "), ""},
      {"a task's bad one", Task("policies: [{action: CompleteJob}], "),
       "spec.tasks[0].policies[0]: needs an event"},
  });
}

TEST(AdmitJob, VolumesHaveOneClaimAndAPlaceOfTheirOwn) {
  TryAll({
      {"a claim's name", "spec: {volumes: [{mountPath: /a, volumeClaimName: c}]}", ""},
      {"a claim", "spec: {volumes: [{mountPath: /a, volumeClaim: {accessModes: [x]}}]}", ""},
      {"both", "spec: {volumes: [{mountPath: /a, volumeClaimName: c, volumeClaim: {a: 1}}]}",
       "spec.volumes[0]: volumeClaim and volumeClaimName exclude"},
      {"neither", "spec: {volumes: [{mountPath: /a}]}", "spec.volumes[0]: needs a volumeClaim"},
      {"no place", "spec: {volumes: [{volumeClaimName: c}]}", "spec.volumes[0].mountPath: is mis"},
      {"one place twice",
       "spec: {volumes: [{mountPath: /a, volumeClaimName: c}, {mountPath: /a, volumeClaimName: "
       "d}]}",
       "spec.volumes[1].mountPath: /a stands twice"},
      {"a bad name", "spec: {volumes: [{mountPath: /a, volumeClaimName: C_}]}",
       "spec.volumes[0].volumeClaimName: \"C_\" is no name"},
  });
}

TEST(AdmitJob, PluginsAndDependenciesExist) {
  const auto chain = [](std::string_view of_a, std::string_view of_b) {
    return fmt::format(
        "spec: {{minAvailable: 1, tasks: [{{name: a, dependsOn: {{name: [{}]}}, template: &t "
        "{{spec: {{containers: [{{name: c, image: i}}]}}}}}}, {{name: b, dependsOn: {{name: "
        "[{}]}}, template: *t}}]}}",
        of_a, of_b);
  };
  TryAll({
      {"known plugins",
       "spec: {plugins: {env: [], svc: [], ssh: [], pytorch: [], tensorflow: [], "
       "mpi: [], ray: [], hcclrank: []}}",
       ""},
      {"an unknown plugin", "spec: {plugins: {horovod: []}}",
       "spec.plugins[horovod]: there is no such plugin"},
      {"b after a", chain("", "a"), ""},
      {"an unknown task", chain("", "c"),
       "spec.tasks[1].dependsOn.name[0]: there is no task \"c\" here"},
      {"a cycle", chain("b", "a"),
       "spec.tasks: the tasks depend on each other in a cycle: a -> b "
       "-> a"},
      {"itself", chain("a", ""), "spec.tasks: the tasks depend on each other in a cycle: a -> a"},
  });
}

TEST(AdmitJob, ItsQueueTakesJobs) {
  TryAll({
      {"open", "spec: {queue: below}", ""},
      {"none named", "spec: {queue: null}", ""},
      {"unknown", "spec: {queue: nowhere}", "spec.queue: there is no queue nowhere"},
      {"closed", "spec: {queue: closed}", "spec.queue: the queue closed is Closed"},
      {"with queues below", "spec: {queue: team}",
       "spec.queue: the queue team holds other queues, such as below"},
      {"root", "spec: {queue: root}", "spec.queue: the queue root holds queues"},
  });
  const AdmissionAnswer answer =
      ADesk().Create("/jobs/validate", With(FromYaml(kJob), "spec: {queue: nowhere}"));
  EXPECT_THAT(answer.missed_queues, ElementsAre("nowhere"));
}

TEST(AdmitJob, TheDefaultQueueCountsAsThere) {
  EXPECT_TRUE(Desk().Create("/jobs/validate", FromYaml(kJob)).allowed);
}

TEST(AdmitJob, PartitionsMakeUpTheTask) {
  const auto of = [](std::string_view policy, std::string_view counts) {
    return Task(fmt::format("{}partitionPolicy: {{{}}}, ", counts, policy));
  };
  TryAll({
      {"two of one",
       of("totalPartitions: 2, partitionSize: 1, minPartitions: 1", "minAvailable: 1, "), ""},
      {"no partition", of("totalPartitions: 0, partitionSize: 1", ""),
       "spec.tasks[0].partitionPolicy.totalPartitions: must be above"},
      {"of no size", of("totalPartitions: 2, partitionSize: 0", ""),
       "spec.tasks[0].partitionPolicy.partitionSize: must be above"},
      {"not as many", of("totalPartitions: 2, partitionSize: 3", ""),
       "spec.tasks[0].replicas: 2 must be totalPartitions times partitionSize, 6"},
      {"a minimum beyond all", of("totalPartitions: 2, partitionSize: 1, minPartitions: 3", ""),
       "spec.tasks[0].minAvailable: 3 is more than its replicas"},
      {"two minimums",
       of("totalPartitions: 2, partitionSize: 1, minPartitions: 1", "minAvailable: 2, "),
       "spec.tasks[0].minAvailable: 2 must be minPartitions times partitionSize, 1"},
      {"two limits",
       of("totalPartitions: 2, partitionSize: 1, networkTopology: "
          "{highestTierAllowed: 1, highestTierName: leaf}",
          ""),
       "spec.tasks[0].partitionPolicy.networkTopology: highestTierAllowed and highestTierName"},
  });
}

TEST(AdmitJob, ATopologyHasOneLimit) {
  TryAll({
      {"a tier", "spec: {networkTopology: {highestTierAllowed: 0}}", ""},
      {"a name", "spec: {networkTopology: {highestTierName: leaf}}", ""},
      {"both", "spec: {networkTopology: {highestTierAllowed: 0, highestTierName: leaf}}",
       "spec.networkTopology: highestTierAllowed and"},
  });
}

TEST(AdmitJob, TemplatesMakePods) {
  TryAll({
      {"no template", "spec: {minAvailable: 1, tasks: [{name: a}]}",
       "spec.tasks[0].template.spec: is missing"},
      {"no container", Pod("containers: []"), "spec.tasks[0].template.spec.containers: a pod"},
      {"no image", Pod("containers: [{name: a}]"),
       "spec.tasks[0].template.spec.containers[0].image: is missing"},
      {"a bad name", Pod("containers: [{name: A, image: i}]"),
       "spec.tasks[0].template.spec.containers[0].name: \"A\" must"},
      {"a name twice",
       Pod("containers: [{name: a, image: i}], initContainers: [{name: a, image: "
           "i}]"),
       "spec.tasks[0].template.spec.initContainers[0].name: a stands twice"},
      {"a quantity that is none",
       Pod("containers: [{name: a, image: i, resources: {requests: "
           "{cpu: lots}}}]"),
       "spec.tasks[0].template.spec.containers[0].resources.requests.cpu: "},
      {"more than the limit",
       Pod("containers: [{name: a, image: i, resources: {requests: {cpu: "
           "2}, limits: {cpu: 1500m}}}]"),
       "spec.tasks[0].template.spec.containers[0].resources.requests[cpu]: is more than its"},
      {"a shared device",
       Pod("containers: [{name: a, image: i, resources: {requests: "
           "{nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}]"),
       "spec.tasks[0].template.spec.containers[0].resources.requests[nvidia.com/gpu]: must be"},
      {"a device's limit",
       Pod("containers: [{name: a, image: i, resources: {limits: "
           "{nvidia.com/gpu: 2}}}]"),
       ""},
      {"a mount without a volume",
       Pod("containers: [{name: a, image: i, volumeMounts: [{name: v, "
           "mountPath: /v}]}]"),
       "spec.tasks[0].template.spec.containers[0].volumeMounts[0].name: there is no volume \"v\""},
      {"a mount",
       Pod("volumes: [{name: v, emptyDir: {}}], containers: [{name: a, image: i, "
           "volumeMounts: [{name: v, mountPath: /v}]}]"),
       ""},
      {"a port", Pod("containers: [{name: a, image: i, ports: [{containerPort: 80}]}]"), ""},
      {"no port", Pod("containers: [{name: a, image: i, ports: [{containerPort: 70000}]}]"),
       "spec.tasks[0].template.spec.containers[0].ports[0].containerPort: 70000 is no port"},
      {"a bad restart", Pod("restartPolicy: Sometimes, containers: [{name: a, image: i}]"),
       "spec.tasks[0].template.spec.restartPolicy: \"Sometimes\" is none of Always"},
  });
}

TEST(AdmitJob, AllProblemsAreToldAtOnce) {
  const AdmissionAnswer answer =
      ADesk().Create("/jobs/validate", With(FromYaml(kJob),
                                            "spec: {minAvailable: 9, queue: root, "
                                            "plugins: {x: []}}"));
  EXPECT_EQ(answer.code, 422);
  for (const char* part : {"spec.minAvailable: ", "; spec.queue: ", "; spec.plugins[x]: "}) {
    EXPECT_THAT("; " + answer.message, HasSubstr(part));
  }
}

TEST(AdmitJob, OnlyCountsAndPriorityChange) {
  const Desk desk = ADesk();
  const Json before = FromYaml(kJob);
  const auto after = [&](std::string_view field, const Json& value) {
    Json job = before;
    job[Json::json_pointer(std::string(field))] = value;
    return desk.Update("/jobs/validate", before, job);
  };
  EXPECT_TRUE(after("/spec/minAvailable", 1).allowed);
  EXPECT_TRUE(after("/spec/priorityClassName", "high").allowed);
  EXPECT_TRUE(after("/spec/tasks/1/replicas", 8).allowed);
  EXPECT_TRUE(after("/spec/tasks/1/minAvailable", 1).allowed);
  EXPECT_THAT(after("/spec/tasks/1/replicas", 1).message,
              HasSubstr("spec.tasks[1].minAvailable: 2 is more than its replicas, 1"));
  EXPECT_THAT(after("/spec/queue", "below").message, HasSubstr("spec.queue: cannot change"));
  EXPECT_THAT(after("/spec/networkTopology", {{"mode", "soft"}}).message,
              HasSubstr("spec.networkTopology: cannot change"));
  EXPECT_THAT(after("/spec/tasks/0/template/spec/containers/0/image", "other").message,
              HasSubstr("spec.tasks[0].template.spec.containers[0].image: cannot change"));
  Json fewer = before;
  fewer["spec"]["tasks"].erase(1);
  EXPECT_THAT(desk.Update("/jobs/validate", before, fewer).message,
              HasSubstr("spec.tasks: the number of tasks cannot change, from 2 to 1"));
}

TEST(AdmitJob, WhatWasStoredBeforeCanStillBeLabelledAndLeave) {
  const Desk desk = ADesk();
  const Json bad = With(FromYaml(kJob), "spec: {queue: nowhere, minAvailable: 9}");
  EXPECT_TRUE(desk.Update("/jobs/validate", bad, With(bad, "metadata: {labels: {a: b}}")).allowed);
  const Json leaving = With(bad,
                            "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: "
                            "{queue: other}}");
  EXPECT_TRUE(desk.Update("/jobs/validate", bad, leaving).allowed);
}

// --- what is filled in

TEST(FillJob, NamesQueueSchedulerRetriesAndMinimums) {
  const Json filled = Desk().Fill("/jobs/mutate", FromYaml(R"(
metadata: {name: train}
spec:
  tasks:
  - template: {spec: {hostNetwork: true, containers: [{name: a, image: "reg:5000/a"}]}}
  - {name: w, replicas: 4, template: {spec: {containers: [{name: a, image: "a:1"}]}}}
  - {name: p, partitionPolicy: {totalPartitions: 4, partitionSize: 2, minPartitions: 3}}
)"));
  EXPECT_EQ(Text(filled, {"spec", "queue"}), "default");
  EXPECT_EQ(Text(filled, {"spec", "schedulerName"}), "volcano");
  EXPECT_EQ(Number(filled, {"spec", "maxRetry"}, -1), 3);
  EXPECT_EQ(Number(filled, {"spec", "minAvailable"}, -1), 1 + 4 + 6);
  const Json& tasks = List(filled, {"spec", "tasks"});
  EXPECT_EQ(Text(tasks[0], {"name"}), "default0");
  EXPECT_EQ(Number(tasks[0], {"replicas"}, -1), 1);
  EXPECT_EQ(Number(tasks[1], {"minAvailable"}, -1), 4);
  EXPECT_EQ(Number(tasks[1], {"maxRetry"}, -1), 3);
  EXPECT_EQ(Number(tasks[2], {"replicas"}, -1), 8);
  EXPECT_EQ(Number(tasks[2], {"minAvailable"}, -1), 6);
  const Json& pod = tasks[0]["template"]["spec"];
  EXPECT_EQ(Text(pod, {"dnsPolicy"}), "ClusterFirstWithHostNet");
  EXPECT_EQ(Text(pod, {"restartPolicy"}), "Always");
  EXPECT_EQ(Text(pod["containers"][0], {"imagePullPolicy"}), "Always");
  const Json& other = tasks[1]["template"]["spec"];
  EXPECT_EQ(Text(other, {"dnsPolicy"}), "ClusterFirst");
  EXPECT_EQ(Text(other["containers"][0], {"imagePullPolicy"}), "IfNotPresent");
}

TEST(FillJob, LeavesWhatIsSaid) {
  const Json said = FromYaml(R"(
metadata: {name: train}
spec:
  queue: team
  schedulerName: hopwise
  maxRetry: 0
  minAvailable: 1
  plugins: {mpi: [], svc: [--disable-network-policy=true]}
  tasks:
  - {name: a, replicas: 2, minAvailable: 0, maxRetry: 1, template: {spec: {dnsPolicy: Default,
     restartPolicy: Never, containers: [{name: a, image: a, imagePullPolicy: Never}]}}}
)");
  const Json filled = Desk().Fill("/jobs/mutate", said);
  for (const char* field : {"queue", "schedulerName", "maxRetry", "minAvailable"}) {
    EXPECT_EQ(filled["spec"][field], said["spec"][field]) << field;
  }
  for (const char* field : {"name", "replicas", "minAvailable", "maxRetry"}) {
    EXPECT_EQ(filled["spec"]["tasks"][0][field], said["spec"]["tasks"][0][field]) << field;
  }
  const Json& pod = filled["spec"]["tasks"][0]["template"]["spec"];
  EXPECT_EQ(Text(pod, {"dnsPolicy"}), "Default");
  EXPECT_EQ(Text(pod, {"restartPolicy"}), "Never");
  EXPECT_EQ(Text(pod["containers"][0], {"imagePullPolicy"}), "Never");
  EXPECT_EQ(filled["spec"]["plugins"]["svc"], said["spec"]["plugins"]["svc"]);
}

TEST(FillJob, PluginsBringThoseThatTheyNeed) {
  const auto plugins = [](std::string_view given) {
    const Json job = Desk().Fill(
        "/jobs/mutate",
        FromYaml(fmt::format("{{metadata: {{name: j}}, spec: {{plugins: {{{}}}}}}}", given)));
    std::string names;
    for (const auto& [name, arguments] : job["spec"]["plugins"].items()) names += name + " ";
    return names;
  };
  EXPECT_EQ(plugins("pytorch: []"), "pytorch svc ");
  EXPECT_EQ(plugins("tensorflow: []"), "svc tensorflow ");
  EXPECT_EQ(plugins("ray: []"), "ray svc ");
  EXPECT_EQ(plugins("mpi: []"), "mpi ssh svc ");
  EXPECT_EQ(plugins("env: []"), "env ");
}

TEST(FillJob, APodsRequestIsItsLimitWhereItSaysNone) {
  const Json job = Desk().Fill("/jobs/mutate", FromYaml(R"(
metadata: {name: j}
spec:
  tasks:
  - template:
      spec:
        containers:
        - {name: a, image: a, ports: [{containerPort: 1}],
           resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}
)"));
  const Json& container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["requests"]["cpu"], 1);
  EXPECT_EQ(container["resources"]["requests"]["memory"], "1Gi");
  EXPECT_EQ(container["ports"][0]["protocol"], "TCP");
}

TEST(FillJob, WhatIsNoJobIsLeftToTheSchema) {
  for (const char* text : {"{metadata: {name: j}, spec: {tasks: no, minAvailable: no}}",
                           "{metadata: {name: j}, spec: {tasks: [1], plugins: []}}"}) {
    const Json job = FromYaml(text);
    const Json filled = Desk().Fill("/jobs/mutate", job);
    EXPECT_EQ(filled["spec"]["tasks"], job["spec"]["tasks"]);
    EXPECT_EQ(filled["spec"].value("plugins", Json()), job["spec"].value("plugins", Json()));
  }
}

// --- Jobs by the clock

TEST(AdmitCronJob, TheScheduleTheZoneAndTheJobAreRead) {
  Desk desk = ADesk();
  desk.view.knows_time_zone = [](const std::string& zone) { return zone == "Europe/Berlin"; };
  Json good = FromYaml(R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly, namespace: ml}
spec: {schedule: "0 3 * * 1-5"}
)");
  good["spec"]["jobTemplate"]["spec"] = FromYaml(kJob)["spec"];
  const std::string long_name = "metadata: {name: " + std::string(53, 'c') + "}";
  const std::vector<RuleCase> cases = {
      {"every night", "", ""},
      {"lists, steps and words", "spec: {schedule: '*/15 0,12 1-7/2 jan,Jul sun-tue'}", ""},
      {"a word", "spec: {schedule: '@daily'}", ""},
      {"every so often", "spec: {schedule: '@every 1h30m'}", ""},
      {"an unknown word", "spec: {schedule: '@often'}", "spec.schedule: \"@often\" is none of"},
      {"never so often", "spec: {schedule: '@every 0s'}", "spec.schedule: \"@every 0s\" @every"},
      {"four fields", "spec: {schedule: '0 3 * *'}", "spec.schedule: \"0 3 * *\" has 4 fields"},
      {"minute 60", "spec: {schedule: '60 3 * * *'}",
       "spec.schedule: \"60 3 * * *\" its minute, \"60\""},
      {"from 5 to 2", "spec: {schedule: '0 5-2 * * *'}", "spec.schedule: \"0 5-2 * * *\" its hour"},
      {"a step of none", "spec: {schedule: '*/0 * * * *'}", "spec.schedule: \"*/0 * * * *\" its"},
      {"no schedule", "spec: {schedule: ''}", "spec.schedule: \"\" has 0 fields"},
      {"a zone in it", "spec: {schedule: 'TZ=UTC 0 3 * * *'}",
       "spec.schedule: \"TZ=UTC 0 3 * * *\" names a time zone; write that into timeZone"},
      {"a zone", "spec: {timeZone: Europe/Berlin}", ""},
      {"an unknown zone", "spec: {timeZone: Mars/Olympus}", "spec.timeZone: \"Mars/Olympus\" is"},
      {"the machine's", "spec: {timeZone: Local}", "spec.timeZone: \"Local\" is no time zone"},
      {"a way to files", "spec: {timeZone: ../passwd}", "spec.timeZone: \"../passwd\" is no"},
      {"a long name", long_name, "metadata.name: is 53 characters long; at most 52"},
      {"a bad Job", "spec: {jobTemplate: {spec: {minAvailable: 9}}}",
       "spec.jobTemplate.spec.minAvailable: 9 is more than"},
      {"no Job", "spec: {jobTemplate: null}", "spec.jobTemplate: is missing"},
  };
  for (const RuleCase& rule : cases) {
    ExpectProblem(desk.Create("/cronjobs/validate", With(good, rule.change)), rule);
  }
}

TEST(AdmitCronJob, WhatDoesNotChangeIsNotJudgedAgain) {
  const Json before = FromYaml(
      "{metadata: {name: n}, spec: {schedule: bad, jobTemplate: {spec: {queue: nowhere}}}}");
  const Json suspended = With(before, "spec: {suspend: true, schedule: '@daily'}");
  EXPECT_TRUE(ADesk().Update("/cronjobs/validate", before, suspended).allowed);
}

// --- flows of Jobs

TEST(AdmitJobFlow, FlowsDependOnEachOtherWithoutACycle) {
  const Json good = FromYaml(R"(
metadata: {name: pipeline, namespace: ml}
spec: {flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]}
)");
  const std::vector<RuleCase> cases = {
      {"b after a", "", ""},
      {"itself", "spec: {flows: [{name: a, dependsOn: {targets: [a]}}]}",
       "spec.flows[0].dependsOn.targets[0]: a depends on itself"},
      {"unknown", "spec: {flows: [{name: a, dependsOn: {targets: [x]}}]}",
       "spec.flows[0].dependsOn.targets[0]: there is no flow \"x\" here"},
      {"twice", "spec: {flows: [{name: a}, {name: a}]}", "spec.flows[1].name: a stands twice"},
      {"nameless", "spec: {flows: [{}]}", "spec.flows[0].name: is missing"},
      {"a cycle",
       "spec: {flows: [{name: a, dependsOn: {targets: [c]}}, {name: b, dependsOn: "
       "{targets: [a]}}, {name: c, dependsOn: {targets: [b]}}]}",
       "spec.flows: the flows depend on each other in a cycle: a -> c -> b -> a"},
  };
  for (const RuleCase& rule : cases) {
    ExpectProblem(Desk().Create("/jobflows/validate", With(good, rule.change)), rule);
  }
}

}  // namespace
}  // namespace hopwise::control
