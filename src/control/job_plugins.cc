#include "control/job_plugins.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "control/expand.h"

namespace hopwise::control {
namespace {

constexpr std::string_view kHostsFolder = "/etc/volcano";
constexpr std::string_view kRootSsh = "/root/.ssh";

// A plugin's flags with their defaults; "true" and "false" mark a boolean one.
using Flags = std::map<std::string, std::string, std::less<>>;

const std::map<std::string, Flags, std::less<>>& KnownPlugins() {
  static const std::map<std::string, Flags, std::less<>> kKnown = {
      {"env", {}},
      {"svc",
       {{"publish-not-ready-addresses", "false"},
        {"disable-network-policy", "false"},
        {"inject-hosts-env", "true"}}},
      {"ssh",
       {{"ssh-key-file-path", std::string(kRootSsh)},
        {"ssh-private-key", ""},
        {"ssh-public-key", ""},
        {"ssh-port", "22"},
        {"no-root", "false"}}},
      {"pytorch",
       {{"master", "master"},
        {"worker", "worker"},
        {"port", "23456"},
        {"wait-master-enabled", "false"},
        {"wait-master-timeout", "300"},
        {"wait-master-image", "busybox:1.36.1"}}},
      {"tensorflow",
       {{"ps", "ps"},
        {"worker", "worker"},
        {"chief", "chief"},
        {"evaluator", "evaluator"},
        {"port", "2222"}}},
      {"mpi", {{"master", "master"}, {"worker", "worker"}, {"port", "22"}}},
      {"ray",
       {{"head", "head"},
        {"worker", "worker"},
        {"headContainer", "head"},
        {"workerContainer", "worker"},
        {"port", "6379"},
        {"dashboardPort", "8265"},
        {"clientPort", "10001"}}},
      {"hcclrank", {{"master", "master"}, {"worker", "worker"}}},
  };
  return kKnown;
}

// Reads the words of one plugin over its defaults; `problem` gets what is wrong.
Flags ReadFlags(const Json& job, const std::string& plugin, std::string& problem) {
  const auto known = KnownPlugins().find(plugin);
  if (known == KnownPlugins().end()) {
    problem = fmt::format("plugin {} is not known", plugin);
    return {};
  }
  Flags flags = known->second;
  const Json& words = List(job, {"spec", "plugins", plugin});
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i].is_string() ? words[i].get<std::string>() : "";
    const size_t dashes = word.find_first_not_of('-');
    if (word.empty() || word.front() != '-' || dashes == std::string::npos || dashes > 2) {
      problem = fmt::format("plugin {}: {} is no flag", plugin, word);
      continue;
    }
    word = word.substr(dashes);
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto flag = flags.find(name);
    if (flag == flags.end()) {
      problem = fmt::format("plugin {}: it has no flag --{}", plugin, name);
      continue;
    }
    const bool boolean = flag->second == "true" || flag->second == "false";
    if (equals != std::string::npos) {
      flag->second = word.substr(equals + 1);
    } else if (boolean) {
      flag->second = "true";
    } else if (i + 1 < words.size() && words[i + 1].is_string()) {
      flag->second = words[++i].get<std::string>();
    } else {
      problem = fmt::format("plugin {}: --{} lacks its value", plugin, name);
    }
  }
  return flags;
}

Flags FlagsOf(const Json& job, const std::string& plugin) {
  std::string unused;
  return ReadFlags(job, plugin, unused);
}

bool IsOn(const Flags& flags, std::string_view name) {
  const auto at = flags.find(name);
  return at != flags.end() && at->second == "true";
}
const std::string& ValueOf(const Flags& flags, std::string_view name) {
  return flags.find(name)->second;
}
int64_t PortOf(const Flags& flags, std::string_view name) {
  const std::string& text = ValueOf(flags, name);
  return IsCount(text) ? std::stoll(text) : 0;
}

const VcTask* FindTask(const std::vector<VcTask>& tasks, std::string_view name) {
  const auto at = std::ranges::find(tasks, name, &VcTask::name);
  return at == tasks.end() ? nullptr : &*at;
}

// --- pods ----------------------------------------------------------------------------------------

template <class Visit>
void EachContainer(Json& pod, bool init_too, Visit visit) {
  for (const char* field : {"containers", "initContainers"}) {
    Json& spec = Member(pod, "spec");
    if (!spec.contains(field) || (!init_too && std::string_view(field) != "containers")) {
      continue;
    }
    for (Json& container : spec[field]) {
      visit(container);
    }
  }
}

void AddEnv(Json& container, const std::string& name, const std::string& value) {
  Append(container, "env", {{"name", name}, {"value", value}});
}

