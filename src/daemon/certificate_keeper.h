// Keeps the certificates that the webhook issues itself in a Secret, so that all replicas present
// the same ones: made by whoever comes first, renewed by whoever sees first that it is due. Lives
// on the client's loop.
#pragma once

#include <functional>
#include <string>

#include "kube/errors.h"
#include "kube/lifeline.h"
#include "kube/transport.h"
#include "server/self_issued.h"

namespace hopwise::daemon {

// How often the Secret is looked at, with a validity of days; a shorter one is looked at ten times.
inline constexpr Duration kSecretLook = Seconds(10);
inline constexpr Duration kSecretRetry = Seconds(1);

class CertificateKeeper {
 public:
  struct Options {
    std::string ns, secret;
    server::IssueTerms terms;
  };
  struct Handlers {
    // What is to be presented and trusted from now on: at first, and whenever it changes.
    std::function<void(const server::SelfIssued&)> issued;
    // Why the Secret cannot be read or written; "" when it can again.
    std::function<void(const std::string&)> trouble;
  };
  CertificateKeeper(kube::Transport& transport, Options options, Handlers handlers)
      : transport_(transport), options_(std::move(options)), handlers_(std::move(handlers)) {}
  CertificateKeeper(const CertificateKeeper&) = delete;
  CertificateKeeper& operator=(const CertificateKeeper&) = delete;

  void Start() { Look(); }

 private:
  void Look();
  void LookIn(Duration pause);
  void Read(kube::Response&& response);
  void Write(server::SelfIssued next, const std::string& version);
  void Adopt(server::SelfIssued next);
  void Fail(const std::string& why);
  [[nodiscard]] std::string Name() const { return options_.ns + "/" + options_.secret; }

  kube::Transport& transport_;
  Options options_;
  Handlers handlers_;
  server::SelfIssued present_;
  std::string trouble_;
  kube::Lifeline lifeline_;
};

}  // namespace hopwise::daemon
