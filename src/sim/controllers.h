// The controllers of the virtual cluster, one step each: look at an object, make what it lacks,
// delete what it has too much of, write its status. Called again whenever the object or what it
// owns changed, until nothing does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/pod_group_controller.h"
#include "control/writes.h"
#include "sim/world.h"

namespace hopwise::sim {

class Controllers {
 public:
  explicit Controllers(World& world) : world_(world) {}

  // Brings everything dirty up to date. False when it did not settle within kMaxRounds.
  bool Settle();
  // Rounds that one Settle may take; a chain of owners is a few links long.
  static constexpr int kMaxRounds = 1000;

  // Objects changed since the last call, deleted ones included, in the order of keys.
  std::vector<Change> TakeChanges();

 private:
  void Reconcile(const Key& key);
  void ReconcileVcJob(const Key& key);
  void ReconcileDeployment(const Key& key);
  void ReconcileReplicaSet(const Key& key);
  void ReconcileStatefulSet(const Key& key);
  void ReconcileBatchJob(const Key& key);
  void ReconcileLws(const Key& key);
  void ReconcilePodGroup(const Key& key);
  void ReconcilePod(const Key& key);
  void ReconcileQueue(const Key& key);

  // what the controllers of `hopwise controller` want, asked about an object
  void AdoptVcPods(const Json& job);
  void CarryOut(const Outcome& outcome, const Key& asked, uint64_t rank);
  void Carry(const Write& write, uint64_t rank);
  [[nodiscard]] PodGroupView PodGroups() const;

  // apps
  Key FindReplicaSet(const Key& deployment);
  Key MakeReplicaSet(const Key& deployment);
  void AdoptOrphans(const Key& replica_set, int64_t missing);
  void DeleteSurplus(const std::vector<Key>& active, int64_t surplus);

  // Makes the pod or adopts the one of its name; false when that one belongs to somebody else.
  bool EnsurePod(const Json& owner, const Json& expansion);
  // Whether a pod of this name is there already as the owner's own.
  [[nodiscard]] bool HasOwnPod(const Json& owner, const std::string& ns,
                               const std::string& name) const;
  void MakeGenerated(const Key& owner, int64_t index);
  // Pods the owner controls.
  [[nodiscard]] std::vector<Key> PodsOf(const Json& owner);
  // Writes the members of `patch` into the status where they differ.
  void PatchStatus(const Key& key, const Json& patch);
  // Whether the object's spec is another one than when this was last asked; the first time it is
  // not.
  bool SpecChanged(const Json& object);
  [[nodiscard]] bool SeenBefore(const Json& object) const;

  World& world_;
  std::map<std::string, uint64_t> specs_;  // by uid: hash of the spec last expanded
  std::map<std::string, uint64_t> salts_;  // by uid: generated names used up
  std::map<Key, bool> changes_;
};

// Phases of pods that hold nothing any more.
bool IsFinished(const Json& pod);
bool IsRunning(const Json& pod);
// Has a node and is not finished.
bool IsBound(const Json& pod);
// metav1.LabelSelector; an absent one matches nothing, an empty one everything.
bool SelectorMatches(const Json* selector, const Json& object);

// Writes what a kubelet reports of a pod that it has started. The pod must have a node.
void MarkRunning(Json& pod, Time now);

}  // namespace hopwise::sim
