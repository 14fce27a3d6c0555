// Whether a node's labels, name and taints are what a pod or a volume asks for.
#pragma once

#include <vector>

#include "api/core.h"
#include "cluster/fit.h"
#include "cluster/model.h"

namespace hopwise::cluster {

class State;

// Whether the labels meet every requirement.
bool MatchesAll(const State& state, const NodeRecord& node,
                const std::vector<api::Requirement>& requirements);
// Whether the labels and the name meet all of any term; a term that asks nothing selects nothing.
bool MatchesAny(const State& state, const NodeRecord& node,
                const std::vector<api::NodeSelectorTerm>& terms);
// The pod's own nodeSelector and required node affinity.
bool MatchesNodeAffinity(const State& state, const NodeRecord& node, const PredicateSet& set);
bool ToleratesAll(const std::vector<api::Toleration>& tolerations,
                  const std::vector<api::Taint>& taints);

}  // namespace hopwise::cluster
