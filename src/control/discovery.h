// What a topology discovery has found, and the way from the HyperNodes that exist to those that
// should. Pure: a source makes a Discovery (label_source.h, ufm_source.h), PlanHyperNodes compares.
//
// Ownership is told by the label volcano.sh/network-topology-source, whose value is the name of the
// source. A HyperNode without it, or with another value, is never touched; where one of those has a
// name that is wanted, the wanted one takes another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch.h"

namespace hopwise::control {

inline constexpr std::string_view kSourceLabel = "volcano.sh/network-topology-source";

// One domain that was found. Its members are nodes (the lowest tier) or domains, never both.
struct Domain {
  // Existing HyperNodes of the source whose name begins so and that bear `labels` may stand for it.
  // Where there are no labels, those that have most of their members in it, whatever their names.
  std::string prefix;
  // What makes it itself, whatever its members are; unique in the discovery. The name of one that
  // is new is the prefix and a hash of this.
  std::string identity;
  int32_t tier = 1;
  std::string tier_name;
  api::StringMap labels;           // without the source's
  api::StringMap marks;            // labels written beside these, which tell nothing of identity
  std::vector<std::string> nodes;  // sorted, unique
  std::vector<size_t> children;    // indexes into Discovery::domains
};

struct Discovery {
  std::vector<Domain> domains;  // children before their parents
  // What was found and cannot be taken as it is: sentences, sorted.
  std::vector<std::string> warnings;
};

struct HyperNodeWrite {
  enum class Kind : uint8_t { kCreate, kUpdate, kDelete };
  Kind kind = Kind::kCreate;
  bool gains = false;  // of an update: a member that it had not
  // Of an update and a deletion: with uid and resourceVersion of what is there; without the version
  // where an update of the same object comes before it in the plan.
  api::HyperNode object;
};

struct HyperNodePlan {
  // In this order no node is ever claimed by two domains, and no parent names a child that is not
  // there: what loses members, what goes, what comes (children first), what gains members. What
  // does both is written twice.
  std::vector<HyperNodeWrite> writes;
  size_t owned = 0;  // HyperNodes of the source that exist
  size_t goes = 0;   // those of them that are to be deleted
};

// `existing`: all HyperNodes, in the order of their names. Annotations and labels that others gave
// to a HyperNode of the source stay.
HyperNodePlan PlanHyperNodes(std::string_view source, const Discovery& discovery,
                             const std::vector<const api::HyperNode*>& existing);

// StableHash of the text as 8 letters and digits that read well ("0", "1", "a", "e", "i", "l", "o"
// and "u" are left out, so that no words come up).
std::string StableSuffix(std::string_view text);

}  // namespace hopwise::control
