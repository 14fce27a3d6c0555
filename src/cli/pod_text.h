// A pod as kubectl's table shows it.
#pragma once

#include <cstdint>
#include <string>

#include "api/json.h"

namespace hopwise::cli {

struct PodText {
  std::string status;  // "Running", "Init:0/1", "CrashLoopBackOff", "Terminating", …
  int64_t ready = 0, containers = 0, restarts = 0;
};
PodText TextOfPod(const json::Json& pod);

}  // namespace hopwise::cli
