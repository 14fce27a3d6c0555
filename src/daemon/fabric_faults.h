// What is wrong with the HyperNodes, told on them: an Event for each fault that stands for a while,
// once. While objects are being made, a child that is yet to come is no news.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "api/batch.h"
#include "base/time.h"
#include "daemon/effects.h"
#include "topology/forest.h"

namespace hopwise::daemon {

inline constexpr Duration kFaultStands = Seconds(2);

class FabricFaults {
 public:
  void Apply(const api::HyperNode& object) { uids_[object.meta.name] = object.meta.uid; }
  void Remove(const std::string& name) { uids_.erase(name); }

  // Compares with what stood before, and tells what has stood long enough.
  void Look(const topology::Topology& topology, Time now, Effects& effects);
  [[nodiscard]] Time next_wake() const { return next_wake_; }
  [[nodiscard]] size_t size() const { return faults_.size(); }

 private:
  struct Standing {
    topology::FaultKind kind;
    Time since;
    bool told = false;
  };
  std::map<std::string, std::string> uids_;                         // by name
  std::map<std::pair<std::string, std::string>, Standing> faults_;  // by object and message
  bool seen_ = false;
  uint64_t version_ = 0;  // of the topology that faults_ is of
  Time next_wake_;
};

}  // namespace hopwise::daemon
