// The PodGroup controller: pods that name our scheduler and no group get one, as Volcano's
// pg-controller gives it (pkg/controllers/podgroup): all pods of one owner share
// podgroup-<uid of the owner>, a pod by itself that asks for a topology gets podgroup-<its uid>.
//
// A pod of a LeaderWorkerSet, of Kubeflow, Spark or Ray names its group itself and is left alone.
#pragma once

#include <functional>

#include "control/store.h"
#include "control/writes.h"

namespace hopwise::control {

struct PodGroupView {
  const Store& store;
  // Whether pods of this scheduler name are ours.
  std::function<bool(const Json& pod)> is_ours;
  // Whether annotations of a pod's owner count (Volcano's --inherit-owner-annotations).
  bool inherit = true;
};

// The PodGroup of a pod; `owner` is its controller's object, null when it has none or that is not
// known.
Json GroupForPod(const Json& pod, const Json* owner);

// Precondition: the pod is in the store. Its group is made, and the pod named its member.
Outcome ReconcilePod(const PodGroupView& view, const Key& pod);

// Of a ReplicaSet, StatefulSet or batch Job in the store: its group goes when it is scaled to zero,
// and follows its group-min-member.
Outcome ReconcileOwner(const PodGroupView& view, const Key& owner);

}  // namespace hopwise::control
