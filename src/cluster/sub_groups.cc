// Sub-groups of a gang: which one a pod belongs to, and the sorted list of them.
#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "cluster/gangs.h"

namespace hopwise::cluster {
namespace {

// As Go's strconv.Atoi reads it, 0 for what is no number.
int64_t NumberOf(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  return done.ec == std::errc() && done.ptr == text.data() + text.size() ? value : 0;
}

}  // namespace

api::StringMap GangBuilder::Unpack(const PackedLabels& labels) const {
  api::StringMap map;
  map.reserve(labels.size());
  for (const auto& [key, value] : labels) map.emplace_back(state_.Text(key), state_.Text(value));
  std::sort(map.begin(), map.end());
  return map;
}

GangBuilder::Seat GangBuilder::FindSeat(const std::vector<api::SubGroupPolicy>& policies,
                                        const api::StringMap& labels) {
  for (size_t p = 0; p < policies.size(); ++p) {
    const api::SubGroupPolicy& policy = policies[p];
    if (policy.selector && !api::Matches(*policy.selector, labels)) continue;
    Seat seat;
    seat.name = policy.name;
    size_t found = 0;
    for (const std::string& key : policy.match_label_keys) {
      const std::string* value = api::Find(labels, key);
      if (value == nullptr || value->empty()) break;
      if (++found == 1) seat.match_index = NumberOf(*value);
      seat.name.append("-").append(*value);
    }
    if (found == 0 || found < policy.match_label_keys.size()) continue;
    seat.policy = static_cast<uint32_t>(p);
    return seat;
  }
  return {};
}

void GangBuilder::EnterSubGroup(PodId id, GangId gang_id) {
  const GangDetails* details = DetailsOf(gang_id);
  if (details == nullptr || details->object == nullptr || details->object->sub_groups.empty()) {
    return;
  }
  PodRecord& pod = PodAt(id);
  Seat seat = FindSeat(details->object->sub_groups, Unpack(pod.labels));
  if (seat.policy == PodRecord::kNoSubGroup) return;
  std::vector<SubGroup>& groups = At(gang_id).sub_groups;
  const auto at =
      std::lower_bound(groups.begin(), groups.end(), seat, [](const SubGroup& a, const Seat& b) {
        return std::tie(a.policy, a.match_index, a.name) <
               std::tie(b.policy, b.match_index, b.name);
      });
  const auto index = static_cast<size_t>(at - groups.begin());
  if (at == groups.end() || at->policy != seat.policy || at->name != seat.name) {
    groups.insert(at, {seat.policy, std::move(seat.name), seat.match_index, 0, {}});
    RenumberSubGroups(gang_id, index + 1);
  }
  InsertSorted(groups[index].pods, id);
  pod.sub_group = static_cast<uint32_t>(index);
}

void GangBuilder::LeaveSubGroup(PodId id, GangId gang_id) {
  PodRecord& pod = PodAt(id);
  if (pod.sub_group == PodRecord::kNoSubGroup) return;
  std::vector<SubGroup>& groups = At(gang_id).sub_groups;
  const size_t index = pod.sub_group;
  std::vector<PodId>& pods = groups[index].pods;
  pods.erase(std::find(pods.begin(), pods.end(), id));
  if (pods.empty()) {
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(index));
    RenumberSubGroups(gang_id, index);
  }
  pod.sub_group = PodRecord::kNoSubGroup;
}

void GangBuilder::RenumberSubGroups(GangId gang, size_t from) {
  std::vector<SubGroup>& groups = At(gang).sub_groups;
  for (size_t g = from; g < groups.size(); ++g) {
    for (const PodId pod : groups[g].pods) PodAt(pod).sub_group = static_cast<uint32_t>(g);
  }
}

void GangBuilder::RebuildSubGroups(GangId id) {
  for (const PodId pod : At(id).pods) {
    Count(pod, -1);
    PodAt(pod).sub_group = PodRecord::kNoSubGroup;
  }
  At(id).sub_groups.clear();
  for (const PodId pod : At(id).pods) {
    EnterSubGroup(pod, id);
    Count(pod, 1);
  }
}

}  // namespace hopwise::cluster
