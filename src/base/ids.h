// Dense 32-bit ids. Each kind of id is a type of its own, so that a node cannot index a pod column.
// Ids of one kind are handed out from 0 upwards by their owner and index its columns; kNone marks
// "no such".
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace hopwise {

template <class Tag>
struct Id {
  static constexpr uint32_t kNoneValue = 0xffffffffU;
  uint32_t value = kNoneValue;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  [[nodiscard]] constexpr bool valid() const { return value != kNoneValue; }
  [[nodiscard]] constexpr size_t index() const { return value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using NodeId = Id<struct NodeTag>;
using PodId = Id<struct PodTag>;
using GangId = Id<struct GangTag>;
using QueueId = Id<struct QueueTag>;
using ResourceId = Id<struct ResourceTag>;  // a column of allocatable/used
using ClassId = Id<struct ClassTag>;        // a resource class: the same requests
using PredicateId =
    Id<struct PredicateTag>;            // a predicate set: the same selectors, tolerations, ports
using ShapeId = Id<struct ShapeTag>;    // class x predicate set
using DomainId = Id<struct DomainTag>;  // index into topology::Tree::domains of one tree
using StringId = Id<struct StringTag>;  // see StringPool

}  // namespace hopwise
