#include "sim/apps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/objects.h"

namespace hopwise::sim {
namespace {

constexpr std::string_view kTemplateHash = "pod-template-hash";
// What is left of a generated name's 63 bytes before its five random ones.
constexpr size_t kGeneratedBase = 58;

Json GeneratedPod(const Json* pod_template, const Json& owner, const std::string& base,
                  uint64_t salt) {
  const std::string prefix = base.substr(0, kGeneratedBase - 1) + "-";
  const std::string suffix = MakeSuffix(HashOf({Uid(owner), prefix}, salt));
  Json pod = MakePod(pod_template, Namespace(owner), prefix + suffix, owner);
  Set(pod, {"metadata", "generateName"}, prefix);
  return pod;
}

Json TemplateWithoutHash(const Json& from) {
  const Json* pod_template = Get(from, {"spec", "template"});
  Json copy = pod_template == nullptr ? Json::object() : *pod_template;
  Unset(copy, {"metadata", "labels", kTemplateHash});
  Unset(copy, {"metadata", "creationTimestamp"});
  return copy;
}

const Json* LwsTemplate(const Json& lws, int64_t index) {
  const Json* leader = Get(lws, {"spec", "leaderWorkerTemplate", "leaderTemplate"});
  const Json* worker = Get(lws, {"spec", "leaderWorkerTemplate", "workerTemplate"});
  return index == 0 && leader != nullptr ? leader : worker;
}

std::string LwsRevision(const Json& lws) {
  const Json* pods = Get(lws, {"spec", "leaderWorkerTemplate"});
  return TemplateHash(pods == nullptr ? Json::object() : *pods);
}

// Which sub-group a member belongs to. With a leader beyond full groups, the leader shares the
// first one.
int64_t LwsSubGroup(int64_t size, int64_t sub_group_size, int64_t index) {
  if ((size - 1) % sub_group_size == 0 && sub_group_size > 1) {
    return index == 0 ? 0 : (index - 1) / sub_group_size;
  }
  return index / sub_group_size;
}

}  // namespace

Json DeploymentReplicaSet(const Json& deployment) {
  Json pod_template = TemplateWithoutHash(deployment);
  const std::string hash = TemplateHash(pod_template);
  Set(pod_template, {"metadata", "labels", kTemplateHash}, hash);
  Json rs = {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"metadata", Json::object()}};
  const Json* labels = Get(pod_template, {"metadata", "labels"});
  rs["metadata"] = {{"name", Joined(Name(deployment), "-" + hash)},
                    {"namespace", Namespace(deployment)},
                    {"labels", *labels},
                    {"ownerReferences", Json::array({ControllerRef(deployment)})}};
  CopyMeta(deployment, "annotations", rs);
  const int64_t replicas = Replicas(deployment, {"spec", "replicas"}, 1);
  SetAnnotation(rs, "deployment.kubernetes.io/desired-replicas", std::to_string(replicas));
  if (const Json* selector = Get(deployment, {"spec", "selector"}); selector != nullptr) {
    Set(rs, {"spec", "selector"}, *selector);
  }
  Set(rs, {"spec", "selector", "matchLabels", kTemplateHash}, hash);
  Set(rs, {"spec", "replicas"}, replicas);
  Set(rs, {"spec", "template"}, std::move(pod_template));
  return rs;
}

bool HasTemplateOf(const Json& replica_set, const Json& deployment) {
  return TemplateWithoutHash(replica_set) == TemplateWithoutHash(deployment);
}

Json ReplicaSetPod(const Json& replica_set, uint64_t salt) {
  return GeneratedPod(Get(replica_set, {"spec", "template"}), replica_set, Name(replica_set), salt);
}

std::string StatefulSetRevision(const Json& stateful_set) {
  return Joined(Name(stateful_set), "-" + TemplateHash(TemplateWithoutHash(stateful_set)), 63);
}

Json StatefulSetPod(const Json& stateful_set, int64_t ordinal) {
  const std::string name = fmt::format("{}-{}", Name(stateful_set), ordinal);
  Json pod =
      MakePod(Get(stateful_set, {"spec", "template"}), Namespace(stateful_set), name, stateful_set);
  SetLabel(pod, "statefulset.kubernetes.io/pod-name", name);
  SetLabel(pod, "apps.kubernetes.io/pod-index", std::to_string(ordinal));
  SetLabel(pod, "controller-revision-hash", StatefulSetRevision(stateful_set));
  Set(pod, {"spec", "hostname"}, name);
  if (const std::string service = Text(stateful_set, {"spec", "serviceName"}); !service.empty()) {
    Set(pod, {"spec", "subdomain"}, service);
  }
  return pod;
}

