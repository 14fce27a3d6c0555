// Who may be evicted for whom, and in what pieces.
//
// To preempt is to evict what has less priority in the claimer's own queue; to reclaim, what other
// queues hold above the share that they deserve. A gang gives way in units: members or whole
// sub-groups beyond its minimum one by one, and then all that is left of it at once, since what is
// below its minimum is of no use. Gangs whose PodGroup or pods say volcano.sh/preemptable: "false",
// and pods that nobody may evict (pod_facts.h), are left alone.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cluster/state.h"
#include "sched/config.h"

namespace hopwise::sched {

// What the actions of a configuration allow. "" where none of the kind is configured.
struct EvictActions {
  std::string_view preempt, reclaim;  // "preempt" or "gangpreempt"; "reclaim" or "gangreclaim"
  [[nodiscard]] bool any() const { return !preempt.empty() || !reclaim.empty(); }
};
EvictActions EvictActionsOf(const Config& config);

// What evicting costs, compared from the left; design: gangs broken, by priority, worst first; then
// the tier of the place; then the work that is lost, in buckets; then pods.
struct EvictCost {
  std::vector<int32_t> broken;  // priorities of the gangs broken, the highest first
  uint16_t rank = 0;            // of the domain that is cleared
  int32_t work = 0;  // log2 of the accelerator seconds lost (a pod without any counts one)
  int64_t pods = 0;
  friend std::strong_ordering operator<=>(const EvictCost&, const EvictCost&) = default;
};

struct Unit {
  GangId gang;
  std::vector<PodId> pods;
  bool breaks = false;
  bool reclaimed = false;  // from another queue
  int32_t priority = 0;    // of the gang
  int64_t work = 0;        // accelerator seconds
};
// The cheaper one first: members beyond a minimum before gangs, less priority, less work, fewer
// pods; then the younger gang.
bool Cheaper(const cluster::State& state, const Unit& a, const Unit& b);

// Amounts by queue and resource that chosen units give back.
class Taken {
 public:
  void Add(const cluster::State& state, const Unit& unit);
  [[nodiscard]] int64_t Of(QueueId queue, ResourceId r) const;

 private:
  std::map<QueueId, std::vector<int64_t>> amounts_;
};

class Victims {
 public:
  // `spared` are pods that are not to be asked again for now.
  Victims(const cluster::State& state, const Config& config, GangId claimer,
          const std::vector<int64_t>& request, const std::set<PodId>& spared, Time now);

  // Domains that may be cleared in earnest.
  [[nodiscard]] size_t max_domains() const { return max_domains_; }
  // Whether anybody could be evicted at all.
  [[nodiscard]] bool any() const { return preempts_ || reclaims_; }
  [[nodiscard]] bool MayEvict(PodId pod) const;
  // The units of the gangs that have such a pod on one of the nodes, the cheapest first. Members
  // beyond a minimum are taken there; a gang that breaks goes everywhere.
  [[nodiscard]] std::vector<Unit> On(const std::vector<NodeId>& nodes) const;
  // Whether the unit's queue may give it up after `taken`.
  [[nodiscard]] bool MayGive(const Unit& unit, const Taken& taken) const;

 private:
  [[nodiscard]] bool MayAsk(GangId gang) const;
  [[nodiscard]] bool Deserves(QueueId queue) const;
  void Split(GangId gang, const std::set<NodeId>& nodes, std::vector<Unit>& out) const;
  [[nodiscard]] Unit MakeUnit(GangId gang, std::vector<PodId> pods, bool breaks) const;
  [[nodiscard]] int64_t WorkOf(PodId pod) const;

  const cluster::State& state_;
  const cluster::Gang& claimer_;
  GangId claimer_id_;
  const std::vector<int64_t>& request_;
  const std::set<PodId>& spared_;
  Time now_;
  bool preempts_ = false, reclaims_ = false;
  bool breaks_own_ = true, breaks_others_ = true;  // gangs of the claimer's queue, of others
  size_t max_domains_ = 0;
};

}  // namespace hopwise::sched
