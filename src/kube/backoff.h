// Waits that grow after each failure, with jitter so that clients do not come back in step.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace hopwise::kube {

class Backoff {
 public:
  // The first wait is `first`, each further one twice as long up to `most`.
  Backoff(Duration first, Duration most) : first_(first), most_(most), next_(first) {}

  // The next wait: between it and twice it, as client-go's jitter factor 1.0 has it. `random` is
  // any number.
  Duration Next(uint64_t random);
  void Reset() { next_ = first_; }

 private:
  Duration first_, most_, next_;
};

}  // namespace hopwise::kube
