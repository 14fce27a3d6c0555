// What a reconciler wants done: writes in steps, Events, and when to be asked again. `hopwise
// controller` carries it out on the API server, the simulator on its own objects.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "control/json.h"
#include "control/store.h"

namespace hopwise::control {

struct Write {
  enum class Verb : uint8_t { kCreate, kPatch, kPatchStatus, kDelete };
  Verb verb = Verb::kCreate;
  Key key;
  // The whole object; a merge patch; DeleteOptions, or null. A patch holds uid or resourceVersion
  // where these are to match.
  Json body;
  std::string uid;         // of a deletion: the one that is meant
  bool exists_ok = false;  // of a creation: an object of the name that is there already will do
};

struct Happening {
  Key about;
  std::string uid;
  bool warning = false;
  std::string reason, message;
};

struct Outcome {
  // The writes of a step may go at once; a step begins when the one before went well.
  std::vector<std::vector<Write>> steps;
  std::vector<Happening> events;
  Time again;  // when time alone changes what is wanted; not set: it does not
};

// The merge patch that makes `to` of `from`, null where they are equal. Members that `to` lacks are
// removed.
Json MergeDiff(const Json& from, const Json& to);

}  // namespace hopwise::control
