#include "kube/backoff.h"

#include <algorithm>

namespace hopwise::kube {

Duration Backoff::Next(uint64_t random) {
  const auto span = static_cast<uint64_t>(std::max<int64_t>(next_.ns, 1));
  const Duration wait{next_.ns + static_cast<int64_t>(random % span)};
  // Compared before it is doubled, so that no choice of `most` can overflow.
  next_ = next_.ns > most_.ns / 2 ? most_ : Duration{next_.ns * 2};
  return wait;
}

}  // namespace hopwise::kube
