#include "rt/files.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hopwise::rt {
namespace {

// Reads until the end or a little beyond the limit; false with errno set when that fails.
bool ReadUpTo(int fd, size_t most_bytes, std::string& text) {
  std::array<char, 16384> buffer{};
  while (text.size() <= most_bytes) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno != EINTR) {
      return false;
    }
    if (got == 0) {
      return true;
    }
    if (got > 0) {
      text.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  return true;
}

}  // namespace

Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: a pipe without a writer would keep whoever opens it.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  std::string text;
  struct stat kind = {};
  if (fd >= 0 && fstat(fd, &kind) == 0 && S_ISFIFO(kind.st_mode)) {
    close(fd);
    return Fail(ErrorCode::kIo, "cannot read " + path + ": it is a pipe, not a file");
  }
  const bool read_all = fd >= 0 && ReadUpTo(fd, most_bytes, text);
  const int error = errno;
  if (fd >= 0) {
    close(fd);
  }
  if (!read_all) {
    return Fail(error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
                "cannot read " + path + ": " + std::strerror(error));
  }
  if (text.size() > most_bytes) {
    return Fail(ErrorCode::kTooLarge, path + " is larger than " +
                                          std::to_string(most_bytes >> 20U) +
                                          " MiB; that is some other file");
  }
  return text;
}

}  // namespace hopwise::rt
