// Keeps the caBundle of the WebhookConfigurations that are ours, on the client's loop: written when
// it is another, looked at again and again, as who applies a manifest anew may take it out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/errors.h"
#include "kube/lifeline.h"
#include "kube/resources.h"
#include "kube/transport.h"
#include "server/metrics.h"

namespace hopwise::daemon {

inline constexpr Duration kBundleLook = Seconds(5);

class CaBundle {
 public:
  // `names`: of mutating and of validating ones.
  CaBundle(kube::Transport& transport, const std::vector<std::string>& names,
           server::Metrics& metrics);

  // PEM. What cannot be written is logged and tried again.
  void Set(const std::string& ca);

 private:
  struct Kept {
    kube::Resource resource;
    std::string name;
    std::string told = {};  // the trouble that was logged last
  };

  void Look();
  void Read(Kept& kept);
  void Compare(Kept& kept, kube::Response&& response);
  void Ended(Kept& kept, const kube::ApiError& error, bool wrote);

  kube::Transport& transport_;
  server::Metrics& metrics_;
  std::string bundle_;      // base64 of the PEM
  std::vector<Kept> kept_;  // does not grow once made
  kube::Transport::Id timer_ = 0;
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
