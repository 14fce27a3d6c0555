#include "sched/demand.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/check.h"

namespace hopwise::sched {
namespace {

using cluster::Gang;
using cluster::PodRecord;
using cluster::PodState;

bool IsPlaced(const PodRecord& pod) {
  return pod.state == PodState::kAssumed || pod.state == PodState::kBound ||
         (pod.state == PodState::kFinished && pod.succeeded);
}

bool CanPlace(const PodRecord& pod) {
  return pod.state == PodState::kPending && pod.ours && !pod.terminating && pod.blocker.empty();
}

bool Waits(const PodRecord& pod) {
  return (pod.state == PodState::kPending || pod.state == PodState::kGated) && pod.ours &&
         !pod.terminating;
}

// Counts of members that are placed or chosen, against the gang's minimums.
class Tally {
 public:
  Tally(const cluster::State& state, const Gang& gang)
      : state_(state), gang_(gang), in_group_(gang.sub_groups.size(), 0) {}

  void Add(PodId id) {
    ++total_;
    // A large gang is mostly of members that nothing but their number matters of.
    if (!gang_.roles_enforced && in_group_.empty()) {
      return;
    }
    const PodRecord& pod = state_.pod(id);
    if (gang_.roles_enforced && pod.role.valid()) {
      ++by_role_[pod.role];
    }
    if (pod.sub_group != PodRecord::kNoSubGroup) {
      ++in_group_[pod.sub_group];
    }
  }
  [[nodiscard]] int32_t total() const { return total_; }
  [[nodiscard]] int32_t InGroup(uint32_t g) const { return in_group_[g]; }
  [[nodiscard]] int32_t RoleDeficit(StringId role, int32_t minimum) const {
    const auto at = by_role_.find(role);
    return minimum - (at == by_role_.end() ? 0 : at->second);
  }
  // Sub-groups of a policy that have their minimum.
  [[nodiscard]] int32_t ReadyGroups(uint32_t policy) const {
    int32_t ready = 0;
    for (size_t g = 0; g < in_group_.size(); ++g) {
      const bool mine = gang_.sub_groups[g].policy == policy;
      ready += mine && in_group_[g] >= gang_.policies[policy].size ? 1 : 0;
    }
    return ready;
  }
  [[nodiscard]] bool Ready() const {
    if (total_ < std::max(1, gang_.min_member)) {
      return false;
    }
    for (const auto& [role, minimum] : gang_.min_per_role) {
      if (gang_.roles_enforced && RoleDeficit(role, minimum) > 0) {
        return false;
      }
    }
    for (uint32_t p = 0; p < gang_.policies.size(); ++p) {
      if (ReadyGroups(p) < gang_.policies[p].min_groups) {
        return false;
      }
    }
    return true;
  }

 private:
  const cluster::State& state_;
  const Gang& gang_;
  int32_t total_ = 0;
  std::map<StringId, int32_t> by_role_;
  std::vector<int32_t> in_group_;
};

class Builder {
 public:
  Builder(cluster::State& state, GangId id)
      : state_(state), gang_(state.gang(id)), tally_(state, gang_) {}

  Demand Run() {
    Collect();
    if (!tally_.Ready()) {
      MendGroups();
      RequirePolicies();
      RequireRoles();
      FillUp();
      demand_.required = Batched(chosen_groups_, chosen_loose_, demand_.required_counts);
      if (!tally_.Ready()) {
        ExplainBlocked();
      }
    }
    CollectOptional();
    demand_.required_counts.resize(demand_.classes.size());
    demand_.all_counts.resize(demand_.classes.size());
    for (size_t k = 0; k < demand_.classes.size(); ++k) {
      demand_.all_counts[k] += demand_.required_counts[k];
    }
    return std::move(demand_);
  }

 private:
  void Collect() {
    open_.resize(gang_.sub_groups.size());
    group_done_.assign(gang_.sub_groups.size(), false);
    for (const PodId id : gang_.pods) {
      const PodRecord& pod = state_.pod(id);
      if (IsPlaced(pod)) {
        // One on its way out still ties its gang to where it is, and is a member no more.
        if (!pod.terminating) {
          tally_.Add(id);
        }
        if (pod.node.valid()) {
          demand_.placed.push_back(id);
        }
        continue;
      }
      demand_.waiting += Waits(pod) ? 1 : 0;
      if (!CanPlace(pod)) {
        continue;
      }
      if (pod.sub_group != PodRecord::kNoSubGroup) {
        open_[pod.sub_group].push_back(id);
      } else {
        loose_.push_back(id);
        const ShapeId shape = state_.ShapeOf(id);
        one_shape_ = loose_.size() == 1 || shape == one_shape_ ? shape : ShapeId();
      }
    }
    SortByPriority(loose_);
    std::ranges::for_each(open_, [this](std::vector<PodId>& pods) { SortByPriority(pods); });
    loose_taken_.assign(loose_.size(), false);
  }

