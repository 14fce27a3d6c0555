// Typed objects -> JSON, for what is written of them.
#pragma once

#include "api/batch.h"
#include "api/json.h"

namespace hopwise::api {

// {"name": "value"} of a map.
json::Json Encode(const StringMap& map);
// tier, tierName and members.
json::Json EncodeSpec(const HyperNode& hypernode);
// A metav1.Condition; without an observedGeneration where it is 0.
json::Json Encode(const Condition& condition, int64_t observed_generation = 0);

}  // namespace hopwise::api
