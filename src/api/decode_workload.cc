// Deployment, ReplicaSet, StatefulSet, DaemonSet, batch Job and LeaderWorkerSet.
#include <array>

#include "api/decode_parts.h"

namespace hopwise::api {
namespace {

bool ReadCompletionMode(JsonValue& value, Workload& out) {
  std::string_view mode;
  if (!value.ReadString(mode)) return false;
  out.indexed = mode == "Indexed";
  return true;
}

constexpr std::array<JsonField<Workload>, 1> kOrdinals = {{
    {"start", IntoCount<&Workload::ordinal_start>},
}};
constexpr std::array<JsonField<Workload>, 4> kReplicatedSpec = {{
    {"replicas", IntoCount<&Workload::replicas>},
    {"selector", Into<&Workload::selector>},
    {"template", Into<&Workload::pod_template>},
    {"ordinals", Within<kOrdinals>},
}};
constexpr std::array<JsonField<Workload>, 2> kReplicatedRoot = {{
    {"metadata", Into<&Workload::meta>},
    {"spec", Within<kReplicatedSpec>},
}};

constexpr std::array<JsonField<Workload>, 5> kJobSpec = {{
    {"parallelism", IntoCount<&Workload::replicas>},
    {"completions", IntoCount<&Workload::completions>},
    {"completionMode", ReadCompletionMode},
    {"selector", Into<&Workload::selector>},
    {"template", Into<&Workload::pod_template>},
}};
constexpr std::array<JsonField<Workload>, 2> kJobRoot = {{
    {"metadata", Into<&Workload::meta>},
    {"spec", Within<kJobSpec>},
}};

constexpr std::array<JsonField<LeaderWorkerSet>, 1> kSubGroupPolicy = {{
    {"subGroupSize", IntoCount<&LeaderWorkerSet::sub_group_size>},
}};
constexpr std::array<JsonField<LeaderWorkerSet>, 4> kGroupTemplate = {{
    {"size", IntoCount<&LeaderWorkerSet::size>},
    {"leaderTemplate", Into<&LeaderWorkerSet::leader_template>},
    {"workerTemplate", Into<&LeaderWorkerSet::worker_template>},
    {"subGroupPolicy", Within<kSubGroupPolicy>},
}};
constexpr std::array<JsonField<LeaderWorkerSet>, 1> kNetworkConfig = {{
    {"subdomainPolicy", Into<&LeaderWorkerSet::subdomain_policy>},
}};
constexpr std::array<JsonField<LeaderWorkerSet>, 4> kSetSpec = {{
    {"replicas", IntoCount<&LeaderWorkerSet::replicas>},
    {"leaderWorkerTemplate", Within<kGroupTemplate>},
    {"networkConfig", Within<kNetworkConfig>},
    {"startupPolicy", Into<&LeaderWorkerSet::startup_policy>},
}};
constexpr std::array<JsonField<LeaderWorkerSet>, 2> kSetRoot = {{
    {"metadata", Into<&LeaderWorkerSet::meta>},
    {"spec", Within<kSetSpec>},
}};

bool DecodeReplicated(JsonObject& object, Object& out, WorkloadKind kind) {
  Workload& workload = out.emplace<Workload>();
  workload.kind = kind;
  return ReadRoot<kReplicatedRoot>(object, workload);
}

}  // namespace

bool DecodeDeployment(JsonObject& object, Object& out) {
  return DecodeReplicated(object, out, WorkloadKind::kDeployment);
}
bool DecodeReplicaSet(JsonObject& object, Object& out) {
  return DecodeReplicated(object, out, WorkloadKind::kReplicaSet);
}
bool DecodeStatefulSet(JsonObject& object, Object& out) {
  return DecodeReplicated(object, out, WorkloadKind::kStatefulSet);
}
bool DecodeDaemonSet(JsonObject& object, Object& out) {
  return DecodeReplicated(object, out, WorkloadKind::kDaemonSet);
}
bool DecodeBatchJob(JsonObject& object, Object& out) {
  Workload& workload = out.emplace<Workload>();
  workload.kind = WorkloadKind::kJob;
  workload.completions = -1;
  return ReadRoot<kJobRoot>(object, workload);
}
bool DecodeLeaderWorkerSet(JsonObject& object, Object& out) {
  return ReadRoot<kSetRoot>(object, out.emplace<LeaderWorkerSet>());
}

}  // namespace hopwise::api