  // Among equals the order of members stays.
  void SortByPriority(std::vector<PodId>& pods) const {
    const auto first = [this](PodId a, PodId b) {
      return state_.pod(a).priority > state_.pod(b).priority;
    };
    if (std::ranges::is_sorted(pods, first)) {
      return;
    }
    std::map<int32_t, std::vector<PodId>, std::greater<>> by_priority;
    for (const PodId pod : pods) {
      by_priority[state_.pod(pod).priority].push_back(pod);
    }
    pods.clear();
    for (const auto& [priority, same] : by_priority) {
      pods.insert(pods.end(), same.begin(), same.end());
    }
  }

  [[nodiscard]] int32_t Missing(uint32_t g) const {
    return gang_.policies[gang_.sub_groups[g].policy].size - tally_.InGroup(g);
  }
  // Whether the group can reach its minimum with the pods at hand.
  [[nodiscard]] bool CanComplete(uint32_t g) const {
    return !group_done_[g] && Missing(g) > 0 && static_cast<int32_t>(open_[g].size()) >= Missing(g);
  }

  void Choose(uint32_t g) {
    const auto take = static_cast<size_t>(Missing(g));
    std::vector<PodId> pods(open_[g].begin(), open_[g].begin() + static_cast<std::ptrdiff_t>(take));
    open_[g].erase(open_[g].begin(), open_[g].begin() + static_cast<std::ptrdiff_t>(take));
    for (const PodId id : pods) {
      tally_.Add(id);
    }
    group_done_[g] = true;
    chosen_groups_.push_back({g, std::move(pods), true});
  }
  void ChooseLoose(size_t i) {
    tally_.Add(loose_[i]);
    chosen_loose_.push_back(loose_[i]);
    loose_taken_[i] = true;
  }
  // Loose pods that were not chosen.
  [[nodiscard]] std::vector<PodId> LooseLeft() const {
    std::vector<PodId> left;
    for (size_t i = 0; i < loose_.size(); ++i) {
      if (!loose_taken_[i]) {
        left.push_back(loose_[i]);
      }
    }
    return left;
  }

  // Sub-groups that lost a member come before new ones: their room is next to what they hold.
  void MendGroups() {
    for (uint32_t g = 0; g < open_.size() && !tally_.Ready(); ++g) {
      if (tally_.InGroup(g) > 0 && CanComplete(g)) {
        Choose(g);
      }
    }
  }
  void RequirePolicies() {
    for (uint32_t p = 0; p < gang_.policies.size(); ++p) {
      for (uint32_t g = 0; g < open_.size() && tally_.ReadyGroups(p) < gang_.policies[p].min_groups;
           ++g) {
        if (gang_.sub_groups[g].policy == p && CanComplete(g)) {
          Choose(g);
        }
      }
    }
  }
  void RequireRoles() {
    if (!gang_.roles_enforced) {
      return;
    }
    for (const auto& [role, minimum] : gang_.min_per_role) {
      for (uint32_t g = 0; g < open_.size() && tally_.RoleDeficit(role, minimum) > 0; ++g) {
        if (CanComplete(g) && state_.pod(open_[g].front()).role == role) {
          Choose(g);
        }
      }
      for (size_t i = 0; i < loose_.size() && tally_.RoleDeficit(role, minimum) > 0; ++i) {
        if (!loose_taken_[i] && state_.pod(loose_[i]).role == role) {
          ChooseLoose(i);
        }
      }
    }
  }
  void FillUp() {
    for (uint32_t g = 0; g < open_.size() && tally_.total() < std::max(1, gang_.min_member); ++g) {
      if (CanComplete(g)) {
        Choose(g);
      }
    }
    for (size_t i = 0; i < loose_.size() && tally_.total() < std::max(1, gang_.min_member); ++i) {
      if (!loose_taken_[i]) {
        ChooseLoose(i);
      }
    }
    // A sub-group may hold more pods than its own minimum; the gang's may need them.
    for (uint32_t g = 0; g < open_.size(); ++g) {
      while (tally_.total() < std::max(1, gang_.min_member) && Missing(g) <= 0 &&
             !open_[g].empty()) {
        tally_.Add(open_[g].front());
        AddToChosen(g, open_[g].front());
        open_[g].erase(open_[g].begin());
      }
    }
  }
  void AddToChosen(uint32_t g, PodId pod) {
    for (SingleGroup& group : chosen_groups_) {
      if (group.sub_group == g) {
        group.pods.push_back(pod);
        return;
      }
    }
    chosen_groups_.push_back({g, {pod}, true});
  }

  void CollectOptional() {
    std::vector<SingleGroup> groups;
    for (uint32_t g = 0; g < open_.size(); ++g) {
      // Surplus of a group that has its minimum comes one by one, a new group whole.
      if (Missing(g) <= 0 && !open_[g].empty()) {
        groups.push_back({g, open_[g], false});
      } else if (CanComplete(g)) {
        Choose(g);
        groups.push_back(chosen_groups_.back());
      }
    }
    demand_.optional = Batched(groups, LooseLeft(), demand_.all_counts);
  }

