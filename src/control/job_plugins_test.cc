// What the plugins of a vcjob put into its pods and beside them.
#include "control/job_plugins.h"

#include <gmock/gmock.h>

#include "control/testing.h"

namespace hopwise::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job j with one container a task, the roles given as "name replicas".
Json JobWith(std::string_view plugins, std::string_view tasks) {
  const std::string yaml =
      "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j, namespace: default, "
      "uid: u}, spec: {plugins: " +
      std::string(plugins) + ", tasks: [" + std::string(tasks) + "]}}";
  const std::vector<api::Document> documents = api::SplitDocuments(yaml);
  return *ParseJson(documents.front().json);
}

std::string Task(std::string_view name, int replicas, std::string_view spec = "") {
  const std::string fields = spec.empty() ? "" : ", " + std::string(spec);
  return "{name: " + std::string(name) + ", replicas: " + std::to_string(replicas) +
         ", template: {spec: {containers: [{name: main}], initContainers: [{name: init}]" + fields +
         "}}}";
}

Json PodOf(const Json& job, std::string_view task, int64_t index) {
  const std::vector<VcTask> tasks = VcTasks(job);
  for (const VcTask& one : tasks) {
    if (one.name == task) {
      Json pod = VcPod(job, one, index, "g");
      DressPod(job, tasks, one, index, pod);
      return pod;
    }
  }
  return nullptr;
}

// "NAME=value" of the first container, in order.
std::vector<std::string> EnvOf(const Json& pod, std::string_view field = "containers") {
  std::vector<std::string> env;
  for (const Json& one : List(List(pod, {"spec", field})[0], {"env"})) {
    const std::string key = Text(one, {"valueFrom", "configMapKeyRef", "key"});
    env.push_back(Text(one, {"name"}) + "=" +
                  (key.empty() ? Text(one, {"value"}) : "<" + key + ">"));
  }
  return env;
}

Json ObjectOf(const Json& job, std::string_view kind) {
  for (const Json& object : PluginObjects(job, VcTasks(job), {"private", "public"})) {
    if (Text(object, {"kind"}) == kind) {
      return object;
    }
  }
  return nullptr;
}

TEST(EnvPlugin, TellsEachContainerItsIndex) {
  const Json pod = PodOf(JobWith("{env: []}", Task("w", 3)), "w", 2);
  EXPECT_THAT(EnvOf(pod), ElementsAre("VK_TASK_INDEX=2", "VC_TASK_INDEX=2"));
  EXPECT_THAT(EnvOf(pod, "initContainers"), ElementsAre("VK_TASK_INDEX=2", "VC_TASK_INDEX=2"));
}

TEST(SvcPlugin, NamesEveryPodAndTellsAllHosts) {
  const Json job = JobWith("{svc: []}", Task("ps", 1) + ", " + Task("my-w", 2));
  const Json pod = PodOf(job, "my-w", 1);
  EXPECT_EQ(Text(pod, {"spec", "hostname"}), "j-my-w-1");
  EXPECT_EQ(Text(pod, {"spec", "subdomain"}), "j");
  EXPECT_THAT(EnvOf(pod),
              ElementsAre("VC_PS_HOSTS=<VC_PS_HOSTS>", "VC_PS_NUM=<VC_PS_NUM>",
                          "VC_MY_W_HOSTS=<VC_MY_W_HOSTS>", "VC_MY_W_NUM=<VC_MY_W_NUM>"));
  const Json map = ObjectOf(job, "ConfigMap");
  EXPECT_EQ(Name(map), "j-svc");
  EXPECT_EQ(Text(map, {"data", "VC_MY_W_HOSTS"}), "j-my-w-0.j,j-my-w-1.j");
  EXPECT_EQ(Text(map, {"data", "VC_MY_W_NUM"}), "2");
  EXPECT_EQ(Text(map, {"data", "my_w.host"}), "j-my-w-0.j\nj-my-w-1.j");
  EXPECT_EQ(Text(ObjectOf(job, "Service"), {"spec", "clusterIP"}), "None");
  EXPECT_EQ(Text(ObjectOf(job, "NetworkPolicy"),
                 {"spec", "podSelector", "matchLabels", "volcano.sh/job-name"}),
            "j");
}

