// Volcano's PodGroup, Queue, HyperNode and Job, and the scheduler-plugins PodGroup.
#include <algorithm>
#include <array>

#include "api/decode_parts.h"

namespace hopwise::api {

namespace {

bool ReadTaskMinima(JsonValue& value, PodGroup& out) {
  out.min_task_member.clear();
  const bool ok = value.ForEachField([&](std::string_view task, JsonValue& count) {
    return DecodeCount(count, out.min_task_member.emplace_back(task, 0).second);
  });
  if (ok) std::ranges::sort(out.min_task_member);
  return ok;
}

// An empty name means the default, as an absent one does.
template <auto Member, class T>
bool QueueName(JsonValue& value, T& out) {
  std::string_view name;
  if (!value.ReadString(name)) return false;
  if (!name.empty()) out.*Member = name;
  return true;
}

constexpr std::array<JsonField<SubGroupPolicy>, 6> kSubGroup = {{
    {"name", Into<&SubGroupPolicy::name>},
    {"networkTopology", Into<&SubGroupPolicy::topology>},
    {"subGroupSize", IntoCount<&SubGroupPolicy::sub_group_size>},
    {"minSubGroups", IntoCount<&SubGroupPolicy::min_sub_groups>},
    {"labelSelector", Into<&SubGroupPolicy::selector>},
    {"matchLabelKeys", Into<&SubGroupPolicy::match_label_keys>},
}};
}  // namespace

bool Decode(JsonValue& value, SubGroupPolicy& out) {
  return Only<kSubGroup, kNoOthers>(value, out);
}

namespace {

constexpr std::array<JsonField<PodGroup>, 7> kPodGroupSpec = {{
    {"minMember", IntoCount<&PodGroup::min_member>},
    {"minTaskMember", ReadTaskMinima},
    {"queue", QueueName<&PodGroup::queue>},
    {"priorityClassName", Into<&PodGroup::priority_class>},
    {"minResources", Into<&PodGroup::min_resources>},
    {"networkTopology", Into<&PodGroup::topology>},
    {"subGroupPolicy", Into<&PodGroup::sub_groups>},
}};
constexpr std::array<JsonField<PodGroup>, 5> kPodGroupStatus = {{
    {"phase", Into<&PodGroup::phase>},
    {"conditions", Into<&PodGroup::conditions>},
    {"running", Into<&PodGroup::running>},
    {"succeeded", Into<&PodGroup::succeeded>},
    {"failed", Into<&PodGroup::failed>},
}};
constexpr std::array<JsonField<PodGroup>, 3> kPodGroupRoot = {{
    {"metadata", Into<&PodGroup::meta>},
    {"spec", Only<kPodGroupSpec, kNoOthers>},
    {"status", Within<kPodGroupStatus>},
}};

// What scheduler-plugins' PodGroup has of it; a queue there would be an unknown field.
constexpr std::array<JsonField<PodGroup>, 2> kPluginsSpec = {{
    {"minMember", IntoCount<&PodGroup::min_member>},
    {"minResources", Into<&PodGroup::min_resources>},
}};
constexpr std::array<JsonField<PodGroup>, 4> kPluginsStatus = {{
    {"phase", Into<&PodGroup::phase>},
    {"running", Into<&PodGroup::running>},
    {"succeeded", Into<&PodGroup::succeeded>},
    {"failed", Into<&PodGroup::failed>},
}};
constexpr std::array<JsonField<PodGroup>, 3> kPluginsRoot = {{
    {"metadata", Into<&PodGroup::meta>},
    {"spec", Within<kPluginsSpec>},
    {"status", Within<kPluginsStatus>},
}};

constexpr std::array<JsonField<Queue>, 1> kGuarantee = {{
    {"resource", Into<&Queue::guarantee>},
}};
constexpr std::array<JsonField<Queue>, 7> kQueueSpec = {{
    {"weight", IntoCount<&Queue::weight>},
    {"priority", Into<&Queue::priority>},
    {"reclaimable", Into<&Queue::reclaimable>},
    {"capability", Into<&Queue::capability>},
    {"guarantee", Within<kGuarantee>},
    {"deserved", Into<&Queue::deserved>},
    {"parent", Into<&Queue::parent>},
}};
constexpr std::array<std::string_view, 4> kOtherQueueSpec = {"type", "extendClusters", "affinity",
                                                             "dequeueStrategy"};
constexpr std::array<JsonField<Queue>, 7> kQueueStatus = {{
    {"state", Into<&Queue::state>},
    {"pending", Into<&Queue::pending>},
    {"running", Into<&Queue::running>},
    {"inqueue", Into<&Queue::inqueue>},
    {"unknown", Into<&Queue::unknown>},
    {"completed", Into<&Queue::completed>},
    {"allocated", Into<&Queue::allocated>},
}};
constexpr std::array<JsonField<Queue>, 3> kQueueRoot = {{
    {"metadata", Into<&Queue::meta>},
    {"spec", Only<kQueueSpec, kOtherQueueSpec>},
    {"status", Within<kQueueStatus>},
}};

// The one text field `name` of {"name": …}; "" when it is left out.
bool DecodeOnly(JsonValue& value, std::string_view name, std::optional<std::string>& out) {
  std::string& text = out.emplace();
  return value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == name) return Decode(field, text);
    field.Warn("unknown field, ignored");
    return true;
  });
}

