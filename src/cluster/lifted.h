// Pods that are taken off their nodes for a trial: whatever is asked of the state meanwhile (fits,
// queues, the choice of a domain) is answered as if they were gone. All are put back when the scope
// ends.
#pragma once

#include <vector>

#include "base/ids.h"
#include "cluster/state.h"

namespace hopwise::cluster {

class Lifted {
 public:
  explicit Lifted(State& state) : state_(state) {}
  ~Lifted() { PutBackAll(); }
  Lifted(const Lifted&) = delete;
  Lifted& operator=(const Lifted&) = delete;

  void Lift(PodId pod) {
    state_.Lift(pod);
    pods_.push_back(pod);
  }
  void PutBack(PodId pod) {
    std::erase(pods_, pod);
    state_.PutBack(pod);
  }
  void PutBackAll() {
    for (const PodId pod : pods_) {
      state_.PutBack(pod);
    }
    pods_.clear();
  }

 private:
  State& state_;
  std::vector<PodId> pods_;
};

}  // namespace hopwise::cluster
