// Other schedulers that are alive and serve one of our scheduler names. Two that do would bind the
// same pods, each with its own idea of what is free.
//
// Whether one is alive is told by its Lease: it is looked at twice, as long apart as it may go
// unrenewed. Volcano's is volcano-system/vc-scheduler (of old: volcano-system/volcano),
// kube-scheduler's kube-system/kube-scheduler. Another Hopwise has one of another name in our
// namespace, and says on it by an annotation which names it serves.
#pragma once

#include <string>

#include "base/result.h"
#include "daemon/options.h"
#include "kube/curl_transport.h"

namespace hopwise::daemon {

// On our Lease: "volcano,hopwise".
inline constexpr const char* kServedNames = "hopwise.dev/scheduler-names";
std::string ServedNames(const SchedulerOptions& options);

// An error names the first rival that is found, and what can be done. A Lease that may not be read
// is logged and passed over. Waits for the answers; not from the client's loop.
Status LookForRivals(kube::CurlTransport& transport, const SchedulerOptions& options);

}  // namespace hopwise::daemon