bool ReadMemberSelector(JsonValue& value, HyperNodeMember& out) {
  const bool ok = value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "exactMatch") return DecodeOnly(field, "name", out.exact);
    if (key == "regexMatch") return DecodeOnly(field, "pattern", out.pattern);
    if (key == "labelMatch") return Decode(field, out.labels);
    field.Warn(key == "matchLabels" || key == "matchExpressions"
                   ? "unknown field, ignored; a label selector stands under labelMatch"
                   : "unknown field, ignored");
    return true;
  });
  if (!ok) return false;
  const int set = (out.exact ? 1 : 0) + (out.pattern ? 1 : 0) + (out.labels ? 1 : 0);
  if (set > 1) value.Warn("more than one of exactMatch, regexMatch and labelMatch");
  return true;
}

bool ReadMemberType(JsonValue& value, HyperNodeMember& out) {
  std::string_view type;
  if (!value.ReadString(type)) return false;
  out.type = type == "HyperNode" ? MemberType::kHyperNode : MemberType::kNode;
  if (type == "HyperNode" || type == "Node") return true;
  return value.Fail("expected Node or HyperNode, found \"" + std::string(type) + "\"");
}

constexpr std::array<JsonField<HyperNodeMember>, 2> kMember = {{
    {"type", ReadMemberType},
    {"selector", ReadMemberSelector},
}};
}  // namespace

bool Decode(JsonValue& value, HyperNodeMember& out) {
  if (!Only<kMember, kNoOthers>(value, out)) return false;
  if (!out.exact && !out.pattern && !out.labels) {
    value.Warn("none of exactMatch, regexMatch and labelMatch; the member selects nothing");
  }
  return true;
}

namespace {

constexpr std::array<JsonField<HyperNode>, 3> kHyperNodeSpec = {{
    {"tier", Into<&HyperNode::tier>},
    {"tierName", Into<&HyperNode::tier_name>},
    {"members", Into<&HyperNode::members>},
}};
constexpr std::array<JsonField<HyperNode>, 2> kHyperNodeStatus = {{
    {"nodeCount", Into<&HyperNode::node_count>},
    {"conditions", Into<&HyperNode::conditions>},
}};
constexpr std::array<JsonField<HyperNode>, 3> kHyperNodeRoot = {{
    {"metadata", Into<&HyperNode::meta>},
    {"spec", Only<kHyperNodeSpec, kNoOthers>},
    {"status", Within<kHyperNodeStatus>},
}};

constexpr std::array<JsonField<PartitionPolicy>, 4> kPartition = {{
    {"totalPartitions", IntoCount<&PartitionPolicy::total_partitions>},
    {"partitionSize", IntoCount<&PartitionPolicy::partition_size>},
    {"minPartitions", IntoCount<&PartitionPolicy::min_partitions>},
    {"networkTopology", Into<&PartitionPolicy::topology>},
}};
}  // namespace

bool Decode(JsonValue& value, PartitionPolicy& out) {
  return Only<kPartition, kNoOthers>(value, out);
}

