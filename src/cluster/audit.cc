// What the state is checked with: a recount of everything that is kept as a sum, and the bytes
// held.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/quantity.h"
#include "cluster/gangs.h"
#include "cluster/state.h"
#include "cluster/state_impl.h"

namespace hopwise::cluster {

std::string State::Audit() const {
  for (const auto audit : {&State::AuditNodes, &State::AuditPods, &State::AuditGangs,
                           &State::AuditQueues, &State::AuditLabels}) {
    std::string problem = (this->*audit)();
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string State::AuditNodes() const {
  std::vector<std::vector<PodId>> listed(nodes_.size());
  std::vector<std::vector<int64_t>> used(columns_.resource_count(),
                                         std::vector<int64_t>(nodes_.size(), 0));
  for (size_t p = 0; p < pods_.size(); ++p) {
    const PodRecord& pod = pods_[p];
    if (!pod.alive || !HoldsRoom(pod.state)) continue;
    if (!pod.host.valid()) return "pod " + pod.name + " holds room on no node";
    listed[pod.host.index()].emplace_back(p);
    const bool alive = node(pod.host).alive;
    if (pod.node != (alive ? pod.host : NodeId())) return "pod " + pod.name + ": wrong node";
    if (!alive) continue;
    for (const auto& [r, amount] : RequestOf(PodId(p))) {
      int64_t& sum = used[r.index()][pod.host.index()];
      sum = SaturatingAdd(sum, amount);
    }
  }
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const NodeRecord& record = nodes_[n];
    std::vector<PodId> pods = pods_on_[n];
    std::sort(pods.begin(), pods.end());
    if (pods != listed[n] || record.pods != pods.size()) {
      return "node " + record.name + ": lists other pods than those that are on it";
    }
    if (record.name.empty() && (record.alive || !pods.empty())) return "a free node slot is in use";
    if (!record.name.empty() && FindNodeSlot(record.name) != NodeId(n)) {
      return "node " + record.name + " is not found by its name";
    }
    for (size_t r = 0; r < used.size(); ++r) {
      if (columns_.used(ResourceId(r))[n] != used[r][n]) {
        return "node " + record.name + ": used " + columns_.ResourceName(ResourceId(r)) + " is " +
               std::to_string(columns_.used(ResourceId(r))[n]) + ", its pods hold " +
               std::to_string(used[r][n]);
      }
    }
    for (const auto& [pod, port] : record.ports) {
      if (!std::binary_search(pods.begin(), pods.end(), pod)) {
        return "node " + record.name + ": a port is taken by a pod that is not there";
      }
    }
  }
  return "";
}

std::string State::AuditPods() const {
  for (size_t p = 0; p < pods_.size(); ++p) {
    const PodRecord& pod = pods_[p];
    const PodId id(p);
    if (!pod.alive) continue;
    if (FindPod(pod.ns, pod.name) != id) return "pod " + pod.name + " is not found by its name";
    if (!HoldsRoom(pod.state) && (pod.host.valid() || pod.node.valid())) {
      return "pod " + pod.name + " has a node but holds nothing there";
    }
    if (pod.charged != (pod.gang.valid() && HoldsRoom(pod.state))) {
      return "pod " + pod.name + ": charged to its queue or not, wrongly";
    }
    if (!pod.gang.valid()) continue;
    const Gang& gang = this->gang(pod.gang);
    if (!gang.alive || std::count(gang.pods.begin(), gang.pods.end(), id) != 1) {
      return "pod " + pod.name + " is not in the list of its gang";
    }
    if (pod.sub_group == PodRecord::kNoSubGroup) continue;
    const std::vector<PodId>& members = gang.sub_groups[pod.sub_group].pods;
    if (std::count(members.begin(), members.end(), id) != 1) {
      return "pod " + pod.name + " is not in the list of its sub-group";
    }
  }
  return "";
}

// A label that is held by more than it has uses would come to mean something else.
std::string State::AuditLabels() const {
  std::vector<uint64_t> held(strings_.size(), 0);
  const auto count = [&](const PackedLabels& labels) {
    for (const auto& [key, value] : labels) {
      ++held[key.index()];
      ++held[value.index()];
    }
  };
  for (const NodeRecord& record : nodes_) count(record.labels);
  for (const PodRecord& pod : pods_) count(pod.labels);
  for (size_t s = 0; s < held.size(); ++s) {
    if (held[s] > strings_.uses(StringId(s))) return "label " + strings_.Text(StringId(s));
  }
  return "";
}

namespace {

std::string AuditSubGroups(const State& state, const Gang& gang) {
  for (size_t g = 0; g < gang.sub_groups.size(); ++g) {
    const SubGroup& group = gang.sub_groups[g];
    int32_t valid = 0;
    for (const PodId pod : group.pods) {
      if (state.pod(pod).sub_group != g) return "gang " + gang.name + ": sub-group of a pod";
      valid += IsValidMember(state.pod(pod)) ? 1 : 0;
    }
    if (group.pods.empty() || valid != group.valid) {
      return "gang " + gang.name + ": members of sub-group " + group.name;
    }
    if (g > 0) {
      const SubGroup& before = gang.sub_groups[g - 1];
      if (std::tie(before.policy, before.match_index, before.name) >=
          std::tie(group.policy, group.match_index, group.name)) {
        return "gang " + gang.name + ": order of sub-groups";
      }
    }
  }
  return "";
}

}  // namespace

std::string State::AuditGangs() const {
  for (size_t g = 0; g < gangs_.size(); ++g) {
    const Gang& gang = gangs_[g];
    const GangDetails* details = impl_->details[g].get();
    if (!gang.alive) continue;
    if (gang.pods.empty() && (details == nullptr || details->object == nullptr)) {
      return "gang " + gang.name + " has neither pods nor a PodGroup";
    }
    int32_t valid = 0, bound = 0, succeeded = 0;
    for (size_t i = 0; i < gang.pods.size(); ++i) {
      const PodRecord& pod = this->pod(gang.pods[i]);
      if (pod.gang != GangId(g)) return "gang " + gang.name + " lists another's pod " + pod.name;
      valid += IsValidMember(pod) ? 1 : 0;
      bound += pod.state == PodState::kBound && !pod.terminating ? 1 : 0;
      succeeded += pod.succeeded ? 1 : 0;
      if (i == 0) continue;
      const PodRecord& before = this->pod(gang.pods[i - 1]);
      if (std::tie(before.creation, before.index, before.name) >
          std::tie(pod.creation, pod.index, pod.name)) {
        return "gang " + gang.name + ": order of pods";
      }
    }
    if (details != nullptr && std::tie(details->valid, details->bound, details->succeeded) !=
                                  std::tie(valid, bound, succeeded)) {
      return "gang " + gang.name + ": sums over its members";
    }
    std::string problem = AuditSubGroups(*this, gang);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string State::AuditQueues() const {
  std::vector<std::vector<int64_t>> own(queues_.size(),
                                        std::vector<int64_t>(columns_.resource_count(), 0));
  for (size_t p = 0; p < pods_.size(); ++p) {
    const PodRecord& pod = pods_[p];
    if (!pod.alive || !pod.gang.valid() || !HoldsRoom(pod.state)) continue;
    const QueueId slot = impl_->queue_slot[pod.gang.index()];
    const Gang& gang = this->gang(pod.gang);
    if (queue(slot).name != gang.queue_name ||
        gang.queue != (queue(slot).alive ? slot : QueueId())) {
      return "gang " + gang.name + " is in another queue than it names";
    }
    for (const auto& [r, amount] : RequestOf(PodId(p))) own[slot.index()][r.index()] += amount;
  }
  return queues_.Audit(own);
}

namespace {

size_t HeapBytes(const std::string& text) {
  constexpr size_t kInPlace = 15;
  return text.capacity() > kInPlace ? text.capacity() + 1 : 0;
}

template <class T>
size_t HeapBytes(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

size_t BytesOf(const NodeRecord& node) {
  size_t bytes = sizeof(node) + HeapBytes(node.name) + HeapBytes(node.labels) +
                 HeapBytes(node.taints) + HeapBytes(node.ports);
  for (const api::Taint& taint : node.taints) {
    bytes += HeapBytes(taint.key) + HeapBytes(taint.value) + HeapBytes(taint.effect);
  }
  for (const auto& [pod, port] : node.ports) bytes += HeapBytes(port.ip) + HeapBytes(port.protocol);
  return bytes;
}

size_t BytesOf(const PodRecord& pod) {
  return sizeof(pod) + HeapBytes(pod.ns) + HeapBytes(pod.name) + HeapBytes(pod.uid) +
         HeapBytes(pod.labels) + HeapBytes(pod.blocker);
}

size_t BytesOf(const Gang& gang) {
  size_t bytes = sizeof(gang) + HeapBytes(gang.ns) + HeapBytes(gang.name) + HeapBytes(gang.uid) +
                 HeapBytes(gang.min_per_role) + HeapBytes(gang.policies) +
                 HeapBytes(gang.sub_groups) + HeapBytes(gang.queue_name) + HeapBytes(gang.phase) +
                 HeapBytes(gang.pods) + HeapBytes(gang.invalid) + HeapBytes(gang.invalid_reason) +
                 HeapBytes(gang.warnings);
  for (const SubGroup& group : gang.sub_groups) {
    bytes += HeapBytes(group.name) + HeapBytes(group.pods);
  }
  for (const std::string& warning : gang.warnings) bytes += HeapBytes(warning);
  return bytes;
}

size_t BytesOf(const StringPool& pool) {
  // Beside the text: its string, and its view and id in the index.
  size_t bytes = pool.size() * (sizeof(std::string) + 2 * (sizeof(std::string_view) + 8));
  for (size_t s = 0; s < pool.size(); ++s) bytes += HeapBytes(pool.Text(StringId(s)));
  return bytes;
}

}  // namespace

State::Memory State::MemoryBytes() const {
  Memory memory;
  memory.nodes = columns_.MemoryBytes() + HeapBytes(pods_on_) +
                 impl_->node_index.bucket_count() * sizeof(NodeId);
  for (const NodeRecord& record : nodes_) memory.nodes += BytesOf(record);
  memory.pods = impl_->pod_index.bucket_count() * sizeof(PodId);
  for (const std::vector<PodId>& pods : pods_on_) memory.pods += HeapBytes(pods);
  for (const PodRecord& pod : pods_) memory.pods += BytesOf(pod);
  for (const Gang& gang : gangs_) memory.pods += BytesOf(gang);
  for (const auto& details : impl_->details) {
    memory.pods += sizeof(details) + (details != nullptr ? sizeof(*details) : 0);
    if (details != nullptr && details->object != nullptr) memory.pods += sizeof(api::PodGroup);
  }
  memory.other = BytesOf(strings_) + fits_->MemoryBytes() + queues_.MemoryBytes();
  return memory;
}

}  // namespace hopwise::cluster
