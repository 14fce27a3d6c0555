// What a pod asks of the pods around it: inter-pod affinity and topology spread. Keys of
// matchLabelKeys and mismatchLabelKeys are in the selectors already, as the API server puts them
// there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.h"

namespace hopwise::api {

struct PodAffinityTerm {
  std::string topology_key;
  std::optional<LabelSelector> selector;            // absent: selects no pod
  std::vector<std::string> namespaces;              // with neither, the pod's own namespace
  std::optional<LabelSelector> namespace_selector;  // on labels of namespaces; adds to the list
};

struct WeightedPodAffinityTerm {
  int32_t weight = 0;
  PodAffinityTerm term;
};

struct SpreadConstraint {
  std::string topology_key;
  std::optional<LabelSelector> selector;  // absent: counts no pod
  int32_t max_skew = 1;
  int32_t min_domains = 1;
  bool hard = true;            // whenUnsatisfiable: DoNotSchedule
  bool honor_affinity = true;  // nodeAffinityPolicy
  bool honor_taints = false;   // nodeTaintsPolicy
};

struct PodTerms {
  std::vector<PodAffinityTerm> affinity, anti_affinity;  // required
  std::vector<WeightedPodAffinityTerm> preferred_affinity, preferred_anti_affinity;
  std::vector<SpreadConstraint> spread;
};

}  // namespace hopwise::api
