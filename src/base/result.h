// Errors as values. Result<T> holds a T or an Error; nothing is thrown across modules.
// Use it for the outside world (files, users' objects). "No placement" is not an error and has its
// own types in sched.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace hopwise {

enum class ErrorCode : uint8_t {
  kInvalid,      // the input is malformed or out of range
  kOverflow,     // a number does not fit; what stands in for it is saturated
  kNotFound,     // something named does not exist
  kTooLarge,     // a limit of ours was reached (depth, aliases, size)
  kUnsupported,  // known, but not served
  kIo,           // the operating system refused
};

// `message` is a whole sentence for the person who must act: it names the file, object and field
// where the caller knows them (callers prepend context on the way up with Prefix).
struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;

  // The same error with `context` and ": " before its message.
  [[nodiscard]] Error Prefix(const std::string& context) const {
    return {code, context + ": " + message};
  }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
inline tl::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalid, std::move(message));
}

}  // namespace hopwise
