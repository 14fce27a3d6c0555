// The virtual cluster's objects are those of the controllers: JSON trees in a store, and what reads
// and expands them. Here they are spoken of without a prefix.
#pragma once

#include "control/conditions.h"
#include "control/expand.h"
#include "control/json.h"
#include "control/names.h"
#include "control/store.h"
#include "control/vcjob.h"

namespace hopwise::sim {

using namespace control;  // NOLINT(google-build-using-namespace): one language, two modules

}  // namespace hopwise::sim
