// Commands on a cluster: what they ask the API server, what they print of its answers, and what
// they say when it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/job_run.h"
#include "cli/pod_text.h"
#include "cli/test_api_server.h"

namespace hopwise::cli {
namespace {

using json::Json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kJobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs";
constexpr const char* kAllJobs = "/apis/batch.volcano.sh/v1alpha1/jobs";
constexpr const char* kQueuePath = "/apis/scheduling.volcano.sh/v1beta1/queues";
constexpr const char* kGroupPath = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
constexpr const char* kCommandPath = "/apis/bus.volcano.sh/v1alpha1/namespaces/";

Json JobNamed(const std::string& name, const std::string& queue = "default") {
  Json job = {{"metadata",
               {{"name", name},
                {"namespace", "ml"},
                {"uid", "uid-" + name},
                {"creationTimestamp", "2026-01-01T21:00:00Z"}}}};
  job["spec"] = {{"queue", queue}, {"minAvailable", 2}, {"schedulerName", "volcano"}};
  job["spec"]["tasks"] = Json::array({{{"name", "ps"}, {"replicas", 1}},
                                      {{"name", "worker"}, {"replicas", 3}, {"minAvailable", 1}}});
  job["status"] = {{"state", {{"phase", "Running"}}}, {"running", 3}, {"pending", 1}};
  return job;
}

TEST(JobList, HasTheColumnsOfVcctl) {
  TestApiServer api;
  api.ServeList(kJobs, {JobNamed("train"), JobNamed("x")});
  const Outcome outcome = api.Type({"job", "list"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "Name    Creation     Phase     JobType   Replicas   Min   Pending   Running   "
            "Succeeded   Failed   Unknown   RetryCount\n"
            "train   2026-01-01   Running   Batch     4          2     1         3         "
            "0           0        0         0\n"
            "x       2026-01-01   Running   Batch     4          2     1         3         "
            "0           0        0         0\n");
}

TEST(JobList, ShowsTheNamespaceWhereAllAreAskedFor) {
  TestApiServer api;
  api.ServeList(kAllJobs, {JobNamed("train")});
  const Outcome outcome = api.Type({"job", "list", "-A", "-o", "wide"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("Namespace   Name    Creation"));
  EXPECT_THAT(outcome.out, HasSubstr("RetryCount   Queue     Scheduler   Age\nml          train"));
  EXPECT_THAT(outcome.out, HasSubstr("default   volcano     3h\n"));
}

TEST(JobList, AsksForLabelsAndSortsOutQueuesItself) {
  TestApiServer api;
  api.ServeList(kJobs, {JobNamed("a"), JobNamed("b", "research")});
  const Outcome outcome =
      api.Type({"job", "list", "-q", "research", "-l", "team in (x,y)", "-o", "name"});
  EXPECT_EQ(outcome.out, "job.batch.volcano.sh/b\n");
  EXPECT_THAT(api.requests().front().path,
              HasSubstr("limit=500&labelSelector=team%20in%20%28x%2Cy%29"));
}

TEST(JobList, GivesWholeObjectsToPrograms) {
  TestApiServer api;
  Json job = JobNamed("a");
  job["metadata"]["managedFields"] = Json::array({1});
  api.ServeList(kJobs, {job});
  const Json list = json::ParseOrNull(api.Type({"job", "list", "-o", "json"}).out);
  ASSERT_EQ(json::List(list, {"items"}).size(), 1U);
  EXPECT_EQ(json::Text(list["items"][0], {"apiVersion"}), "batch.volcano.sh/v1alpha1");
  EXPECT_EQ(json::Text(list["items"][0], {"kind"}), "Job");
  EXPECT_EQ(json::Get(list["items"][0], {"metadata", "managedFields"}), nullptr);
}

Json Page(const std::string& item, const std::string& next) {
  return {{"metadata", {{"continue", next}}}, {"items", Json::array({JobNamed(item)})}};
}

TEST(Lists, GoOnUntilTheLastPage) {
  TestApiServer api;
  const std::string first = std::string("GET ") + kJobs;
  api.Serve(first, Page("a", "t/1"));
  api.Serve(first + "?continue=t%2F1", Page("b", ""));
  EXPECT_EQ(api.Type({"job", "list", "-o", "name"}).out,
            "job.batch.volcano.sh/a\njob.batch.volcano.sh/b\n");
  EXPECT_EQ(api.requests().size(), 2U);
}

TEST(Lists, BeginAnewOnceWhenTheServerForgotWhereTheyWere) {
  TestApiServer api;
  const std::string first = std::string("GET ") + kJobs;
  api.Serve(first, Page("a", "t"));
  api.Refuse(first + "?continue=t", 410, "Expired", "too old");
  const Outcome outcome = api.Type({"job", "list", "-o", "name"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(api.requests().size(), 4U);
}

TEST(Lists, SayWhenThereIsNothingAndWhenThereIsNoNamespace) {
  TestApiServer api;
  api.ServeList(kJobs, {});
  api.Serve("GET /api/v1/namespaces/ml", {{"metadata", {{"name", "ml"}}}});
  const Outcome nothing = api.Type({"job", "list"});
  EXPECT_EQ(nothing.status, 0);
  EXPECT_EQ(nothing.err, "hopwise: No resources found in namespace ml\n");
  api.ServeList("/apis/batch.volcano.sh/v1alpha1/namespaces/typo/jobs", {});
  api.Refuse("GET /api/v1/namespaces/typo", 404, "NotFound", "namespaces \"typo\" not found",
             "typo");
  const Outcome wrong = api.Type({"job", "list", "-n", "typo"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("the namespace typo does not exist"));
}

TEST(ClusterErrors, NameWhatIsMissingAndWhatToDo) {
  TestApiServer api;
  const Outcome no_kind = api.Type({"job", "list"});
  EXPECT_EQ(no_kind.status, 1);
  EXPECT_THAT(no_kind.err, HasSubstr("install its CRD, which is in deploy/crds"));
  api.Refuse(std::string("GET ") + kJobs, 403, "Forbidden",
             "jobs.batch.volcano.sh is forbidden: User \"eve\" cannot list resource \"jobs\"");
  const Outcome forbidden = api.Type({"job", "list"});
  EXPECT_EQ(forbidden.status, 1);
  EXPECT_THAT(forbidden.err, HasSubstr("cannot list jobs.batch.volcano.sh in namespace ml"));
  EXPECT_THAT(forbidden.err, HasSubstr("User \"eve\""));
  EXPECT_THAT(forbidden.err, HasSubstr("grant the verb \"list\" on \"jobs\""));
  api.Refuse(std::string("GET ") + kJobs, 400, "BadRequest", "unable to parse requirement");
  const Outcome selector = api.Type({"job", "list", "-l", "a=="});
  EXPECT_EQ(selector.status, 2);
  EXPECT_THAT(selector.err, HasSubstr("unable to parse requirement"));
  api.Unreachable();
  const Outcome unreachable = api.Type({"job", "list"});
  EXPECT_EQ(unreachable.status, 1);
  EXPECT_THAT(unreachable.err, HasSubstr("cannot connect to 127.0.0.1:6443"));
  EXPECT_THAT(unreachable.err, HasSubstr("the server is that of /home/me/.kube/config"));
}

TEST(ClusterErrors, NoNameReachesMoreThanOneObject) {
  TestApiServer api;
  api.ServeList(kJobs, {JobNamed("train")});
  for (const std::string name : {"", ".", "..", "train/", "train/status", "a%2Fb"}) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"job", "delete", name},
                                               {"job", "view", name},
                                               {"job", "delete", "-N", name},
                                               {"job", "suspend", name},
                                               {"job", "resume", name},
                                               {"queue", "delete", name},
                                               {"queue", "get", name}}) {
      const Outcome outcome = api.Type(words);
      EXPECT_EQ(outcome.status, 2) << words[0] << " " << words[1] << " '" << name << "'";
      EXPECT_THAT(outcome.err, HasSubstr("cannot be the name of")) << words[1];
      EXPECT_EQ(outcome.out, "");
    }
  }
  for (const char* ns : {"..", "../../kube-system", "kube-system/pods"}) {
    const Outcome outcome = api.Type({"job", "list", "-n", ns});
    EXPECT_EQ(outcome.status, 2) << ns;
    EXPECT_THAT(outcome.err, HasSubstr("cannot be the name of a namespace")) << ns;
  }
}

TEST(ClusterErrors, TellAMissingObjectFromAMissingKind) {
  TestApiServer api;
  api.Refuse(std::string("GET ") + kJobs + "/gone", 404, "NotFound",
             "jobs.batch.volcano.sh \"gone\" not found", "gone");
  const Outcome object = api.Type({"job", "view", "gone"});
  EXPECT_EQ(object.status, 1);
  EXPECT_THAT(object.err, HasSubstr("\"gone\" not found"));
  EXPECT_THAT(object.err, ::testing::Not(HasSubstr("CRD")));
  EXPECT_THAT(api.Type({"job", "delete", "other"}).err, HasSubstr("install its CRD"));
}

TEST(ClusterFlagsOfACommand, AreCheckedBeforeAnythingIsAsked) {
  TestApiServer api;
  const Outcome outcome = api.Type({"job", "list", "--request-timeout", "soon"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--request-timeout: soon is no duration"));
  EXPECT_TRUE(api.requests().empty());
  api.ServeList(kJobs, {JobNamed("a")});
  EXPECT_EQ(api.Type({"job", "list", "--request-timeout", "7"}).status, 0);
  EXPECT_EQ(api.requests().back().timeout, Seconds(7));
}

TEST(JobRunCommand, MakesTheJobThatTheFlagsDescribe) {
  TestApiServer api;
  api.Serve(std::string("POST ") + kJobs, JobNamed("train"), 201);
  const Outcome outcome =
      api.Type({"job", "run", "-N", "train", "-i", "pytorch:2", "-r", "4", "-m", "3", "-R",
                "cpu=2,nvidia.com/gpu=8", "-L", "nvidia.com/gpu=8", "-S", "hopwise"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "job.batch.volcano.sh/train created\n");
  const Json job = api.Sent(kube::Method::kPost);
  EXPECT_EQ(json::Namespace(job), "ml");
  EXPECT_EQ(json::Text(job, {"spec", "schedulerName"}), "hopwise");
  EXPECT_EQ(json::Number(job, {"spec", "minAvailable"}, 0), 3);
  const Json& task = json::List(job, {"spec", "tasks"})[0];
  EXPECT_EQ(json::Number(task, {"replicas"}, 0), 4);
  const Json& container = json::List(task, {"template", "spec", "containers"})[0];
  EXPECT_EQ(json::Text(container, {"image"}), "pytorch:2");
  EXPECT_EQ(json::Text(container, {"resources", "requests", "cpu"}), "2");
  EXPECT_EQ(json::Text(container, {"resources", "requests", "nvidia.com/gpu"}), "8");
  EXPECT_EQ(json::Text(container, {"resources", "limits", "nvidia.com/gpu"}), "8");
}

TEST(JobRunCommand, RefusesFlagsThatMakeNoJob) {
  TestApiServer api;
  EXPECT_THAT(api.Type({"job", "run"}).err, HasSubstr("give the job a name with -N"));
  EXPECT_THAT(api.Type({"job", "run", "a", "-R", "cpu"}).err,
              HasSubstr("--requests: \"cpu\" is not <resource>=<amount>"));
  EXPECT_THAT(api.Type({"job", "run", "a", "-L", "cpu=two"}).err, HasSubstr("--limits: cpu: "));
  const Outcome outcome = api.Type({"job", "run", "a", "-m", "2"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--min 2 of --replicas 1"));
  EXPECT_TRUE(api.requests().empty());
}

constexpr const char* kJobFile = R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: from-file}
spec: {tasks: []}
)";

TEST(JobRunCommand, CreatesTheJobsOfAFile) {
  TestApiServer api;
  api.Serve(std::string("POST ") + kJobs, JobNamed("from-file"), 201);
  const Outcome outcome = api.Type({"job", "run", "-f", "-"}, "hopwise", kJobFile);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::Namespace(api.Sent(kube::Method::kPost)), "ml");
  const Outcome other = api.Type({"job", "run", "-f", "-"}, "hopwise",
                                 "---\napiVersion: apps/v1\nkind: Deployment\n");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("<stdin>: document 1 (line 2): is a Deployment of apps/v1"));
  const Outcome both = api.Type({"job", "run", "-f", "-", "-r", "3"}, "hopwise", kJobFile);
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--replicas describes a job, and so does -f"));
  const std::string elsewhere = std::string(kJobFile).replace(
      std::string(kJobFile).find("{name: from-file}"), 17, "{name: a, namespace: other}");
  const Outcome mixed = api.Type({"job", "run", "-n", "ml", "-f", "-"}, "hopwise", elsewhere);
  EXPECT_EQ(mixed.status, 2);
  EXPECT_THAT(mixed.err, HasSubstr("its namespace is not ml"));
}

TEST(JobOrders, AreCommandsAboutTheJob) {
  TestApiServer api;
  api.Serve(std::string("GET ") + kJobs + "/train", JobNamed("train"));
  api.Serve(std::string("POST ") + kCommandPath + "ml/commands", {{"metadata", Json::object()}},
            201);
  EXPECT_EQ(api.Type({"job", "suspend", "train"}).out,
            "job.batch.volcano.sh/train is told to stop\n");
  const Json command = api.Sent(kube::Method::kPost);
  EXPECT_EQ(json::Text(command, {"action"}), "AbortJob");
  EXPECT_EQ(json::Text(command, {"metadata", "generateName"}), "train-abortjob-");
  EXPECT_EQ(json::Text(command, {"target", "kind"}), "Job");
  EXPECT_EQ(json::Text(command, {"target", "apiVersion"}), "batch.volcano.sh/v1alpha1");
  EXPECT_EQ(json::Text(command, {"target", "uid"}), "uid-train");
  EXPECT_EQ(json::Text(json::List(command, {"metadata", "ownerReferences"})[0], {"uid"}),
            "uid-train");
  EXPECT_EQ(api.Type({"job", "resume", "-N", "train"}).status, 0);
  EXPECT_EQ(json::Text(api.Sent(kube::Method::kPost), {"action"}), "ResumeJob");
}

TEST(JobViewCommand, TellsWhyTheJobWaits) {
  TestApiServer api;
  api.Serve(std::string("GET ") + kJobs + "/train", JobNamed("train"));
  api.Serve("GET /apis/scheduling.volcano.sh/v1beta1/namespaces/ml/podgroups/train-uid-train",
            {{"metadata", {{"name", "train-uid-train"}, {"uid", "g"}}},
             {"status",
              {{"phase", "Inqueue"},
               {"conditions", Json::array({{{"type", "Unschedulable"},
                                            {"status", "True"},
                                            {"reason", "NeverFits"},
                                            {"message", "no leaf is large enough"}}})}}}});
  api.ServeList("/api/v1/namespaces/ml/pods",
                {{{"metadata", {{"name", "train-ps-0"}, {"namespace", "ml"}}},
                  {"spec", {{"nodeName", "n1"}, {"containers", Json::array({Json::object()})}}},
                  {"status", {{"phase", "Pending"}}}}});
  api.ServeList("/api/v1/namespaces/ml/events",
                {{{"type", "Warning"},
                  {"reason", "Unschedulable"},
                  {"message", "told"},
                  {"lastTimestamp", "2026-01-01T23:59:00Z"},
                  {"involvedObject", {{"kind", "PodGroup"}, {"name", "train-uid-train"}}}}});
  const Outcome outcome = api.Type({"job", "view", "train"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("Phase:       Running\n"));
  EXPECT_THAT(outcome.out, HasSubstr("Waits:       NeverFits: no leaf is large enough\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nTASK     REPLICAS   MIN"));
  EXPECT_THAT(outcome.out, HasSubstr("\ntrain-ps-0   0/1     Pending   0          n1"));
  EXPECT_THAT(outcome.out, HasSubstr("60s         Warning   Unschedulable   PodGroup/train-uid"));
}

TEST(QueueCommands, CountThePodGroupsOfEachQueue) {
  TestApiServer api;
  api.ServeList(kQueuePath, {{{"metadata", {{"name", "default"}}},
                              {"spec", {{"weight", 3}, {"parent", "root"}}},
                              {"status", {{"state", "Open"}}}}});
  const auto group = [](const std::string& phase) {
    return Json{{"spec", {{"queue", "default"}}}, {"status", {{"phase", phase}}}};
  };
  api.ServeList(kGroupPath, {group("Running"), group("Running"), group("Inqueue")});
  const Outcome outcome = api.Type({"queue", "list"});
  EXPECT_EQ(
      outcome.out,
      "Name      Weight   State   Parent   Inqueue   Pending   Running   Unknown   Completed\n"
      "default   3        Open    root     1         0         2         0         0\n");
}

TEST(QueueCommands, CreateOperateAndDelete) {
  TestApiServer api;
  const Json queue = {{"metadata", {{"name", "research"}, {"uid", "q"}}}};
  const std::string one = std::string(kQueuePath) + "/research";
  api.Serve(std::string("POST ") + kQueuePath, queue, 201);
  api.Serve("GET " + one, queue);
  api.Serve("PATCH " + one, queue);
  api.Serve("DELETE " + one, queue);
  api.Serve(std::string("POST ") + kCommandPath + "default/commands", Json::object(), 201);
  EXPECT_EQ(api.Type({"queue", "create", "research", "-w", "4"}).status, 0);
  EXPECT_EQ(json::Number(api.Sent(kube::Method::kPost), {"spec", "weight"}, 0), 4);
  EXPECT_EQ(api.Type({"queue", "operate", "research", "-a", "close"}).status, 0);
  const Json command = api.Sent(kube::Method::kPost);
  EXPECT_EQ(json::Text(command, {"action"}), "CloseQueue");
  EXPECT_EQ(json::Text(command, {"target", "kind"}), "Queue");
  EXPECT_EQ(api.Type({"queue", "operate", "research", "-a", "update", "-w", "9"}).status, 0);
  EXPECT_EQ(json::Number(api.Sent(kube::Method::kPatch), {"spec", "weight"}, 0), 9);
  EXPECT_EQ(api.Type({"queue", "operate", "research", "-a", "update"}).status, 2);
  EXPECT_EQ(api.Type({"queue", "operate", "research", "-a", "open", "-w", "2"}).status, 2);
  EXPECT_EQ(api.Type({"queue", "operate", "research"}).status, 2);
  EXPECT_EQ(api.Type({"queue", "operate", "research", "-a", "update", "-w", "0"}).status, 2);
  EXPECT_EQ(api.Type({"queue", "delete", "research"}).out,
            "queue.scheduling.volcano.sh \"research\" deleted\n");
}

TEST(PodListCommand, ShowsPodsOfTheQueueThatTheirGroupNames) {
  TestApiServer api;
  const auto pod = [](const std::string& name, const std::string& group) {
    Json made = {{"metadata", {{"name", name}, {"namespace", "ml"}}},
                 {"spec", {{"schedulerName", "volcano"}}},
                 {"status", {{"phase", "Running"}}}};
    made["spec"]["containers"] = Json::array({Json::object()});
    made["metadata"]["annotations"] = {{"scheduling.k8s.io/group-name", group}};
    return made;
  };
  Json foreign = {{"metadata", {{"name", "other"}, {"namespace", "ml"}}},
                  {"spec", {{"schedulerName", "default-scheduler"}}}};
  api.ServeList("/api/v1/namespaces/ml/pods", {pod("a-0", "a"), pod("b-0", "b"), foreign});
  api.ServeList("/apis/scheduling.volcano.sh/v1beta1/namespaces/ml/podgroups",
                {{{"metadata", {{"name", "a"}, {"namespace", "ml"}}}, {"spec", {{"queue", "q"}}}},
                 {{"metadata", {{"name", "b"}, {"namespace", "ml"}}}}});
  EXPECT_EQ(api.Type({"pod", "list", "-q", "q"}).out,
            "Name   Ready   Status    Restart   Age\n"
            "a-0    0/1     Running   0         <unknown>\n");
  EXPECT_EQ(api.Type({"pod", "list", "-o", "name"}).out, "pod/a-0\npod/b-0\n");
}

TEST(PodTexts, SayWhatAPersonWouldAskFor) {
  const auto status_of = [](const char* text) { return TextOfPod(json::ParseOrNull(text)).status; };
  EXPECT_EQ(status_of(R"({"status":{"phase":"Failed","reason":"Evicted"}})"), "Evicted");
  EXPECT_EQ(status_of(R"({"metadata":{"deletionTimestamp":"x"},"status":{"phase":"Running"}})"),
            "Terminating");
  EXPECT_EQ(status_of(R"({"status":{"phase":"Running","containerStatuses":[{"state":{"waiting":
                         {"reason":"CrashLoopBackOff"}}}]}})"),
            "CrashLoopBackOff");
  EXPECT_EQ(status_of(R"({"spec":{"initContainers":[{"name":"a"},{"name":"b"}]},"status":{"phase":
                         "Pending","initContainerStatuses":[{"name":"a","state":{"terminated":
                         {"exitCode":0}}},{"name":"b","state":{"running":{}}}]}})"),
            "Init:1/2");
  EXPECT_EQ(status_of(R"({"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":
                         {"exitCode":3}}}]}})"),
            "ExitCode:3");
  EXPECT_EQ(status_of(R"({"status":{"phase":"Pending","conditions":[{"type":"PodScheduled",
                         "reason":"SchedulingGated"}]}})"),
            "SchedulingGated");
}

