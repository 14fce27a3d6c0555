// Small files, whole: certificates, tokens, configurations.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace hopwise::rt {

// The file's bytes. "cannot read PATH: why" as kNotFound when it is not there, else as kIo; more
// than `most_bytes` is some other file and kTooLarge.
Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes);

}  // namespace hopwise::rt
