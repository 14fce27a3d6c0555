#include "cluster/pod_facts.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace hopwise::cluster {
namespace {

constexpr std::string_view kVolcanoGroup = "scheduling.k8s.io/group-name";
constexpr std::string_view kLabelGroup = "pod-group.scheduling.sigs.k8s.io/name";
constexpr std::string_view kLabelMinimum = "pod-group.scheduling.sigs.k8s.io/min-available";
constexpr std::string_view kPluginsGroup = "scheduling.x-k8s.io/pod-group";
constexpr std::string_view kTopologyMode = "volcano.sh/network-topology-mode";
constexpr std::string_view kTopologyTier = "volcano.sh/network-topology-highest-tier";
constexpr std::string_view kFabric = "hopwise.dev/fabric";
constexpr std::string_view kGroupMinimum = "scheduling.volcano.sh/group-min-member";
constexpr std::string_view kQueueName = "scheduling.volcano.sh/queue-name";
constexpr std::string_view kNodeConstraint = "alibabacloud.com/topology-aware-constraint";
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kTaskSpec = "volcano.sh/task-spec";
constexpr std::string_view kLwsName = "leaderworkerset.sigs.k8s.io/name";
constexpr std::string_view kLwsGroup = "leaderworkerset.sigs.k8s.io/group-index";
constexpr std::string_view kLwsRevision = "leaderworkerset.sigs.k8s.io/template-revision-hash";

// In the order in which they are trusted. The pods of a LeaderWorkerSet belong to StatefulSets too,
// the leaders to one and the workers to others: a leader's pod-index is the number of its group.
constexpr std::array<std::string_view, 4> kIndexKeys = {
    "volcano.sh/task-index", "leaderworkerset.sigs.k8s.io/worker-index",
    "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"};

// Nullptr for absent or empty.
const std::string* NotEmpty(const std::string* text) {
  return text != nullptr && !text->empty() ? text : nullptr;
}
const std::string* Annotation(const api::ObjectMeta& meta, std::string_view key) {
  return NotEmpty(api::Find(meta.annotations, key));
}
const std::string* Label(const api::ObjectMeta& meta, std::string_view key) {
  return NotEmpty(api::Find(meta.labels, key));
}

std::optional<int32_t> ParseCount(std::string_view text) {
  int32_t value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec != std::errc() || done.ptr != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

int32_t TrailingNumber(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  const std::string_view digits = last == std::string_view::npos ? name : name.substr(last + 1);
  return ParseCount(digits).value_or(-1);
}

std::string Malformed(std::string_view key, std::string_view value, std::string_view expected) {
  std::string text(key);
  text.append(": \"").append(value).append("\" is not ").append(expected);
  return text;
}

// The first problem stands; the pod waits for all of them to be mended anyway.
void Block(PodFacts& facts, std::string reason) {
  if (facts.blocker.empty()) facts.blocker = std::move(reason);
}

// Chooses the group; what else the pod names is only a warning.
void ReadGroup(const api::ObjectMeta& meta, PodFacts& facts) {
  const std::string* by_label = Label(meta, kLabelGroup);
  if (by_label == nullptr) by_label = Annotation(meta, kLabelGroup);
  const struct {
    GangKind kind;
    std::string_view key;
    const std::string* name;
  } candidates[] = {{GangKind::kVolcano, kVolcanoGroup, Annotation(meta, kVolcanoGroup)},
                    {GangKind::kLabels, kLabelGroup, by_label},
                    {GangKind::kSchedulerPlugins, kPluginsGroup, Label(meta, kPluginsGroup)}};
  std::string_view chosen;
  for (const auto& candidate : candidates) {
    if (candidate.name == nullptr) continue;
    if (chosen.empty()) {
      facts.kind = candidate.kind;
      facts.group = *candidate.name;
      chosen = candidate.key;
    } else {
      facts.declaration.warnings.push_back("pods name two groups: " + std::string(chosen) +
                                           " counts, " + std::string(candidate.key) +
                                           " is ignored");
    }
  }
}

// Whether the pod's PodGroup is the one that a LeaderWorkerSet's controller makes for each of its
// groups, which it names <set>-<group>-<revision> (sigs.k8s.io/lws v0.8.0, pkg/schedulerprovider).
// It has no rule then, ever: nobody but the pods can say what is wanted.
bool IsMadeByLws(const api::ObjectMeta& meta, const PodFacts& facts) {
  const std::string* set = Label(meta, kLwsName);
  const std::string* group = Label(meta, kLwsGroup);
  const std::string* revision = Label(meta, kLwsRevision);
  return set != nullptr && group != nullptr && revision != nullptr &&
         facts.group == *set + "-" + *group + "-" + *revision;
}

void ReadMinimum(const api::ObjectMeta& meta, PodFacts& facts) {
  const std::string* text = Label(meta, kLabelMinimum);
  if (text == nullptr) text = Annotation(meta, kLabelMinimum);
  if (text == nullptr) {
    facts.declaration.warnings.push_back("pods without " + std::string(kLabelMinimum) +
                                         ": 1 counts as their minimum");
  } else if (const std::optional<int32_t> minimum = ParseCount(*text)) {
    facts.declaration.min_member = *minimum;
  } else {
    Block(facts, Malformed(kLabelMinimum, *text, "a number of pods"));
  }
}

void ReadTopology(const api::ObjectMeta& meta, PodFacts& facts) {
  const std::string* mode = Annotation(meta, kTopologyMode);
  const std::string* tier = Annotation(meta, kTopologyTier);
  TopologyRule& rule = facts.declaration.rule;
  if (const std::string* fabric = Annotation(meta, kFabric)) rule.fabric = *fabric;
  if (mode == nullptr && tier == nullptr) return;
  const bool soft = mode != nullptr && *mode == "soft";
  rule.mode = soft ? TopologyRule::Mode::kSoft : TopologyRule::Mode::kHard;
  if (mode != nullptr && !soft && *mode != "hard") {
    facts.declaration.warnings.push_back(Malformed(kTopologyMode, *mode, "hard or soft") +
                                         "; hard counts");
  }
  if (tier == nullptr) return;
  rule.highest_tier = ParseCount(*tier);
  if (!rule.highest_tier) Block(facts, Malformed(kTopologyTier, *tier, "a tier number"));
}

void ReadConstraint(const api::ObjectMeta& meta, PodFacts& facts) {
  const std::string* text = api::Find(meta.annotations, kNodeConstraint);
  if (text == nullptr) return;
  Result<NodeConstraint> constraint = ParseNodeConstraint(*text);
  if (!constraint) {
    Block(facts, "annotation " + std::string(kNodeConstraint) + ": " + constraint.error().message);
    return;
  }
  facts.declaration.nodes = std::move(constraint->rule);
  facts.extra = std::move(constraint->selectors);
  for (std::string& warning : constraint->warnings) {
    facts.declaration.warnings.push_back(std::move(warning));
  }
}

// The PodGroup controller makes a group of such a pod and names it there; until then the pod waits.
std::string WaitsFor(const api::ObjectMeta& meta) {
  for (const std::string_view key : {kTopologyMode, kTopologyTier, kGroupMinimum}) {
    if (Annotation(meta, key) != nullptr) return std::string(key);
  }
  return "";
}

}  // namespace

PodFacts ReadPodFacts(const api::Pod& pod) {
  PodFacts facts;
  if (!pod.unevaluated.empty()) {
    facts.blocker =
        "uses " + pod.unevaluated.front().field + ", which this version does not evaluate yet";
  }
  ReadGroup(pod.meta, facts);
  if (facts.kind == GangKind::kLabels) ReadMinimum(pod.meta, facts);
  if (facts.kind != GangKind::kVolcano || IsMadeByLws(pod.meta, facts)) {
    ReadTopology(pod.meta, facts);
  }
  if (facts.kind == GangKind::kLone) facts.declaration.waits_for = WaitsFor(pod.meta);
  ReadConstraint(pod.meta, facts);
  if (const std::string* queue = Annotation(pod.meta, kQueueName)) {
    facts.declaration.queue = *queue;
  }
  return facts;
}

bool SaysNotPreemptable(const api::ObjectMeta& meta) {
  const std::string* said = Annotation(meta, kPreemptable);
  said = said == nullptr ? Label(meta, kPreemptable) : said;
  return said != nullptr && *said == "false";
}

bool MayBeEvicted(const api::Pod& pod) {
  const api::OwnerReference* owner = api::ControllerOf(pod.meta);
  const bool daemon = owner != nullptr && owner->kind == "DaemonSet";
  const bool mirror = api::Find(pod.meta.annotations, kMirror) != nullptr;
  const bool critical = pod.priority_class == "system-cluster-critical" ||
                        pod.priority_class == "system-node-critical" ||
                        pod.meta.ns == "kube-system";
  return !daemon && !mirror && !critical && !SaysNotPreemptable(pod.meta);
}

int32_t ReadIndex(const api::ObjectMeta& meta) {
  for (const std::string_view key : kIndexKeys) {
    const std::string* text = Annotation(meta, key);
    if (text == nullptr) text = Label(meta, key);
    if (text == nullptr) continue;
    if (const std::optional<int32_t> index = ParseCount(*text)) return *index;
  }
  // The end of a generated name is random and may happen to be digits.
  return meta.generate_name.empty() ? TrailingNumber(meta.name) : -1;
}

const std::string* ReadRole(const api::ObjectMeta& meta) {
  const std::string* role = Annotation(meta, kTaskSpec);
  return role != nullptr ? role : Label(meta, kTaskSpec);
}

}  // namespace hopwise::cluster