TEST(SvcPlugin, ItsFlags) {
  const Json job = JobWith(
      "{svc: ['--publish-not-ready-addresses=true', '--disable-network-policy', "
      "'--inject-hosts-env=false']}",
      Task("w", 1));
  EXPECT_TRUE(Flag(ObjectOf(job, "Service"), {"spec", "publishNotReadyAddresses"}, false));
  EXPECT_TRUE(ObjectOf(job, "NetworkPolicy").is_null());
  EXPECT_THAT(EnvOf(PodOf(job, "w", 0)), IsEmpty());
}

TEST(SvcPlugin, AHostNameOfTheTemplateStays) {
  const Json job = JobWith("{svc: []}", Task("w", 2, "hostname: given, subdomain: own"));
  const Json pod = PodOf(job, "w", 1);
  EXPECT_EQ(Text(pod, {"spec", "hostname"}), "given");
  EXPECT_EQ(Text(ObjectOf(job, "ConfigMap"), {"data", "VC_W_HOSTS"}), "given.own");
}

TEST(SshPlugin, GivesEveryPodTheSameKeys) {
  const Json job = JobWith("{ssh: ['--ssh-port', '2222']}", Task("w", 2));
  const Json secret = ObjectOf(job, "Secret");
  EXPECT_EQ(Text(secret, {"stringData", "authorized_keys"}), "public");
  EXPECT_THAT(Text(secret, {"stringData", "config"}),
              HasSubstr("Host j-w-1\n  HostName j-w-1.j\n  Port 2222\n"));
  const Json pod = PodOf(job, "w", 0);
  EXPECT_EQ(Text(List(List(pod, {"spec", "containers"})[0], {"volumeMounts"})[0], {"mountPath"}),
            "/root/.ssh");
  EXPECT_EQ(Number(List(pod, {"spec", "volumes"})[0], {"secret", "defaultMode"}, 0), 0600);
}

TEST(SshPlugin, AnotherFolderIsReadableForAnotherUser) {
  const Json pod =
      PodOf(JobWith("{ssh: ['--ssh-key-file-path=/home/a/.ssh']}", Task("w", 1)), "w", 0);
  EXPECT_EQ(Number(List(pod, {"spec", "volumes"})[0], {"secret", "defaultMode"}, 0), 0644);
}

TEST(SshPlugin, GivenKeysAreTaken) {
  const Json job = JobWith("{ssh: ['--ssh-private-key=a', '--ssh-public-key=b']}", Task("w", 1));
  EXPECT_FALSE(NeedsKeys(job));
  EXPECT_EQ(Text(ObjectOf(job, "Secret"), {"stringData", "id_rsa"}), "a");
}

TEST(PytorchPlugin, RanksMasterFirst) {
  const Json job =
      JobWith("{pytorch: ['--port=1000']}", Task("master", 1) + ", " + Task("worker", 3));
  EXPECT_THAT(
      EnvOf(PodOf(job, "master", 0)),
      ElementsAre("MASTER_ADDR=j-master-0.j", "MASTER_PORT=1000", "WORLD_SIZE=4", "RANK=0"));
  EXPECT_THAT(
      EnvOf(PodOf(job, "worker", 2)),
      ElementsAre("MASTER_ADDR=j-master-0.j", "MASTER_PORT=1000", "WORLD_SIZE=4", "RANK=3"));
  const Json pod = PodOf(job, "worker", 0);
  EXPECT_EQ(Number(List(List(pod, {"spec", "containers"})[0], {"ports"})[0], {"containerPort"}, 0),
            1000);
}

TEST(PytorchPlugin, WorkersWaitForTheMasterWhereAsked) {
  const Json job = JobWith("{pytorch: ['--wait-master-enabled=true', '--wait-master-timeout=9']}",
                           "{name: master, template: {}}, {name: worker, template: {}}");
  const Json pod = PodOf(job, "worker", 0);
  const Json& init = List(pod, {"spec", "initContainers"});
  ASSERT_EQ(init.size(), 1U);
  EXPECT_THAT(List(init[0], {"command"})[2].get<std::string>(), HasSubstr("j-master-0.j 23456"));
  EXPECT_THAT(List(init[0], {"command"})[2].get<std::string>(), HasSubstr("-ge 9"));
  EXPECT_THAT(List(PodOf(job, "master", 0), {"spec", "initContainers"}), IsEmpty());
}

