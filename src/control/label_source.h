// The topology that node labels tell: volcano-controller.conf's source "label".
//
// Each type is a fabric of its own (topology/forest.h), since the domains of two types may cross:
// the first is the primary one, the HyperNodes of the others bear hopwise.dev/fabric with the
// type's name.
//
// A type is a list of node labels from the widest domain to the node. Bottom-up, a node belongs to
// the domain of each label's value until the first label that it lacks (or whose value is empty).
// Tiers count from 1 at the bottom; a last label kubernetes.io/hostname stands for the node itself
// and is no tier.
//
// A domain is told by its type and by the values from its own label up to the widest: the same
// value under two parents makes two domains. A node whose chain ends early belongs to the one
// domain that has these values, if there is just one; where there are several, nobody can say
// which, and it gets a domain of its own, with a warning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/meta.h"
#include "base/result.h"
#include "control/discovery.h"

namespace hopwise::control {

inline constexpr std::string_view kLabelSource = "label";
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";
// Of a type's name, as Volcano limits it.
inline constexpr size_t kLongestTypeName = 20;

struct LabelType {
  std::string name;
  std::vector<std::string> labels;  // keys, from the widest
};

// "" or what is wrong with the types: a name that is too long, empty or met twice once cleaned; no
// label; a label twice; a key that is no label key.
std::string CheckLabelTypes(const std::vector<LabelType>& types);

struct LabelledNode {
  std::string_view name;
  const api::StringMap* labels = nullptr;
};

// Of types that CheckLabelTypes accepts.
Discovery DiscoverByLabels(const std::vector<LabelType>& types,
                           const std::vector<LabelledNode>& nodes);

}  // namespace hopwise::control
