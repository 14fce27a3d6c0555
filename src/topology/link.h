// From HyperNode objects to forests: which object is whose child, and which are out for it. Reads
// no nodes, so the result is kept until a HyperNode changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "topology/forest.h"

namespace hopwise::topology {

inline constexpr uint32_t kNoObject = 0xffffffffU;

// What linking reads of one HyperNode.
struct LinkInput {
  std::string name, tier_name, fabric;
  int32_t tier = 0;
  Time creation;
  const std::vector<std::string>* children = nullptr;  // sorted, unique
  bool bad_pattern = false;
};

// Index into Links::objects.
struct LinkObject {
  std::string name, tier_name;
  int32_t tier = 0;
  uint32_t fabric = 0;  // index into Links::fabrics
  Time creation;
  bool out = false;
  // The object that holds this one as a child, sound after linking. Also set for an object that is
  // out: that is where its nodes fall.
  uint32_t parent = kNoObject;
  uint32_t child_count = 0;  // existing objects it names
};

// A forest in depth-first order, the fabrics one after the other. Indexed by object unless said
// otherwise.
struct Skeleton {
  std::vector<uint32_t> preorder;      // place -> object
  std::vector<uint32_t> place;         // kNoObject for objects left out
  std::vector<uint32_t> end;           // one past the last place under the object
  std::vector<uint32_t> fabric_begin;  // by fabric, and one past the last

  // Whether `inner` lies under `outer` or is it.
  [[nodiscard]] bool Contains(uint32_t outer, uint32_t inner) const {
    return place[outer] <= place[inner] && place[inner] < end[outer];
  }
};

struct Links {
  std::vector<std::string> fabrics;  // [0] is "", the others sorted
  std::vector<LinkObject> objects;   // sorted by name
  std::vector<uint32_t> natural;     // all objects in natural order of their names
  Skeleton declared;                 // over `parent`, with the objects that are out
  std::vector<Fault> faults;
};

// `inputs` is sorted by name, names unique.
Links LinkHyperNodes(const std::vector<LinkInput>& inputs);

// The forest of the objects that are not out; children of those that are become roots.
Skeleton SoundSkeleton(const Links& links, const std::vector<char>& out);

}  // namespace hopwise::topology
