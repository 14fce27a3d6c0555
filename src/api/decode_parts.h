// Decoders of what several kinds share. Private to src/api.
//
// Decode(value, out) reads a value into out, for each type that can stand in a field; Into<&T::m>
// makes a field's reader of it. A list replaces what out held; what the text leaves out keeps its
// default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/batch.h"
#include "api/core.h"
#include "api/decode.h"
#include "api/json_reader.h"
#include "api/meta.h"
#include "api/pod_request.h"
#include "api/resources.h"

namespace hopwise::api {

bool Decode(JsonValue& value, std::string& out);
bool Decode(JsonValue& value, bool& out);
bool Decode(JsonValue& value, int32_t& out);
bool Decode(JsonValue& value, int64_t& out);
bool Decode(JsonValue& value, Time& out);
bool Decode(JsonValue& value, StringMap& out);
bool Decode(JsonValue& value, ResourceList& out);
bool Decode(JsonValue& value, OwnerReference& out);
bool Decode(JsonValue& value, ObjectMeta& out);
bool Decode(JsonValue& value, Condition& out);
bool Decode(JsonValue& value, LabelSelector& out);
bool Decode(JsonValue& value, NetworkTopology& out);
bool Decode(JsonValue& value, PodTemplate& out);
bool Decode(JsonValue& value, ContainerResources& out);

// A requirement of a node selector, where Gt and Lt are allowed too.
bool DecodeNodeRequirement(JsonValue& value, Requirement& out);
// A number that counts things: below zero it is 0, with a warning.
bool DecodeCount(JsonValue& value, int32_t& out);
// A pod template; `priority_class` is that of its spec.
bool DecodeTemplate(JsonValue& value, PodTemplate& out, std::string& priority_class);
// Fails when an amount is below zero.
bool DecodeRequests(JsonValue& value, ResourceList& out);

template <class T>
bool Decode(JsonValue& value, std::optional<T>& out) {
  return Decode(value, out.emplace());
}

template <class T>
bool Decode(JsonValue& value, std::vector<T>& out) {
  out.clear();
  return value.ForEachItem([&](JsonValue& item) { return Decode(item, out.emplace_back()); });
}

template <auto Member, class T>
bool Into(JsonValue& value, T& out) {
  return Decode(value, out.*Member);
}

template <auto Member, class T>
bool IntoCount(JsonValue& value, T& out) {
  int32_t count = 0;
  if (!DecodeCount(value, count)) return false;
  out.*Member = count;
  return true;
}

// The object named by Fields' table, read into the same out: for "spec" and "status", whose fields
// land in one struct with their siblings.
template <const auto& Fields, class T>
bool Within(JsonValue& value, T& out) {
  return ReadFields(value, std::span<const JsonField<T>>(Fields), out);
}

// The same for objects that people write by hand and whose fields we all know: a field that is
// neither in the table nor in AlsoKnown (known, but of no use here) is most likely a typing error.
template <const auto& Fields, const auto& AlsoKnown, class T>
bool Only(JsonValue& value, T& out) {
  const auto warn = [](std::string_view key, JsonValue& field) {
    if (std::ranges::find(AlsoKnown, key) == std::ranges::end(AlsoKnown)) {
      field.Warn("unknown field, ignored");
    }
    return true;
  };
  return ReadFields(value, std::span<const JsonField<T>>(Fields), out, warn);
}
inline constexpr std::array<std::string_view, 0> kNoOthers = {};

template <const auto& Fields, class T>
bool ReadRoot(JsonObject& object, T& out) {
  return ReadFields(object, std::span<const JsonField<T>>(Fields), out);
}

// One function per kind; `object` stands before the first field of the root.
bool DecodeNode(JsonObject& object, Object& out);
bool DecodePod(JsonObject& object, Object& out);
bool DecodeNamespace(JsonObject& object, Object& out);
bool DecodePriorityClass(JsonObject& object, Object& out);
bool DecodeResourceQuota(JsonObject& object, Object& out);
bool DecodePodDisruptionBudget(JsonObject& object, Object& out);
bool DecodePersistentVolume(JsonObject& object, Object& out);
bool DecodePersistentVolumeClaim(JsonObject& object, Object& out);
bool DecodePodGroup(JsonObject& object, Object& out);
bool DecodeSchedulerPluginsPodGroup(JsonObject& object, Object& out);
bool DecodeQueue(JsonObject& object, Object& out);
bool DecodeHyperNode(JsonObject& object, Object& out);
bool DecodeVcJob(JsonObject& object, Object& out);
bool DecodeDeployment(JsonObject& object, Object& out);
bool DecodeReplicaSet(JsonObject& object, Object& out);
bool DecodeStatefulSet(JsonObject& object, Object& out);
bool DecodeDaemonSet(JsonObject& object, Object& out);
bool DecodeBatchJob(JsonObject& object, Object& out);
bool DecodeLeaderWorkerSet(JsonObject& object, Object& out);
bool DecodeUnknown(JsonObject& object, Object& out);

}  // namespace hopwise::api