// Unless the container has the port already.
void OpenPort(Json& container, const std::string& name, int64_t port) {
  for (const Json& open : List(container, {"ports"})) {
    if (Number(open, {"containerPort"}, 0) == port) {
      return;
    }
  }
  Append(container, "ports", {{"name", name}, {"containerPort", port}});
}

// "job-task-0.job", as the headless Service of the svc plugin has it resolved.
std::string HostOf(const Json& job, const VcTask& task, int64_t index) {
  std::string host, domain;
  if (task.pod_template != nullptr) {
    host = Text(*task.pod_template, {"spec", "hostname"});
    domain = Text(*task.pod_template, {"spec", "subdomain"});
  }
  return (host.empty() ? VcPodName(job, task, index) : host) + "." +
         (domain.empty() ? Name(job) : domain);
}

// Of a template with a host name of its own all replicas share it.
std::vector<std::string> HostsOfTask(const Json& job, const VcTask& task) {
  const bool own =
      task.pod_template != nullptr && !Text(*task.pod_template, {"spec", "hostname"}).empty();
  std::vector<std::string> hosts;
  for (int64_t i = 0; i < (own ? std::min<int64_t>(1, task.replicas) : task.replicas); ++i) {
    hosts.push_back(HostOf(job, task, i));
  }
  return hosts;
}

