// Gangs made of PodGroups and of what pods declare: membership, sub-groups, and the fields of Gang
// that follow from both. The records live in State; this is the one place that changes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/pod_facts.h"
#include "cluster/state.h"
#include "cluster/state_impl.h"

namespace hopwise::cluster {

// Annotation on a PodGroup, or on the pods of a group without one: the fabric its rule is about.
inline constexpr std::string_view kFabric = "hopwise.dev/fabric";

class GangBuilder {
 public:
  explicit GangBuilder(State& state) : state_(state), impl_(*state.impl_) {}

  // Id of a declaration with this content.
  uint32_t Intern(const Declaration& declaration);
  // The gang that the pod, as `next` describes it, belongs to; made when there is none. `now` is
  // where it is. None when it belongs to no gang.
  GangId Target(const PodFacts& facts, const PodRecord& next, GangId now);

  // Seats the pod. Refresh both gangs afterwards, and FreeIfUnused the old one.
  void Join(PodId id, GangId gang);
  void Leave(PodId id);
  // Replaces the record of a member whose seat stays the same.
  void Replace(PodId id, PodRecord next);
  // Whether the change of record leaves the member at its seat.
  static bool SameSeat(const PodRecord& now, const PodRecord& next);

  // Brings what follows from members and PodGroup up to date.
  void Refresh(GangId id);
  void FreeIfUnused(GangId id);

  // Moves the pod's request in or out of what its gang's queue holds.
  void Charge(PodId id);
  void Discharge(PodId id);

  void ApplyPodGroup(const api::PodGroup& object);
  void RemovePodGroup(std::string_view ns, std::string_view name, bool scheduler_plugins);
  // The queue began or ceased to exist.
  void QueueChanged(QueueId queue);
  void PrioritiesChanged();
  [[nodiscard]] int32_t PriorityOf(const PodRecord& pod) const;

  // Key of State::Impl::gang_index.
  static std::string KeyOf(GangKind kind, std::string_view ns, std::string_view name);
  [[nodiscard]] GangId Find(GangKind kind, std::string_view ns, std::string_view name) const;

  // What the PodGroup itself, or one policy of it, asks of the fabric.
  static TopologyRule RuleOf(const api::PodGroup& object);
  static TopologyRule RuleOf(const std::optional<api::NetworkTopology>& topology,
                             std::string_view fabric);

  // The sub-group a pod with these labels belongs to.
  struct Seat {
    uint32_t policy = PodRecord::kNoSubGroup;  // none: belongs to no sub-group
    std::string name;
    int64_t match_index = 0;
  };
  static Seat FindSeat(const std::vector<api::SubGroupPolicy>& policies,
                       const api::StringMap& labels);
  [[nodiscard]] api::StringMap Unpack(const PackedLabels& labels) const;

 private:
  Gang& At(GangId id) { return state_.gangs_[id.index()]; }
  PodRecord& PodAt(PodId id) { return state_.pods_[id.index()]; }
  GangDetails* DetailsOf(GangId id) { return impl_.details[id.index()].get(); }
  [[nodiscard]] const Declaration& DeclarationOf(const PodRecord& pod) const {
    return impl_.declarations[pod.declaration];
  }
  [[nodiscard]] bool Before(PodId a, PodId b) const;
  void InsertSorted(std::vector<PodId>& pods, PodId id) const;

  GangId New(GangKind kind, std::string_view ns, std::string_view name);
  GangId Ensure(GangKind kind, std::string_view ns, std::string_view name);
  void Count(PodId id, int32_t times);
  void EnterSubGroup(PodId id, GangId gang);
  void LeaveSubGroup(PodId id, GangId gang);
  void RenumberSubGroups(GangId gang, size_t from);
  void AdoptSpec(GangId id, const api::PodGroup& object);
  void RebuildSubGroups(GangId id);

  void RefreshLone(Gang& gang);
  void RefreshGroup(Gang& gang, const GangDetails& details);
  [[nodiscard]] int32_t GroupPriority(const GangDetails& details) const;
  [[nodiscard]] std::string GroupQueue(Gang& gang, const GangDetails& details) const;
  [[nodiscard]] int32_t GroupMinimum(const GangDetails& details) const;
  void RefreshInvalid(Gang& gang, const GangDetails& details, const std::string& conflict);
  [[nodiscard]] std::string MissingRole(const Gang& gang, const GangDetails& details) const;
  [[nodiscard]] static std::string MissingSubGroups(const Gang& gang);
  void SettleQueue(GangId id);

  State& state_;
  State::Impl& impl_;
};

}  // namespace hopwise::cluster