  [[nodiscard]] bool IsFresh(const SingleGroup& group) const {
    const ShapeId shape = state_.ShapeOf(group.pods.front());
    const auto& members = gang_.sub_groups[group.sub_group].pods;
    const bool untouched =
        std::ranges::none_of(members, [&](PodId id) { return IsPlaced(state_.pod(id)); });
    return untouched &&
           static_cast<int32_t>(group.pods.size()) ==
               gang_.policies[gang_.sub_groups[group.sub_group].policy].size &&
           std::ranges::all_of(group.pods, [&](PodId id) { return state_.ShapeOf(id) == shape; });
  }

  // `counts` gains the pods of the batch, by class.
  Batch Batched(const std::vector<SingleGroup>& groups, std::vector<PodId> loose,
                std::vector<int32_t>& counts) {
    Batch batch;
    for (const SingleGroup& group : groups) {
      const uint32_t policy = gang_.sub_groups[group.sub_group].policy;
      demand_.has_group_rule |=
          gang_.policies[policy].rule.mode != cluster::TopologyRule::Mode::kNone;
      for (const PodId id : group.pods) {
        Count(state_.ShapeOf(id), 1, counts);
      }
      if (!IsFresh(group)) {
        batch.singles.push_back(group);
        continue;
      }
      const size_t k = demand_.ClassOf(state_.ShapeOf(group.pods.front()));
      const auto same = std::ranges::find_if(batch.uniform, [&](const UniformGroups& u) {
        return u.policy == policy && u.k == k && u.size == static_cast<int32_t>(group.pods.size());
      });
      if (same != batch.uniform.end()) {
        same->sub_groups.push_back(group.sub_group);
      } else {
        batch.uniform.push_back(
            {policy, k, static_cast<int32_t>(group.pods.size()), {group.sub_group}});
      }
    }
    if (one_shape_.valid() && !loose.empty()) {
      Count(one_shape_, static_cast<int32_t>(loose.size()), counts);
    } else {
      for (const PodId id : loose) {
        Count(state_.ShapeOf(id), 1, counts);
      }
    }
    batch.loose = std::move(loose);
    return batch;
  }

  void Count(ShapeId shape, int32_t pods, std::vector<int32_t>& counts) {
    const auto k =
        static_cast<size_t>(std::ranges::find(demand_.classes, shape) - demand_.classes.begin());
    if (k == demand_.classes.size()) {
      demand_.classes.push_back(shape);
    }
    if (counts.size() <= k) {
      counts.resize(k + 1, 0);
    }
    counts[k] += pods;
  }

  void ExplainBlocked() {
    for (const PodId id : gang_.pods) {
      const PodRecord& pod = state_.pod(id);
      if (pod.state == PodState::kPending && !pod.blocker.empty()) {
        demand_.blocked = "pod " + pod.ns + "/" + pod.name + " " + pod.blocker;
        demand_.by_pod = true;
        return;
      }
    }
    for (const PodId id : gang_.pods) {
      if (state_.pod(id).state == PodState::kGated) {
        demand_.gated = true;
        demand_.blocked = "pod " + state_.pod(id).ns + "/" + state_.pod(id).name +
                          " waits for its scheduling gates";
        return;
      }
    }
    demand_.too_few = true;
    for (uint32_t g = 0; g < open_.size(); ++g) {
      const auto open = static_cast<int32_t>(open_[g].size());
      if (open > 0 && Missing(g) > open) {
        const cluster::SubGroup& group = gang_.sub_groups[g];
        demand_.blocked = "its sub-group " + group.name + " has " +
                          std::to_string(tally_.InGroup(g) + open) + " of the " +
                          std::to_string(gang_.policies[group.policy].size) +
                          " pods of one group, so that " + std::to_string(tally_.total()) +
                          " of the " + std::to_string(gang_.min_member) + " members count";
        return;
      }
    }
    demand_.blocked = "has " + std::to_string(tally_.total()) + " of the " +
                      std::to_string(gang_.min_member) + " members it needs";
  }

  cluster::State& state_;
  const Gang& gang_;
  Tally tally_;
  Demand demand_;
  std::vector<std::vector<PodId>> open_;  // placeable pods of each sub-group not chosen yet
  std::vector<bool> group_done_;
  std::vector<PodId> loose_;
  ShapeId one_shape_;  // of all loose_; none when they differ
  std::vector<bool> loose_taken_;
  std::vector<SingleGroup> chosen_groups_;
  std::vector<PodId> chosen_loose_;
};

}  // namespace

size_t Demand::ClassOf(ShapeId shape) const {
  const auto at = std::ranges::find(classes, shape);
  HOPWISE_CHECK(at != classes.end());
  return static_cast<size_t>(at - classes.begin());
}

int64_t Total(const std::vector<int32_t>& counts) {
  int64_t sum = 0;
  for (const int32_t count : counts) {
    sum += count;
  }
  return sum;
}

std::vector<int32_t> Demand::CountClasses(cluster::State& state,
                                          const std::vector<PodId>& pods) const {
  std::vector<int32_t> counts(classes.size(), 0);
  for (const PodId id : pods) {
    ++counts[ClassOf(state.ShapeOf(id))];
  }
  return counts;
}

Demand BuildDemand(cluster::State& state, GangId gang) { return Builder(state, gang).Run(); }

}  // namespace hopwise::sched
