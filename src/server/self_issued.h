// Certificates that a server makes for itself: a CA of its own, a certificate of that CA, and both
// anew before they expire.
//
// What is trusted changes before what is presented: a new CA joins the one before it first, and
// signs a certificate only when whoever trusts `ca` has had kTrustSpreads to take it up. An old CA
// is trusted until it expires.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace hopwise::server {

// All of them PEM; all empty: nothing was issued yet.
struct SelfIssued {
  std::string ca;  // certificates: the present CA first, then those before it
  std::string ca_key;
  std::string cert, key;

  friend bool operator==(const SelfIssued&, const SelfIssued&) = default;
};

struct IssueTerms {
  std::vector<std::string> names;  // DNS names and IP addresses
  Duration validity;               // of the certificate; that of the CA is ten times as long
};

// An API server asks with what it has read of a webhook's configuration, which it watches.
inline constexpr Duration kTrustSpreads = Seconds(10);

// What `present` must become at `now`; the same while all is well. What cannot be read, has
// expired, or is for other names is made anew; a certificate is when a third of its time is left,
// a CA when it would expire before a certificate made now.
Result<SelfIssued> Renew(const SelfIssued& present, const IssueTerms& terms, Time now);

// When the first certificate of a PEM text expires; unset when it cannot be read.
Time ExpiryOf(const std::string& pem);

}  // namespace hopwise::server