TEST(TopologyOfACluster, IsDrawnWithoutFiles) {
  TestApiServer api;
  api.ServeList("/api/v1/nodes",
                {{{"metadata", {{"name", "a1"}}},
                  {"status", {{"allocatable", {{"cpu", "4"}, {"nvidia.com/gpu", "8"}}}}}}});
  Json member = {{"type", "Node"}};
  member["selector"]["exactMatch"]["name"] = "a1";
  api.ServeList("/apis/topology.volcano.sh/v1alpha1/hypernodes",
                {{{"metadata", {{"name", "leaf"}, {"creationTimestamp", "2026-01-01T21:00:00Z"}}},
                  {"spec", {{"tier", 1}, {"members", Json::array({member})}}}}});
  api.ServeList("/api/v1/pods", {});
  const Outcome tree = api.Type({"topology", "tree"});
  EXPECT_EQ(tree.status, 0) << tree.err;
  EXPECT_THAT(tree.out, HasSubstr("└─ leaf   1      1       8/8                         a1\n"));
  EXPECT_EQ(api.Type({"topology", "check"}).out, "no faults in 1 HyperNodes\n");
  EXPECT_EQ(api.Type({"get", "hn"}).out,
            "NAME   TIER   TIERNAME   NODECOUNT   AGE\n"
            "leaf   1                 1           3h\n");
}

