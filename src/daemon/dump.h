// /debug/state: the cluster as `hopwise simulate` reads it, so that a live problem can be replayed
// offline.
//
// The objects are read anew from the API server and pruned: what a scheduler has no use for (env,
// commands, volumes' contents, annotations of others) is left out, and with it every secret.
#pragma once

#include <string>

#include "api/json.h"
#include "base/result.h"
#include "kube/curl_transport.h"

namespace hopwise::daemon {

// A v1 List in JSON. `own` is what the scheduler itself knows, added as an object of kind
// SchedulerState. Waits for the server; not from the client's loop.
Result<std::string> DumpState(kube::CurlTransport& transport, json::Json own);

// One object of a dump, pruned. For tests.
json::Json Prune(const json::Json& object);

}  // namespace hopwise::daemon