// "WORKER_A" of "worker-a".
std::string UpperName(const std::string& task) {
  std::string name = task;
  for (char& c : name) {
    c = c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}
std::string UnderscoreName(const std::string& task) {
  std::string name = task;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string HostsMapName(const Json& job) { return Name(job) + "-svc"; }

void DressWithEnv(int64_t index, Json& pod) {
  EachContainer(pod, true, [&](Json& container) {
    for (const char* name : {"VK_TASK_INDEX", "VC_TASK_INDEX"}) {
      AddEnv(container, name, std::to_string(index));
    }
  });
}

void DressWithHosts(const Json& job, const std::vector<VcTask>& tasks, const Flags& flags,
                    Json& pod) {
  if (Text(pod, {"spec", "hostname"}).empty()) {
    Set(pod, {"spec", "hostname"}, Name(pod));
  }
  if (Text(pod, {"spec", "subdomain"}).empty()) {
    Set(pod, {"spec", "subdomain"}, Name(job));
  }
  const std::string map = HostsMapName(job);
  Append(pod["spec"], "volumes", {{"name", map}, {"configMap", {{"name", map}}}});
  EachContainer(pod, true, [&](Json& container) {
    if (IsOn(flags, "inject-hosts-env")) {
      for (const VcTask& task : tasks) {
        for (const char* suffix : {"HOSTS", "NUM"}) {
          const std::string key = fmt::format("VC_{}_{}", UpperName(task.name), suffix);
          Append(
              container, "env",
              {{"name", key}, {"valueFrom", {{"configMapKeyRef", {{"name", map}, {"key", key}}}}}});
        }
      }
    }
    Append(container, "volumeMounts", {{"name", map}, {"mountPath", kHostsFolder}});
  });
}

void DressWithSsh(const Json& job, const Flags& flags, Json& pod) {
  constexpr std::string_view kFolder = ".ssh";
  std::string path = ValueOf(flags, "ssh-key-file-path");
  if (IsOn(flags, "no-root") && path == kRootSsh) {
    path = fmt::format("{}/{}", kHostsFolder, kFolder);
  }
  const std::string secret = SshSecretName(job);
  Json items = Json::array();
  for (const auto& [key, file] :
       std::array<std::pair<const char*, const char*>, 4>{{{"id_rsa", "id_rsa"},
                                                           {"id_rsa.pub", "id_rsa.pub"},
                                                           {"authorized_keys", "authorized_keys"},
                                                           {"config", "config"}}}) {
    items.push_back({{"key", key}, {"path", fmt::format("{}/{}", kFolder, file)}});
  }
  // Only root may keep a key that nobody else reads.
  const int mode = path == kRootSsh ? 0600 : 0644;
  Append(
      pod["spec"], "volumes",
      {{"name", secret},
       {"secret", {{"secretName", secret}, {"items", std::move(items)}, {"defaultMode", mode}}}});
  EachContainer(pod, false, [&](Json& container) {
    Append(container, "volumeMounts",
           {{"name", secret}, {"mountPath", path}, {"subPath", kFolder}});
  });
}

void DressWithPytorch(const Json& job, const std::vector<VcTask>& tasks, const VcTask& task,
                      int64_t index, const Flags& flags, Json& pod) {
  const VcTask* master = FindTask(tasks, ValueOf(flags, "master"));
  if (master == nullptr) {
    return;
  }
  const bool is_master = task.name == master->name;
  const bool is_worker = task.name == ValueOf(flags, "worker");
  int64_t world = 0;
  for (const VcTask& one : tasks) {
    const bool counts = one.name == master->name || one.name == ValueOf(flags, "worker");
    world += counts ? one.replicas : 0;
  }
  const std::string address = HostOf(job, *master, 0);
  const std::string port = ValueOf(flags, "port");
  EachContainer(pod, false, [&](Json& container) {
    OpenPort(container, "pytorchjob-port", PortOf(flags, "port"));
    AddEnv(container, "MASTER_ADDR", address);
    AddEnv(container, "MASTER_PORT", port);
    AddEnv(container, "WORLD_SIZE", std::to_string(world));
    if (is_master || is_worker) {
      AddEnv(container, "RANK", std::to_string(is_master ? 0 : index + 1));
    }
  });
  if (is_worker && IsOn(flags, "wait-master-enabled")) {
    const std::string script = fmt::format(
        "t=0; until nc -z -w 1 {0} {1}; do t=$((t+1)); if [ $t -ge {2} ]; then "
        "echo \"{0}:{1} does not answer within {2} s\" >&2; exit 1; fi; sleep 1; done",
        address, port, ValueOf(flags, "wait-master-timeout"));
    Append(pod["spec"], "initContainers",
           {{"name", "wait-for-master"},
            {"image", ValueOf(flags, "wait-master-image")},
            {"command", Json::array({"sh", "-c", script})}});
  }
}

void DressWithTensorflow(const Json& job, const std::vector<VcTask>& tasks, const VcTask& task,
                         int64_t index, const Flags& flags, Json& pod) {
  if (tasks.size() == 1 && tasks.front().replicas == 1) {
    return;  // it is alone
  }
  Json cluster = Json::object();
  std::string type = task.name;
  for (const char* role : {"ps", "worker", "chief", "evaluator"}) {
    const VcTask* one = FindTask(tasks, ValueOf(flags, role));
    if (one == nullptr) {
      continue;
    }
    if (one->name == task.name) {
      type = role;
    }
    Json hosts = Json::array();
    for (int64_t i = 0; i < one->replicas; ++i) {
      hosts.push_back(HostOf(job, *one, i) + ":" + ValueOf(flags, "port"));
    }
    if (!hosts.empty()) {
      cluster[role] = std::move(hosts);
    }
  }
  const Json config = {{"cluster", std::move(cluster)},
                       {"task", {{"type", type}, {"index", index}}}};
  EachContainer(pod, false, [&](Json& container) { AddEnv(container, "TF_CONFIG", Dump(config)); });
}

void DressWithMpi(const Json& job, const std::vector<VcTask>& tasks, const VcTask& task,
                  const Flags& flags, Json& pod) {
  const VcTask* workers = FindTask(tasks, ValueOf(flags, "worker"));
  const bool is_master = task.name == ValueOf(flags, "master");
  EachContainer(pod, true, [&](Json& container) {
    OpenPort(container, "mpijob-port", PortOf(flags, "port"));
    if (is_master && workers != nullptr) {
      AddEnv(container, "MPI_HOST", fmt::format("{}", fmt::join(HostsOfTask(job, *workers), ",")));
    }
  });
}

void DressWithRay(const Json& job, const std::vector<VcTask>& tasks, const VcTask& task,
                  const Flags& flags, Json& pod) {
  const VcTask* head = FindTask(tasks, ValueOf(flags, "head"));
  if (head == nullptr) {
    return;
  }
  EachContainer(pod, false, [&](Json& container) {
    const std::string name = Text(container, {"name"});
    std::string command;
    if (task.name == head->name && name == ValueOf(flags, "headContainer")) {
      OpenPort(container, "gcs", PortOf(flags, "port"));
      OpenPort(container, "dashboard", PortOf(flags, "dashboardPort"));
      OpenPort(container, "client-server", PortOf(flags, "clientPort"));
      command = fmt::format(
          "ray start --head --block --dashboard-host=0.0.0.0 --port={} --dashboard-port={} "
          "--ray-client-server-port={}",
          ValueOf(flags, "port"), ValueOf(flags, "dashboardPort"), ValueOf(flags, "clientPort"));
    } else if (task.name == ValueOf(flags, "worker") && name == ValueOf(flags, "workerContainer")) {
      command = fmt::format("ray start --block --address={}:{}", HostOf(job, *head, 0),
                            ValueOf(flags, "port"));
    }
    if (!command.empty()) {
      container["command"] = Json::array({"sh", "-c", command});
    }
  });
}

void DressWithHcclRank(const std::vector<VcTask>& tasks, const VcTask& task, int64_t index,
                       const Flags& flags, Json& pod) {
  constexpr std::string_view kRank = "hccl/rankIndex";
  if (!Annotation(pod, kRank).empty()) {
    return;
  }
  for (const Json& container : List(pod, {"spec", "containers"})) {
    for (const Json& env : List(container, {"env"})) {
      if (Text(env, {"name"}) == "RANK" && !Text(env, {"value"}).empty()) {
        SetAnnotation(pod, kRank, Text(env, {"value"}));
        return;
      }
    }
  }
  const VcTask* master = FindTask(tasks, ValueOf(flags, "master"));
  if (master != nullptr && task.name == master->name) {
    SetAnnotation(pod, kRank, std::to_string(index));
  } else if (task.name == ValueOf(flags, "worker")) {
    const int64_t masters = master == nullptr ? 0 : master->replicas;
    SetAnnotation(pod, kRank, std::to_string(masters + index));
  }
}

// --- objects -------------------------------------------------------------------------------------

Json Owned(const Json& job, std::string_view api_version, std::string_view kind,
           const std::string& name) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata",
           {{"name", name},
            {"namespace", Namespace(job)},
            {"ownerReferences", Json::array({ControllerRef(job)})}}}};
}

