// What domains would take were everybody else gone: the line between "not now" and "never". All
// tests are necessary ones, so "never" is always a proof. What members of the gang hold stays held.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cluster/state.h"
#include "sched/choose.h"
#include "sched/demand.h"
#include "sched/scope.h"

namespace hopwise::sched {

// The first test that a domain fails.
struct Lack {
  enum class Kind : uint8_t {
    kNothing,
    kPods,    // too few pods of some class
    kGroups,  // `groups` of which only `room` are completed within their limit
    kAmount,  // `asked` of the resource in all, `there` is what its nodes have
  };
  Kind kind = Kind::kNothing;
  const UniformGroups* groups = nullptr;
  int64_t room = 0;
  ResourceId resource;
  int64_t there = 0, asked = 0;
};

class EmptyRoom {
 public:
  EmptyRoom(cluster::State& state, const cluster::Gang& gang, const Demand& demand);

  // Pods of class k that d would take, up to `most`.
  [[nodiscard]] int64_t FitOf(const topology::Tree& tree, DomainId d, size_t k, int64_t most) const;
  // Required pods that d would take by class, each up to what is required.
  [[nodiscard]] int64_t Fit(const topology::Tree& tree, DomainId d) const;
  // What d lacks for the required members.
  [[nodiscard]] Lack LackOf(const topology::Tree& tree, DomainId d) const;
  // Whether any domain that the scope allows lacks nothing.
  [[nodiscard]] bool AnyCanHold(const Scope& scope) const;
  // The allowed domain that would take most required pods, the first of several.
  [[nodiscard]] BestEffortDomain Best(const Scope& scope) const;
  [[nodiscard]] bool holds_some() const { return !own_.empty(); }

 private:
  using Sums = std::vector<std::vector<int64_t>>;  // by class, by domain

  // What members hold on the node, by resource; nullptr for nothing.
  [[nodiscard]] const std::vector<int64_t>* OwnOn(NodeId node) const;
  [[nodiscard]] int64_t FitNode(NodeId node, size_t k) const;
  [[nodiscard]] Sums SumsIn(const topology::Tree& tree, DomainId d) const;
  [[nodiscard]] Sums SumsOfAll(const topology::Tree& tree) const;
  [[nodiscard]] Lack LackBy(const topology::Tree& tree, DomainId d, const Sums& sums) const;
  [[nodiscard]] Lack LackOfAmounts(const topology::Tree& tree, DomainId d) const;
  [[nodiscard]] int64_t Bound(const topology::Tree& tree, DomainId d) const;
  [[nodiscard]] int64_t FitBy(DomainId d, const Sums& sums) const;

  cluster::State& state_;
  const cluster::Gang& gang_;
  const Demand& demand_;
  // Amounts by resource that members hold, by node; sorted.
  std::vector<std::pair<NodeId, std::vector<int64_t>>> own_;
};

}  // namespace hopwise::sched