TEST(Vcctl, TakesItsOwnFlags) {
  TestApiServer api;
  const std::string jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
  api.ServeList(jobs, {JobNamed("alpha"), JobNamed("beta")});
  api.Serve("GET " + std::string(kQueuePath) + "/default", {{"metadata", {{"name", "default"}}}});
  api.ServeList(kGroupPath, {});
  const Outcome list =
      api.Type({"job", "list", "--selector", "alp", "-s", "https://a:1", "-k", "x"}, "vcctl");
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("\nalpha   2026-01-01"));
  EXPECT_THAT(list.out, ::testing::Not(HasSubstr("beta")));
  EXPECT_EQ(api.Type({"queue", "get", "-n", "default"}, "vcctl").status, 0);
  api.ServeList(jobs, {});
  api.Serve("GET /api/v1/namespaces/default", {{"metadata", {{"name", "default"}}}});
  EXPECT_EQ(api.Type({"job", "list"}, "vcctl").out, "No resources found\n");
  const Outcome flow = api.Type({"jobflow", "list", "--all-namespaces"}, "vcctl");
  EXPECT_EQ(flow.status, 2);
  EXPECT_THAT(flow.err, HasSubstr("Hopwise serves no JobFlows"));
  EXPECT_EQ(api.Type({"simulate", "-"}, "vcctl").status, 2);
}

TEST(KubectlPlugin, IsCalledByWhatWasTyped) {
  TestApiServer api;
  EXPECT_THAT(api.Type({"job", "--help"}, "kubectl-hopwise").out, HasSubstr("kubectl hopwise job"));
}

}  // namespace
}  // namespace hopwise::cli