Json JobSelector(const Json& job) {
  return {{"volcano.sh/job-name", Name(job)}, {"volcano.sh/job-namespace", Namespace(job)}};
}

Json HeadlessService(const Json& job, const Flags& flags) {
  Json service = Owned(job, "v1", "Service", Name(job));
  // A Service needs a port, though nobody asks for one that has no address of its own.
  service["spec"] = {{"clusterIP", "None"},
                     {"selector", JobSelector(job)},
                     {"publishNotReadyAddresses", IsOn(flags, "publish-not-ready-addresses")},
                     {"ports", Json::array({{{"name", "placeholder-volcano"},
                                             {"port", 1},
                                             {"protocol", "TCP"},
                                             {"targetPort", 1}}})}};
  return service;
}

Json OwnPodsOnly(const Json& job) {
  Json policy = Owned(job, "networking.k8s.io/v1", "NetworkPolicy", Name(job));
  const Json own = {{"matchLabels", JobSelector(job)}};
  policy["spec"] = {{"podSelector", own},
                    {"ingress", Json::array({{{"from", Json::array({{{"podSelector", own}}})}}})},
                    {"policyTypes", Json::array({"Ingress"})}};
  return policy;
}

Json SshSecret(const Json& job, const std::vector<VcTask>& tasks, const Flags& flags,
               const SshKeys& keys) {
  const bool given = !ValueOf(flags, "ssh-private-key").empty();
  const std::string& own = given ? ValueOf(flags, "ssh-private-key") : keys.private_key;
  const std::string& open = given ? ValueOf(flags, "ssh-public-key") : keys.public_key;
  Json secret = Owned(job, "v1", "Secret", SshSecretName(job));
  secret["stringData"] = {{"id_rsa", own},
                          {"id_rsa.pub", open},
                          {"authorized_keys", open},
                          {"config", SshConfigOf(job, tasks)}};
  return secret;
}

Json HeadService(const Json& job, const Flags& flags) {
  Json service = Owned(job, "v1", "Service", Name(job) + "-head-svc");
  Json selector = JobSelector(job);
  selector["volcano.sh/task-spec"] = ValueOf(flags, "head");
  Json ports = Json::array();
  for (const auto& [name, flag] : std::array<std::pair<const char*, const char*>, 3>{
           {{"gcs", "port"}, {"dashboard", "dashboardPort"}, {"client-server", "clientPort"}}}) {
    ports.push_back(
        {{"name", name}, {"port", PortOf(flags, flag)}, {"targetPort", name}, {"protocol", "TCP"}});
  }
  service["spec"] = {{"selector", std::move(selector)}, {"ports", std::move(ports)}};
  return service;
}

}  // namespace

std::vector<std::string> PluginNames() {
  std::vector<std::string> names;
  for (const auto& [name, flags] : KnownPlugins()) {
    names.push_back(name);
  }
  return names;
}

std::string SshSecretName(const Json& job) { return Name(job) + "-ssh"; }

