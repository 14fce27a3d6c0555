// Where log records go: lines on a file descriptor, as text or as JSON, each with its time.
#pragma once

#include <cstdint>

#include "base/log.h"

namespace hopwise::rt {

enum class LogFormat : uint8_t { kText, kJson };

// 2026-01-02T03:04:05.678Z INFO  gang_placed gang=ml/train pods=16
// {"time":"2026-01-02T03:04:05.678Z","level":"info","event":"gang_placed","gang":"ml/train",…}
// One write per line, so that lines of several threads do not mix.
LogSink MakeLogSink(LogFormat format, int fd);

}  // namespace hopwise::rt
