#include <algorithm>
#include <array>
#include <optional>

#include "api/decode_parts.h"
#include "api/pod_request.h"

namespace hopwise::api {
namespace {

// A port as written; which host port it takes depends on hostNetwork, which may come later.
struct PortDraft {
  HostPort port;
  int32_t container_port = 0;
};

// What the status of a container says about its resources.
struct StatusDraft {
  std::string name;
  std::optional<ContainerResources> actual;
  ResourceList granted;
};

// A term and the keys that join its selector once the pod's labels are known.
struct TermDraft {
  int32_t weight = 0;
  PodAffinityTerm term;
  std::vector<std::string> match_keys, mismatch_keys;
};

constexpr std::array<JsonField<TermDraft>, 6> kTerm = {{
    {"topologyKey",
     [](JsonValue& value, TermDraft& out) { return Decode(value, out.term.topology_key); }},
    {"labelSelector",
     [](JsonValue& value, TermDraft& out) { return Decode(value, out.term.selector); }},
    {"namespaces",
     [](JsonValue& value, TermDraft& out) { return Decode(value, out.term.namespaces); }},
    {"namespaceSelector",
     [](JsonValue& value, TermDraft& out) { return Decode(value, out.term.namespace_selector); }},
    {"matchLabelKeys", Into<&TermDraft::match_keys>},
    {"mismatchLabelKeys", Into<&TermDraft::mismatch_keys>},
}};

constexpr std::array<JsonField<TermDraft>, 2> kWeightedTerm = {{
    {"weight", Into<&TermDraft::weight>},
    {"podAffinityTerm", Within<kTerm>},
}};

// As the API server does it when it stores a pod: keys that the pod lacks are passed over, and a
// term without a selector has nothing to add to.
void AddKeys(std::optional<LabelSelector>& selector, const std::vector<std::string>& keys,
             Operator op, const StringMap& labels) {
  for (const std::string& key : keys) {
    const std::string* value = Find(labels, key);
    if (selector && value != nullptr) selector->requirements.push_back({key, op, {*value}});
  }
}

struct SpreadDraft {
  SpreadConstraint constraint;
  std::vector<std::string> match_keys;
};

template <auto Member>
bool OfSpread(JsonValue& value, SpreadDraft& out) {
  return Decode(value, out.constraint.*Member);
}

template <auto Member>
bool ReadPolicy(JsonValue& value, SpreadDraft& out) {
  std::string_view policy;
  if (!value.ReadString(policy)) return false;
  out.constraint.*Member = policy == "Honor";
  return true;
}

// Only ScheduleAnyway is a wish; the field is required, so its absence is no wish either.
bool ReadWhenUnsatisfiable(JsonValue& value, SpreadDraft& out) {
  std::string_view when;
  if (!value.ReadString(when)) return false;
  out.constraint.hard = when != "ScheduleAnyway";
  return true;
}

constexpr std::array<JsonField<SpreadDraft>, 8> kSpread = {{
    {"topologyKey", OfSpread<&SpreadConstraint::topology_key>},
    {"labelSelector", OfSpread<&SpreadConstraint::selector>},
    {"maxSkew", OfSpread<&SpreadConstraint::max_skew>},
    {"minDomains", OfSpread<&SpreadConstraint::min_domains>},
    {"whenUnsatisfiable", ReadWhenUnsatisfiable},
    {"nodeAffinityPolicy", ReadPolicy<&SpreadConstraint::honor_affinity>},
    {"nodeTaintsPolicy", ReadPolicy<&SpreadConstraint::honor_taints>},
    {"matchLabelKeys", Into<&SpreadDraft::match_keys>},
}};

struct TermDrafts {
  std::vector<TermDraft> affinity, anti_affinity, preferred_affinity, preferred_anti_affinity;
  std::vector<SpreadDraft> spread;
};

// A pod while its fields come in, in any order.
struct PodDraft {
  Pod pod;
  PodResources resources;
  std::vector<std::string> names, init_names;  // of the containers, as in resources
  std::vector<PortDraft> ports;
  bool host_network = false;
  TermDrafts terms;
  StatusDraft status;  // of the pod as a whole
  std::vector<StatusDraft> container_statuses;
};

struct ContainerDraft {
  std::string name;
  ContainerResources resources;
  std::vector<PortDraft> ports;
};

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

bool DecodePort(JsonValue& value, PortDraft& out) {
  return value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "hostPort") return Decode(field, out.port.port);
    if (key == "containerPort") return Decode(field, out.container_port);
    if (key == "protocol") return Decode(field, out.port.protocol);
    if (key == "hostIP") return Decode(field, out.port.ip);
    return true;
  });
}

