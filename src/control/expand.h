// What the expansions of all workloads share: keys, owners, pods made from a template.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/resources.h"
#include "control/json.h"

namespace hopwise::control {

inline constexpr std::string_view kGroupNameKey = "scheduling.k8s.io/group-name";
inline constexpr std::string_view kRunTimeKey = "hopwise.dev/run-time";
inline constexpr std::string_view kSimulateKey = "hopwise.dev/simulate";
inline constexpr std::string_view kTopologyModeKey = "volcano.sh/network-topology-mode";
inline constexpr std::string_view kTopologyTierKey = "volcano.sh/network-topology-highest-tier";
// The queue above all others.
inline constexpr std::string_view kRootQueue = "root";
inline constexpr std::string_view kQueueNameKey = "scheduling.volcano.sh/queue-name";
// Digits only, and few enough for an int.
bool IsCount(std::string_view text);
// The number where it is one, else the fallback.
int64_t CountIn(const std::string& text, int64_t fallback);
// Whether the tier annotation is a number, or absent.
bool HasReadableTier(const Json& pod);

inline constexpr std::string_view kMinMemberKey = "scheduling.volcano.sh/group-min-member";

// Pods that one workload may ask for; more is refused as unusable input instead of filling the
// memory.
inline constexpr int64_t kMaxPodsPerWorkload = 100'000;

// An ownerReference with controller: true.
Json ControllerRef(const Json& owner);
// The owner with controller: true, or nullptr.
const Json* ControllerOf(const Json& object);
// Whether `object` is controlled by `owner`: the same uid, or the same kind and name with no uid
// given.
bool IsControlledBy(const Json& object, const Json& owner);

// A replica count: absent is the fallback, negative is none.
int64_t Replicas(const Json& object, Path path, int64_t fallback);

// The pod that `owner` makes of a template ({"metadata":…,"spec":…}; may be null).
Json MakePod(const Json* pod_template, std::string_view ns, std::string_view name,
             const Json& owner);
// The member, made an array first where it is none.
Json& ListIn(Json& object, std::string_view key);
// At the end of that array.
void Append(Json& object, std::string_view key, Json value);
void SetLabel(Json& object, std::string_view key, std::string_view value);
void SetAnnotation(Json& object, std::string_view key, std::string_view value);

// Writes into a pod that exists what its expansion says and it lacks: owner, labels, annotations.
// Whether anything changed.
bool Complete(Json& pod, const Json& expansion);

// Whether the pod or template names its gang: by PodGroup annotation or by label.
bool NamesItsGroup(const Json& pod);

// networkTopology from the pod annotations, null when there are none. A bad mode counts as hard, a
// tier that is no number is left out.
Json TopologyOfAnnotations(const Json& pod);

// Effective request of a pod, empty when it cannot be decoded.
api::ResourceList RequestOf(const Json& pod);
// A PodGroup's minResources for pods that ask for `sum` in all.
Json MinResources(const api::ResourceList& sum, int64_t pods);

// A v1beta1 PodGroup in phase Pending.
Json MakePodGroup(std::string_view ns, std::string_view name, int64_t min_member);

// Annotations and labels a controller copies from one object to another; kubectl's and our own are
// not copied.
void CopyMeta(const Json& from, std::string_view field, Json& to);
// Of an owner's annotations those a PodGroup gets: all of volcano.sh/.
void InheritVolcanoAnnotations(const Json& owner, Json& pod_group);

// A workload's pod templates, each with its path ("spec.tasks[0].template"), for checking them.
struct TemplateAt {
  std::string path;
  const Json* pod_template = nullptr;
};
std::vector<TemplateAt> TemplatesOf(const Json& workload);

}  // namespace hopwise::control
