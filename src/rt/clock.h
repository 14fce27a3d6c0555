// The machine's clocks. The only place that reads them.
#pragma once

#include "base/time.h"

namespace hopwise::rt {

Time WallNow();  // since 1970; may jump
// Never goes back, and runs on while the machine is suspended; its zero means nothing.
Time MonotonicNow();
// Lets what comes within so short a time be handled together. Not to wait for something: that is
// told by an event.
void Pause(Duration duration);
Duration CpuUsed();  // of the whole process, user and system
// Resident memory of this process in bytes; 0 when the system does not say.
int64_t ResidentBytes();

}  // namespace hopwise::rt
