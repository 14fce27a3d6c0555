// What State keeps besides its records. Only for the sources of this module.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include "api/batch.h"
#include "base/ids.h"
#include "cluster/model.h"
#include "cluster/pod_facts.h"
#include "cluster/state.h"
#include "topology/forest.h"

namespace hopwise::cluster {

// Ids that something happened to, each once.
template <class IdType>
class MarkList {
 public:
  void Mark(IdType id) {
    if (id.index() >= marked_.size()) marked_.resize(id.index() + 1, 0);
    if (std::exchange(marked_[id.index()], uint8_t{1}) == 0) ids_.push_back(id);
  }
  std::vector<IdType> Take() {
    for (const IdType id : ids_) marked_[id.index()] = 0;
    std::sort(ids_.begin(), ids_.end());
    return std::exchange(ids_, {});
  }

 private:
  std::vector<IdType> ids_;
  std::vector<uint8_t> marked_;
};

// How often each of a few keys occurs; sorted by key.
template <class Key>
class Tally {
 public:
  void Add(Key key, int32_t times) {
    const auto at = std::lower_bound(counts_.begin(), counts_.end(), key,
                                     [](const auto& item, Key k) { return item.first < k; });
    if (at == counts_.end() || at->first != key) {
      counts_.insert(at, {key, times});
    } else if ((at->second += times) == 0) {
      counts_.erase(at);
    }
  }
  [[nodiscard]] int32_t Count(Key key) const {
    for (const auto& [k, count] : counts_) {
      if (k == key) return count;
    }
    return 0;
  }
  [[nodiscard]] const std::vector<std::pair<Key, int32_t>>& items() const { return counts_; }

 private:
  std::vector<std::pair<Key, int32_t>> counts_;
};

// Of gangs that are no lone pods: the PodGroup and sums over the members, so that one more member
// costs nothing that grows with the gang.
struct GangDetails {
  GangKind kind = GangKind::kVolcano;
  std::unique_ptr<api::PodGroup> object;  // without what status and metadata hold for others
  Tally<uint32_t> declarations;
  Tally<int32_t> priorities;
  Tally<StringId> roles;  // of valid members
  int32_t valid = 0, bound = 0, succeeded = 0;
};

struct PriorityValue {
  int32_t value = 0;
  bool global_default = false;

  friend bool operator==(const PriorityValue&, const PriorityValue&) = default;
};

// Look-up of records by names that the records themselves hold.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

struct NodeNameHash {
  using is_transparent = void;
  const std::deque<NodeRecord>* nodes;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  size_t operator()(NodeId id) const { return (*this)((*nodes)[id.index()].name); }
};
struct NodeNameEqual {
  using is_transparent = void;
  const std::deque<NodeRecord>* nodes;
  bool operator()(NodeId a, NodeId b) const { return a == b; }
  bool operator()(std::string_view name, NodeId id) const {
    return (*nodes)[id.index()].name == name;
  }
  bool operator()(NodeId id, std::string_view name) const { return (*this)(name, id); }
};

struct PodKey {
  std::string_view ns, name;
};
struct PodKeyHash {
  using is_transparent = void;
  const std::deque<PodRecord>* pods;
  size_t operator()(const PodKey& key) const {
    const std::hash<std::string_view> hash;
    return hash(key.name) * 31 + hash(key.ns);
  }
  size_t operator()(PodId id) const {
    const PodRecord& pod = (*pods)[id.index()];
    return (*this)(PodKey{pod.ns, pod.name});
  }
};
struct PodKeyEqual {
  using is_transparent = void;
  const std::deque<PodRecord>* pods;
  bool operator()(PodId a, PodId b) const { return a == b; }
  bool operator()(const PodKey& key, PodId id) const {
    const PodRecord& pod = (*pods)[id.index()];
    return pod.name == key.name && pod.ns == key.ns;
  }
  bool operator()(PodId id, const PodKey& key) const { return (*this)(key, id); }
};

struct State::Impl {
  Impl(const std::deque<NodeRecord>& nodes, const std::deque<PodRecord>& pods)
      : node_index(0, NodeNameHash{&nodes}, NodeNameEqual{&nodes}),
        pod_index(0, PodKeyHash{&pods}, PodKeyEqual{&pods}) {}

  boost::unordered_flat_set<NodeId, NodeNameHash, NodeNameEqual> node_index;
  std::vector<NodeId> free_nodes;
  boost::unordered_flat_set<PodId, PodKeyHash, PodKeyEqual> pod_index;
  std::vector<PodId> free_pods;
  uint64_t next_sequence = 1;

  // Gangs by kind, namespace and name, see GangBuilder::KeyOf; lone pods are not listed.
  boost::unordered_flat_map<std::string, GangId, StringHash, std::equal_to<>> gang_index;
  std::vector<GangId> free_gangs;
  std::vector<std::unique_ptr<GangDetails>> details;  // by gang; null for lone pods
  std::vector<QueueId> queue_slot;  // by gang: valid also where the queue does not exist

  std::vector<Declaration> declarations = {Declaration{}};  // [0]: asks for nothing
  std::map<std::string, uint32_t, std::less<>> declaration_ids;

  std::map<std::string, PriorityValue, std::less<>> priority_classes;
  int32_t default_priority = 0;

  MarkList<NodeId> roomier;
  MarkList<GangId> changed_gangs;

  topology::Forest forest;
  bool forest_stale = true;
  std::shared_ptr<const topology::Topology> topology;
  uint64_t reported_topology = 0;

  struct LabelTree {
    std::vector<std::string> keys;
    std::unique_ptr<topology::Tree> tree;
  };
  std::vector<LabelTree> label_trees;
  uint64_t labels_epoch = 0;                         // grows with the set of nodes and their labels
  uint64_t label_trees_epoch = 0;                    // what label_trees were made of
  std::shared_ptr<const topology::Topology> listed;  // what `trees` points into
  std::vector<const topology::Tree*> trees;
  uint64_t trees_version = 0;
};

}  // namespace hopwise::cluster
