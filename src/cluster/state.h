// The state of the cluster as the scheduler sees it: objects in, dense columns and gangs out. Pure:
// no I/O, no clock.
//
// Apply and Remove take objects in any order; what is incomplete (a pod before its PodGroup, a
// PodGroup before its Queue, a pod bound to a node that does not exist) waits in place and is
// mended when the rest arrives. Usage belongs to nodes and pods, never to topology objects. Every
// pod with a node counts there from its current spec, whoever bound it, until it is finished or
// gone.
//
// References to records stay good until their object is removed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/decode.h"
#include "base/ids.h"
#include "base/string_pool.h"
#include "cluster/columns.h"
#include "cluster/fit.h"
#include "cluster/model.h"
#include "cluster/queues.h"
#include "topology/forest.h"

namespace hopwise::cluster {

struct PriorityValue;

struct StateOptions {
  std::vector<std::string> scheduler_names = {"volcano", "hopwise"};
  std::string default_queue =
      "default";  // exists and is open even without an object, as does "root"
};

// What changed since it was last taken: who could decide otherwise now. Each id once, ascending.
struct Changes {
  std::vector<NodeId> roomier;  // nodes that may take more than before (room, traits, new)
  // Gangs whose members, rule or spec changed, new ones included, and those that are gone (a slot
  // may by then hold another gang: Gang::sequence tells).
  std::vector<GangId> gangs;
  std::vector<QueueId> queues;  // limits, state or falling use
  bool topology = false;        // trees changed
};

class State {
 public:
  explicit State(StateOptions options = {});
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Create or replace. Kinds that do not matter here (workloads, quotas …) are ignored.
  void Apply(const api::Object& object);
  void RemoveNode(std::string_view name);
  void RemovePod(std::string_view ns, std::string_view name);
  void RemovePodGroup(std::string_view ns, std::string_view name, bool scheduler_plugins);
  void RemoveQueue(std::string_view name);
  void RemoveHyperNode(std::string_view name);
  void RemovePriorityClass(std::string_view name);
  void RemoveNamespace(std::string_view name);

  // We decided: the pod holds its room on the node from now on. Preconditions: the pod is kPending,
  // the node alive.
  void Assume(PodId pod, NodeId node);
  // The bind failed or was given up: the pod is kPending again. Precondition: kAssumed.
  void Forget(PodId pod);

  // As if the pod were gone, for a trial: its room, ports and share are free until it is put back.
  // Record, gang and lists of pods stay as they are. Precondition: it holds room; not lifted yet.
  // See lifted.h.
  void Lift(PodId pod);
  void PutBack(PodId pod);

  // A node whose kubelet refused a pod of the class is passed over for it until that is taken back.
  // It says nothing about never.
  void SetAvoided(NodeId node, ClassId resource_class, bool avoided);
  // The gang is known to have run, by what the state cannot see: it is not given back any more.
  void MarkRan(GangId gang) { gangs_[gang.index()].ran = true; }
  [[nodiscard]] bool IsAvoided(NodeId node, ClassId resource_class) const {
    return !avoided_.empty() && avoided_.contains({node, resource_class});
  }
  [[nodiscard]] const std::set<std::pair<NodeId, ClassId>>& avoided() const { return avoided_; }

  Changes TakeChanges();

  // --- reading
  [[nodiscard]] const Columns& columns() const { return columns_; }
  [[nodiscard]] Columns& mutable_columns() { return columns_; }
  FitCache& fits() { return *fits_; }
  [[nodiscard]] const FitCache& fits() const { return *fits_; }
  [[nodiscard]] const Terms& terms() const { return *terms_; }
  // Shape of a pod, interned on first call, and anew when pods with new terms came or went.
  ShapeId ShapeOf(PodId pod);

  [[nodiscard]] size_t node_slots() const { return nodes_.size(); }
  [[nodiscard]] const NodeRecord& node(NodeId id) const { return nodes_[id.index()]; }
  // None unless a Node object of that name exists.
  [[nodiscard]] NodeId FindNode(std::string_view name) const;
  // Alive, assumed or bound, not finished; in no particular order.
  [[nodiscard]] const std::vector<PodId>& PodsOn(NodeId id) const { return pods_on_[id.index()]; }

  [[nodiscard]] size_t pod_slots() const { return pods_.size(); }
  [[nodiscard]] const PodRecord& pod(PodId id) const { return pods_[id.index()]; }
  [[nodiscard]] PodId FindPod(std::string_view ns, std::string_view name) const;
  // What the pod holds or would hold, one pod slot included. The pod is alive.
  [[nodiscard]] const Request& RequestOf(PodId id) const {
    return fits_->ClassRequest(pod(id).resource_class);
  }