bool DecodeContainer(JsonValue& value, ContainerDraft& out) {
  return value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "name") return Decode(field, out.name);
    if (key == "resources") return Decode(field, out.resources);
    if (key == "ports") {
      return field.ForEachItem(
          [&](JsonValue& item) { return DecodePort(item, out.ports.emplace_back()); });
    }
    if (key != "restartPolicy") return true;
    std::string_view policy;
    if (!field.ReadString(policy)) return false;
    out.resources.sidecar = policy == "Always";
    return true;
  });
}

bool DecodeContainers(JsonValue& value, PodDraft& out, std::vector<std::string>& names,
                      std::vector<ContainerResources>& list, bool init) {
  names.clear();
  list.clear();
  return value.ForEachItem([&](JsonValue& item) {
    ContainerDraft container;
    if (!DecodeContainer(item, container)) return false;
    // An init container that ends gives its ports back; kube-scheduler never counts them.
    if (!init || container.resources.sidecar) {
      for (PortDraft& port : container.ports) out.ports.push_back(std::move(port));
    }
    names.push_back(std::move(container.name));
    list.push_back(std::move(container.resources));
    return true;
  });
}

bool ReadContainers(JsonValue& value, PodDraft& out) {
  return DecodeContainers(value, out, out.names, out.resources.containers, false);
}

bool ReadInitContainers(JsonValue& value, PodDraft& out) {
  return DecodeContainers(value, out, out.init_names, out.resources.init, true);
}

bool ReadOverhead(JsonValue& value, PodDraft& out) {
  return DecodeRequests(value, out.resources.overhead);
}

bool ReadPodResources(JsonValue& value, PodDraft& out) { return Decode(value, out.resources.pod); }

bool ReadToleration(JsonValue& value, std::vector<Toleration>& out) {
  Toleration toleration;
  bool known = true;
  const bool ok = value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "key") return Decode(field, toleration.key);
    if (key == "value") return Decode(field, toleration.value);
    if (key == "effect") return Decode(field, toleration.effect);
    if (key != "operator") return true;
    std::string_view op;
    if (!field.ReadString(op)) return false;
    toleration.exists = op == "Exists";
    known = toleration.exists || op == "Equal" || op.empty();
    if (!known) field.Warn("\"" + std::string(op) + "\" is no operator we know; not tolerated");
    return true;
  });
  if (ok && known) out.push_back(std::move(toleration));
  return ok;
}

bool ReadTolerations(JsonValue& value, PodDraft& out) {
  out.pod.tolerations.clear();
  return value.ForEachItem(
      [&](JsonValue& item) { return ReadToleration(item, out.pod.tolerations); });
}

bool DecodeRequirements(JsonValue& value, std::vector<Requirement>& out) {
  out.clear();
  return value.ForEachItem(
      [&](JsonValue& item) { return DecodeNodeRequirement(item, out.emplace_back()); });
}

bool DecodeTerm(JsonValue& value, NodeSelectorTerm& out) {
  return value.ForEachField([&](std::string_view key, JsonValue& field) {
    if (key == "matchExpressions") return DecodeRequirements(field, out.expressions);
    if (key == "matchFields") return DecodeRequirements(field, out.fields);
    return true;
  });
}

bool ReadNodeAffinity(JsonValue& value, PodDraft& out) {
  return value.ForEachField([&](std::string_view key, JsonValue& required) {
    if (key != kRequired) return true;
    std::vector<NodeSelectorTerm>& terms = out.pod.required_node_affinity.emplace();
    return required.ForEachField([&](std::string_view name, JsonValue& list) {
      if (name != "nodeSelectorTerms") return true;
      return list.ForEachItem(
          [&](JsonValue& item) { return DecodeTerm(item, terms.emplace_back()); });
    });
  });
}

// Notes the field as unevaluated when a required term stands in it: what members of one gang do to
// each other is not judged.
template <auto Required, auto Preferred>
bool ReadPodAffinity(JsonValue& value, PodDraft& out) {
  const bool ok = value.ForEachField([&](std::string_view key, JsonValue& list) {
    std::vector<TermDraft>* terms = key == kRequired    ? &(out.terms.*Required)
                                    : key == kPreferred ? &(out.terms.*Preferred)
                                                        : nullptr;
    if (terms == nullptr) return true;
    terms->clear();
    return list.ForEachItem([&](JsonValue& item) {
      return key == kRequired ? Within<kTerm>(item, terms->emplace_back())
                              : Within<kWeightedTerm>(item, terms->emplace_back());
    });
  });
  if (ok && !(out.terms.*Required).empty()) out.pod.unevaluated.push_back({PathText(value.path())});
  return ok;
}

