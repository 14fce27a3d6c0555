#include "control/pod_group_controller.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "control/expand.h"
#include "topology/forest.h"

namespace hopwise::control {
namespace {

// What pg-controller copies of a pod's annotations and labels.
void InheritFromPod(const Json& pod, Json& group) {
  constexpr std::array<std::string_view, 6> kAnnotations = {
      "volcano.sh/preemptable",       "volcano.sh/cooldown-time",       "volcano.sh/revocable-zone",
      "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable", topology::kFabricKey};
  for (const std::string_view key : kAnnotations) {
    if (const std::string value = Annotation(pod, key); !value.empty()) {
      SetAnnotation(group, key, value);
    }
  }
  for (const std::string_view key : {"volcano.sh/preemptable", "volcano.sh/cooldown-time"}) {
    if (const std::string value = Label(pod, key); !value.empty()) {
      SetLabel(group, key, value);
    }
  }
}

int64_t MinMemberOf(const Json& owner) { return CountIn(Annotation(owner, kMinMemberKey), 1); }

bool WantsGroup(const Json& pod) {
  if (NamesItsGroup(pod)) {
    return false;
  }
  if (!HasReadableTier(pod)) {
    return false;  // it waits by itself and says why, rather than run under a wider rule
  }
  const Json* ref = ControllerOf(pod);
  if (ref == nullptr) {
    return !TopologyOfAnnotations(pod).is_null();
  }
  return Text(*ref, {"kind"}) != "DaemonSet" && !Text(*ref, {"uid"}).empty();
}

bool IsOver(const Json& pod) {
  const std::string phase = Text(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" ||
         !Text(pod, {"metadata", "deletionTimestamp"}).empty();
}

std::string GroupNameOf(std::string_view uid) { return "podgroup-" + std::string(uid); }

Json MinResourcesFor(const Json& pod, int64_t min_member) {
  api::ResourceList request = RequestOf(pod);
  for (auto& [resource, amount] : request) {
    amount = SaturatingMul(amount, min_member);
  }
  return MinResources(request, min_member);
}

}  // namespace

Json GroupForPod(const Json& pod, const Json* owner) {
  const Json* ref = ControllerOf(pod);
  const std::string uid = ref == nullptr ? Uid(pod) : Text(*ref, {"uid"});
  const int64_t min_member = owner == nullptr ? 1 : MinMemberOf(*owner);
  Json group = MakePodGroup(Namespace(pod), GroupNameOf(uid), min_member);
  group["metadata"]["ownerReferences"] = ref == nullptr
                                             ? Json::array({ControllerRef(pod)})
                                             : List(pod, {"metadata", "ownerReferences"});
  if (owner != nullptr) {
    InheritVolcanoAnnotations(*owner, group);
  }
  InheritFromPod(pod, group);
  Json& spec = group["spec"];
  const std::string queue = Annotation(pod, kQueueNameKey);
  spec["queue"] = queue.empty() ? "default" : queue;
  if (const std::string priority = Text(pod, {"spec", "priorityClassName"}); !priority.empty()) {
    spec["priorityClassName"] = priority;
  }
  if (Json topology = TopologyOfAnnotations(pod); !topology.is_null()) {
    spec["networkTopology"] = std::move(topology);
  }
  spec["minResources"] = MinResourcesFor(pod, min_member);
  return group;
}

Outcome ReconcilePod(const PodGroupView& view, const Key& key) {
  Outcome out;
  const Json& pod = *view.store.FindObject(key);
  if (IsOver(pod) || !view.is_ours(pod) || !WantsGroup(pod)) {
    return out;
  }
  const Json* ref = ControllerOf(pod);
  const Key* owner = ref == nullptr ? nullptr : view.store.FindUid(Text(*ref, {"uid"}));
  const Json* owner_object =
      owner == nullptr || !view.inherit ? nullptr : view.store.FindObject(*owner);
  Write group;
  group.body = GroupForPod(pod, owner_object);
  group.key = KeyOf(group.body);
  group.exists_ok = true;  // a pod of the same owner may have come first
  Write join;
  join.verb = Write::Verb::kPatch;
  join.key = key;
  join.body = {
      {"metadata", {{"uid", Uid(pod)}, {"annotations", {{kGroupNameKey, group.key.name}}}}}};
  if (view.store.Find(group.key) == nullptr) {
    out.steps.push_back({std::move(group)});
  }
  out.steps.push_back({std::move(join)});
  return out;
}

Outcome ReconcileOwner(const PodGroupView& view, const Key& key) {
  Outcome out;
  const Json& owner = *view.store.FindObject(key);
  const Key group_key = PodGroupKey(key.ns, GroupNameOf(Uid(owner)));
  const Json* group = view.store.FindObject(group_key);
  if (group == nullptr) {
    return out;
  }
  Write write;
  write.key = group_key;
  const char* count = key.kind == "Job" ? "parallelism" : "replicas";
  if (Replicas(owner, {"spec", count}, 1) == 0) {
    write.verb = Write::Verb::kDelete;
    write.uid = Uid(*group);
    out.steps.push_back({std::move(write)});
    return out;
  }
  const int64_t wanted = view.inherit ? MinMemberOf(owner) : 1;
  if (Number(*group, {"spec", "minMember"}, 1) == wanted) {
    return out;
  }
  Json spec = {{"minMember", wanted}};
  const Json* member = nullptr;
  view.store.EachMember(group_key, [&](const Key&, const Entry& entry) {
    member = member == nullptr ? &entry.object : member;
  });
  if (member != nullptr) {
    spec["minResources"] = MinResourcesFor(*member, wanted);
  }
  write.verb = Write::Verb::kPatch;
  write.body = {{"metadata", {{"uid", Uid(*group)}}}, {"spec", std::move(spec)}};
  out.steps.push_back({std::move(write)});
  return out;
}

}  // namespace hopwise::control