bool IsIndexed(const Json& job) { return Text(job, {"spec", "completionMode"}) == "Indexed"; }

Json BatchJobPod(const Json& job, int64_t index, uint64_t salt) {
  const std::string base = index < 0 ? Name(job) : fmt::format("{}-{}", Name(job), index);
  Json pod = GeneratedPod(Get(job, {"spec", "template"}), job, base, salt);
  for (const char* key : {"batch.kubernetes.io/job-name", "job-name"}) {
    SetLabel(pod, key, Name(job));
  }
  for (const char* key : {"batch.kubernetes.io/controller-uid", "controller-uid"}) {
    SetLabel(pod, key, Uid(job));
  }
  if (index >= 0) {
    SetLabel(pod, kCompletionIndexKey, std::to_string(index));
    SetAnnotation(pod, kCompletionIndexKey, std::to_string(index));
    Set(pod, {"spec", "hostname"}, base);
  }
  return pod;
}

int64_t LwsSize(const Json& lws) {
  return std::max<int64_t>(1, Number(lws, {"spec", "leaderWorkerTemplate", "size"}, 1));
}

bool LwsWantsPodGroups(const Json& lws) {
  const Json* worker = LwsTemplate(lws, 1);
  const Json* leader = LwsTemplate(lws, 0);
  return (worker == nullptr || !NamesItsGroup(*worker)) &&
         (leader == nullptr || !NamesItsGroup(*leader));
}

Json LwsPod(const Json& lws, int64_t group, int64_t index, std::string_view pod_group) {
  constexpr std::string_view kPrefix = "leaderworkerset.sigs.k8s.io/";
  const auto key = [&](std::string_view word) { return std::string(kPrefix) + std::string(word); };
  const std::string leader = fmt::format("{}-{}", Name(lws), group);
  const std::string name = index == 0 ? leader : fmt::format("{}-{}", leader, index);
  Json pod = MakePod(LwsTemplate(lws, index), Namespace(lws), name, lws);
  SetLabel(pod, key("name"), Name(lws));
  SetLabel(pod, key("group-index"), std::to_string(group));
  SetLabel(pod, key("worker-index"), std::to_string(index));
  const uint64_t hash = HashOf({"group-key", Namespace(lws), leader});
  SetLabel(pod, key("group-key"), Hex(hash) + Hex(HashOf({"low"}, hash)));
  SetLabel(pod, key("template-revision-hash"), LwsRevision(lws));
  SetLabel(pod, "apps.kubernetes.io/pod-index", std::to_string(index == 0 ? group : index));
  SetLabel(pod, "statefulset.kubernetes.io/pod-name", name);
  SetAnnotation(pod, key("size"), std::to_string(LwsSize(lws)));
  if (index > 0) {
    SetAnnotation(pod, key("leader-name"), leader);
  }
  const int64_t sub_size =
      Number(lws, {"spec", "leaderWorkerTemplate", "subGroupPolicy", "subGroupSize"}, 0);
  if (sub_size > 0) {
    const int64_t sub_group = LwsSubGroup(LwsSize(lws), sub_size, index);
    SetLabel(pod, key("subgroup-index"), std::to_string(sub_group));
    SetLabel(pod, key("subgroup-key"),
             Hex(HashOf({"sub", leader}, static_cast<uint64_t>(sub_group))));
    SetAnnotation(pod, key("subgroup-size"), std::to_string(sub_size));
  }
  if (!pod_group.empty()) {
    SetAnnotation(pod, kGroupNameKey, pod_group);
  }
  return pod;
}

Json LwsPodGroup(const Json& lws, int64_t group) {
  const int64_t size = LwsSize(lws);
  // A leader that must be ready first could never start if the gang waited for its workers.
  const bool leader_first = Text(lws, {"spec", "startupPolicy"}) == "LeaderReady";
  Json pod_group =
      MakePodGroup(Namespace(lws), fmt::format("{}-{}-{}", Name(lws), group, LwsRevision(lws)),
                   leader_first ? 1 : size);
  pod_group["metadata"]["ownerReferences"] = Json::array({ControllerRef(lws)});
  const std::string queue = Annotation(lws, kQueueNameKey);
  pod_group["spec"]["queue"] = queue.empty() ? "default" : queue;
  InheritVolcanoAnnotations(lws, pod_group);
  return pod_group;
}

}  // namespace hopwise::sim
