// HOPWISE_CHECK(condition): a broken invariant of ours ends the process, in release builds too,
// with file, line and the condition. Never used for what users or the API server send.
#pragma once

namespace hopwise {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace hopwise

#define HOPWISE_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::hopwise::CheckFailed(__FILE__, __LINE__, #condition))