namespace {

bool ReadTaskTemplate(JsonValue& value, VcTask& out) {
  return DecodeTemplate(value, out.pod_template, out.priority_class);
}

bool ReadIteration(JsonValue& value, VcTask& out) {
  std::string_view iteration;
  if (!value.ReadString(iteration)) return false;
  out.depends_on_any = iteration == "any";
  if (iteration != "any" && iteration != "all" && !iteration.empty()) {
    value.Warn("\"" + std::string(iteration) + "\" is neither any nor all; taken as all");
  }
  return true;
}

constexpr std::array<JsonField<VcTask>, 2> kDependsOn = {{
    {"name", Into<&VcTask::depends_on>},
    {"iteration", ReadIteration},
}};
constexpr std::array<JsonField<VcTask>, 6> kTask = {{
    {"name", Into<&VcTask::name>},
    {"replicas", IntoCount<&VcTask::replicas>},
    {"minAvailable", IntoCount<&VcTask::min_available>},
    {"template", ReadTaskTemplate},
    {"partitionPolicy", Into<&VcTask::partition>},
    {"dependsOn", Only<kDependsOn, kNoOthers>},
}};
constexpr std::array<std::string_view, 3> kOtherTask = {"policies", "topologyPolicy", "maxRetry"};
}  // namespace

bool Decode(JsonValue& value, VcTask& out) { return Only<kTask, kOtherTask>(value, out); }

namespace {

// The arguments of a plug-in may be left out: `svc:` alone switches it on.
bool ReadPlugins(JsonValue& value, VcJob& out) {
  out.plugins.clear();
  const bool ok = value.ForEachFieldOrNull([&](std::string_view name, JsonValue* arguments) {
    std::vector<std::string>& list =
        out.plugins.emplace_back(name, std::vector<std::string>()).second;
    return arguments == nullptr || Decode(*arguments, list);
  });
  if (ok) std::ranges::sort(out.plugins);
  return ok;
}

constexpr std::array<JsonField<VcJob>, 7> kJobSpec = {{
    {"schedulerName", Into<&VcJob::scheduler_name>},
    {"queue", QueueName<&VcJob::queue>},
    {"priorityClassName", Into<&VcJob::priority_class>},
    {"minAvailable", IntoCount<&VcJob::min_available>},
    {"networkTopology", Into<&VcJob::topology>},
    {"tasks", Into<&VcJob::tasks>},
    {"plugins", ReadPlugins},
}};
constexpr std::array<std::string_view, 6> kOtherJobSpec = {
    "volumes", "policies", "runningEstimate", "maxRetry", "ttlSecondsAfterFinished", "minSuccess"};
constexpr std::array<JsonField<VcJob>, 1> kJobState = {{
    {"phase", Into<&VcJob::phase>},
}};
constexpr std::array<JsonField<VcJob>, 2> kJobStatus = {{
    {"state", Within<kJobState>},
    {"version", Into<&VcJob::version>},
}};
constexpr std::array<JsonField<VcJob>, 3> kJobRoot = {{
    {"metadata", Into<&VcJob::meta>},
    {"spec", Only<kJobSpec, kOtherJobSpec>},
    {"status", Within<kJobStatus>},
}};

}  // namespace

bool DecodePodGroup(JsonObject& object, Object& out) {
  return ReadRoot<kPodGroupRoot>(object, out.emplace<PodGroup>());
}
bool DecodeSchedulerPluginsPodGroup(JsonObject& object, Object& out) {
  PodGroup& group = out.emplace<PodGroup>();
  group.scheduler_plugins = true;
  return ReadRoot<kPluginsRoot>(object, group);
}
bool DecodeQueue(JsonObject& object, Object& out) {
  return ReadRoot<kQueueRoot>(object, out.emplace<Queue>());
}
bool DecodeHyperNode(JsonObject& object, Object& out) {
  return ReadRoot<kHyperNodeRoot>(object, out.emplace<HyperNode>());
}
bool DecodeVcJob(JsonObject& object, Object& out) {
  return ReadRoot<kJobRoot>(object, out.emplace<VcJob>());
}

}  // namespace hopwise::api