std::string SshConfigOf(const Json& job, const std::vector<VcTask>& tasks) {
  const Flags flags = FlagsOf(job, "ssh");
  std::string config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n";
  for (const VcTask& task : tasks) {
    for (const std::string& host : HostsOfTask(job, task)) {
      config += fmt::format("Host {}\n  HostName {}\n", host.substr(0, host.find('.')), host);
      if (ValueOf(flags, "ssh-port") != "22") {
        config += fmt::format("  Port {}\n", ValueOf(flags, "ssh-port"));
      }
    }
  }
  return config;
}

bool NeedsKeys(const Json& job) {
  return HasPlugin(job, "ssh") && ValueOf(FlagsOf(job, "ssh"), "ssh-private-key").empty();
}

std::vector<std::string> PluginsOf(const Json& job) {
  std::vector<std::string> names;
  const Json* plugins = Get(job, {"spec", "plugins"});
  if (plugins != nullptr && plugins->is_object()) {
    for (const auto& [name, words] : plugins->items()) {
      names.push_back(name);
    }
  }
  // It takes its rank from what pytorch has written.
  if (std::erase(names, "hcclrank") > 0) {
    names.emplace_back("hcclrank");
  }
  return names;
}

bool HasPlugin(const Json& job, std::string_view name) {
  return Get(job, {"spec", "plugins", name}) != nullptr;
}

std::vector<std::string> PluginProblems(const Json& job) {
  std::vector<std::string> problems;
  const std::vector<VcTask> tasks = VcTasks(job);
  for (const std::string& name : PluginsOf(job)) {
    std::string problem;
    const Flags flags = ReadFlags(job, name, problem);
    if (!problem.empty()) {
      problems.push_back(std::move(problem));
    }
    for (const char* role : {"master", "head"}) {
      const auto flag = flags.find(role);
      if (name != "hcclrank" && flag != flags.end() && FindTask(tasks, flag->second) == nullptr) {
        problems.push_back(fmt::format("plugin {}: there is no task {}", name, flag->second));
      }
    }
  }
  return problems;
}

void DressPod(const Json& job, const std::vector<VcTask>& tasks, const VcTask& task, int64_t index,
              Json& pod) {
  for (const std::string& name : PluginsOf(job)) {
    const Flags flags = FlagsOf(job, name);
    if (name == "env") {
      DressWithEnv(index, pod);
    } else if (name == "svc") {
      DressWithHosts(job, tasks, flags, pod);
    } else if (name == "ssh") {
      DressWithSsh(job, flags, pod);
    } else if (name == "pytorch") {
      DressWithPytorch(job, tasks, task, index, flags, pod);
    } else if (name == "tensorflow") {
      DressWithTensorflow(job, tasks, task, index, flags, pod);
    } else if (name == "mpi") {
      DressWithMpi(job, tasks, task, flags, pod);
    } else if (name == "ray") {
      DressWithRay(job, tasks, task, flags, pod);
    } else if (name == "hcclrank") {
      DressWithHcclRank(tasks, task, index, flags, pod);
    }
  }
}

Json HostsOf(const Json& job, const std::vector<VcTask>& tasks) {
  if (!HasPlugin(job, "svc")) {
    return nullptr;
  }
  Json data = Json::object();
  for (const VcTask& task : tasks) {
    const std::vector<std::string> hosts = HostsOfTask(job, task);
    const std::string upper = UpperName(task.name);
    data[UnderscoreName(task.name) + ".host"] = fmt::format("{}", fmt::join(hosts, "\n"));
    data[fmt::format("VC_{}_HOSTS", upper)] = fmt::format("{}", fmt::join(hosts, ","));
    data[fmt::format("VC_{}_NUM", upper)] = std::to_string(hosts.size());
  }
  Json map = Owned(job, "v1", "ConfigMap", HostsMapName(job));
  map["data"] = std::move(data);
  return map;
}

std::vector<Json> PluginObjects(const Json& job, const std::vector<VcTask>& tasks,
                                const SshKeys& keys) {
  std::vector<Json> objects;
  if (HasPlugin(job, "svc")) {
    const Flags flags = FlagsOf(job, "svc");
    objects.push_back(HostsOf(job, tasks));
    objects.push_back(HeadlessService(job, flags));
    if (!IsOn(flags, "disable-network-policy")) {
      objects.push_back(OwnPodsOnly(job));
    }
  }
  if (HasPlugin(job, "ssh")) {
    objects.push_back(SshSecret(job, tasks, FlagsOf(job, "ssh"), keys));
  }
  if (HasPlugin(job, "ray")) {
    objects.push_back(HeadService(job, FlagsOf(job, "ray")));
  }
  return objects;
}

}  // namespace hopwise::control