TEST(TensorflowPlugin, TellsTheWholeCluster) {
  const Json job = JobWith("{tensorflow: ['--worker=w']}", Task("ps", 1) + ", " + Task("w", 2));
  const std::vector<std::string> env = EnvOf(PodOf(job, "w", 1));
  ASSERT_EQ(env.size(), 1U);
  const Json config = *ParseJson(env.front().substr(std::string("TF_CONFIG=").size()));
  const Json wanted = {{"cluster",
                        {{"ps", Json::array({"j-ps-0.j:2222"})},
                         {"worker", Json::array({"j-w-0.j:2222", "j-w-1.j:2222"})}}},
                       {"task", {{"type", "worker"}, {"index", 1}}}};
  EXPECT_EQ(config, wanted);
}

TEST(MpiPlugin, TellsTheMasterItsWorkers) {
  const Json job = JobWith("{mpi: []}", Task("master", 1) + ", " + Task("worker", 2));
  EXPECT_THAT(EnvOf(PodOf(job, "master", 0)), ElementsAre("MPI_HOST=j-worker-0.j,j-worker-1.j"));
  EXPECT_THAT(EnvOf(PodOf(job, "worker", 0)), IsEmpty());
}

TEST(RayPlugin, StartsHeadAndWorkersAndServesTheHead) {
  const Json job = JobWith("{ray: ['--headContainer=main', '--workerContainer=main']}",
                           Task("head", 1) + ", " + Task("worker", 1));
  const auto command = [&](const char* task) {
    return List(List(PodOf(job, task, 0), {"spec", "containers"})[0], {"command"})[2]
        .get<std::string>();
  };
  EXPECT_THAT(command("head"), HasSubstr("ray start --head"));
  EXPECT_THAT(command("worker"), HasSubstr("--address=j-head-0.j:6379"));
  const Json service = ObjectOf(job, "Service");
  EXPECT_EQ(Name(service), "j-head-svc");
  EXPECT_EQ(Text(service, {"spec", "selector", "volcano.sh/task-spec"}), "head");
}

TEST(HcclRankPlugin, TakesTheRankThatPytorchGaveOrCounts) {
  const std::string tasks = Task("master", 2) + ", " + Task("worker", 2);
  constexpr std::string_view kRank = "hccl/rankIndex";
  const Json plain = JobWith("{hcclrank: []}", tasks);
  EXPECT_EQ(Annotation(PodOf(plain, "master", 1), kRank), "1");
  EXPECT_EQ(Annotation(PodOf(plain, "worker", 1), kRank), "3");
  const Json torch = JobWith("{hcclrank: [], pytorch: []}", tasks);
  EXPECT_EQ(Annotation(PodOf(torch, "worker", 1), kRank), "2") << "as RANK says";
}

TEST(PluginProblems, SayWhatCannotBeFollowed) {
  const auto problems = [](std::string_view plugins) {
    return PluginProblems(JobWith(plugins, Task("w", 1)));
  };
  EXPECT_THAT(problems("{env: [], svc: [], ssh: []}"), IsEmpty());
  EXPECT_THAT(problems("{dance: []}"), ElementsAre("plugin dance is not known"));
  EXPECT_THAT(problems("{svc: ['--x=1']}"), ElementsAre("plugin svc: it has no flag --x"));
  EXPECT_THAT(problems("{svc: ['x']}"), ElementsAre("plugin svc: x is no flag"));
  EXPECT_THAT(problems("{ssh: ['--ssh-port']}"),
              ElementsAre("plugin ssh: --ssh-port lacks its value"));
  EXPECT_THAT(problems("{pytorch: []}"), ElementsAre("plugin pytorch: there is no task master"));
  EXPECT_THAT(problems("{ray: ['--head=h']}"), ElementsAre("plugin ray: there is no task h"));
}

}  // namespace
}  // namespace hopwise::control