constexpr std::array<JsonField<PodDraft>, 3> kAffinity = {{
    {"nodeAffinity", ReadNodeAffinity},
    {"podAffinity", ReadPodAffinity<&TermDrafts::affinity, &TermDrafts::preferred_affinity>},
    {"podAntiAffinity",
     ReadPodAffinity<&TermDrafts::anti_affinity, &TermDrafts::preferred_anti_affinity>},
}};

bool ReadSpread(JsonValue& value, PodDraft& out) {
  out.terms.spread.clear();
  const bool ok = value.ForEachItem(
      [&](JsonValue& item) { return Within<kSpread>(item, out.terms.spread.emplace_back()); });
  const bool any = std::ranges::any_of(
      out.terms.spread, [](const SpreadDraft& drafted) { return drafted.constraint.hard; });
  if (ok && any) out.pod.unevaluated.push_back({PathText(value.path())});
  return ok;
}

bool ReadVolumes(JsonValue& value, PodDraft& out) {
  return value.ForEachItem([&](JsonValue& item) {
    std::string name;
    std::string_view type;
    const bool ok = item.ForEachField([&](std::string_view key, JsonValue& field) {
      if (key == "name") return Decode(field, name);
      if (key == "persistentVolumeClaim") type = "PersistentVolumeClaim";
      if (key == "ephemeral") type = "ephemeral";
      return true;
    });
    if (ok && !type.empty()) {
      out.pod.unevaluated.push_back({"spec.volumes[" + name + "] (" + std::string(type) + ")"});
    }
    return ok;
  });
}

bool ReadResourceClaims(JsonValue& value, PodDraft& out) {
  bool any = false;
  if (!value.ForEachItem([&](JsonValue&) { return any = true; })) return false;
  if (any) out.pod.unevaluated.push_back({PathText(value.path())});
  return true;
}

bool ReadGates(JsonValue& value, PodDraft& out) {
  out.pod.scheduling_gates.clear();
  return value.ForEachItem([&](JsonValue& item) {
    return item.ForEachField([&](std::string_view key, JsonValue& field) {
      return key != "name" || Decode(field, out.pod.scheduling_gates.emplace_back());
    });
  });
}

// Into, for a member of the pod within the draft.
template <auto Member>
bool OfPod(JsonValue& value, PodDraft& out) {
  return Decode(value, out.pod.*Member);
}

bool ReadPhase(JsonValue& value, PodDraft& out) {
  std::string_view phase;
  if (!value.ReadString(phase)) return false;
  out.pod.phase = phase.empty() || phase == "Pending" ? PodPhase::kPending
                  : phase == "Running"                ? PodPhase::kRunning
                  : phase == "Succeeded"              ? PodPhase::kSucceeded
                  : phase == "Failed"                 ? PodPhase::kFailed
                                                      : PodPhase::kUnknown;
  return true;
}

constexpr std::array<JsonField<StatusDraft>, 3> kContainerStatus = {{
    {"name", Into<&StatusDraft::name>},
    {"resources", Into<&StatusDraft::actual>},
    {"allocatedResources", Into<&StatusDraft::granted>},
}};

bool ReadContainerStatuses(JsonValue& value, PodDraft& out) {
  return value.ForEachItem([&](JsonValue& item) {
    return Within<kContainerStatus>(item, out.container_statuses.emplace_back());
  });
}

bool ReadActual(JsonValue& value, PodDraft& out) { return Decode(value, out.status.actual); }
bool ReadGranted(JsonValue& value, PodDraft& out) { return Decode(value, out.status.granted); }

