#include "rt/clock.h"

#include <cstdint>
#include <cstdio>
#include <ctime>

#include <unistd.h>

namespace hopwise::rt {
namespace {

int64_t Read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Time WallNow() { return {Read(CLOCK_REALTIME)}; }
Time MonotonicNow() { return {Read(CLOCK_BOOTTIME)}; }

void Pause(Duration duration) {
  const timespec span{duration.ns / 1'000'000'000, duration.ns % 1'000'000'000};
  nanosleep(&span, nullptr);
}

Duration CpuUsed() { return {Read(CLOCK_PROCESS_CPUTIME_ID)}; }

int64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) {
    return 0;
  }
  long long all = 0;
  long long resident = 0;
  const int read = std::fscanf(file, "%lld %lld", &all, &resident);
  std::fclose(file);
  return read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace hopwise::rt