  [[nodiscard]] size_t gang_slots() const { return gangs_.size(); }
  [[nodiscard]] const Gang& gang(GangId id) const { return gangs_[id.index()]; }
  [[nodiscard]] Gang& mutable_gang(GangId id) { return gangs_[id.index()]; }
  // PodGroup or label group; not lone pods. Of several with one name: Volcano's PodGroup, then that
  // of scheduling.x-k8s.io, then the label group.
  [[nodiscard]] GangId FindGang(std::string_view ns, std::string_view name) const;

  // What the gang's PodGroup asks (status, owners and labels are not kept), or nullptr.
  [[nodiscard]] const api::PodGroup* PodGroupOf(GangId id) const;

  [[nodiscard]] size_t queue_slots() const { return queues_.size(); }
  [[nodiscard]] const Queue& queue(QueueId id) const { return queues_.at(id); }
  // None when there is no such queue.
  [[nodiscard]] QueueId FindQueue(std::string_view name) const { return queues_.Find(name); }

  [[nodiscard]] const std::string& Text(StringId id) const { return strings_.Text(id); }
  [[nodiscard]] const StringPool& strings() const { return strings_; }
  [[nodiscard]] const StateOptions& options() const { return options_; }

  // The trees as they are now. trees()[0] is the primary fabric; label trees come after the
  // fabrics.
  const topology::Topology& topology();
  // All trees a rule may use, with a version that changes when any of them does. The pointers are
  // good until then.
  const std::vector<const topology::Tree*>& trees();
  uint64_t trees_version();
  // Index into trees() of the label tree for these keys (made on first use); good until the version
  // changes.
  size_t LabelTreeIndex(const std::vector<std::string>& keys);

  // Bytes held for nodes and for pods (columns, records, strings), for the memory budget.
  struct Memory {
    size_t nodes = 0, pods = 0, other = 0;
  };
  [[nodiscard]] Memory MemoryBytes() const;

  // Recounts used amounts, queue allocation and membership from the pods and compares; "" when all
  // agrees, else what does not. For tests.
  [[nodiscard]] std::string Audit() const;

 private:
  friend class GangBuilder;
  struct Impl;

  void ApplyNode(const api::Node& node);
  void ApplyPod(const api::Pod& pod);
  void SetPriorityClass(std::string_view name, std::optional<PriorityValue> value);
  void QueueChanged(QueueId id);

  // The slot of a node name, made when there is none.
  NodeId NodeSlot(std::string_view name);
  [[nodiscard]] NodeId FindNodeSlot(std::string_view name) const;
  void FreeNodeSlotIfUnused(NodeId slot);
  bool SetTraits(NodeRecord& record, const api::Node& node, bool* labels_changed);
  void SetRoom(NodeId id, const api::ResourceList& amounts);
  void Revive(NodeId id);

  PodId NewPod(const api::Pod& pod);
  void ErasePod(PodId id);
  PodRecord ReadPod(const api::Pod& pod, const PodRecord& now);
  PredicateId ReadPredicates(const api::Pod& pod, const PodRecord& next,
                             std::vector<std::vector<api::Requirement>> extra);
  [[nodiscard]] TermSet TermsOf(const PodRecord& pod) const;
  // Each text of the labels is in use until it is released.
  PackedLabels Pack(const api::StringMap& labels);
  void Release(const PackedLabels& labels);
  void Update(PodId id, PodRecord next, GangId target);
  void EnterNode(PodId id);
  void LeaveNode(PodId id);
  [[nodiscard]] std::vector<api::HostPort> PortsOf(PodId id);

  [[nodiscard]] std::string AuditNodes() const;
  [[nodiscard]] std::string AuditPods() const;
  [[nodiscard]] std::string AuditGangs() const;
  [[nodiscard]] std::string AuditQueues() const;
  [[nodiscard]] std::string AuditLabels() const;

  StateOptions options_;
  StringPool strings_;
  Columns columns_;
  std::unique_ptr<Terms> terms_;
  std::unique_ptr<FitCache> fits_;
  std::deque<NodeRecord> nodes_;
  std::vector<std::vector<PodId>> pods_on_;
  std::deque<PodRecord> pods_;
  std::deque<Gang> gangs_;
  QueueTree queues_;
  std::set<std::pair<NodeId, ClassId>> avoided_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopwise::cluster
