// Guards the fabric against a discovery that went blind: a source that suddenly finds nothing, or
// would delete more than a share of its HyperNodes, is held. Its HyperNodes stay as they are until
// it has said the same for a while, or a person confirms it. One Hold for each source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "control/discovery.h"

namespace hopwise::control {

struct HoldOptions {
  // More than so many percent of the source's HyperNodes deleted at once: held. 100: only when all
  // would go.
  int most_deleted_percent = 50;
  // Said so long without a break, it is believed.
  Duration believed_after = Seconds(600);
};

class Hold {
 public:
  explicit Hold(HoldOptions options) : options_(options) {}

  struct Verdict {
    bool held = false;
    std::string token;  // what a person confirms; "" when not held
    std::string why;    // a sentence; "" when not held
    Time until;         // when it is believed, should it stay so
  };
  // `confirmed`: the token that a person gave, "" for none. Another deletion than before begins its
  // time anew.
  Verdict Judge(const HyperNodePlan& plan, Time now, std::string_view confirmed);

 private:
  HoldOptions options_;
  Time since_;            // not set: nothing is held
  std::string token_;     // of what is held
  std::string released_;  // of what was obeyed last: also when it takes more than one try
};

}  // namespace hopwise::control