constexpr std::array<JsonField<PodDraft>, 18> kSpec = {{
    {"schedulerName", OfPod<&Pod::scheduler_name>},
    {"nodeName", OfPod<&Pod::node_name>},
    {"priorityClassName", OfPod<&Pod::priority_class>},
    {"priority", OfPod<&Pod::priority>},
    {"preemptionPolicy", OfPod<&Pod::preemption_policy>},
    {"restartPolicy", OfPod<&Pod::restart_policy>},
    {"nodeSelector", OfPod<&Pod::node_selector>},
    {"hostNetwork", Into<&PodDraft::host_network>},
    {"containers", ReadContainers},
    {"initContainers", ReadInitContainers},
    {"overhead", ReadOverhead},
    {"resources", ReadPodResources},
    {"tolerations", ReadTolerations},
    {"affinity", Within<kAffinity>},
    {"topologySpreadConstraints", ReadSpread},
    {"volumes", ReadVolumes},
    {"resourceClaims", ReadResourceClaims},
    {"schedulingGates", ReadGates},
}};
constexpr std::array<JsonField<PodDraft>, 9> kStatus = {{
    {"phase", ReadPhase},
    {"startTime", OfPod<&Pod::start>},
    {"reason", OfPod<&Pod::reason>},
    {"conditions", OfPod<&Pod::conditions>},
    {"nominatedNodeName", OfPod<&Pod::nominated_node>},
    {"resources", ReadActual},
    {"allocatedResources", ReadGranted},
    {"containerStatuses", ReadContainerStatuses},
    {"initContainerStatuses", ReadContainerStatuses},
}};
constexpr std::array<JsonField<PodDraft>, 3> kRoot = {{
    {"metadata", OfPod<&Pod::meta>},
    {"spec", Within<kSpec>},
    {"status", Within<kStatus>},
}};

// With hostNetwork a container's port is one of the node's.
void TakeHostPorts(PodDraft& draft) {
  for (PortDraft& port : draft.ports) {
    if (port.port.port == 0 && draft.host_network) port.port.port = port.container_port;
    if (port.port.port == 0) continue;
    if (port.port.protocol.empty()) port.port.protocol = "TCP";
    draft.pod.host_ports.push_back(std::move(port.port));
  }
}

void TakeTerms(PodDraft& draft) {
  const StringMap& labels = draft.pod.meta.labels;
  const auto finish = [&](TermDraft& drafted) {
    AddKeys(drafted.term.selector, drafted.match_keys, Operator::kIn, labels);
    AddKeys(drafted.term.selector, drafted.mismatch_keys, Operator::kNotIn, labels);
    return std::move(drafted.term);
  };
  const auto take = [&](std::vector<TermDraft>& from, std::vector<PodAffinityTerm>& to) {
    for (TermDraft& drafted : from) to.push_back(finish(drafted));
  };
  const auto take_weighted = [&](std::vector<TermDraft>& from,
                                 std::vector<WeightedPodAffinityTerm>& to) {
    for (TermDraft& drafted : from) to.push_back({drafted.weight, finish(drafted)});
  };
  PodTerms& terms = draft.pod.terms;
  take(draft.terms.affinity, terms.affinity);
  take(draft.terms.anti_affinity, terms.anti_affinity);
  take_weighted(draft.terms.preferred_affinity, terms.preferred_affinity);
  take_weighted(draft.terms.preferred_anti_affinity, terms.preferred_anti_affinity);
  for (SpreadDraft& drafted : draft.terms.spread) {
    AddKeys(drafted.constraint.selector, drafted.match_keys, Operator::kIn, labels);
    terms.spread.push_back(std::move(drafted.constraint));
  }
}

std::optional<HeldResources> HeldBy(StatusDraft& status) {
  if (!status.actual) return std::nullopt;
  return HeldResources{std::move(status.actual->requests), std::move(status.granted)};
}

// Joins what the containers have to what they ask for.
void TakeHeldResources(PodDraft& draft) {
  PodResources& resources = draft.resources;
  for (StatusDraft& status : draft.container_statuses) {
    const auto hand_over = [&](const std::vector<std::string>& names,
                               std::vector<ContainerResources>& containers) {
      const auto named = std::ranges::find(names, status.name);
      if (named == names.end()) return false;
      containers[static_cast<size_t>(named - names.begin())].held = HeldBy(status);
      return true;
    };
    if (!hand_over(draft.names, resources.containers)) hand_over(draft.init_names, resources.init);
  }
  resources.pod.held = HeldBy(draft.status);
  const auto pending =
      std::ranges::find(draft.pod.conditions, "PodResizePending", &Condition::type);
  resources.resize_infeasible =
      pending != draft.pod.conditions.end() && pending->reason == "Infeasible";
}

}  // namespace

bool DecodePod(JsonObject& object, Object& out) {
  PodDraft draft;
  if (!ReadRoot<kRoot>(object, draft)) return false;
  TakeHostPorts(draft);
  TakeTerms(draft);
  TakeHeldResources(draft);
  if (draft.pod.scheduler_name.empty()) draft.pod.scheduler_name = "default-scheduler";
  draft.pod.request = EffectiveRequest(draft.resources);
  draft.pod.best_effort = IsBestEffort(draft.resources);
  out.emplace<Pod>(std::move(draft.pod));
  return true;
}

}  // namespace hopwise::api
