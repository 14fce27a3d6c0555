// Makes the trees: domains with their intervals, tiers and ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "topology/assign.h"
#include "topology/forest.h"
#include "topology/link.h"
#include "topology/nodes.h"
#include "topology/tree.h"

namespace hopwise::topology {

// The tree of one fabric. `nodes` is in natural order, all ids are less than `ids`.
Tree PlantFabric(const Links& links, const Skeleton& sound, const Assignment& assignment,
                 uint32_t fabric, std::span<const NodeId> nodes, size_t ids);

// A tree of depth one: a domain for each tuple of values of the labels `keys`. See
// Forest::LabelTree. `sorted` are the live nodes of the table in natural order.
Tree PlantLabels(std::span<const NodeId> sorted, const NodeTable& nodes,
                 const std::vector<std::string>& keys);

// For a tree whose domains have names, parents and ends: fills `order`, `position`, `leaf_of` and
// the intervals. domain_of[i] is the domain of nodes[i].
void LayOut(std::span<const NodeId> nodes, std::span<const uint32_t> domain_of, size_t ids,
            Tree& tree);

// For a tree whose domains (but the virtual root) have tiers: fills `tiers`, `tier_names`, the
// ranks and the virtual root's tier.
void RankTiers(Tree& tree);

// Add warnings about domains that stand all the same: kEmpty, and kTierNameClash.
void WarnOfEmpty(const Tree& tree, std::vector<Fault>& faults);
void WarnOfTierNames(const Tree& tree, std::vector<Fault>& faults);

}  // namespace hopwise::topology
