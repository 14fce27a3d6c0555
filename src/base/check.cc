#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hopwise {

void CheckFailed(const char* file, int line, const char* condition) {
  // stdio, not the log facade: its sink may be what is broken.
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace hopwise
