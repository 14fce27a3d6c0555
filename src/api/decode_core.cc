// Node, Namespace, PriorityClass, ResourceQuota, PodDisruptionBudget, PV and PVC.
#include <array>

#include "api/decode_parts.h"

namespace hopwise::api {

bool Decode(JsonValue& value, Taint& out) {
  return value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "key") return Decode(field, out.key);
    if (key == "value") return Decode(field, out.value);
    if (key == "effect") return Decode(field, out.effect);
    return true;
  });
}

namespace {

constexpr std::array<JsonField<Node>, 2> kNodeSpec = {{
    {"unschedulable", Into<&Node::unschedulable>},
    {"taints", Into<&Node::taints>},
}};
constexpr std::array<JsonField<Node>, 3> kNodeStatus = {{
    {"allocatable", Into<&Node::allocatable>},
    {"capacity", Into<&Node::capacity>},
    {"conditions", Into<&Node::conditions>},
}};
constexpr std::array<JsonField<Node>, 3> kNodeRoot = {{
    {"metadata", Into<&Node::meta>},
    {"spec", Within<kNodeSpec>},
    {"status", Within<kNodeStatus>},
}};

constexpr std::array<JsonField<Namespace>, 1> kNamespaceRoot = {{
    {"metadata", Into<&Namespace::meta>},
}};

constexpr std::array<JsonField<PriorityClass>, 4> kPriorityClassRoot = {{
    {"metadata", Into<&PriorityClass::meta>},
    {"value", Into<&PriorityClass::value>},
    {"globalDefault", Into<&PriorityClass::global_default>},
    {"preemptionPolicy", Into<&PriorityClass::preemption_policy>},
}};

constexpr std::array<JsonField<ResourceQuota>, 1> kQuotaSpec = {{
    {"hard", Into<&ResourceQuota::hard>},
}};
constexpr std::array<JsonField<ResourceQuota>, 1> kQuotaStatus = {{
    {"used", Into<&ResourceQuota::used>},
}};
constexpr std::array<JsonField<ResourceQuota>, 3> kQuotaRoot = {{
    {"metadata", Into<&ResourceQuota::meta>},
    {"spec", Within<kQuotaSpec>},
    {"status", Within<kQuotaStatus>},
}};

// An IntOrString: 2 and "2" mean the same to us, "50%" stays as it is.
template <auto Member>
bool IntOrText(JsonValue& value, PodDisruptionBudget& out) {
  std::string_view text;
  if (!value.ReadScalarText(text)) return false;
  out.*Member = text;
  return true;
}
constexpr std::array<JsonField<PodDisruptionBudget>, 3> kBudgetSpec = {{
    {"selector", Into<&PodDisruptionBudget::selector>},
    {"minAvailable", IntOrText<&PodDisruptionBudget::min_available>},
    {"maxUnavailable", IntOrText<&PodDisruptionBudget::max_unavailable>},
}};
constexpr std::array<JsonField<PodDisruptionBudget>, 1> kBudgetStatus = {{
    {"disruptionsAllowed", Into<&PodDisruptionBudget::disruptions_allowed>},
}};
constexpr std::array<JsonField<PodDisruptionBudget>, 3> kBudgetRoot = {{
    {"metadata", Into<&PodDisruptionBudget::meta>},
    {"spec", Within<kBudgetSpec>},
    {"status", Within<kBudgetStatus>},
}};

constexpr std::array<JsonField<PersistentVolume>, 2> kClaimRef = {{
    {"namespace", Into<&PersistentVolume::claim_namespace>},
    {"name", Into<&PersistentVolume::claim_name>},
}};
constexpr std::array<JsonField<PersistentVolume>, 3> kVolumeSpec = {{
    {"capacity", Into<&PersistentVolume::capacity>},
    {"storageClassName", Into<&PersistentVolume::storage_class>},
    {"claimRef", Within<kClaimRef>},
}};
constexpr std::array<JsonField<PersistentVolume>, 1> kVolumeStatus = {{
    {"phase", Into<&PersistentVolume::phase>},
}};
constexpr std::array<JsonField<PersistentVolume>, 3> kVolumeRoot = {{
    {"metadata", Into<&PersistentVolume::meta>},
    {"spec", Within<kVolumeSpec>},
    {"status", Within<kVolumeStatus>},
}};

constexpr std::array<JsonField<PersistentVolumeClaim>, 1> kClaimResources = {{
    {"requests", Into<&PersistentVolumeClaim::requests>},
}};
constexpr std::array<JsonField<PersistentVolumeClaim>, 3> kClaimSpec = {{
    {"resources", Within<kClaimResources>},
    {"storageClassName", Into<&PersistentVolumeClaim::storage_class>},
    {"volumeName", Into<&PersistentVolumeClaim::volume_name>},
}};
constexpr std::array<JsonField<PersistentVolumeClaim>, 1> kClaimStatus = {{
    {"phase", Into<&PersistentVolumeClaim::phase>},
}};
constexpr std::array<JsonField<PersistentVolumeClaim>, 3> kClaimRoot = {{
    {"metadata", Into<&PersistentVolumeClaim::meta>},
    {"spec", Within<kClaimSpec>},
    {"status", Within<kClaimStatus>},
}};

constexpr std::array<JsonField<Unknown>, 1> kUnknownRoot = {{
    {"metadata", Into<&Unknown::meta>},
}};

}  // namespace

bool DecodeNode(JsonObject& object, Object& out) {
  Node& node = out.emplace<Node>();
  if (!ReadRoot<kNodeRoot>(object, node)) return false;
  // As the API documents it: allocatable defaults to capacity.
  if (node.allocatable.empty()) node.allocatable = node.capacity;
  return true;
}
bool DecodeNamespace(JsonObject& object, Object& out) {
  return ReadRoot<kNamespaceRoot>(object, out.emplace<Namespace>());
}
bool DecodePriorityClass(JsonObject& object, Object& out) {
  return ReadRoot<kPriorityClassRoot>(object, out.emplace<PriorityClass>());
}
bool DecodeResourceQuota(JsonObject& object, Object& out) {
  return ReadRoot<kQuotaRoot>(object, out.emplace<ResourceQuota>());
}
bool DecodePodDisruptionBudget(JsonObject& object, Object& out) {
  return ReadRoot<kBudgetRoot>(object, out.emplace<PodDisruptionBudget>());
}
bool DecodePersistentVolume(JsonObject& object, Object& out) {
  return ReadRoot<kVolumeRoot>(object, out.emplace<PersistentVolume>());
}
bool DecodePersistentVolumeClaim(JsonObject& object, Object& out) {
  return ReadRoot<kClaimRoot>(object, out.emplace<PersistentVolumeClaim>());
}
bool DecodeUnknown(JsonObject& object, Object& out) {
  return ReadRoot<kUnknownRoot>(object, out.emplace<Unknown>());
}

}  // namespace hopwise::api
