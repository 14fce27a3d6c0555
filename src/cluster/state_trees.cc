// The trees a rule may use: fabrics of the HyperNodes, and trees of node labels on demand.
#include <algorithm>
#include <tuple>
#include <utility>

#include "cluster/state.h"
#include "cluster/state_impl.h"

namespace hopwise::cluster {
namespace {

bool Same(const topology::Domain& a, const topology::Domain& b) {
  return std::tie(a.name, a.tier_name, a.tier, a.rank, a.parent, a.end, a.lo, a.direct, a.hi) ==
         std::tie(b.name, b.tier_name, b.tier, b.rank, b.parent, b.end, b.lo, b.direct, b.hi);
}

bool Same(const topology::Tree& a, const topology::Tree& b) {
  return std::tie(a.fabric, a.order, a.position, a.leaf_of, a.tiers, a.tier_names) ==
             std::tie(b.fabric, b.order, b.position, b.leaf_of, b.tiers, b.tier_names) &&
         std::equal(a.domains.begin(), a.domains.end(), b.domains.begin(), b.domains.end(),
                    [](const auto& x, const auto& y) { return Same(x, y); });
}

}  // namespace

const topology::Topology& State::topology() {
  if (std::exchange(impl_->forest_stale, false) || impl_->topology == nullptr) {
    impl_->topology = impl_->forest.Snapshot();
  }
  return *impl_->topology;
}

const std::vector<const topology::Tree*>& State::trees() {
  topology();
  bool changed = impl_->listed != impl_->topology;
  if (impl_->label_trees_epoch != impl_->labels_epoch) {
    for (Impl::LabelTree& label_tree : impl_->label_trees) {
      topology::Tree fresh = impl_->forest.LabelTree(label_tree.keys);
      if (label_tree.tree != nullptr && Same(*label_tree.tree, fresh)) continue;
      label_tree.tree = std::make_unique<topology::Tree>(std::move(fresh));
      changed = true;
    }
    impl_->label_trees_epoch = impl_->labels_epoch;
  }
  if (!changed) return impl_->trees;
  impl_->listed = impl_->topology;
  impl_->trees.clear();
  for (const topology::Tree& tree : impl_->topology->trees) impl_->trees.push_back(&tree);
  for (const Impl::LabelTree& label_tree : impl_->label_trees) {
    impl_->trees.push_back(label_tree.tree.get());
  }
  ++impl_->trees_version;
  return impl_->trees;
}

uint64_t State::trees_version() {
  trees();
  return impl_->trees_version;
}

size_t State::LabelTreeIndex(const std::vector<std::string>& keys) {
  trees();
  const size_t fabrics = impl_->topology->trees.size();
  for (size_t t = 0; t < impl_->label_trees.size(); ++t) {
    if (impl_->label_trees[t].keys == keys) return fabrics + t;
  }
  Impl::LabelTree label_tree{keys, std::make_unique<topology::Tree>(impl_->forest.LabelTree(keys))};
  impl_->trees.push_back(label_tree.tree.get());
  impl_->label_trees.push_back(std::move(label_tree));
  ++impl_->trees_version;
  return fabrics + impl_->label_trees.size() - 1;
}

}  // namespace hopwise::cluster
