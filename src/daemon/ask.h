// Requests that a thread other than the client's loop waits for: at start, and for dumps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/options.h"
#include "kube/curl_transport.h"
#include "kube/errors.h"
#include "kube/resources.h"

namespace hopwise::daemon {

struct WebhookOptions;

kube::Response Ask(kube::CurlTransport& transport, kube::Request request);

// One page of all objects of a resource; `token` as the page before gave it, "" for the first.
kube::Response AskPage(kube::CurlTransport& transport, const kube::Resource& resource,
                       const std::string& token);

// What must be allowed: as RBAC names it.
struct Right {
  std::string_view verb;
  std::string_view group, resource, subresource;
  std::string ns;         // "": everywhere
  std::string name = {};  // "": all of the resource
};
// What each needs for all it does; less for a dry run.
std::vector<Right> SchedulerRights(const SchedulerOptions& options);
std::vector<Right> ControllerRights(const ControllerOptions& options);
std::vector<Right> WebhookRights(const WebhookOptions& options);
// `create pods/binding`, `patch podgroups.scheduling.volcano.sh`, …
std::string RightText(const Right& right);

// Waits until the server answers us, for `limit` at most, and asks it for each right. The error
// says what to do: unreachable, not authenticated, or which rights are missing and the manifest
// that grants them.
Status CheckAccess(kube::CurlTransport& transport, const std::vector<Right>& rights,
                   std::string_view manifest, Duration limit);

}  // namespace hopwise::daemon
