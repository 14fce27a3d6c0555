// For what waits for answers and may be gone before they come: a callback that is guarded is passed
// over once its guard's owner is no more. For one thread, the loop's.
#pragma once

#include <memory>
#include <utility>

namespace hopwise::kube {

class Lifeline {
 public:
  Lifeline() = default;
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  template <class Call>
  [[nodiscard]] auto Guard(Call call) const {
    return [weak = std::weak_ptr<bool>(alive_), call = std::move(call)](auto&&... args) mutable {
      if (!weak.expired()) {
        call(std::forward<decltype(args)>(args)...);
      }
    };
  }

 private:
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace hopwise::kube
